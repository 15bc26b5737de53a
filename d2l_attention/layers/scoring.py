"""How well a query and a key fit: score functions, and the layers with them."""

from d2l_attention._checks import check_positive, check_rate, differ
from d2l_attention.layers.base import (
    AttentionLayer,
    default_shapes,
    drop,
)
from d2l_attention.layers.masking import join_causal_mask, masked_softmax
import keras
from keras import ops


def dot_product_scores(query, key):
    """The dot product of each query with each key.

        scores_ts = query_t · key_s

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("dot").

    Args:
        query, key: Float tensors `(…, T, K)` and `(…, S, K)`.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.scoring import dot_product_scores
        >>> query, key = np.array([[[1.0, 2.0]]]), np.array([[[3.0, 4.0]]])
        >>> np.array(dot_product_scores(query, key)).tolist()  # 3 + 8
        [[[11.0]]]
    """
    check_equal_features("The dot product", query.shape, key.shape)
    return ops.einsum("...tk,...sk->...ts", query, key)


def scaled_dot_product_scores(query, key):
    """The dot product of each query with each key, divided by √K.

        scores_ts = query_t · key_s / √K

    The scores have variance 1 if the entries of query and key are independent
    and standard normal.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.1.

    Args:
        query, key: Float tensors `(…, T, K)` and `(…, S, K)`.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.scoring import scaled_dot_product_scores
        >>> query, key = np.ones((1, 1, 4)), np.ones((1, 2, 4))
        >>> np.array(scaled_dot_product_scores(query, key)).tolist()  # 4 / 2
        [[[2.0, 2.0]]]
    """
    query = ops.divide(query, ops.shape(key)[-1] ** 0.5)
    return dot_product_scores(query, key)


def gaussian_scores(query, key):
    """The exponent of a Gaussian kernel of width 1, as in chapter 02.

        scores_ts = −½ ‖query_t − key_s‖²

    Source: document 001, attention pooling (Nadaraya–Watson).

    Args:
        query, key: Float tensors `(…, T, K)` and `(…, S, K)`.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.scoring import gaussian_scores
        >>> query, key = np.array([[[1.0]]]), np.array([[[2.0], [3.0]]])
        >>> np.array(gaussian_scores(query, key)).tolist()  # −½ 1², −½ 2²
        [[[-0.5, -2.0]]]
    """
    check_equal_features("The Gaussian score", query.shape, key.shape)
    differences = ops.subtract(
        ops.expand_dims(query, -2), ops.expand_dims(key, -3)
    )
    return -0.5 * ops.sum(ops.square(differences), axis=-1)


def bilinear_scores(query, key, kernel):
    """The dot product of keys and queries times a learned matrix.

        scores_ts = query_tᵀ W key_s

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("general").

    Args:
        query, key: Float tensors `(…, T, D)` and `(…, S, D')`.
        kernel: Float tensor `(D, D')`, W.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.scoring import bilinear_scores
        >>> query, key = np.ones((1, 1, 2)), np.ones((1, 1, 3), "float32")
        >>> kernel = np.arange(6.0).reshape(2, 3)
        >>> np.array(bilinear_scores(query, key, kernel)).tolist()  # 0 + … + 5
        [[[15.0]]]
    """
    return dot_product_scores(ops.matmul(query, kernel), key)


def additive_scores(
    query, key, query_kernel, key_kernel, score_kernel, bias=0.0
):
    """A perceptron with one hidden layer over query and key.

        scores_ts = vᵀ tanh(W_q query_t + W_k key_s + b)

    Source: Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2.

    Args:
        query, key: Float tensors `(…, T, D)` and `(…, S, D')`.
        query_kernel, key_kernel: Float tensors `(D, U)` and `(D', U)`.
        score_kernel, bias: Float tensors `(U,)`, v and b; a bias of 0 = none.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.scoring import additive_scores
        >>> query, key = np.ones((1, 1, 2)), np.ones((1, 3, 4))
        >>> zeros = np.zeros((2, 5)), np.zeros((4, 5))
        >>> scores = additive_scores(query, key, *zeros, np.ones(5), bias=9.0)
        >>> np.array(scores).round(3).tolist()  # 5 tanh 9
        [[[5.0, 5.0, 5.0]]]
    """
    projected_query = ops.add(ops.matmul(query, query_kernel), bias)
    projected_key = ops.matmul(key, key_kernel)
    return perceptron_scores(projected_query, projected_key, score_kernel)


def concat_scores(query, key, kernel, score_kernel):
    """A perceptron with one hidden layer over the joined query and key.

        scores_ts = vᵀ tanh(W [query_t; key_s])

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("concat").

    Args:
        query, key: Float tensors `(…, T, D)` and `(…, S, D')`.
        kernel: Float tensor `(D + D', U)`, W.
        score_kernel: Float tensor `(U,)`, v.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.scoring import concat_scores
        >>> query, key = np.ones((1, 2, 1)), np.ones((1, 3, 1))
        >>> kernel = np.array([[1.0], [-1.0]])  # W [q; k] = q − k
        >>> np.array(concat_scores(query, key, kernel, np.ones(1))).tolist()
        [[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]
    """
    t, s = ops.shape(query)[-2], ops.shape(key)[-2]
    pairs = ops.concatenate(  # (B, T, S, query + key features)
        [
            ops.repeat(ops.expand_dims(query, -2), s, axis=-2),
            ops.repeat(ops.expand_dims(key, -3), t, axis=-3),
        ],
        axis=-1,
    )
    hidden = ops.tanh(ops.matmul(pairs, kernel))
    return ops.sum(ops.multiply(hidden, score_kernel), axis=-1)


