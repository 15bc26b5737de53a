"""Attention to a window, and to a few tokens that all tokens see."""

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import check_shapes
from d2l_attention.layers.masking import (
    causal_mask,
    masked_softmax,
    token_mask,
    window_mask,
)
from d2l_attention.layers.multi_head import (
    SelfAttentionByPattern,
    multi_head_attention,
    split_heads,
)
from d2l_attention.layers.reshaping import (
    join_chunks,
    split_into_chunks,
    take_rows,
    with_neighbors,
)
import keras
from keras import ops
import numpy as np

SMALLEST_CHUNK = 32  # a narrower window is cut out of chunks of this size


def longformer_attention(
    query,
    key,
    value,
    window,
    *,
    global_positions=None,
    global_query=None,
    global_key=None,
    global_value=None,
    key_mask=None,
    use_causal_mask=False,
):
    """One softmax over a window and the global tokens; these see all tokens.

        output_t = softmax(q_t K_Nᵀ / √K) V_N,
            N = {s: |t − s| ≤ window} ∪ globals     for t not global,
        output_t = softmax(q′_t K′ᵀ / √K) V′         for t global

    The projections q′, K′ and V′ belong to the global tokens alone. A global
    token within the window counts once. Document 004, section 8, adds two
    attentions instead. The weights of each sum to 1, so values of 1 would
    give 2.

    Source: Beltagy et al. (2020), arXiv:2004.05150, section 3, whose window
    w has w/2 tokens on each side.

    Args:
        query, key: Float tensors `(B, T, H, K)`.
        value: Float tensor `(B, T, H, V)`.
        window: Non-negative int, tokens on each side: 2 window + 1 keys.
        global_positions: Int tensor `(G,)` or `(B, G)`, −1 for no token; a
            position may occur more than once. None = no global tokens.
        global_query: Float tensor `(B, G, H, K)`, queries of the global
            tokens; None = their rows of `query`.
        global_key, global_value: As `key` and `value`; None = the same.
        key_mask: Bool tensor `(B, T)`, True = may be attended.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Float tensor `(B, T, H, V)`; zeros where nothing may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import longformer_attention
        >>> alike = np.zeros((1, 5, 1, 2), "float32")
        >>> value = np.arange(5, dtype="float32").reshape(1, 5, 1, 1)
        >>> output = longformer_attention(alike, alike, value, window=1)
        >>> np.array(output).ravel().round(2).tolist()  # means of neighbors
        [0.5, 1.0, 2.0, 3.0, 3.5]
    """
    batch, length = ops.shape(query)[:2]
    if key_mask is None:
        key_mask = ops.ones((batch, length), "bool")
    if global_positions is None:
        global_positions = [-1]
    positions = of_each_sample(global_positions, batch)  # (B, G)
    exists = counts_once(positions)  # (B, G)
    is_global = is_among(positions, length)  # (B, T)
    rows = ops.maximum(positions, 0)  # (B, G), of global tokens

    in_window = ops.logical_and(key_mask, ops.logical_not(is_global))
    seen = ops.logical_and(exists, take_rows(key_mask, rows))  # (B, G)
    tokens = ops.arange(length, dtype="int32")
    if use_causal_mask:
        past = ops.expand_dims(tokens, 1) >= ops.expand_dims(rows, 1)
    else:
        past = ops.ones((length, 1), "bool")
    more = (
        take_rows(key, rows),  # (B, G, H, K)
        take_rows(value, rows),  # (B, G, H, V)
        ops.logical_and(ops.expand_dims(seen, 1), past),  # (B, T, G)
    )
    output = _window_and_more(
        query, key, value, window, in_window, use_causal_mask, more
    )  # (B, T, H, V)

    if global_query is None:
        global_query = take_rows(query, rows)
    key = key if global_key is None else global_key
    value = value if global_value is None else global_value
    seen = ops.expand_dims(key_mask, 1)
    if use_causal_mask:
        seen = ops.logical_and(seen, tokens <= ops.expand_dims(rows, -1))
    of_globals, _ = multi_head_attention(global_query, key, value, seen)
    of_globals = _put_at(positions, exists, of_globals, length)
    of_tokens = ops.expand_dims(ops.expand_dims(is_global, -1), -1)
    return ops.where(of_tokens, of_globals, output)


