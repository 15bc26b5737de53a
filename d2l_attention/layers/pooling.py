"""Pooling by attention: one vector for a whole sequence."""

from d2l_attention._checks import check_positive, check_token_mask
from d2l_attention._config import Configurable
from d2l_attention.layers.base import output_spec
from d2l_attention.layers.masking import masked_softmax
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class AttentionPooling(Configurable, keras.Layer):
    """One vector for a sequence: additive attention with a learned query.

        u_t = tanh(W h_t + b),  a = softmax_t(u_tᵀ q),  s = Σ_t a_t h_t

    Source: Yang et al. (2016), NAACL, section 2.2; documents 000, section
    2.2.4, and 003, whose query may be learned.

    Args:
        units: Positive int, width U of the hidden layer.

    Call arguments:
        x: Float tensor `(…, T, D)`.
        mask: Bool tensor `(…, T)`, True at the positions that count.
        return_attention_scores: If True, also return the weights.

    Returns:
        Float tensor `(…, D)`, and if asked the weights `(…, T)`. Both are 0
        for a sequence in which no position counts.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AttentionPooling
        >>> x, words = np.ones((1, 3, 4)), np.array([[True, True, False]])
        >>> layer = AttentionPooling(units=5)
        >>> _, weights = layer(x, mask=words, return_attention_scores=True)
        >>> np.array(weights).round(2).tolist()
        [[0.5, 0.5, 0.0]]
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = check_positive("units", units)
        self.hidden = keras.layers.Dense(
            self.units, "tanh", dtype=self.dtype_policy
        )
        self.supports_masking = True

    def build(self, x_shape):
        self.hidden.build(x_shape)
        # Not zeros: with equal scores, W would have no gradient.
        normal = keras.initializers.RandomNormal(stddev=0.1)
        self.query = self.add_weight((self.units,), normal, name="q")

    def call(self, x, mask=None, return_attention_scores=False):
        if mask is not None:
            check_token_mask("mask", mask, x.shape[:-1])
        hidden = self.hidden(x)  # (…, T, U)
        scores = ops.sum(hidden * self.query, axis=-1)  # (…, T)
        weights = masked_softmax(scores, mask)
        pooled = ops.sum(ops.expand_dims(weights, -1) * x, axis=-2)  # (…, D)
        return (pooled, weights) if return_attention_scores else pooled

    def compute_mask(self, x, mask=None):
        return None  # the output has no positions

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-2], x_shape[-1])

    def compute_output_spec(self, x, mask=None, return_attention_scores=False):
        if mask is not None:
            check_token_mask("mask", mask, x.shape[:-1])
        return output_spec(
            self,
            self.compute_output_shape(x.shape),
            x.shape[:-1],
            return_attention_scores,
        )