def perceptron_scores(projected_query, projected_key, score_kernel):
    query = ops.expand_dims(projected_query, -2)  # (B, T, 1, U)
    key = ops.expand_dims(projected_key, -3)  # (B, 1, S, U)
    hidden = ops.tanh(ops.add(query, key))  # (B, T, S, U)
    return ops.sum(ops.multiply(hidden, score_kernel), axis=-1)


def check_equal_features(name, query_shape, key_shape):
    if differ(query_shape[-1], key_shape[-1]):
        raise ValueError(
            f"{name} needs queries and keys of equal size. Received: "
            f"query {tuple(query_shape)}, key {tuple(key_shape)}."
        )


class ScoredAttention(AttentionLayer):
    """Scores, masked softmax, weighted sum; a subclass gives the scores.

        weights = masked_softmax(score(query, key), mask)
        output  = dropout(weights) value

    A subclass whose score takes projected queries or keys overrides
    `project_query` or `project_key` too.
    """

    def __init__(self, *, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )

    def score(self, query, key):
        """Scores `(B, T, S)` of projected queries and keys."""
        raise NotImplementedError

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
    ):
        scores = self.score(query, key)  # (B, T, S)
        if use_causal_mask:
            mask = join_causal_mask(mask, query, key)
        weights = masked_softmax(scores, mask)
        dropped = drop(self.dropout_layer, weights, training)
        return ops.matmul(dropped, value), weights  # (B, T, V)


@keras.saving.register_keras_serializable("d2l_attention")
class DotProductAttention(ScoredAttention):
    """Scaled dot-product attention.

        weights = softmax(scale · query keyᵀ),  output = weights value

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.1; documents
    001 (scaled dot-product attention) and 004, section 1.

    Args:
        scale: Float, factor of the scores; None = 1/√K, 1.0 = unscaled.
        dropout: Float in [0, 1), rate of dropout on the weights.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import DotProductAttention
        >>> query, key = np.ones((1, 1, 2)), np.ones((1, 3, 2))
        >>> value = np.array([[[1.0], [3.0], [9.0]]])
        >>> mask = np.array([[True, True, False]])  # the third is padding
        >>> output = DotProductAttention()(query, value, key=key, key_mask=mask)
        >>> np.array(output).tolist()  # the mean of 1 and 3
        [[[2.0]]]
    """

    def __init__(self, *, scale=None, **options):
        super().__init__(**options)
        self.scale = scale

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        check_equal_features("The dot product", query, key)

    def score(self, query, key):
        if self.scale is None:
            return scaled_dot_product_scores(query, key)
        return self.scale * dot_product_scores(query, key)


@keras.saving.register_keras_serializable("d2l_attention")
class AdditiveAttention(ScoredAttention):
    """Additive (Bahdanau) attention: a perceptron scores query and key.

        scores = vᵀ tanh(W_q query + W_k key + b)

    Source: Bahdanau et al. (2015), arXiv:1409.0473, appendix A.1.2; documents
    001 (additive attention), 003 and 004, section 11.
    Unlike `keras.layers.AdditiveAttention`, it has the projections W_q and
    W_k, so queries and keys may differ in size.

    Args:
        units: Positive int, width U of the hidden layer.
        use_bias: Whether to add b, which document 004 has and 001 has not.
        dropout: Float in [0, 1), rate of dropout on the weights.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AdditiveAttention
        >>> query, key = np.ones((1, 2, 4)), np.ones((1, 3, 6))
        >>> tuple(AdditiveAttention(units=5)(query, key=key).shape)
        (1, 2, 6)
    """

    def __init__(self, units, *, use_bias=False, **options):
        super().__init__(**options)
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

    def project_query(self, query, start=0):
        projected = ops.matmul(query, self.query_kernel)
        return projected + self.bias if self.use_bias else projected

    def project_key(self, key, start=0):
        return ops.matmul(key, self.key_kernel)

    def score(self, query, key):
        return perceptron_scores(query, key, self.score_kernel)


@keras.saving.register_keras_serializable("d2l_attention")
class BilinearAttention(ScoredAttention):
    """Bilinear (general, multiplicative) attention.

        scores = query W keyᵀ

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("general");
    documents 000, eq. 2.4, 003 and 004, section 1.

    Args:
        dropout: Float in [0, 1), rate of dropout on the weights.

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
class ConcatAttention(ScoredAttention):
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

    def __init__(self, units, **options):
        super().__init__(**options)
        self.units = check_positive("units", units)

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        query_size, key_size = query[-1], key[-1]
        shape = (query_size + key_size, self.units)
        self.kernel = self.add_weight(shape, name="W")
        self.score_kernel = _add_score_kernel(self, self.units)

    def score(self, query, key):
        return concat_scores(query, key, self.kernel, self.score_kernel)


def _add_score_kernel(layer, units):
    """v `(U,)`, drawn as a Dense layer of one unit would draw it."""
    limit = (6 / (units + 1)) ** 0.5
    initializer = keras.initializers.RandomUniform(-limit, limit)
    return layer.add_weight((units,), initializer, name="v")
