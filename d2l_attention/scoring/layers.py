"""Attention layers, each owning the parameters of one score function."""

from d2l_attention._checks import check_positive
from d2l_attention.attention_layer import AttentionLayer, default_shapes
from d2l_attention.scoring.functions import (
    bilinear_scores,
    check_equal_features,
    concat_scores,
    dot_product_scores,
    perceptron_scores,
    scaled_dot_product_scores,
)
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class DotProductAttention(AttentionLayer):
    """Scaled dot-product attention.

        weights = softmax(scale · query keyᵀ),  output = weights value

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.1; documents
    001 (scaled dot-product attention) and 004, section 1.

    Args:
        scale: Float, factor of the scores; None = 1/√K, 1.0 = unscaled.
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments:
        query: Float tensor `(B, T, K)`.
        value: Float tensor `(B, S, V)`; defaults to `key`.
        key: Float tensor `(B, S, K)`; defaults to `value`. Without both, the
            queries are the keys and values.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`; True =
            may attend. Two axes are read as `(T, S)`, never as `(B, S)`.
        key_mask: Bool tensor `(B, S)`, True at keys that exist.
        value_mask: Bool tensor `(B, S)`; it masks the keys of these values.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise. Keras fills
            `mask` or the masks of query, key and value from implicit masks,
            such as that of `Embedding(mask_zero=True)`.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T.
        return_attention_scores: If True, also return the weights, as they
            were before dropout. (Keras chose the name; the
            weights after the softmax are meant.)
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`. A query with nothing to attend to gets zeros.

    Raises:
        ValueError: If `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import DotProductAttention
        >>> query, key = np.ones((1, 1, 2)), np.ones((1, 3, 2))
        >>> value = np.array([[[1.0], [3.0], [9.0]]])
        >>> mask = np.array([[True, True, False]])  # the third is padding
        >>> output = DotProductAttention()(
        ...     query, key=key, value=value, key_mask=mask
        ... )
        >>> np.array(output).tolist()  # the mean of 1 and 3
        [[[2.0]]]
    """

    def __init__(self, *, scale=None, dropout=0.0, **kwargs):
        super().__init__(dropout=dropout, **kwargs)
        self.scale = scale

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        check_equal_features("The dot product", query, key)

    def score(self, query, key):
        if self.scale is None:
            return scaled_dot_product_scores(query, key)
        return self.scale * dot_product_scores(query, key)

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}


@keras.saving.register_keras_serializable("d2l_attention")
class AdditiveAttention(AttentionLayer):
    """Additive (Bahdanau) attention: a perceptron scores query and key.

        scores = vᵀ tanh(W_q query + W_k key + b)

    Source: Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2; documents
    001 (additive attention), 003 and 004, section 11.
    Unlike `keras.layers.AdditiveAttention`, it has the projections W_q and
    W_k, so queries and keys may differ in size.

    Args:
        units: Positive int, width U of the hidden layer.
        dropout: Float in [0, 1), rate of dropout on the weights.
        use_bias: Whether to add b, which document 004 has and 001 has not.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, V)`; defaults to `key`.
        key: Float tensor `(B, S, D')`; defaults to `value`. Without both, the
            queries are the keys and values.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`; True =
            may attend.
        key_mask, value_mask: Bool tensors `(B, S)`, True at keys and values
            that exist.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`. A query with nothing to attend to gets zeros.

    Raises:
        ValueError: If `units` is not positive, `dropout` is outside [0, 1),
            or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AdditiveAttention
        >>> query, key = np.ones((1, 2, 4)), np.ones((1, 3, 6))
        >>> output, weights = AdditiveAttention(units=5)(
        ...     query, key=key, return_attention_scores=True
        ... )
        >>> tuple(output.shape), tuple(weights.shape)
        ((1, 2, 6), (1, 2, 3))
    """

    def __init__(self, units, *, dropout=0.0, use_bias=False, **kwargs):
        super().__init__(dropout=dropout, **kwargs)
        self.units = check_positive("units", units)
        self.use_bias = use_bias

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        query_size, key_size = query[-1], key[-1]
        u = self.units
        self.query_kernel = self.add_weight((query_size, u), name="W_q")
        self.key_kernel = self.add_weight((key_size, u), name="W_k")
        self.score_kernel = _add_score_kernel(self, u)
        if self.use_bias:
            self.bias = self.add_weight((u,), "zeros", name="b")

    def project_query(self, query):
        projected = ops.matmul(query, self.query_kernel)
        return projected + self.bias if self.use_bias else projected

    def project_key(self, key):
        return ops.matmul(key, self.key_kernel)

    def score(self, query, key):
        return perceptron_scores(query, key, self.score_kernel)

    def get_config(self):
        config = {"units": self.units, "use_bias": self.use_bias}
        return {**super().get_config(), **config}


