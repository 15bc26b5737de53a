"""Attention among tokens of the same hash bucket."""

from d2l_attention._checks import check_positive
from d2l_attention.attention_layer import default_inputs, default_shapes
from d2l_attention.efficient.lsh import lsh_buckets, padding_in_last_bucket
from d2l_attention.efficient.reformer_rounds import (
    attend_in_round,
    sum_of_rounds,
)
from d2l_attention.efficient.weightless import WeightlessSelfAttention
from d2l_attention.loops import reshape
from d2l_attention.masking import token_mask
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
class ReformerAttention(WeightlessSelfAttention):
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
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        chunk_size: Positive int, tokens in a chunk. If this is twice the
            mean size of a bucket, few buckets are cut.
        num_buckets: Positive even int, C buckets, or 1.
        num_rounds: Positive int, N. With more rounds, near tokens are more
            likely to meet in one of them; the cost grows alike.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        use_bias: Whether the three projections have biases.
        seed: Int, seed of the rotations; None = new ones each time.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills one of them from an implicit mask.
        use_causal_mask: Whether no token sees a later one. Which earlier
            tokens are seen can still depend on later ones, which are sorted
            with them.

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

    instead = (
        "For small inputs reformer_mask tells who attends to whom, and "
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
