"""One round of Reformer's attention, and the sum of all rounds."""

from d2l_attention.loops import (
    join_chunks,
    split_into_chunks,
    take_rows,
    with_neighbors,
)
from d2l_attention.masking import NO_SCORE
from keras import ops

SELF_PENALTY = 1e5  # subtracted from a token's score with itself; finite


def attend_in_round(r, tokens, order, place, chunk_size, causal):
    """Attention of each token to its bucket, in its chunk and the one before.

    In M chunks of C tokens, each query meets the S = 2C keys of two chunks.

    Args:
        r: Int, number of the round.
        tokens: Queries, values, chunks, buckets, positions and mask of the
            tokens, each a tensor `(B H, T, …)`.
        order: Int tensor `(B H, T, N)`, tokens sorted by bucket, in N rounds.
        place: Int tensor `(B H, T, N)`, each token's place in that order.
        chunk_size: Positive int, C.
        causal: Whether no token sees a later one.

    Returns:
        Output `(B H, T, V)` and log-sum-exp of the scores `(B H, T, 1)`.
    """
    length, order = ops.shape(order)[1], order[..., r]
    own = [split_into_chunks(take_rows(x, order), chunk_size) for x in tokens]
    query, _, chunk, bucket, position, _ = own  # (B H, M, C, …)
    key, value, chunks, buckets, positions, present = (
        with_neighbors(x, 1, 0)  # (B H, M, S, …)
        for x in own
    )
    same = ops.equal(ops.expand_dims(bucket, 3), ops.expand_dims(buckets, 2))
    back = ops.expand_dims(chunk, 3) - ops.expand_dims(chunks, 2)
    # same and back: (B H, M, C, S, N)
    together = ops.logical_and(same, ops.logical_or(back == 0, back == 1))
    times = ops.sum(ops.cast(together, "float32"), axis=-1)  # (B H, M, C, S)
    ahead = ops.expand_dims(positions, 2) - ops.expand_dims(position, 3)
    seen = ops.logical_and(together[..., r], ops.expand_dims(present, 2))
    if causal:
        seen = ops.logical_and(seen, ahead <= 0)

    square = ops.sum(key * key, axis=-1, keepdims=True)
    key = key * ops.rsqrt(ops.maximum(square, 1e-12))
    scores = ops.einsum("bmck,bmsk->bmcs", query, key)
    scores = scores - SELF_PENALTY * ops.cast(ahead == 0, "float32")
    scores = scores - ops.log(ops.maximum(times, 1.0))
    scores = ops.where(seen, scores, -float("inf"))
    weights, log_sum_exp = _softmax(scores, axis=-1)
    output = ops.einsum("bmcs,bmsv->bmcv", weights, value)

    output = join_chunks(output, length)  # (B H, T, V), sorted
    log_sum_exp = join_chunks(log_sum_exp, length)
    place = place[..., r]
    return take_rows(output, place), take_rows(log_sum_exp, place)


def sum_of_rounds(rounds):
    """The N outputs, each weighted by its round's share of the exponentials."""
    outputs, log_sum_exps = zip(*rounds, strict=True)
    shares, _ = _softmax(ops.stack(log_sum_exps), axis=0)  # (N, B H, T, 1)
    return ops.sum(shares * ops.stack(outputs), axis=0)  # (B H, T, V)


def _softmax(scores, axis):
    """Weights and log-sum-exp; 0 and `NO_SCORE` where all scores are −∞."""
    highest = ops.max(scores, axis, keepdims=True, initial=NO_SCORE)
    highest = ops.stop_gradient(highest)
    weights = ops.exp(scores - highest)
    total = ops.sum(weights, axis=axis, keepdims=True)
    total = ops.where(total == 0.0, 1.0, total)
    return weights / total, highest + ops.log(total)
