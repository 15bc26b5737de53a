"""Attention to a few keys that a score has chosen: blocks, or single tokens.

What the choice reads is cheaper than attention: one mean for a block of keys,
or a small score for a token. Each query takes the best of these and attends to
the keys that stand there, and to no other.
"""

from d2l_attention._checks import check_positive, refuse
from d2l_attention.layers.base import AttentionLayer, default_shapes, wide
from d2l_attention.layers.cache import (
    attend_with_cache,
    contiguous_cache,
    refuse_beyond,
    write_cache,
)
from d2l_attention.layers.chunks import (
    ceil_divide,
    pad_to,
    reshape,
    split_into_chunks,
    take_rows,
)
from d2l_attention.layers.masking import (
    check_mask,
    first_tokens,
    key_mask_of,
    masked_softmax,
)
from d2l_attention.layers.multi_head import HeadProjections, split_heads
from d2l_attention.layers.multi_query import (
    check_shared_heads,
    grouped_scores,
    grouped_sum,
)
from d2l_attention.layers.relative_positions import (
    RotaryAttention,
    rotary_frequencies,
    rotate,
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

    It is also the mean of the block's scores. Of masked keys none counts.

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
        counts = _sum_blocks(ops.cast(mask, "int32"), block_size)
        counts = ops.expand_dims(counts, (1, 2))
    else:
        scores = grouped_scores(query, key)  # (B, H, T, S)
        mask = check_mask(mask, scores.shape)
        counts = _sum_blocks(ops.cast(mask, scores.dtype), block_size)
        scores = _sum_blocks(ops.where(mask, scores, 0.0), block_size)
        scores = scores / ops.maximum(counts, 1)
    return ops.where(counts > 0, scores, -float("inf"))


def _sum_blocks(x, block_size):
    """Sums over the blocks of the last axis, `(…, S)` to `(…, N)`."""
    *shape, length = ops.shape(x)
    number = ceil_divide(length, block_size)
    x = pad_to(x, len(shape), number * block_size)
    return ops.sum(reshape(x, (*shape, number, block_size)), axis=-1)


def top_entries(scores, top):
    """Where the `top` highest scores of the last axis stand, as booleans.

    Of equal scores the first ones are taken. A score of −inf is never taken,
    so a row has fewer than `top` where it has fewer that are finite.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.selected_blocks import top_entries
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

    Raises:
        ValueError: If a size is not positive, or `num_groups` does not divide
            the heads.

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
    """What holds for blocks `(…, N)`, for each key `(…, num_keys)`.

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


def index_scores(query, key, weights):
    """A small score of each query and key, for the choice alone.

        I[b, t, s] = Σ_j weights[b, t, j] ReLU(query[b, t, j] · key[b, s])

    Source: DeepSeek-AI (2025), arXiv:2512.02556, section 2.1: the lightning
    indexer.

    Args:
        query, key: Float tensors `(B, T, J, I)` and `(B, S, I)`.
        weights: Float tensor `(B, T, J)`, of either sign.

    Returns:
        Float tensor `(B, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import index_scores
        >>> query = np.array([[[[1.0], [-1.0]]]])  # two heads of one feature
        >>> key = np.array([[[3.0], [-5.0]]])
        >>> scores = index_scores(query, key, np.array([[[2.0, 1.0]]]))
        >>> np.array(scores).tolist()
        [[[6.0, 5.0]]]
    """
    products = ops.relu(ops.einsum("btji,bsi->btjs", query, key))
    return ops.einsum("btj,btjs->bts", weights, products)


def index_loss(scores, weights, mask):
    """How far the index scores are from the attention they choose for.

        mean over t of KL(p_t ‖ softmax(I_t)),  p_t = mean over h of weights_t

    Both run over the keys that the mask allows. No gradient goes to the
    weights. A choice has none to give, so this is what trains an indexer.

    Source: DeepSeek-AI (2025), arXiv:2512.02556, section 2.1.

    Args:
        scores: Float tensor `(B, T, S)`, as of `index_scores`.
        weights: Float tensor `(B, H, T, S)`, attention's.
        mask: Bool tensor that broadcasts to `(B, T, S)`.

    Returns:
        Float, at least 0. The mean is over the queries that the mask allows a
        key, so that padding changes nothing; without any, it is 0.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.selected_blocks import index_loss
        >>> scores, weights = np.zeros((1, 1, 2)), np.array([[[[1.0, 0.0]]]])
        >>> loss = index_loss(scores, weights, np.ones((1, 1, 2), "bool"))
        >>> round(float(loss), 4)  # ln 2
        0.6931
    """
    scores = ops.cast(scores, "float32")
    mask = ops.broadcast_to(mask, ops.shape(scores))
    target = ops.mean(ops.cast(weights, "float32"), axis=1)
    target = ops.stop_gradient(target)
    lowest = ops.min(scores, axis=-1, keepdims=True)
    highest = ops.where(mask, scores, lowest)
    highest = ops.stop_gradient(ops.max(highest, axis=-1, keepdims=True))
    scores = ops.where(mask, scores - highest, 0.0)
    total = ops.sum(ops.where(mask, ops.exp(scores), 0.0), -1, keepdims=True)
    log_shares = scores - ops.log(ops.maximum(total, 1e-30))
    ratio = ops.log(ops.maximum(target, 1e-30)) - log_shares
    queries = ops.any(mask, axis=-1)  # (B, T)
    found = ops.where(target > 0, target * ratio, 0.0)
    found = ops.sum(ops.where(queries[..., None], found, 0.0))
    return found / ops.maximum(ops.sum(ops.cast(queries, found.dtype)), 1.0)


def _positions(query, key, positions):
    """Where the queries stand: given, or the last of the keys' positions."""
    if positions is not None:
        return ops.cast(positions, "int32")
    t, s = ops.shape(query)[1], ops.shape(key)[1]
    return ops.arange(t, dtype="int32") + (s - t)


def _before(positions, num_keys):
    """How far key s stands before query t, `(T, S)` or `(B, T, S)`."""
    slots = ops.arange(num_keys, dtype="int32")
    return ops.expand_dims(positions, -1) - slots


def _join(query, key, *masks):
    """Masks of pairs in one that broadcasts to `(B, H, T, S)`."""
    shape = (None, query.shape[2], query.shape[1], key.shape[1])
    joined, *others = (check_mask(x, shape) for x in masks if x is not None)
    for mask in others:
        joined = ops.logical_and(joined, mask)
    return joined


def _refuse_padding_first(output, mask):
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
    """Rotary attention to a query's own block and to the best before it.

        r_tj   = q_t · mean of the rotated keys of block j / √K
        head_h = softmax(scores of the chosen blocks, up to t) V W_v,g
        output = [head_1; …; head_H] W_o

    It is causal with and without `use_causal_mask`, and has no parameters
    that `RotaryAttention` has not: no gradient goes through the choice, and
    the queries and keys that choose are those that attend.

    Source: Lu et al. (2025), arXiv:2502.13189, section 2.2: mixture of block
    attention. Unlike there, heads that share keys choose together, by the sum
    of their scores.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        block_size: Positive int, tokens of a block.
        top: Positive int, blocks that a query reads, its own included.
        num_kv_heads, frequencies, interleaved, magnitude: As there.
        value_dim, output_dim, dropout, use_bias: As there.

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

    def __init__(
        self,
        num_heads,
        key_dim,
        block_size,
        top,
        *,
        num_kv_heads=None,
        frequencies=None,
        interleaved=False,
        magnitude=1.0,
        value_dim=None,
        output_dim=None,
        dropout=0.0,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            num_kv_heads=num_kv_heads,
            frequencies=frequencies,
            interleaved=interleaved,
            magnitude=magnitude,
            value_dim=value_dim,
            output_dim=output_dim,
            dropout=dropout,
            use_bias=use_bias,
            **kwargs,
        )
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
        positions = _positions(query, key, query_positions)
        num_keys = ops.shape(key)[1]
        scores = block_scores(query, key, self.block_size, mask)
        selected = self.select(scores, positions)  # (B, H, T, N)
        chosen = expand_blocks(selected, self.block_size, num_keys)
        past = _before(positions, num_keys) >= 0
        joined = _join(query, key, chosen, past, mask)
        output, weights = super().attend(
            query, key, value, joined, training=training
        )
        return _refuse_padding_first(output, mask), weights

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values, and of a mean for each block."""
        number = ceil_divide(max_length, self.block_size)
        shape = (batch_size, number, self.num_kv_heads, self.key_dim)
        means = contiguous_cache(shape, dtype=self.compute_dtype)["key"]
        return super().make_cache(batch_size, max_length) | {"mean": means}

    def step(self, x, positions, cache, query_mask=None):
        """As `MultiHeadAttention.step`; of one token it reads chosen blocks.

        A block's mean is read when the block is full, so the mean of the open
        block may be of anything until its last token is written.
        """
        cache, means = dict(cache), cache["mean"]
        del cache["mean"]
        positions = ops.cast(positions, "int32")
        if x.shape[1] != 1:
            output, cache = attend_with_cache(
                self, x, positions, cache, query_positions=positions
            )
            means = block_means(cache["key"], self.block_size)
            return output, cache | {"mean": means}
        query = self.project_query(x, positions[:, 0])  # (B, 1, H, K)
        key = self.project_key(x, positions[:, 0])
        cache = write_cache(cache, positions, key, self.project_value(x))
        key, num_slots = cache["key"], cache["key"].shape[1]
        own = positions // self.block_size  # (B, 1)
        slots = own * self.block_size + ops.arange(self.block_size)
        open_block = take_rows(key, ops.minimum(slots, num_slots - 1))
        mean = ops.mean(open_block, axis=1, keepdims=True)  # (B, 1, G, K)
        means = write_cache({"key": means}, own, mean)["key"]
        selected = self.select(grouped_scores(query, means), positions)
        heads = selected_block_attention(
            query,
            key,
            cache["value"],
            selected,
            self.block_size,
            min(self.top, means.shape[1]),
            _before(positions, num_slots) >= 0,
        )
        output = refuse_beyond(self.join_heads(heads), positions, num_slots)
        return output, cache | {"mean": means}

    def get_config(self):
        return {
            **super().get_config(),
            "block_size": self.block_size,
            "top": self.top,
        }


@keras.saving.register_keras_serializable("d2l_attention")
class IndexedAttention(RotaryAttention):
    """Rotary attention to the tokens that a small indexer finds best.

        I_ts   = Σ_j w_tj ReLU(q'_tj · k'_s),  s ≤ t
        head_h = softmax(scores of the top tokens of I_t) V W_v,g
        output = [head_1; …; head_H] W_o

    It is causal with and without `use_causal_mask`; all heads read the same
    tokens. In training the layer adds `index_loss` over these tokens, from
    which alone the indexer learns, and which changes nothing else: its inputs
    have no gradient. With `top` of at least S attention is dense, and the
    indexer learns from all its weights.

    Source: DeepSeek-AI (2025), arXiv:2512.02556, section 2.1: DeepSeek sparse
    attention. Unlike there, keys need no latent, and the indexer has no
    positions and computes in the precision of the layer.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        top: Positive int, tokens that a query reads.
        index_heads: Positive int, J heads of the indexer.
        index_dim: Positive int, I features of its queries and keys.
        num_kv_heads, frequencies, interleaved, magnitude: As there.
        value_dim, output_dim, dropout, use_bias: As there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import IndexedAttention
        >>> layer = IndexedAttention(2, 4, top=2, index_heads=1, index_dim=3)
        >>> x = np.random.default_rng(0).normal(size=(1, 5, 8))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> (np.array(weights)[0, 0] > 0).sum(axis=1).tolist()
        [1, 2, 2, 2, 2]
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        top,
        *,
        index_heads,
        index_dim,
        num_kv_heads=None,
        frequencies=None,
        interleaved=False,
        magnitude=1.0,
        value_dim=None,
        output_dim=None,
        dropout=0.0,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            num_kv_heads=num_kv_heads,
            frequencies=frequencies,
            interleaved=interleaved,
            magnitude=magnitude,
            value_dim=value_dim,
            output_dim=output_dim,
            dropout=dropout,
            use_bias=use_bias,
            **kwargs,
        )
        self.top = check_positive("top", top)
        self.index_heads = check_positive("index_heads", index_heads)
        self.index_dim = check_positive("index_dim", index_dim)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        j, i = self.index_heads, self.index_dim
        self.index_query_layer = self._dense("W_iq", j * i, query[-1])
        self.index_key_layer = self._dense("W_ik", i, key[-1])
        self.index_weight_layer = self._dense("W_iw", j, query[-1])

    def project_query(self, query, start=0):
        """Rotated queries `(B, T, H, K)`, and the indexer's and its weights.

        These are `(B, T, J, I)` and `(B, T, J)`.
        """
        apart = ops.stop_gradient(query)
        return (
            super().project_query(query, start),
            split_heads(self.index_query_layer(apart), self.index_heads),
            self.index_weight_layer(apart),
        )

    def project_key(self, key, start=0):
        """Rotated keys `(B, S, G, K)`, and those of the indexer `(B, S, I)`."""
        index_key = self.index_key_layer(ops.stop_gradient(key))
        return super().project_key(key, start), index_key

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
        """As `MultiHeadAttention.attend`, from what the layer projects."""
        query, index_query, index_weights = query
        key, index_key = key
        positions = _positions(query, key, query_positions)
        past = _before(positions, ops.shape(key)[1])
        mask = _join(query, key, past >= 0, mask)
        index = index_scores(index_query, index_key, index_weights)
        scores = ops.where(mask, ops.expand_dims(index, 1), -float("inf"))
        chosen = top_entries(scores, self.top)  # (B, 1 or H, T, S)
        output, weights = super().attend(
            query, key, value, chosen, training=training
        )
        if training:
            # A query that may not see its own key is padding.
            own = _join(query, key, past == 0, scores > -float("inf"))
            own = ops.any(own, axis=(1, 3))  # (B, T)
            seen = ops.logical_and(ops.any(chosen, axis=1), own[..., None])
            self.add_loss(index_loss(index, weights, seen))
        return output, weights

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values, and of the indexer's keys."""
        shape = (batch_size, max_length, 1, self.index_dim)
        index = contiguous_cache(shape, dtype=self.compute_dtype)["key"]
        return super().make_cache(batch_size, max_length) | {"index": index}

    def step(self, x, positions, cache, query_mask=None):
        """As `MultiHeadAttention.step`; of one token it reads chosen keys."""
        positions = ops.cast(positions, "int32")
        query = self.project_query(x, positions[:, 0])
        key, index_key = self.project_key(x, positions[:, 0])
        index = {"key": cache["index"]}
        cache = {name: cache[name] for name in ("key", "value")}
        cache = write_cache(cache, positions, key, self.project_value(x))
        index = write_cache(index, positions, ops.expand_dims(index_key, 2))
        index = index["key"]
        key, value = cache["key"], cache["value"]
        cache = cache | {"index": index}
        if x.shape[1] != 1:
            keys = key, index[:, :, 0]
            output, _ = self.attend(
                query, keys, value, query_positions=positions
            )
            return refuse_beyond(output, positions, key.shape[1]), cache
        query, *index_query = query
        seen = _before(positions, key.shape[1]) >= 0  # (B, 1, S)
        scores = index_scores(index_query[0], index[:, :, 0], index_query[1])
        scores = ops.where(seen, scores, -float("inf"))
        selected = ops.expand_dims(top_entries(scores, self.top), 1)
        top = min(self.top, key.shape[1])
        heads = selected_block_attention(query, key, value, selected, 1, top)
        output = refuse_beyond(self.join_heads(heads), positions, key.shape[1])
        return output, cache

    def get_config(self):
        return {
            **super().get_config(),
            "top": self.top,
            "index_heads": self.index_heads,
            "index_dim": self.index_dim,
        }


@keras.saving.register_keras_serializable("d2l_attention")
class CompressedAttention(HeadProjections, AttentionLayer):
    """Three attentions: to means of blocks, to chosen blocks, to a window.

        head_h = Σ_c g_c,h softmax(scores_c,h) values_c,g
        output = [head_1; …; head_H] W_o

    c is *compressed* (one mean key and mean value for each block before the
    query's own), *selected* (the own block and the best before it, by the
    compressed weights, summed over the heads of a group) or *window*. Each
    has keys and values of its own. The gates g = sigmoid(x W_g) need not sum
    to 1. It is causal with and without `use_causal_mask`. The choice learns
    through the compressed attention, whose keys it reads.

    Source: Yuan et al. (2025), arXiv:2502.11089, section 3: native sparse
    attention. Unlike there, a block's entry is a plain mean, blocks do not
    overlap, one size serves both attentions, and the first block has no place
    of its own among the chosen.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        block_size: Positive int, tokens of a block.
        top: Positive int, blocks that are selected, the own one included.
        window: Positive int, W tokens that the window sees.
        num_kv_heads: Positive int, G heads of keys and values in each of the
            three.
        frequencies, interleaved, magnitude: As in `RotaryAttention`.
        value_dim, output_dim, use_bias: As there.

    Unlike `AttentionLayer`, it returns no weights: three tables belong to
    three sets of values, and no one table times one set gives the output.
    Padding before a text is refused, as by `SelectedBlockAttention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import CompressedAttention
        >>> layer = CompressedAttention(2, 4, block_size=2, top=1, window=3)
        >>> x = np.arange(40.0).reshape(1, 5, 8) / 20
        >>> whole, cache = layer(x), layer.make_cache(1, max_length=5)
        >>> for t in range(5):
        ...     y, cache = layer.step(x[:, t : t + 1], np.array([[t]]), cache)
        >>> bool(np.allclose(y[:, 0], whole[:, 4], atol=1e-5))
        True
    """

    weights_from = (
        "Its three attentions have values of their own; select_blocks and "
        "expand_blocks show what is chosen, and SelectedBlockAttention has "
        "one attention, and dropout."
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        block_size,
        top,
        window,
        *,
        num_kv_heads=None,
        frequencies=None,
        interleaved=False,
        magnitude=1.0,
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
        if num_kv_heads is None:
            num_kv_heads = self.num_heads
        self.num_groups = check_shared_heads(num_kv_heads, self.num_heads)
        self.num_kv_heads = 3 * self.num_groups  # of projections and cache
        if frequencies is None:
            frequencies = rotary_frequencies(self.key_dim)
        self.frequencies = [float(x) for x in frequencies]
        self.interleaved = interleaved
        self.magnitude = magnitude
        self.block_size = check_positive("block_size", block_size)
        self.top = check_positive("top", top)
        self.window = check_positive("window", window)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        size = 3 * self.num_heads
        self.gate_layer = self._dense("W_g", size, query_shape[-1])

    def project_query(self, query, start=0):
        """Rotated queries and three gates after them, `(B, T, H, K + 3)`."""
        gates = split_heads(self.gate_layer(query), self.num_heads)
        rotated = self.rotate(super().project_query(query), start)
        return ops.concatenate([rotated, ops.sigmoid(gates)], axis=-1)

    def project_key(self, key, start=0):
        """Rotated keys of the three `(B, S, 3G, K)`; the first at `start`."""
        return self.rotate(super().project_key(key), start)

    def rotate(self, x, start):
        return rotate(
            x,
            self.frequencies,
            start,
            interleaved=self.interleaved,
            magnitude=self.magnitude,
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
        """Output, and None for weights; keys and values of the three in turn.

        They are `(B, S, 3G, ·)`: compressed, selected, window.
        """
        gates, query = query[..., self.key_dim :], query[..., : self.key_dim]
        keys, values = (ops.split(x, 3, axis=2) for x in (key, value))
        positions = _positions(query, key, query_positions)
        weights = self.three_weights(query, keys, mask, positions)
        heads = [
            gates[..., c : c + 1] * grouped_sum(weights[c], values[c])
            for c in range(3)
        ]
        return _refuse_padding_first(self.join_heads(sum(heads)), mask), None

    def three_weights(self, query, keys, mask, positions):
        """Compressed, selected and window weights, each `(B, H, T, S)`.

        The weight of a compressed entry is spread evenly over its tokens.
        """
        num_keys, size = ops.shape(keys[0])[1], self.block_size
        back = _before(positions, num_keys)
        scores = block_scores(query, keys[0], size, mask)  # (B, H, T, N)
        blocks = ops.arange(ops.shape(scores)[-1], dtype="int32")
        own = ops.expand_dims(positions // size, -1)
        closed = check_mask(blocks < own, scores.shape)
        entries = masked_softmax(scores, closed)
        known = ops.where(scores > -float("inf"), entries, -float("inf"))
        selected = select_blocks(
            known, self.top, size, positions, self.num_groups
        )
        chosen = expand_blocks(selected, size, num_keys)
        present = _join(query, keys[0], back == back, mask)
        present = ops.cast(present, entries.dtype)
        counts = ops.maximum(_sum_blocks(present, size), 1)
        spread = expand_blocks(entries / counts, size, num_keys) * present
        masks = (
            _join(query, keys[1], back >= 0, chosen, mask),
            _join(query, keys[2], (back >= 0) & (back < self.window), mask),
        )
        rest = (
            masked_softmax(grouped_scores(query, x), seen)
            for x, seen in zip(keys[1:], masks, strict=True)
        )
        return spread, *rest

    def make_cache(self, batch_size, max_length):
        """An empty cache of the keys and values of the three."""
        rows = (batch_size, max_length, self.num_kv_heads)
        return contiguous_cache(
            (*rows, self.key_dim), self.value_dim, self.compute_dtype
        )

    def step(self, x, positions, cache, query_mask=None):
        """As `MultiHeadAttention.step`.

        It reads the whole cache, of three keys and values for each token, so
        a step costs more than one of dense attention.
        """
        return attend_with_cache(
            self, x, positions, cache, query_positions=positions
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_kv_heads": self.num_groups,
            "frequencies": self.frequencies,
            "interleaved": self.interleaved,
            "magnitude": self.magnitude,
            "block_size": self.block_size,
            "top": self.top,
            "window": self.window,
        }