@keras.saving.register_keras_serializable("d2l_attention")
class BilinearAttention(AttentionLayer):
    """Bilinear (general, multiplicative) attention.

        scores = query W keyᵀ

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("general");
    documents 000, eq. 2.4, 003 and 004, section 1.

    Args:
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, V)`; defaults to `key`.
        key: Float tensor `(B, S, D')`; defaults to `value`. Without both, the
            queries are the keys and values.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`; True =
            may attend.
        key_mask, value_mask: Bool tensors `(B, S)`, True at keys and values
            that exist.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`. A query with nothing to attend to gets zeros.

    Raises:
        ValueError: If `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import BilinearAttention
        >>> layer = BilinearAttention()
        >>> output = layer(np.ones((1, 2, 4)), key=np.ones((1, 3, 6)))
        >>> tuple(output.shape), tuple(layer.kernel.shape)
        ((1, 2, 6), (4, 6))
    """

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        self.kernel = self.add_weight((query[-1], key[-1]), name="W")

    def score(self, query, key):
        return bilinear_scores(query, key, self.kernel)


@keras.saving.register_keras_serializable("d2l_attention")
class ConcatAttention(AttentionLayer):
    """Concatenation attention: a perceptron over the joined pair.

        scores = vᵀ tanh(W [query; key])

    The same function as `AdditiveAttention` with W = [W_q; W_k], computed
    from `(B, T, S, D + D')` joined pairs; for teaching, not for speed.

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("concat").
    Unlike document 004, section 1, which omits the tanh: without it the
    query adds one constant to all scores and cancels in the softmax.

    Args:
        units: Positive int, width U of the hidden layer.
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, V)`; defaults to `key`.
        key: Float tensor `(B, S, D')`; defaults to `value`. Without both, the
            queries are the keys and values.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`; True =
            may attend.
        key_mask, value_mask: Bool tensors `(B, S)`, True at keys and values
            that exist.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`. A query with nothing to attend to gets zeros.

    Raises:
        ValueError: If `units` is not positive, `dropout` is outside [0, 1),
            or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ConcatAttention
        >>> x = np.ones((1, 3, 4))  # three tokens that are all alike
        >>> _, weights = ConcatAttention(units=5)(
        ...     x, use_causal_mask=True, return_attention_scores=True
        ... )
        >>> np.array(weights)[0].round(2).tolist()[1]  # sees tokens 0 and 1
        [0.5, 0.5, 0.0]
    """

    def __init__(self, units, *, dropout=0.0, **kwargs):
        super().__init__(dropout=dropout, **kwargs)
        self.units = check_positive("units", units)

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        query_size, key_size = query[-1], key[-1]
        shape = (query_size + key_size, self.units)
        self.kernel = self.add_weight(shape, name="W")
        self.score_kernel = _add_score_kernel(self, self.units)

    def score(self, query, key):
        return concat_scores(query, key, self.kernel, self.score_kernel)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def _add_score_kernel(layer, units):
    """v `(U,)`, drawn as a Dense layer of one unit would draw it."""
    limit = (6 / (units + 1)) ** 0.5
    initializer = keras.initializers.RandomUniform(-limit, limit)
    return layer.add_weight((units,), initializer, name="v")
