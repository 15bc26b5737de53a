"""Nadaraya–Watson kernel regression: attention before neural networks."""

from d2l_attention.attention_layer import AttentionLayer
from d2l_attention.masking import masked_softmax
import keras
from keras import ops
import numpy as np


def nadaraya_watson(
    query,
    key,
    value,
    width=1.0,
    *,
    attention_mask=None,
    return_attention_scores=False,
):
    """A weighted mean of the values, near keys weighing more.

        output_t = Σ_s w_ts value_s,  w_ts ∝ exp(−‖query_t − key_s‖²/(2 width²))

    Source: Nadaraya (1964), Watson (1964); document 001, attention pooling.

    Args:
        query: Float tensor `(B, T, D)`, where to predict.
        key: Float tensor `(B, S, D)`, where something was observed.
        value: Float tensor `(B, S, V)`, what was observed.
        width: Float, standard deviation of the Gaussian kernel.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`; a point
            left out of its own prediction is False.
        return_attention_scores: If True, also return the weights.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`.

    Raises:
        ValueError: If `width` is a number that is not positive, or query and
            key differ in size.
    """
    if np.isscalar(width) and not width > 0:
        raise ValueError(f"`width` must be positive. Received: width={width}.")
    query, key, value = (
        ops.convert_to_tensor(x, keras.config.floatx())
        for x in (query, key, value)
    )
    scores = _gaussian_exponent(query, key, 1 / width)
    weights = masked_softmax(scores, attention_mask)
    output = ops.matmul(weights, value)
    return (output, weights) if return_attention_scores else output


def _gaussian_exponent(query, key, factor):
    """−½ factor² ‖q − k‖²; the factor is 1/width."""
    if query.shape[-1] != key.shape[-1]:  # or one feature would broadcast
        raise ValueError(
            "Queries and keys must have as many features. Received: query "
            f"{tuple(query.shape)}, key {tuple(key.shape)}."
        )
    differences = query[:, :, None, :] - key[:, None, :, :]  # (B, T, S, D)
    scaled = ops.multiply(differences, factor)
    return -0.5 * ops.sum(ops.square(scaled), axis=-1)


@keras.saving.register_keras_serializable("d2l_attention")
class NWKernelRegression(AttentionLayer):
    """Nadaraya–Watson regression with a learned width.

        scores_ts = −½ (w ‖query_t − key_s‖)²,  w = 1/width

    Source: document 001, attention pooling with parameters.

    Args:
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments, returns and errors: see `AttentionLayer`. While training,
    leave each point out of its own prediction with an `attention_mask`, or
    the best width is none at all.
    """

    def build(self, query_shape):
        self.factor = self.add_weight((), "ones", name="w")

    def score(self, query, key):
        return _gaussian_exponent(query, key, self.factor)
