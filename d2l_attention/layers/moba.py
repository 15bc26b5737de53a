"""MoBA, mixture of block attention: a few blocks of keys, chosen by their mean.

What the choice reads is cheaper than attention: one mean key for a block. Each
query attends to the keys of the best blocks, and to no other.
"""

from d2l_attention._checks import check_positive, refuse
from d2l_attention.layers.base import wide
from d2l_attention.layers.cache import (
    attend_with_cache,
    refuse_beyond,
    write_cache,
)
from d2l_attention.layers.masking import (
    check_mask,
    first_tokens,
    join_masks,
    key_mask_of,
    key_offsets,
    masked_softmax,
    query_offsets,
)
from d2l_attention.layers.multi_query import grouped_scores
from d2l_attention.layers.relative_positions import RotaryAttention
from d2l_attention.layers.reshaping import (
    ceil_divide,
    pad_to,
    reshape,
    split_into_chunks,
    take_rows,
)
import keras
from keras import ops


def block_means(key, block_size, mask=None):
    """The mean of the keys of each block of `block_size` tokens.

        mean[b, j] = mean of key[b, s] over s in block j with mask[b, s]

    Args:
        key: Float tensor `(B, S, G, K)`.
        block_size: Positive int. The last block may have fewer keys.
        mask: Bool tensor `(B, S)` or `(1, S)`, True at keys that count.

    Returns:
        Float tensor `(B, N, G, K)` of N = ⌈S / b⌉ blocks of b = `block_size`
        tokens; zeros for a block without a key. The sums are of float32 at
        least.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import block_means
        >>> key = np.array([1.0, 3.0, 5.0, 6.0, 8.0]).reshape(1, 5, 1, 1)
        >>> np.array(block_means(key, block_size=2)).ravel().tolist()
        [2.0, 5.5, 8.0]
    """
    check_positive("block_size", block_size)
    key = ops.convert_to_tensor(key)
    dtype = key.dtype
    key = ops.cast(key, wide(dtype))
    if mask is None:
        mask = ops.ones_like(key[:1, :, 0, 0], dtype="bool")
    counts = ops.cast(split_into_chunks(mask, block_size), key.dtype)
    key = split_into_chunks(key, block_size)  # (B, N, b, G, K)
    sums = ops.sum(key * ops.expand_dims(counts, (3, 4)), axis=2)
    counts = ops.maximum(ops.sum(counts, axis=2), 1)  # (B, N)
    return ops.cast(sums / ops.expand_dims(counts, (2, 3)), dtype)


def block_scores(query, key, block_size, mask=None):
    """How well each block of keys fits each query.

        r[b, h, t, j] = query[b, t, h] · mean of block j of key / √K

    It is also the mean of the block's scores. Masked keys do not count.

    Source: Lu et al. (2025), arXiv:2502.13189, section 2.2, without the √K,
    which changes no order.

    Args:
        query, key: Float tensors `(B, T, H, K)` and `(B, S, G, K)`; G divides
            H.
        block_size: Positive int, b.
        mask: Bool tensor as of `multi_head_attention`. Where it differs
            between queries, all T · S scores are formed and their means
            taken; else one mean key a block is enough.

    Returns:
        Float tensor `(B, H, T, N)`; −inf where a query may see no key of a
        block.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import block_scores
        >>> key = np.array([1.0, 3.0, 5.0, 6.0]).reshape(1, 4, 1, 1)
        >>> query = np.full((1, 1, 1, 1), 2.0)
        >>> np.array(block_scores(query, key, block_size=2)).ravel().tolist()
        [4.0, 11.0]
    """
    if mask is None:
        return grouped_scores(query, block_means(key, block_size))
    if len(mask.shape) < 4 and mask.shape[-2] == 1:  # the same for all queries
        mask = key_mask_of(mask)  # (B, S)
        scores = grouped_scores(query, block_means(key, block_size, mask))
        counts = sum_blocks(ops.cast(mask, "int32"), block_size)
        counts = ops.expand_dims(counts, (1, 2))
    else:
        scores = grouped_scores(query, key)  # (B, H, T, S)
        mask = check_mask(mask, scores.shape)
        counts = sum_blocks(ops.cast(mask, scores.dtype), block_size)
        scores = sum_blocks(ops.where(mask, scores, 0.0), block_size)
        scores = scores / ops.maximum(counts, 1)
    return ops.where(counts > 0, scores, -float("inf"))


