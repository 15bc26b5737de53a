"""How well a query and a key fit: scores, and the layers built on them.

The functions are the equations; each layer owns the parameters of one.
"""

from d2l_attention._checks import check_positive
from d2l_attention.attention_layer import AttentionLayer
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


def dot_product_scores(query, key):
    """q·k, `(B, T, K)` and `(B, S, K)` to `(B, T, S)`."""
    _check_equal_features("The dot product", query, key)
    return ops.einsum("...tk,...sk->...ts", query, key)


def scaled_dot_product_scores(query, key):
    """q·k / √K, of variance 1 for independent standard normal entries."""
    return dot_product_scores(query, key) / ops.shape(key)[-1] ** 0.5


def gaussian_scores(query, key):
    """−½‖q − k‖², the exponent of the Gaussian kernel of chapter 02."""
    _check_equal_features("The Gaussian score", query, key)
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -0.5 * ops.sum(ops.square(differences), axis=-1)


def bilinear_scores(query, key, kernel):
    """qᵀWk, with W of shape `(query features, key features)`."""
    return dot_product_scores(ops.matmul(query, kernel), key)


def additive_scores(
    query, key, query_kernel, key_kernel, score_kernel, bias=0.0
):
    """vᵀtanh(W_q q + W_k k + b); W_q, W_k `(features, U)`, v and b `(U,)`."""
    projected_query = ops.matmul(query, query_kernel) + bias
    projected_key = ops.matmul(key, key_kernel)
    return _perceptron(projected_query, projected_key, score_kernel)


def concat_scores(query, key, kernel, score_kernel):
    """vᵀtanh(W[q; k]), with W of shape `(query + key features, U)`."""
    t, s = ops.shape(query)[-2], ops.shape(key)[-2]
    pairs = ops.concatenate(  # (B, T, S, query + key features)
        [
            ops.repeat(query[..., :, None, :], s, axis=-2),
            ops.repeat(key[..., None, :, :], t, axis=-3),
        ],
        axis=-1,
    )
    hidden = ops.tanh(ops.matmul(pairs, kernel))
    return ops.sum(hidden * score_kernel, axis=-1)


def _perceptron(projected_query, projected_key, score_kernel):
    hidden = ops.tanh(  # (B, T, S, U)
        projected_query[..., :, None, :] + projected_key[..., None, :, :]
    )
    return ops.sum(hidden * score_kernel, axis=-1)


def _check_equal_features(name, query, key):
    if None not in (query.shape[-1], key.shape[-1]):
        if query.shape[-1] != key.shape[-1]:
            raise ValueError(
                f"{name} needs queries and keys of equal size. Received: "
                f"query {tuple(query.shape)}, key {tuple(key.shape)}."
            )


@_register
class DotProductAttention(AttentionLayer):
    """Scaled dot-product attention.

        weights = softmax(scale · query keyᵀ),  output = weights value

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.1; documents
    001 (scaled dot-product attention) and 004, section 1.

    Args:
        scale: Float, factor of the scores; None = 1/√K, 1.0 = unscaled.
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments, returns and errors: see `AttentionLayer`; query and key
    have the same number of features K.
    """

    def __init__(self, scale=None, dropout=0.0, **kwargs):
        super().__init__(dropout=dropout, **kwargs)
        self.scale = scale

    def score(self, query, key):
        if self.scale is None:
            return scaled_dot_product_scores(query, key)
        return self.scale * dot_product_scores(query, key)

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}


@_register
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

    Call arguments, returns and errors: see `AttentionLayer`.
    """

    def __init__(self, units, dropout=0.0, use_bias=False, **kwargs):
        super().__init__(dropout=dropout, **kwargs)
        check_positive("units", units)
        self.units = units
        self.use_bias = use_bias

    def build(self, query_shape, key_shape=None):
        key_shape = query_shape if key_shape is None else key_shape
        u = self.units
        self.query_kernel = self.add_weight((query_shape[-1], u), name="W_q")
        self.key_kernel = self.add_weight((key_shape[-1], u), name="W_k")
        self.score_kernel = _add_score_kernel(self, u)
        if self.use_bias:
            self.bias = self.add_weight((u,), "zeros", name="b")

    def project_query(self, query):
        projected = ops.matmul(query, self.query_kernel)
        return projected + self.bias if self.use_bias else projected

    def project_key(self, key):
        return ops.matmul(key, self.key_kernel)

    def score(self, query, key):
        return _perceptron(query, key, self.score_kernel)

    def get_config(self):
        config = {"units": self.units, "use_bias": self.use_bias}
        return {**super().get_config(), **config}


@_register
class BilinearAttention(AttentionLayer):
    """Bilinear (general, multiplicative) attention.

        scores = query W keyᵀ

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("general");
    documents 000, eq. 2.4, 003 and 004, section 1.

    Args:
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments, returns and errors: see `AttentionLayer`.
    """

    def build(self, query_shape, key_shape=None):
        key_shape = query_shape if key_shape is None else key_shape
        shape = (query_shape[-1], key_shape[-1])
        self.kernel = self.add_weight(shape, name="W")

    def score(self, query, key):
        return bilinear_scores(query, key, self.kernel)


@_register
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

    Call arguments, returns and errors: see `AttentionLayer`.
    """

    def __init__(self, units, dropout=0.0, **kwargs):
        super().__init__(dropout=dropout, **kwargs)
        check_positive("units", units)
        self.units = units

    def build(self, query_shape, key_shape=None):
        key_shape = query_shape if key_shape is None else key_shape
        shape = (query_shape[-1] + key_shape[-1], self.units)
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
