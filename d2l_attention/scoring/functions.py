"""How well a query and a key fit: the score functions."""

from keras import ops


def dot_product_scores(query, key):
    """The dot product of each query with each key.

        scores_ts = query_t · key_s

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("dot").

    Args:
        query: Float tensor `(…, T, K)`.
        key: Float tensor `(…, S, K)`, of as many features.

    Returns:
        Float tensor `(…, T, S)`.

    Raises:
        ValueError: If query and key differ in their number of features.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import dot_product_scores
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
        query: Float tensor `(…, T, K)`.
        key: Float tensor `(…, S, K)`, of as many features.

    Returns:
        Float tensor `(…, T, S)`.

    Raises:
        ValueError: If query and key differ in their number of features.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import scaled_dot_product_scores
        >>> query, key = np.ones((1, 1, 4)), np.ones((1, 2, 4))
        >>> np.array(scaled_dot_product_scores(query, key)).tolist()  # 4 / 2
        [[[2.0, 2.0]]]
    """
    return dot_product_scores(query, key) / ops.shape(key)[-1] ** 0.5


def gaussian_scores(query, key):
    """The exponent of a Gaussian kernel of width 1, as in chapter 02.

        scores_ts = −½ ‖query_t − key_s‖²

    Source: document 001, attention pooling (Nadaraya–Watson).

    Args:
        query: Float tensor `(…, T, K)`.
        key: Float tensor `(…, S, K)`, of as many features.

    Returns:
        Float tensor `(…, T, S)`.

    Raises:
        ValueError: If query and key differ in their number of features.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import gaussian_scores
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
    """The dot product behind a learned matrix.

        scores_ts = query_tᵀ W key_s

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("general").

    Args:
        query: Float tensor `(…, T, D)`.
        key: Float tensor `(…, S, D')`.
        kernel: Float tensor `(D, D')`, W.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import bilinear_scores
        >>> query, key = np.ones((1, 1, 2)), np.ones((1, 1, 3))
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
        query: Float tensor `(…, T, D)`.
        key: Float tensor `(…, S, D')`.
        query_kernel: Float tensor `(D, U)`, W_q.
        key_kernel: Float tensor `(D', U)`, W_k.
        score_kernel: Float tensor `(U,)`, v.
        bias: Float tensor `(U,)`, b; 0 = none.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import additive_scores
        >>> query, key = np.ones((1, 1, 2)), np.ones((1, 3, 4))
        >>> zeros = np.zeros((2, 5)), np.zeros((4, 5))
        >>> scores = additive_scores(query, key, *zeros, np.ones(5), bias=9.0)
        >>> np.array(scores).round(3).tolist()  # 5 tanh 9
        [[[5.0, 5.0, 5.0]]]
    """
    projected_query = ops.matmul(query, query_kernel) + bias
    projected_key = ops.matmul(key, key_kernel)
    return perceptron_scores(projected_query, projected_key, score_kernel)


def concat_scores(query, key, kernel, score_kernel):
    """A perceptron with one hidden layer over the joined query and key.

        scores_ts = vᵀ tanh(W [query_t; key_s])

    Source: Luong et al. (2015), arXiv:1508.04025, section 3.1 ("concat").

    Args:
        query: Float tensor `(…, T, D)`.
        key: Float tensor `(…, S, D')`.
        kernel: Float tensor `(D + D', U)`, W.
        score_kernel: Float tensor `(U,)`, v.

    Returns:
        Float tensor `(…, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import concat_scores
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
    return ops.sum(hidden * score_kernel, axis=-1)


def perceptron_scores(projected_query, projected_key, score_kernel):
    query = ops.expand_dims(projected_query, -2)  # (B, T, 1, U)
    key = ops.expand_dims(projected_key, -3)  # (B, 1, S, U)
    hidden = ops.tanh(ops.add(query, key))  # (B, T, S, U)
    return ops.sum(hidden * score_kernel, axis=-1)


def check_equal_features(name, query_shape, key_shape):
    if None not in (query_shape[-1], key_shape[-1]):
        if query_shape[-1] != key_shape[-1]:
            raise ValueError(
                f"{name} needs queries and keys of equal size. Received: "
                f"query {tuple(query_shape)}, key {tuple(key_shape)}."
            )
