"""Attention in every head at once, as a function of projected tensors."""

import math

from d2l_attention.masking import masked_softmax
from keras import ops

# Up to this many multiplications, a sum of products beats a matrix product.
SMALL = 6_000
LONG = 256  # from this many keys on, a matrix product sums the values faster


def multi_head_attention(query, key, value, mask=None, dropout=None):
    """Scaled dot-product attention in each of H heads.

        weights = softmax(query keyᵀ / √K)
        output  = dropout(weights) value

    Source: Vaswani et al. (2017), arXiv:1706.03762, sections 3.2.1 and
    3.2.2; document 001, multi-head attention.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.
        value: Float tensor `(B, S, H, V)`.
        mask: Bool tensor `(T, S)`, `(B, 1, S)` or `(B, T, S)`, the same for
            every head, or `(B, H, T, S)`; True = may attend.
        dropout: Callable on the weights; None = no dropout.

    Returns:
        Float tensor `(B, T, H, V)`, and the weights `(B, H, T, S)` as they
        were before dropout. A query with nothing to attend to gets zeros.

    Raises:
        ValueError: If `mask` is not boolean, or does not fit.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import multi_head_attention
        >>> query, key = np.zeros((1, 1, 1, 2)), np.ones((1, 3, 1, 2))
        >>> value = np.array([1.0, 3.0, 9.0]).reshape(1, 3, 1, 1)
        >>> mask = np.array([[True, True, False]])
        >>> output, weights = multi_head_attention(query, key, value, mask)
        >>> np.array(output).tolist()  # the mean of 1 and 3
        [[[[2.0]]]]
        >>> np.array(weights).tolist()
        [[[[0.5, 0.5, 0.0]]]]
    """
    scores = multi_head_scores(query, key)  # (B, H, T, S)
    weights = masked_softmax(scores, with_head_axis(mask))
    kept = weights if dropout is None else dropout(weights)
    return multi_head_sum(kept, value), weights  # (B, T, H, V)


def with_head_axis(mask):
    """A mask `(B, T, S)` as `(B, 1, T, S)`, for all heads; others unchanged."""
    has_batch = mask is not None and len(mask.shape) == 3
    return ops.expand_dims(mask, 1) if has_batch else mask


def multi_head_scores(query, key):
    """Scaled dot products, `(B, T, H, K)` and `(B, S, H, K)` to `(B, H, T, S)`.

    scores[b, h, t, s] = query[b, t, h] · key[b, s, h] / √K
    """
    if _sum_is_faster(query.shape[1], key.shape[1], key.shape[3]):
        pairs = ops.multiply(ops.expand_dims(query, 2), ops.expand_dims(key, 1))
        scores = ops.sum(pairs, axis=-1)  # (B, T, S, H)
        scores = ops.transpose(scores, (0, 3, 1, 2))
    else:
        scores = ops.einsum("bthk,bshk->bhts", query, key)
    return scores / key.shape[-1] ** 0.5


def multi_head_sum(weights, value):
    """Weighted sums, `(B, H, T, S)` and `(B, S, H, V)` to `(B, T, H, V)`.

    output[b, t, h] = Σ_s weights[b, h, t, s] value[b, s, h]
    """
    num_keys = value.shape[1]
    is_long = isinstance(num_keys, int) and num_keys >= LONG
    if (
        _sum_is_faster(weights.shape[2], num_keys, value.shape[3])
        and not is_long
    ):
        weights = ops.transpose(weights, (0, 2, 3, 1))
        value = ops.expand_dims(value, 1)  # (B, 1, S, H, V)
        products = ops.multiply(ops.expand_dims(weights, -1), value)
        return ops.sum(products, axis=2)
    return ops.einsum("bhts,bshv->bthv", weights, value)


def _sum_is_faster(num_queries, num_keys, features):
    """Whether starting a matrix product costs more than what it computes.

    There are thousands of products, one for each sentence and head; a
    compiler fuses the sums of products instead. A single query, as in
    decoding, makes no matrix.
    """
    sizes = (num_queries, num_keys, features)
    # An unknown length is None, or on JAX a symbol, which `<=` cannot compare.
    known = all(isinstance(size, int) for size in sizes)
    return num_queries == 1 or (known and math.prod(sizes) <= SMALL)
