"""Hashing of near vectors into the same bucket, and who meets whom there."""

from d2l_attention.loops import place_of_highest
from d2l_attention.masking import causal_mask
from keras import ops


def lsh_buckets(x, rotations):
    """A bucket for each vector and round; near directions often share one.

        bucket = argmax_i [x R; −x R]_i,   R = a normal matrix

    Source: Andoni et al. (2015), arXiv:1509.02897; Kitaev et al. (2020),
    arXiv:2001.04451, section 2.

    Args:
        x: Float tensor `(…, K)`.
        rotations: Float tensor `(K, N, C/2)` for N rounds and C buckets.

    Returns:
        Int tensor `(…, N)` of buckets 0 … C − 1.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import lsh_buckets
        >>> x = np.array([[3.0, 1.0], [1.0, 2.0], [-4.0, 1.0]])
        >>> rotations = np.eye(2)[:, None]  # one round: the axes themselves
        >>> np.array(lsh_buckets(x, rotations)).ravel().tolist()
        [0, 1, 2]
    """
    projected = ops.einsum("...k,knc->...nc", x, rotations)  # (…, N, C/2)
    high = ops.max(projected, axis=-1, initial=-float("inf"))
    low = -ops.max(-projected, axis=-1, initial=-float("inf"))
    bucket = ops.where(
        high >= -low,
        place_of_highest(projected),
        place_of_highest(-projected) + rotations.shape[-1],
    )
    return ops.cast(bucket, "int32")


def reformer_mask(buckets, chunk_size, key_mask=None, use_causal_mask=False):
    """Which pairs `reformer_attention` lets attend, for small inputs.

        mask[t, s] = in some round, t and s share a bucket, and s stands in
                     the chunk of t or in the chunk before it

    Args:
        buckets: Int tensor `(B, T, H, N)` for N rounds, from `lsh_buckets`.
        chunk_size: Positive int, tokens in a chunk.
        key_mask: Bool tensor `(B, T)`, True = may be attended.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Bool tensor `(B, H, T, T)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import reformer_mask
        >>> buckets = np.array([0, 1, 0, 1]).reshape(1, 4, 1, 1)
        >>> print(np.array(reformer_mask(buckets, chunk_size=2))[0, 0] * 1)
        [[1 0 1 0]
         [0 1 0 1]
         [1 0 1 0]
         [0 1 0 1]]
    """
    num_tokens = buckets.shape[1]
    buckets = padding_in_last_bucket(buckets, key_mask)
    buckets = ops.transpose(buckets, (0, 2, 1, 3))  # (B, H, T, N)
    here, there = ops.expand_dims(buckets, 3), ops.expand_dims(buckets, 2)
    same = here == there  # (B, H, T, S, N)
    earlier = ops.logical_not(ops.transpose(causal_mask(num_tokens)))
    earlier = ops.logical_and(same, ops.expand_dims(earlier, -1))
    sorted_before = ops.logical_or(there < here, earlier)
    place = ops.sum(ops.cast(sorted_before, "int32"), axis=3)
    chunk = place // chunk_size  # (B, H, T, N)
    back = ops.expand_dims(chunk, 3) - ops.expand_dims(chunk, 2)
    near = ops.logical_or(back == 0, back == 1)
    mask = ops.any(ops.logical_and(same, near), axis=-1)  # (B, H, T, S)
    if key_mask is not None:
        mask = ops.logical_and(mask, key_mask[:, None, None])
    if use_causal_mask:
        mask = ops.logical_and(mask, causal_mask(num_tokens))
    return mask


def padding_in_last_bucket(buckets, key_mask):
    """Buckets `(B, T, H, N)`, with one more for padding, behind all others.

    In a bucket of tokens, padding would move the borders of their chunks.
    """
    if key_mask is None:
        return buckets
    last = ops.max(buckets, initial=-1) + 1
    present = ops.expand_dims(ops.expand_dims(key_mask, -1), -1)
    return ops.where(present, buckets, last)
