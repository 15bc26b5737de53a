"""Sums over all earlier keys, in chunks, without a number that overflows."""

from d2l_attention.loops import join_chunks, scan_states, split_into_chunks
from d2l_attention.masking import causal_mask
from keras import ops

NOTHING = -1e30  # the largest exponent among no keys; finite, unlike −inf


def prefix_sums(query, key, value, highest, size):
    """For each query, a sum over its key and all earlier ones.

        sums_t = Σ_{s ≤ t} φ(q_t)·φ(k_s) v_s / exp(max_{s ≤ t} highest_s)

    Within a chunk, each query meets each key. The keys of all earlier chunks
    come as one sum.

    Args:
        query: Float tensor `(B, T, H, F)`, the features φ(q).
        key: Float tensor `(B, T, H, F)`, the logarithms of φ(k).
        value: Float tensor `(B, T, H, V)`.
        highest: Float tensor `(B, T, H, 1)`, the largest exponent of a key.
        size: Positive int, tokens C of a chunk.

    Returns:
        Float tensor `(B, T, H, V)`.
    """
    length = ops.shape(query)[1]
    query = split_into_chunks(query, size)  # (B, N, C, H, F)
    key = split_into_chunks(key, size)  # (B, N, C, H, F)
    value = split_into_chunks(value, size)  # (B, N, C, H, V)
    highest = split_into_chunks(as_constant(highest), size)  # (B, N, C, H, 1)

    past = causal_mask(size)  # (C, C)
    running = ops.where(
        past[..., None, None], ops.expand_dims(highest, 2), NOTHING
    )
    running = largest(running, 3)[:, :, :, 0]  # (B, N, C, H, 1)
    last = running[:, :, -1:]  # (B, N, 1, H, 1)
    key = ops.exp(key - running)
    shrunk = key * ops.exp(running - last)
    of_chunk = ops.einsum("bnshm,bnshv->bnhmv", shrunk, value)
    before, of_earlier = _earlier_chunks(last, of_chunk)

    highest = ops.maximum(running, before)
    rows = ops.transpose(highest, (0, 1, 3, 2, 4))  # (B, N, H, C, 1)
    columns = ops.transpose(running, (0, 1, 3, 4, 2))  # (B, N, H, 1, C)
    shrink = ops.exp(ops.where(past, columns - rows, -float("inf")))
    products = ops.einsum("bnthm,bnshm->bnhts", query, key) * shrink
    within = ops.einsum("bnhts,bnshv->bnthv", products, value)
    shrunk = query * ops.exp(before - highest)
    earlier = ops.einsum("bnthm,bnhmv->bnthv", shrunk, of_earlier)
    return join_chunks(earlier + within, length)


def _earlier_chunks(highest, sums):
    """For each chunk: the largest exponent over all earlier chunks, and their
    sums divided by its exponential.
    """

    def add_chunk(before, chunk):
        highest = ops.maximum(before[0], chunk[0])  # (B, 1, H, 1)
        sums = _shrink(*before, highest) + _shrink(*chunk, highest)
        return highest, sums

    highest = ops.moveaxis(highest, 1, 0)  # (N, B, 1, H, 1)
    sums = ops.moveaxis(sums, 1, 0)  # (N, B, H, F, V)
    no_key = ops.zeros_like(highest[0]) + NOTHING
    no_sum = ops.zeros_like(sums[0])
    highest, sums = scan_states(add_chunk, (no_key, no_sum), (highest, sums))
    return _one_later(highest, no_key), _one_later(sums, no_sum)


def _shrink(old, sums, new):
    """Sums `(B, H, F, V)` divided by exp(new), no longer by exp(old)."""
    return sums * ops.exp(ops.transpose(old - new, (0, 2, 1, 3)))


def _one_later(states, first):
    """The state before each of N chunks, `(B, N, …)`, from those after."""
    before = ops.concatenate([ops.expand_dims(first, 0), states[:-1]], axis=0)
    return ops.moveaxis(before, 0, 1)


def largest(x, axis):
    """The maximum, also of an empty batch: there `initial` is needed."""
    return ops.max(x, axis=axis, keepdims=True, initial=-float("inf"))


def as_constant(x):
    """Finite, and without a gradient, since it cancels in the result."""
    return ops.stop_gradient(ops.maximum(x, NOTHING))