def sum_blocks(x, block_size):
    """Sums over the blocks of the last axis, `(…, S)` to `(…, N)`."""
    *shape, length = ops.shape(x)
    number = ceil_divide(length, block_size)
    x = pad_to(x, len(shape), number * block_size)
    return ops.sum(reshape(x, (*shape, number, block_size)), axis=-1)


def top_entries(scores, top):
    """Whether each score is one of the `top` highest of the last axis.

    Equal scores are taken in their order. A score of −inf is never taken, so a
    row with fewer than `top` finite scores has fewer than `top` entries.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.moba import top_entries
        >>> scores = np.array([[2.0, 7.0, 2.0], [1.0, -np.inf, -np.inf]])
        >>> np.array(top_entries(scores, top=2)).astype(int).tolist()
        [[1, 1, 0], [1, 0, 0]]
    """
    scores = ops.cast(scores, "float32")
    order = ops.argsort(-scores, axis=-1)  # stable
    rank = ops.argsort(order, axis=-1)
    return ops.logical_and(rank < top, scores > -float("inf"))


def select_blocks(scores, top, block_size, positions=None, num_groups=None):
    """The blocks that each query attends to: its own, and the best before it.

    The own block is always one of the `top`. Its mean would have keys after
    the query, so its score is not read; nor are those of later blocks. `top`
    = 1 is attention within blocks.

    Source: Lu et al. (2025), arXiv:2502.13189, section 2.2. The choice that
    the heads of a group share is that of Yuan et al. (2025),
    arXiv:2502.11089, section 3.3, who sum weights in place of scores.

    Args:
        scores: Float tensor `(B, H, T, N)`, as of `block_scores`.
        top: Positive int, blocks of a query, the own one included.
        block_size: Positive int.
        positions: Int tensor `(T,)` or `(B, T)`, where the queries stand;
            None = 0 … T − 1, which is right where T = S.
        num_groups: Positive int, G, which divides H. The H/G heads of a group
            choose together, by the sum of their scores. None = H.

    Returns:
        Bool tensor `(B, H, T, N)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import select_blocks
        >>> scores = np.array([3.0, 8.0, 5.0, 9.0]).reshape(1, 1, 1, 4)
        >>> chosen = select_blocks(scores, 2, block_size=16, positions=[40])
        >>> np.array(chosen).astype(int).ravel().tolist()  # 40 is in block 2
        [0, 1, 1, 0]
    """
    check_positive("top", top)
    check_positive("block_size", block_size)
    scores = ops.convert_to_tensor(scores)
    _, h, t, n = ops.shape(scores)
    if num_groups is not None and h % check_positive("num_groups", num_groups):
        raise ValueError(
            f"`num_groups` must divide the heads. Received: num_groups="
            f"{num_groups}, scores {tuple(scores.shape)}."
        )
    scores = _sum_groups(scores, num_groups)
    if positions is None:
        positions = ops.arange(t, dtype="int32")
    own = ops.cast(positions, "int32") // block_size
    own = ops.expand_dims(own, (-1,) if len(own.shape) == 1 else (1, -1))
    blocks = ops.arange(n, dtype="int32")
    scores = ops.where(blocks < own, scores, -float("inf"))
    scores = ops.where(blocks == own, float("inf"), scores)
    selected = top_entries(scores, top)  # (B, G, T, N)
    groups = selected.shape[1]
    return ops.repeat(selected, h // groups, 1) if groups < h else selected


def _sum_groups(scores, num_groups):
    """Sums over the heads of a group, `(B, H, T, N)` to `(B, G, T, N)`."""
    b, h, t, n = ops.shape(scores)
    if num_groups in (None, h):
        return scores
    shape = (b, num_groups, h // num_groups, t, n)
    return ops.sum(reshape(scores, shape), axis=2)


def expand_blocks(selected, block_size, num_keys):
    """Booleans of blocks `(…, N)`, repeated for their keys `(…, num_keys)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import expand_blocks
        >>> chosen = expand_blocks(np.array([True, False, True]), 2, 5)
        >>> np.array(chosen).astype(int).tolist()
        [1, 1, 0, 0, 1]
    """
    return ops.repeat(selected, block_size, axis=-1)[..., :num_keys]


def selected_block_attention(
    query, key, value, selected, block_size, top, mask=None
):
    """Attention that reads the keys and values of the chosen blocks alone.

    It equals `grouped_query_attention` under the mask of `expand_blocks`, up
    to rounding. For each query `top` blocks are copied side by side, so it is
    for few queries, as in decoding.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, G, K)` and `(B, S, G, V)`.
        selected: Bool tensor `(B, H, T, N)`, as of `select_blocks` with G as
            `num_groups`: the heads of a group share their blocks, and the
            first one's count. `(B, 1, T, N)` is one choice for all.
        block_size: Positive int.
        top: Positive int, at least as many blocks as a query has chosen.
        mask: Bool tensor `(T, S)`, `(B, 1, S)` or `(B, T, S)`.

    Returns:
        Float tensor `(B, T, H, V)`. A query with nothing to attend to gets
        zeros.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import selected_block_attention
        >>> x = np.arange(6.0).reshape(1, 6, 1, 1)
        >>> last = np.array([False, False, True]).reshape(1, 1, 1, 3)
        >>> output = selected_block_attention(0 * x[:, :1], x, x, last, 2, 1)
        >>> np.array(output).ravel().tolist()  # the mean of 4 and 5
        [4.5]
    """
    query, key = ops.convert_to_tensor(query), ops.convert_to_tensor(key)
    b, t, h, k = ops.shape(query)
    s, g = ops.shape(key)[1], key.shape[2]
    selected = ops.convert_to_tensor(selected)
    if selected.shape[1] not in (1, h):
        raise ValueError(
            f"`selected` must be (B, {h}, T, N) or (B, 1, T, N), as the query "
            f"has {h} heads. Received: selected {tuple(selected.shape)}."
        )
    if selected.shape[1] > 1:
        selected = selected[:, :: h // g]
    one_for_all = ops.zeros((1, g, 1, 1), "int32")
    chosen = ops.cast(selected, "int32") + one_for_all  # (B, G, T, N)
    order = ops.argsort(-chosen, axis=-1)[..., :top]
    chosen = ops.take_along_axis(chosen, order, axis=-1) > 0
    within = ops.arange(block_size, dtype="int32")
    tokens = ops.expand_dims(ops.cast(order, "int32") * block_size, -1) + within
    here = ops.logical_and(ops.expand_dims(chosen, -1), tokens < s)
    width = order.shape[-1] * block_size  # M, keys that a query reads
    tokens = reshape(ops.minimum(tokens, s - 1), (b, g, t, width))
    here = reshape(here, (b, g, t, width))
    if mask is not None:
        mask = check_mask(mask, (None, g, query.shape[1], key.shape[1]))
        mask = ops.logical_and(mask, ops.ones((b, g, t, s), "bool"))
        here = ops.logical_and(here, ops.take_along_axis(mask, tokens, axis=-1))

    # Token s of group i is row s G + i: no other key is copied.
    groups = ops.reshape(ops.arange(g, dtype="int32"), (g, 1, 1))
    places = reshape(tokens * g + groups, (b, g * t * width))

    def read(x):  # (B, S, G, ·) to (B, G, T, M, ·)
        rows = reshape(x, (b, s * g, x.shape[-1]))
        taken = take_rows(rows, places)
        return reshape(taken, (b, g, t, width, x.shape[-1]))

    query = reshape(query / k**0.5, (b, t, g, h // g, k))
    scores = ops.einsum("btgrk,bgtmk->bgtrm", query, read(key))
    weights = masked_softmax(scores, ops.expand_dims(here, 3))
    heads = ops.einsum("bgtrm,bgtmv->btgrv", weights, read(value))
    return reshape(heads, (b, t, h, value.shape[-1]))


def refuse_padding_first(output, mask):
    """The output; refuse a mask of keys that hides the first ones."""
    if mask is None or mask.shape[-2] != 1 or output.shape[1] == 1:
        return output
    tokens = ops.any(mask, axis=tuple(range(1, len(mask.shape) - 1)))  # (B, S)
    return refuse(
        ops.greater(first_tokens(tokens), 0),
        output,
        lambda: (
            "Blocks are cut by slot, and padding before a text moves them. "
            "Received: a mask that begins with "
            f"{int(ops.max(first_tokens(tokens)))} hidden keys. Put padding "
            'after the text: keras.utils.pad_sequences(…, padding="post").'
        ),
    )


@keras.saving.register_keras_serializable("d2l_attention")
class SelectedBlockAttention(RotaryAttention):
    """MoBA: rotary attention to a query's own block and the best before it.

        r_tj   = q_t · mean of the rotated keys of block j / √K
        head_h = softmax(scores of the chosen blocks, up to t) V W_v,g
        output = [head_1; …; head_H] W_o

    It is causal with and without `use_causal_mask`, and has no parameters that
    `RotaryAttention` has not: no gradient goes through the choice, and the same
    queries and keys choose and attend.

    Source: Lu et al. (2025), arXiv:2502.13189, section 2.2: mixture of block
    attention. Unlike there, heads that share keys choose together, by the sum
    of their scores.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        block_size: Positive int, tokens of a block.
        top: Positive int, blocks that a query reads, its own included.
        num_kv_heads, frequencies, interleaved, magnitude: As there.
        dropout, value_dim, output_dim, use_bias: As there.

    A call forms all scores and masks those of the other blocks. A step of one
    token reads a mean for each block, which the cache holds, and the keys of
    the chosen blocks. Blocks are cut by slot, and padding before a text would
    move them: it is refused, and in a graph, which knows no values, makes NaN.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import SelectedBlockAttention
        >>> layer = SelectedBlockAttention(1, 4, block_size=2, top=1)
        >>> x = np.ones((1, 4, 8))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> (np.array(weights)[0, 0] > 0).astype(int).tolist()  # within blocks
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    """

    def __init__(self, num_heads, key_dim, block_size, top, **options):
        super().__init__(num_heads, key_dim, **options)
        self.block_size = check_positive("block_size", block_size)
        self.top = check_positive("top", top)

    def select(self, scores, positions):
        return select_blocks(
            scores, self.top, self.block_size, positions, self.num_kv_heads
        )

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
        query_positions=None,
    ):
        """As `MultiHeadAttention.attend`, for queries at their positions."""
        positions, offsets = query_offsets(query, key, query_positions)
        scores = block_scores(query, key, self.block_size, mask)
        selected = self.select(scores, positions)  # (B, H, T, N)
        chosen = expand_blocks(selected, self.block_size, ops.shape(key)[1])
        joined = join_masks((query, key), chosen, offsets <= 0, mask)
        output, weights = super().attend(
            query, key, value, joined, training=training
        )
        return refuse_padding_first(output, mask), weights

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values, and of a mean for each block."""
        number = ceil_divide(max_length, self.block_size)
        shape = (batch_size, number, self.num_kv_heads, self.key_dim)
        means = ops.zeros(shape, self.compute_dtype)
        return super().make_cache(batch_size, max_length) | {"mean": means}

    def step(self, x, positions, cache, query_mask=None):
        """As `MultiHeadAttention.step`; one token reads the chosen blocks.

        A block's mean is read when the block is full, so the mean of the open
        block may be of anything until its last token is written.
        """
        positions = ops.cast(positions, "int32")
        if x.shape[1] != 1:
            output, cache = attend_with_cache(
                self, x, positions, cache, query_positions=positions
            )
            means = block_means(cache["key"], self.block_size)
            return output, cache | {"mean": means}
        query = self.project_query(x, positions[:, 0])  # (B, 1, H, K)
        cache = write_cache(
            cache,
            positions,
            key=self.project_key(x, positions[:, 0]),
            value=self.project_value(x),
        )
        key, num_slots = cache["key"], cache["key"].shape[1]
        own = positions // self.block_size  # (B, 1)
        slots = own * self.block_size + ops.arange(self.block_size)
        open_block = take_rows(key, ops.minimum(slots, num_slots - 1))
        mean = ops.mean(open_block, axis=1, keepdims=True)  # (B, 1, G, K)
        cache = write_cache(cache, own, mean=mean)
        scores = grouped_scores(query, cache["mean"])
        heads = selected_block_attention(
            query,
            key,
            cache["value"],
            self.select(scores, positions),
            self.block_size,
            min(self.top, cache["mean"].shape[1]),
            key_offsets(positions, ops.arange(num_slots)) <= 0,
        )
        output = self.join_heads(heads)
        return refuse_beyond(output, positions, num_slots), cache
