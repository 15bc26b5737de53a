"""Attention among tokens that hash alike."""

from d2l_attention._checks import check_positive
from d2l_attention.attention_layer import default_inputs, default_shapes
from d2l_attention.efficient.blockwise import (
    pages,
    take_rows,
    unpage,
    with_neighbors,
)
from d2l_attention.efficient.weightless import WeightlessSelfAttention
from d2l_attention.masking import causal_mask, token_mask
import keras
from keras import ops

SELF_PENALTY = 1e5  # taken from a token's score with itself; finite


def lsh_buckets(x, rotations):
    """A bucket for each vector and round; near directions often share it.

        bucket = argmax_i [x R; −x R]_i,   R of normal numbers

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
    projected = ops.einsum("...k,knc->...nc", x, rotations)
    high = ops.max(projected, axis=-1, initial=-float("inf"))
    low = -ops.max(-projected, axis=-1, initial=-float("inf"))
    bucket = ops.where(
        high >= -low,
        ops.argmax(projected, axis=-1),
        ops.argmin(projected, axis=-1) + rotations.shape[-1],
    )
    return ops.cast(bucket, "int32")


def reformer_mask(buckets, chunk_size, key_mask=None, use_causal_mask=False):
    """Who may attend to whom in `reformer_attention`, for small inputs.

        mask[t, s] = in some round, t and s share a bucket, and s stands in
                     t's chunk or in the one before

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
    buckets = _with_padding_last(buckets, key_mask)
    buckets = ops.transpose(buckets, (0, 2, 1, 3))  # (B, H, T, N)
    size = buckets.shape[2]
    here, there = buckets[:, :, :, None], buckets[:, :, None]
    earlier = ops.logical_not(ops.transpose(causal_mask(size)))[..., None]
    behind = ops.logical_or(
        there < here, ops.logical_and(there == here, earlier)
    )
    chunks = ops.sum(ops.cast(behind, "int32"), axis=3) // chunk_size
    back = chunks[:, :, :, None] - chunks[:, :, None]
    near = ops.logical_or(back == 0, back == 1)
    mask = ops.any(ops.logical_and(here == there, near), axis=-1)
    if key_mask is not None:
        mask = ops.logical_and(mask, key_mask[:, None, None])
    if use_causal_mask:
        mask = ops.logical_and(mask, causal_mask(size))
    return mask


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

    In round r, tokens are sorted by bucket and cut into chunks; P_i^r are
    those of i's bucket in its own chunk and the one before (the first has
    none before it). N_ij, the number of rounds in which j is in P_i^r, makes
    the sum one softmax over the union of all P_i^r. Queries are the keys; the
    penalty leaves a token to itself only where it has nobody else.

    Source: Kitaev et al. (2020), arXiv:2001.04451, section 2 and appendix A;
    document 004, section 8. Keys have length 1, as in the authors' code
    (trax), so scores need no √K.

    Args:
        query: Float tensor `(B, T, H, K)`, also the keys.
        value: Float tensor `(B, T, H, V)`.
        buckets: int32 tensor `(B, T, H, N)` for N rounds, from `lsh_buckets`.
        chunk_size: Positive int, tokens in a chunk.
        key_mask: Bool tensor `(B, T)`, True = may be attended.
        use_causal_mask: Whether no token sees a later one. Later tokens are
            sorted with the others all the same, and so can move the border of
            a chunk: which of the earlier ones are seen is not causal, here as
            in the paper.

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
    batch, length, heads = ops.shape(query)[:3]
    query, value = (ops.cast(x, "float32") for x in (query, value))
    buckets = _with_padding_last(ops.cast(buckets, "int32"), key_mask)
    if key_mask is None:
        key_mask = ops.ones((batch, length), "bool")
    key_mask = ops.tile(key_mask[:, :, None], (1, 1, heads))
    query, value, buckets, key_mask = (
        _heads_apart(x) for x in (query, value, buckets, key_mask)
    )  # (B H, T, ·)
    position = ops.arange(length, dtype="int32")[None, :, None]
    order = ops.argsort(buckets * length + position, axis=1)
    place = ops.argsort(order, axis=1)
    chunks = ops.cast(place // chunk_size, "int32")
    position = ops.broadcast_to(position[..., 0], ops.shape(key_mask))
    tokens = (query, value, chunks, buckets, position, key_mask)
    rounds = []
    for r in range(buckets.shape[-1]):
        output, norm = _round(
            r, tokens, order[..., r], chunk_size, use_causal_mask
        )
        back = place[..., r]
        rounds.append(
            [take_rows(unpage(x, length), back) for x in (output, norm)]
        )
    outputs, norms = (ops.stack(x) for x in zip(*rounds, strict=True))
    highest = ops.max(norms, axis=0, initial=-float("inf"))
    highest = ops.stop_gradient(highest)
    shares = ops.exp(norms - _finite(highest))
    total = ops.sum(shares, axis=0)
    shares = shares / ops.where(total == 0.0, 1.0, total)
    output = ops.sum(shares * outputs, axis=0)
    output = ops.reshape(output, (batch, heads, length, value.shape[-1]))
    return ops.cast(ops.transpose(output, (0, 2, 1, 3)), dtype)


def _round(r, tokens, order, size, causal):
    """Output `(B H, M, C, V)` and log-sum-exp `(B H, M, C, 1)`, sorted."""
    tokens = [pages(take_rows(x, order), size) for x in tokens]
    query, _, chunk, bucket, position, _ = tokens
    key, value, chunks, buckets, positions, present = (
        with_neighbors(x, 1, 0) for x in tokens
    )
    # (B H, M, C, S, N): pairs of tokens, in each round.
    same = ops.equal(bucket[:, :, :, None], buckets[:, :, None])
    back = chunk[:, :, :, None] - chunks[:, :, None]
    together = ops.logical_and(same, ops.logical_or(back == 0, back == 1))
    times = ops.sum(ops.cast(together, "float32"), axis=-1)
    ahead = positions[:, :, None] - position[..., None]
    seen = ops.logical_and(together[..., r], present[:, :, None])
    if causal:
        seen = ops.logical_and(seen, ahead <= 0)
    length = ops.sum(key * key, axis=-1, keepdims=True)
    key = key * ops.rsqrt(ops.maximum(length, 1e-12))
    scores = ops.einsum("bmck,bmsk->bmcs", query, key)
    scores = scores - SELF_PENALTY * ops.cast(ahead == 0, "float32")
    scores = scores - ops.log(ops.maximum(times, 1.0))
    scores = ops.where(seen, scores, -float("inf"))
    highest = ops.max(scores, axis=-1, keepdims=True, initial=-float("inf"))
    highest = ops.stop_gradient(highest)
    weights = ops.exp(scores - _finite(highest))
    total = ops.sum(weights, axis=-1, keepdims=True)
    norm = highest + ops.log(ops.where(total == 0.0, 1.0, total))
    weights = weights / ops.where(total == 0.0, 1.0, total)
    return ops.einsum("bmcs,bmsv->bmcv", weights, value), norm


def _with_padding_last(buckets, key_mask):
    """Padding in a bucket of its own, or it would move borders of chunks."""
    if key_mask is None:
        return buckets
    last = ops.max(buckets, initial=-1) + 1
    return ops.where(key_mask[:, :, None, None], buckets, last)


def _heads_apart(x):
    """`(B, T, H, …)` as `(B H, T, …)`."""
    batch, length, heads, *features = ops.shape(x)
    x = ops.moveaxis(x, 2, 1)
    return ops.reshape(x, (batch * heads, length, *features))


def _finite(x):
    return ops.where(ops.isfinite(x), x, 0.0)


@keras.saving.register_keras_serializable("d2l_attention")
class ReformerAttention(WeightlessSelfAttention):
    """Multi-head self-attention among tokens that hash alike.

    Queries are the keys, so there is no W_k. All heads share the rotations,
    which are saved with the layer, are no parameters, and change in `redraw`
    only; see `reformer_attention`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`.

    Source: Kitaev et al. (2020), arXiv:2001.04451, section 2; document 004,
    section 8.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        chunk_size: Positive int, tokens in a chunk. Few buckets are cut where
            it is twice the mean number of tokens in a bucket.
        num_buckets: Positive even int, C buckets, or 1.
        num_rounds: Positive int, N. Near tokens meet more likely in one of
            more rounds, and the cost grows with their number.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        use_bias: Whether the three projections have biases.
        seed: Int, of the rotations; None = others each time.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills two of them from implicit masks.
        use_causal_mask: Whether no token sees a later one; see
            `reformer_attention` for a limit.

    Returns:
        Float tensor `(B, T, output_dim)`.

    Raises:
        ValueError: If a size is not positive, `num_buckets` is odd and not 1,
            or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ReformerAttention
        >>> layer = ReformerAttention(
        ...     2, key_dim=3, chunk_size=8, num_buckets=4, num_rounds=2
        ... )
        >>> x = np.ones((1, 20, 4))
        >>> tuple(layer(x).shape)
        (1, 20, 4)
        >>> tuple(layer.buckets(layer.project_query(x)).shape)
        (1, 20, 2, 2)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        chunk_size,
        num_buckets,
        *,
        num_rounds=1,
        value_dim=None,
        output_dim=None,
        use_bias=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim=value_dim,
            output_dim=output_dim,
            use_bias=use_bias,
            **kwargs,
        )
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
        """Keys of all heads: they are the queries."""
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
        default_inputs(query)
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

    def get_config(self):
        config = {
            "chunk_size": self.chunk_size,
            "num_buckets": self.num_buckets,
            "num_rounds": self.num_rounds,
            "seed": self.seed,
        }
        return {**super().get_config(), **config}