def _window_and_more(query, key, value, window, key_mask, causal, more):
    """One softmax over a window and over `more`: keys, values and mask."""
    length, chunk_size = ops.shape(query)[1], max(window, SMALLEST_CHUNK)
    more_key, more_value, more_seen = more
    query = query / query.shape[-1] ** 0.5
    query, key, value, key_mask, more_seen = (
        split_into_chunks(x, chunk_size)  # (B, N, P, …)
        for x in (query, key, value, key_mask, more_seen)
    )
    key, value, key_mask = (  # S keys of two or three chunks, (B, N, S, …)
        with_neighbors(x, 1, 0 if causal else 1) for x in (key, value, key_mask)
    )
    ahead = ops.arange(key.shape[2], dtype="int32") - chunk_size
    ahead = ahead - ops.arange(chunk_size, dtype="int32")[:, None]  # (P, S)
    near = ops.logical_and(ahead >= -window, ahead <= (0 if causal else window))
    seen = ops.logical_and(near, ops.expand_dims(key_mask, 2))  # (B, N, P, S)
    scores = [
        ops.einsum("bnphk,bnshk->bnhps", query, key),
        ops.einsum("bnphk,bghk->bnhpg", query, more_key),
    ]
    weights = masked_softmax(
        ops.concatenate(scores, axis=-1),
        ops.expand_dims(ops.concatenate([seen, more_seen], axis=-1), 2),
    )  # (B, N, H, P, S + G)
    s = value.shape[2]
    output = ops.einsum("bnhps,bnshv->bnphv", weights[..., :s], value)
    others = ops.einsum("bnhpg,bghv->bnphv", weights[..., s:], more_value)
    return join_chunks(output + others, length)  # (B, T, H, V)


def _put_at(positions, exists, rows, length):
    """Rows `(B, G, H, V)` at their positions, else zeros: `(B, T, H, V)`."""
    tokens = ops.arange(length, dtype="int32")
    place = ops.equal(tokens, ops.expand_dims(positions, -1))  # (B, G, T)
    place = ops.logical_and(place, ops.expand_dims(exists, -1))
    return ops.einsum("bgt,bghv->bthv", ops.cast(place, rows.dtype), rows)


@keras.saving.register_keras_serializable("d2l_attention")
class LongformerAttention(SelfAttentionByPattern):
    """Multi-head self-attention to a window and to global tokens.

        output = longformer_attention(Q W_q, Q W_k, Q W_v, window) W_o

    The global tokens have projections W′_q, W′_k and W′_v of their own, which
    begin as copies of W_q, W_k and W_v. While they are equal,
    `MultiHeadAttention` under `longformer_mask` computes the same and can
    show its weights. This layer never forms the weights `(B, H, T, S)`, so it
    has neither `dropout` nor `return_attention_scores`.

    Source: Beltagy et al. (2020), arXiv:2004.05150, section 3; document 004,
    section 8.

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        window: Positive int, tokens on each side. The paper and some
            libraries count both sides, and so have twice this number.
        value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Unlike `AttentionLayer`, it takes the queries alone, which are the keys and
    values, and no `attention_mask`.

    Call arguments:
        global_positions: Int tensor `(G,)` or `(B, G)`, −1 for no token. If
            they are never given, the W′ get no gradient, and Keras warns.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LongformerAttention
        >>> layer = LongformerAttention(num_heads=2, key_dim=3, window=1)
        >>> x = np.ones((1, 5, 4))
        >>> tuple(layer(x, global_positions=np.array([0])).shape)
        (1, 5, 4)
    """

    weights_from = (
        "MultiHeadAttention has both, and attends to the same tokens under "
        "longformer_mask of d2l_attention.layers.longformer."
    )

    def __init__(self, num_heads, key_dim, window, **options):
        super().__init__(num_heads, key_dim, **options)
        self.window = check_positive("window", window)

    def build(self, query_shape):
        super().build(query_shape)
        self.global_query_layer = self._copy_of(self.query_layer)
        self.global_key_layer = self._copy_of(self.key_layer)
        self.global_value_layer = self._copy_of(self.value_layer)

    def _copy_of(self, layer):
        """A projection of the same size that starts with the same kernel."""
        copy = keras.layers.Dense(
            layer.units,
            use_bias=self.use_bias,
            kernel_initializer=lambda *_, **__: ops.copy(layer.kernel),
            name=f"{layer.name}_global",
            dtype=self.dtype_policy,
        )
        copy.build((None, None, layer.kernel.shape[0]))
        return copy

    def call(
        self,
        query,
        *,
        global_positions=None,
        query_mask=None,
        key_mask=None,
        mask=None,
        use_causal_mask=False,
    ):
        check_shapes(query.shape)
        global_query = global_key = global_value = None
        if global_positions is not None:
            positions = of_each_sample(global_positions, ops.shape(query)[0])
            tokens = take_rows(query, ops.maximum(positions, 0))  # (B, G, D)
            h = self.num_heads
            global_query = split_heads(self.global_query_layer(tokens), h)
            global_key = split_heads(self.global_key_layer(query), h)
            global_value = split_heads(self.global_value_layer(query), h)
        heads = longformer_attention(
            self.project_query(query),  # (B, T, H, K)
            self.project_key(query),  # (B, T, H, K)
            self.project_value(query),  # (B, T, H, V)
            self.window,
            global_positions=global_positions,
            global_query=global_query,  # (B, G, H, K)
            global_key=global_key,  # (B, T, H, K)
            global_value=global_value,  # (B, T, H, V)
            key_mask=token_mask(query_mask, key_mask, mask),
            use_causal_mask=use_causal_mask,
        )
        return self.join_heads(heads)


