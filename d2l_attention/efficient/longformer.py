"""Attention to a window, and to a few tokens that everyone sees."""

from d2l_attention._checks import check_positive
from d2l_attention.attention_layer import default_inputs
from d2l_attention.efficient.blockwise import (
    pages,
    take_rows,
    unpage,
    with_neighbors,
)
from d2l_attention.efficient.weightless import WeightlessSelfAttention
from d2l_attention.masking import (
    causal_mask,
    masked_softmax,
    token_mask,
    window_mask,
)
from d2l_attention.multi_head import (
    multi_head_scores,
    multi_head_sum,
    split_heads,
)
import keras
from keras import ops

SMALLEST_PAGE = 32  # a narrower window is cut out of pages of this size


def longformer_mask(
    num_tokens, window, global_positions=(), use_causal_mask=False
):
    """Who may attend to whom in `longformer_attention`.

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
        >>> from d2l_attention import longformer_mask
        >>> mask = longformer_mask(4, window=1, global_positions=[0])
        >>> print(np.array(mask).astype(int))
        [[1 1 1 1]
         [1 1 1 0]
         [1 1 1 1]
         [1 0 1 1]]
    """
    mask = window_mask(num_tokens, num_tokens, window, window)
    positions = ops.convert_to_tensor(global_positions, "int32")
    is_global = _is_any(positions[None], num_tokens)[0]
    mask = ops.logical_or(mask, is_global)
    mask = ops.logical_or(mask, is_global[:, None])
    if use_causal_mask:
        mask = ops.logical_and(mask, causal_mask(num_tokens))
    return mask


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
    """One softmax over a window and the global tokens; these see everything.

        output_t = softmax(q_t K_Nᵀ / √K) V_N,
            N = {s: |t − s| ≤ window} ∪ globals     for t not global,
        output_t = softmax(q′_t K′ᵀ / √K) V′         for t global,

    with projections q′, K′, V′ of their own. A global token within the window
    counts once. Document 004, section 8, adds two attentions, each with
    weights that sum to 1, so that values of 1 would give 2.

    Source: Beltagy et al. (2020), arXiv:2004.05150, section 3; their window w
    has w/2 tokens on each side.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, T, H, K)`.
        value: Float tensor `(B, T, H, V)`.
        window: Non-negative int, tokens on each side, so 2 window + 1 keys.
        global_positions: Int tensor `(G,)` or `(B, G)`, −1 for no token; a
            position may occur more than once. None = no global tokens.
        global_query: Float tensor `(B, G, H, K)`, of the global tokens; None
            = their `query`.
        global_key: Float tensor `(B, T, H, K)`; None = `key`.
        global_value: Float tensor `(B, T, H, V)`; None = `value`.
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
    positions = _of_each_sample(global_positions, batch)
    is_global, exists = _is_any(positions, length), _first_of_each(positions)
    index = ops.maximum(positions, 0)  # (B, G)

    tokens = ops.arange(length, dtype="int32")
    past = tokens[:, None] >= (index[:, None] if use_causal_mask else 0)
    seen = ops.logical_and(exists, take_rows(key_mask, index))[:, None]
    output = _window_and_more(
        query,
        key,
        value,
        window,
        ops.logical_and(key_mask, ops.logical_not(is_global)),
        use_causal_mask,
        (
            take_rows(key, index),
            take_rows(value, index),
            ops.logical_and(seen, past),  # (B, T, G)
        ),
    )
    # The global tokens' own rows, from all keys, replace those above.
    if global_query is None:
        global_query = take_rows(query, index)
    seen = key_mask[:, None]
    if use_causal_mask:
        seen = ops.logical_and(seen, tokens <= index[..., None])  # (B, G, T)
    key = key if global_key is None else global_key
    value = value if global_value is None else global_value
    scores = multi_head_scores(global_query, key)
    rows = multi_head_sum(masked_softmax(scores, seen[:, None]), value)
    place = ops.equal(tokens, positions[..., None])
    place = ops.cast(ops.logical_and(place, exists[..., None]), rows.dtype)
    rows = ops.einsum("bgt,bghv->bthv", place, rows)
    return ops.where(is_global[..., None, None], rows, output)


def _window_and_more(query, key, value, window, key_mask, causal, more):
    """One softmax over a window and over `more` keys, values and mask."""
    length, size = ops.shape(query)[1], max(window, SMALLEST_PAGE)
    more_key, more_value, more_seen = more
    query, key, value, key_mask, more_seen = (
        pages(x, size) for x in (query, key, value, key_mask, more_seen)
    )
    key, value, key_mask = (
        with_neighbors(x, 1, 0 if causal else 1) for x in (key, value, key_mask)
    )
    ahead = ops.arange(key.shape[2], dtype="int32") - size
    ahead = ahead - ops.arange(size, dtype="int32")[:, None]
    near = ops.logical_and(ahead >= -window, ahead <= (0 if causal else window))
    seen = ops.logical_and(near, key_mask[:, :, None])
    scores = [
        ops.einsum("bnphk,bnshk->bnhps", query, key),
        ops.einsum("bnphk,bghk->bnhpg", query, more_key),
    ]
    weights = masked_softmax(
        ops.concatenate(scores, axis=-1) / query.shape[-1] ** 0.5,
        ops.concatenate([seen, more_seen], axis=-1)[:, :, None],
    )
    size = value.shape[2]
    output = ops.einsum(
        "bnhps,bnshv->bnphv", weights[..., :size], value
    ) + ops.einsum("bnhpg,bghv->bnphv", weights[..., size:], more_value)
    return unpage(output, length)


def _of_each_sample(positions, batch):
    """Positions `(G,)` or `(B, G)` as `(B, G)`."""
    positions = ops.convert_to_tensor(positions, "int32")
    if len(positions.shape) == 1:
        positions = ops.tile(positions[None], (batch, 1))
    return positions


def _is_any(positions, size):
    """Which of `size` tokens are among positions `(B, G)`: `(B, size)`."""
    tokens = ops.arange(size, dtype="int32")
    return ops.any(ops.equal(tokens, positions[..., None]), axis=1)


def _first_of_each(positions):
    """Which of positions `(B, G)` are tokens, and no repetitions."""
    same = ops.equal(positions[..., None], positions[:, None])
    earlier = ops.cast(causal_mask(positions.shape[-1]), "int32")
    occurrence = ops.sum(ops.cast(same, "int32") * earlier, axis=-1)
    return ops.logical_and(positions >= 0, occurrence == 1)


@keras.saving.register_keras_serializable("d2l_attention")
class LongformerAttention(WeightlessSelfAttention):
    """Multi-head self-attention to a window and to global tokens.

    The global tokens have projections W′_q, W′_k and W′_v of their own, which
    begin as copies of W_q, W_k and W_v. As long as they are equal,
    `MultiHeadAttention` under `longformer_mask` computes the same, and shows
    its weights; see `longformer_attention`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`.

    Source: Beltagy et al. (2020), arXiv:2004.05150, section 3; document 004,
    section 8.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        window: Positive int, tokens on each side: half the window of the
            paper and of other libraries.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        use_bias: Whether the four projections have biases.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        global_positions: Int tensor `(G,)` or `(B, G)`, −1 for no token. If
            it is never given, W′ get no gradient, and Keras warns of that.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills two of them from implicit masks.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Float tensor `(B, T, output_dim)`.

    Raises:
        ValueError: If a size is not positive, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LongformerAttention
        >>> layer = LongformerAttention(num_heads=2, key_dim=3, window=1)
        >>> x = np.ones((1, 5, 4))
        >>> tuple(layer(x, global_positions=np.array([0])).shape)
        (1, 5, 4)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        window,
        *,
        value_dim=None,
        output_dim=None,
        use_bias=False,
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
        self.window = check_positive("window", window)

    def build(self, query_shape):
        super().build(query_shape)
        self.global_query_layer = self._copy_of(self.query_layer)
        self.global_key_layer = self._copy_of(self.key_layer)
        self.global_value_layer = self._copy_of(self.value_layer)

    def _copy_of(self, layer):
        """Another projection, with the same initial kernel."""
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
        default_inputs(query)
        arrays = {}
        if global_positions is not None:
            positions = _of_each_sample(global_positions, ops.shape(query)[0])
            tokens = take_rows(query, ops.maximum(positions, 0))
            arrays = {
                "global_query": self.global_query_layer(tokens),
                "global_key": self.global_key_layer(query),
                "global_value": self.global_value_layer(query),
            }
            arrays = {
                name: split_heads(x, self.num_heads)
                for name, x in arrays.items()
            }
        heads = longformer_attention(
            self.project_query(query),
            self.project_key(query),
            self.project_value(query),
            self.window,
            global_positions=global_positions,
            key_mask=token_mask(query_mask, key_mask, mask),
            use_causal_mask=use_causal_mask,
            **arrays,
        )
        return self.join_heads(heads)

    def get_config(self):
        return {**super().get_config(), "window": self.window}
