"""Nadaraya–Watson kernel regression: attention before neural networks."""

from d2l_attention.layers.base import default_shapes
from d2l_attention.layers.masking import masked_softmax
from d2l_attention.layers.scoring import ScoredAttention, gaussian_scores
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

    Example:
        >>> import numpy as np
        >>> from d2l_attention import nadaraya_watson
        >>> query, key = np.array([[[0.0]]]), np.array([[[-1.0], [1.0]]])
        >>> value = np.array([[[2.0], [4.0]]])
        >>> np.array(nadaraya_watson(query, key, value)).tolist()  # halfway
        [[[3.0]]]
    """
    if np.isscalar(width) and not width > 0:
        raise ValueError(f"`width` must be positive. Received: width={width}.")
    query, key, value = (
        ops.convert_to_tensor(x, keras.config.floatx())
        for x in (query, key, value)
    )
    scores = gaussian_scores(query, key) / width**2
    weights = masked_softmax(scores, attention_mask)
    output = ops.matmul(weights, value)
    return (output, weights) if return_attention_scores else output


@keras.saving.register_keras_serializable("d2l_attention")
class NWKernelRegression(ScoredAttention):
    """Nadaraya–Watson regression with a learned width.

        scores_ts = −½ (w ‖query_t − key_s‖)²,  w = 1/width

    Source: document 001, attention pooling with parameters.

    Args:
        dropout: Float in [0, 1), rate of dropout on the weights.

    While training, leave each point out of its own prediction, with
    `attention_mask`: otherwise the best width is 0.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import NWKernelRegression
        >>> x, y = np.array([[[0.0], [1], [2]]]), np.array([[[5.0], [0], [7]]])
        >>> others = ~np.eye(3, dtype=bool)  # a point does not see itself
        >>> output = NWKernelRegression()(x, y, key=x, attention_mask=others)
        >>> float(output[0, 1, 0])  # at 1: the mean of 5 and 7
        6.0
    """

    def build(self, query_shape, value_shape=None, key_shape=None):
        default_shapes(query_shape, value_shape, key_shape)
        self.factor = self.add_weight((), "ones", name="w")

    def score(self, query, key):
        return gaussian_scores(query, key) * self.factor**2