def longformer_mask(
    num_tokens, window, global_positions=(), use_causal_mask=False
):
    """Which pairs of tokens `longformer_attention` lets attend.

        mask[t, s] = |t − s| ≤ window, or t or s is global

    Args:
        num_tokens: Int, T = S.
        window: Non-negative int, tokens on each side.
        global_positions: Ints, or an int tensor `(G,)`.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Bool tensor `(T, T)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.longformer import longformer_mask
        >>> mask = longformer_mask(4, window=1, global_positions=[0])
        >>> print(np.array(mask).astype(int))
        [[1 1 1 1]
         [1 1 1 0]
         [1 1 1 1]
         [1 0 1 1]]
    """
    near = window_mask(num_tokens, num_tokens, window, window)
    positions = to_positions(global_positions)
    is_global = is_among(positions[None], num_tokens)[0]  # (T,)
    mask = ops.logical_or(near, is_global)  # (T, T)
    mask = ops.logical_or(mask, is_global[:, None])
    if use_causal_mask:
        mask = ops.logical_and(mask, causal_mask(num_tokens))
    return mask


def to_positions(positions):
    """The positions as a tensor; refuse a mask, which is read as 0 and 1."""
    if not hasattr(positions, "dtype"):
        positions = np.asarray(positions)
    dtype = keras.backend.standardize_dtype(positions.dtype)
    if "int" not in dtype and 0 not in positions.shape:
        raise ValueError(
            "`global_positions` must be integers, the places of the global "
            f"tokens. Received: dtype {dtype}. For a mask of tokens, take "
            "`np.flatnonzero(mask)`."
        )
    return ops.cast(positions, "int32")


def of_each_sample(positions, batch):
    """Positions `(G,)` or `(B, G)` as `(B, G)`."""
    positions = to_positions(positions)
    if len(positions.shape) == 1:
        # `ops.tile` of Keras 3.10 forgets the number of positions.
        positions = ops.broadcast_to(positions, (batch, positions.shape[0]))
    return positions


def is_among(positions, num_tokens):
    """Whether each token is among the positions `(B, G)`: `(B, T)`."""
    tokens = ops.arange(num_tokens, dtype="int32")
    return ops.any(ops.equal(tokens, ops.expand_dims(positions, -1)), axis=1)


def counts_once(positions):
    """Whether each of `(B, G)` is a token that no earlier position names."""
    same = ops.equal(  # (B, G, G)
        ops.expand_dims(positions, -1), ops.expand_dims(positions, 1)
    )
    so_far = ops.cast(causal_mask(positions.shape[-1]), "int32")
    occurrence = ops.sum(ops.cast(same, "int32") * so_far, axis=-1)
    return ops.logical_and(positions >= 0, occurrence == 1)
