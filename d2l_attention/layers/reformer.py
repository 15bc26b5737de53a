"""Attention among tokens of the same hash bucket."""

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import (
    check_shapes,
    default_shapes,
)
from d2l_attention.layers.compiled_loops import place_of_highest
from d2l_attention.layers.masking import NO_SCORE, causal_mask, token_mask
from d2l_attention.layers.multi_head import SelfAttentionByPattern
from d2l_attention.layers.reshaping import (
    join_chunks,
    reshape,
    split_into_chunks,
    take_rows,
    with_neighbors,
)
import keras
from keras import ops


def reformer_attention(
    query,
    value,
    buckets,
    chunk_size,
    *,
    key_mask=None,
    use_causal_mask=False,
):
    """Softmax attention among tokens of the same bucket, round by round.

        s_ij = q_i·q_j / ‖q_j‖ − 10⁵ [i = j] − log N_ij
        o_i^r, z_i^r = softmax average and log-sum-exp over P_i^r
        output_i = Σ_r exp(z_i^r − log Σ_r exp z_i^r) o_i^r

    In round r, tokens are sorted by bucket and cut into chunks. P_i^r are the
    tokens of i's bucket in its own chunk and in the chunk before; the first
    chunk has none before it. N_ij is the number of rounds in which j is in
    P_i^r; with it, the sum is one softmax over the union of all P_i^r.
    Queries are the keys; with the penalty, a token attends to itself only if
    it sees no other.

    Source: Kitaev et al. (2020), arXiv:2001.04451, section 2 and appendix A;
    document 004, section 8. Keys have length 1, as in the authors' code
    (trax), so scores need no √K.

    Args:
        query: Float tensor `(B, T, H, K)`, also the keys.
        value: Float tensor `(B, T, H, V)`.
        buckets: int32 tensor `(B, T, H, N)` for N rounds, from `lsh_buckets`.
        chunk_size: Positive int, tokens in a chunk.
        key_mask: Bool tensor `(B, T)`, True = may be attended.
        use_causal_mask: Whether no token sees a later one. Later tokens
            are still sorted with the others, so they can move the border of
            a chunk. Which earlier tokens are seen is therefore not causal,
            here as in the paper.

    Returns:
        Float tensor `(B, T, H, V)` of the query's dtype, computed in float32;
        zeros for padding, and where nothing may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import reformer_attention
        >>> query = np.ones((1, 4, 1, 2), "float32")
        >>> value = np.array([1.0, 2.0, 3.0, 4.0]).reshape(1, 4, 1, 1)
        >>> buckets = np.array([0, 1, 0, 1], "int32").reshape(1, 4, 1, 1)
        >>> output = reformer_attention(query, value, buckets, chunk_size=2)
        >>> np.array(output).ravel().round(2).tolist()  # each reads the other
        [3.0, 4.0, 1.0, 2.0]
    """
    dtype = query.dtype
    batch, length, num_heads = ops.shape(query)[:3]
    buckets = padding_in_last_bucket(ops.cast(buckets, "int32"), key_mask)
    present = ops.ones((batch, length), "bool")
    if key_mask is not None:
        present = ops.logical_and(present, key_mask)
    present = ops.tile(ops.expand_dims(present, 2), (1, 1, num_heads))

    query = _heads_apart(ops.cast(query, "float32"))  # (B H, T, K)
    value = _heads_apart(ops.cast(value, "float32"))  # (B H, T, V)
    buckets = _heads_apart(buckets)  # (B H, T, N)
    present = _heads_apart(present)  # (B H, T)
    position = ops.arange(length, dtype="int32")
    order = buckets * length + ops.expand_dims(position, 1)
    order = ops.argsort(order, axis=1)  # (B H, T, N)
    place = ops.argsort(order, axis=1)
    chunks = ops.cast(place // chunk_size, "int32")
    position = ops.broadcast_to(position, ops.shape(present))

    tokens = (query, value, chunks, buckets, position, present)
    rounds = [
        attend_in_round(r, tokens, order, place, chunk_size, use_causal_mask)
        for r in range(buckets.shape[-1])
    ]
    output = sum_of_rounds(rounds)  # (B H, T, V)
    output = reshape(output, (batch, num_heads, length, value.shape[-1]))
    return ops.cast(ops.transpose(output, (0, 2, 1, 3)), dtype)


def _heads_apart(x):
    """`(B, T, H, …)` as `(B H, T, …)`."""
    batch, length, num_heads, *features = ops.shape(x)
    x = ops.moveaxis(x, 2, 1)
    return reshape(x, (batch * num_heads, length, *features))


@keras.saving.register_keras_serializable("d2l_attention")
class ReformerAttention(SelfAttentionByPattern):
    """Multi-head self-attention among tokens of the same hash bucket.

        output = reformer_attention(Q W_q, Q W_v, buckets of Q W_q) W_o

    Queries are the keys, so there is no W_k. All heads share the rotations.
    They are saved with the layer, are not trained, and change only in
    `redraw`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`.

    Source: Kitaev et al. (2020), arXiv:2001.04451, section 2; document 004,
    section 8.

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        chunk_size: Positive int, tokens in a chunk. If this is twice the mean
            size of a bucket, few buckets are cut.
        num_buckets: Positive even int, C buckets, or 1.
        num_rounds: Positive int, N. With more rounds, near tokens are more
            likely to meet in one of them; the cost grows alike.
        seed: Int, seed of the rotations; None = new ones each time.
        value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Unlike `AttentionLayer`, it takes the queries alone, which are the keys and
    values, and no `attention_mask`. With `use_causal_mask`, which earlier
    tokens are seen can still depend on later ones: they are sorted together.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ReformerAttention
        >>> layer = ReformerAttention(
        ...     2, key_dim=3, chunk_size=8, num_buckets=4, num_rounds=2
        ... )
        >>> x = np.ones((1, 20, 4))
        >>> tuple(layer(x).shape)
        (1, 20, 4)
    """

    weights_from = (
        "For small inputs reformer_mask of d2l_attention.layers.reformer "
        "tells who attends to whom, and "
        "MultiHeadAttention has both under such a mask."
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        chunk_size,
        num_buckets,
        *,
        num_rounds=1,
        seed=None,
        **options,
    ):
        super().__init__(num_heads, key_dim, **options)
        self.chunk_size = check_positive("chunk_size", chunk_size)
        self.num_buckets = check_positive("num_buckets", num_buckets)
        self.num_rounds = check_positive("num_rounds", num_rounds)
        if num_buckets % 2 and num_buckets != 1:
            raise ValueError(
                "`num_buckets` must be even, or 1. Received: "
                f"num_buckets={num_buckets}."
            )
        self.seed = seed

    def build(self, query_shape):
        query, *_ = default_shapes(query_shape)
        h, features = self.num_heads, query[-1]
        self.query_layer = self._dense("W_q", h * self.key_dim, features)
        self.value_layer = self._dense("W_v", h * self.value_dim, features)
        output_size = self.output_dim or features
        self.output_layer = self._dense("W_o", output_size, h * self.value_dim)
        self.rotations = self.add_weight(
            shape=(self.key_dim, self.num_rounds, self.num_buckets // 2),
            initializer=keras.initializers.RandomNormal(0, 1, self.seed),
            trainable=False,
            autocast=False,
            name="rotations",
        )

    def redraw(self, seed=None):
        """New rotations, as between two phases of training."""
        draw = keras.initializers.RandomNormal(0, 1, seed)
        self.rotations.assign(draw(self.rotations.shape))

    def buckets(self, query):
        """Buckets `(B, T, H, N)` of projected queries `(B, T, H, K)`."""
        if self.num_buckets == 1:
            shape = (*ops.shape(query)[:3], self.num_rounds)
            return ops.zeros(shape, "int32")
        return lsh_buckets(ops.cast(query, "float32"), self.rotations)

    def project_key(self, key):
        """Keys of all heads `(B, T, H, K)`, which are the queries."""
        return self.project_query(key)

    def call(
        self,
        query,
        *,
        query_mask=None,
        key_mask=None,
        mask=None,
        use_causal_mask=False,
    ):
        check_shapes(query.shape)
        value = self.project_value(query)  # (B, T, H, V)
        query = self.project_query(query)  # (B, T, H, K)
        heads = reformer_attention(
            query,
            value,
            self.buckets(query),
            self.chunk_size,
            key_mask=token_mask(query_mask, key_mask, mask),
            use_causal_mask=use_causal_mask,
        )
        return self.join_heads(heads)


SELF_PENALTY = 1e5  # subtracted from a token's score with itself; finite


def attend_in_round(r, tokens, order, place, chunk_size, causal):
    """Attention of each token to its bucket, in its chunk and the one before.

    In M chunks of C tokens, each query meets the S = 2C keys of two chunks.

    The `tokens` are queries, values, chunks, buckets, positions and mask, each
    `(B H, T, …)`. `order` `(B H, T, N)` sorts them by bucket in N rounds, and
    `place` is each token's place in that order. What comes back is the output,
    and the log-sum-exp of the scores `(B H, T, 1)`.
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
        >>> from d2l_attention.layers.reformer import lsh_buckets
        >>> x = np.array([[3.0, 1.0], [1.0, 2.0], [-4.0, 1.0]])
        >>> rotations = np.eye(2)[:, None]  # one round: the axes themselves
        >>> np.array(lsh_buckets(x, rotations)).ravel().tolist()
        [0, 1, 2]
    """
    # TensorFlow 2.18's einsum of `...k,knc->...nc` has wrong numbers.
    projected = ops.tensordot(x, rotations, axes=1)  # (…, N, C/2)
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
        buckets, chunk_size, key_mask, use_causal_mask: As in
            `reformer_attention`.

    Returns:
        Bool tensor `(B, H, T, T)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.reformer import reformer_mask
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
    """Buckets `(B, T, H, N)`, with one more for padding, after all others.

    In a bucket of tokens, padding would move the borders of their chunks.
    """
    if key_mask is None:
        return buckets
    last = ops.max(buckets, initial=-1) + 1
    present = ops.expand_dims(ops.expand_dims(key_mask, -1), -1)
    return ops.where(present, buckets, last)
