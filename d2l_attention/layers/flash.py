"""Exact attention without a matrix of all queries and keys.

The backward pass computes the scores again, and from them and the log-sum-exp
the weights p = exp(scores − log_sum_exp):

    d_v = pᵀ d_o,  d_s = p (d_o vᵀ − δ),  δ = Σ d_o o
    d_q = d_s k,  d_k = d_sᵀ q

First come blocks of queries and keys, for every backend. Then come tiles of
few queries with all their keys, which are faster and for TensorFlow alone.
"""

from functools import partial
from typing import Any, NamedTuple

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import AttentionLayer
from d2l_attention.layers.compiled_loops import (
    count_loop,
    hide_last_triangle,
    join_tiles,
    slices_may_vary,
    write_block,
)
from d2l_attention.layers.masking import check_mask
from d2l_attention.layers.multi_head import HeadProjections
from d2l_attention.layers.reshaping import (
    ceil_divide,
    even_blocks,
    pad_to,
    reshape,
)
import keras
from keras import ops

SQUARE = 512  # queries and keys in a block where tiles cannot be used
# Of tiles. Chosen by measuring 512 to 32,768 tokens on two cores.
SCORES = 2**21  # at most, 8 MB in float32
QUERIES = 512  # at most
CAUSAL_QUERIES = 256  # smaller tiles skip more of the hidden keys
SCORES_OF_HEADS = 2**19  # short sequences share a tile up to this many


def flash_attention(
    query,
    key,
    value,
    *,
    attention_mask=None,
    use_causal_mask=False,
    block_size=None,
    return_log_sum_exp=False,
):
    """Softmax attention with memory that grows as T + S, not as T times S.

        for each block of queries, for each block of keys:
            s = q kᵀ / √K
            m′ = max(m, max s),  shrink = exp(m − m′)
            total = shrink · total + Σ exp(s − m′)
            carried = shrink · carried + exp(s − m′) v
            m = m′
        output = carried / total,  log_sum_exp = m + log total

    Without `block_size`, TensorFlow takes few queries with all their keys at a
    time (up to 512 queries for 4,096 keys, 64 for 32,768), so no block needs
    merging; under XLA and on other backends blocks have at most 512 of each.
    The gradient computes the weights of each block again instead of keeping
    them, and cannot be differentiated again.

    Source: Dao et al. (2022), arXiv:2205.14135; Rabe and Staats (2021),
    arXiv:2112.05682; document 004, section 6, steps 5 and 6.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, H, K)` and `(B, S, H, V)`.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`, or to
            `(B, H, T, S)` if it has four axes; True = may attend.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T. A
            block of queries skips the keys that none of them sees.
        block_size: Positive int, largest number of queries and of keys in a
            block; None chooses both.
        return_log_sum_exp: If True, also return the log of the softmax's
            denominator; outputs over two sets of keys merge by it.

    Returns:
        Float tensor `(B, T, H, V)` of the query's dtype, computed in float32
        or wider; a query with nothing to attend to gets zeros. If asked also
        the log-sum-exp `(B, H, T)`, −inf for such a query.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import flash_attention
        >>> key = np.zeros((1, 4, 1, 2), "float32")
        >>> value = np.array([1, 2, 3, 6], "float32").reshape(1, 4, 1, 1)
        >>> output = flash_attention(key[:, :1], key, value, block_size=2)
        >>> np.array(output).round(2).tolist()  # keys all alike: the mean
        [[[[3.0]]]]
    """
    if block_size is not None:
        check_positive("block_size", block_size)
    mask = _check(query, key, value, attention_mask)
    dtype, num_features = query.dtype, value.shape[-1]
    wide = "float64" if ops.dtype(query) == "float64" else "float32"
    query, key, value = (
        ops.transpose(ops.cast(x, wide), (0, 2, 1, 3))  # (B, H, T, K)
        for x in (query, key, value)
    )
    query = query / key.shape[-1] ** 0.5
    in_tiles = block_size is None and slices_may_vary()
    if in_tiles and 0 not in (query.shape[2], key.shape[2]):
        attend = partial(_attend_in_tiles, with_norm=return_log_sum_exp)
    else:
        attend = partial(_attend_in_blocks, block_size=block_size or SQUARE)
    result = attend(query, key, value, mask, use_causal_mask)
    output = ops.transpose(result[..., :num_features], (0, 2, 1, 3))
    output = ops.cast(output, dtype)
    return (output, result[..., -1]) if return_log_sum_exp else output


def _check(query, key, value, mask):
    """The mask as `(B or 1, H or 1, T or 1, S or 1)`, or None."""
    shapes = [tuple(x.shape) for x in (query, key, value)]
    query_shape, key_shape, value_shape = shapes
    if (
        not all(len(shape) == 4 for shape in shapes)
        or query_shape[2:] != key_shape[2:]
        or key_shape[1:3] != value_shape[1:3]
    ):
        raise ValueError(
            "query must be (B, T, H, K), key (B, S, H, K) and value "
            f"(B, S, H, V). Received: query {query_shape}, key {key_shape}, "
            f"value {value_shape}."
        )
    if mask is None:
        return None
    b, t, h, _ = query_shape
    mask = check_mask(mask, (b, h, t, key_shape[1]))
    while len(mask.shape) < 4:
        mask = ops.expand_dims(mask, 0)
    return mask


@keras.saving.register_keras_serializable("d2l_attention")
class FlashAttention(HeadProjections, AttentionLayer):
    """Multi-head attention in blocks, with memory that grows as T + S.

        output = [flash_attention(Q W_q,h, K W_k,h, V W_v,h) for each h] W_o

    It computes what `MultiHeadAttention` computes with the same weights, and
    its projections have the same names, so that each can be given to the
    other; see `flash_attention`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`. It exports to SavedModel only. For
    ONNX and TFLite, which cannot take its loops over blocks, export a
    `MultiHeadAttention` with its weights.

    Source: Dao et al. (2022), arXiv:2205.14135; document 004, section 6.

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        block_size: Positive int, largest number of queries and of keys in a
            block; None chooses both.
        value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    The call is that of `AttentionLayer`. A causal mask is never formed: a
    block of queries skips the keys that none of them sees.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import FlashAttention, MultiHeadAttention
        >>> flash, dense = FlashAttention(2, 3), MultiHeadAttention(2, 3)
        >>> x = np.arange(20.0).reshape(1, 5, 4) / 20
        >>> _ = flash(x), dense(x)  # builds them
        >>> flash.set_weights(dense.get_weights())
        >>> bool(np.allclose(flash(x), dense(x), atol=1e-5))
        True
    """

    weights_from = (
        "MultiHeadAttention with the same parameters computes the same and has "
        "both."
    )

    def __init__(self, num_heads, key_dim, *, block_size=None, **options):
        super().__init__(num_heads, key_dim, **options)
        self.block_size = check_positive("block_size", block_size, None)

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
    ):
        heads = flash_attention(
            query,  # (B, T, H, K)
            key,  # (B, S, H, K)
            value,  # (B, S, H, V)
            attention_mask=mask,
            use_causal_mask=use_causal_mask,
            block_size=self.block_size,
        )
        return self.join_heads(heads), None


def _with_gradient(forward, backward):
    """`forward(*arrays)`, differentiated by backward(*arrays, result, d)."""

    @ops.custom_gradient
    def attend(*arrays):
        result = forward(*arrays)

        def gradient(*inputs, upstream=None):
            # Torch passes the inputs too, and the gradient by its name.
            upstream = inputs[0] if upstream is None else upstream
            return backward(*arrays, result, upstream)

        return result, gradient

    return attend


def _output_gradient(result, upstream, num_features):
    """d_o, and δ = Σ d_o o less the gradient of the log-sum-exp, if any.

    `result` has the output and, in one column more, the log-sum-exp.
    """
    d_output = upstream[..., :num_features]
    delta = ops.sum(d_output * result[..., :num_features], -1, keepdims=True)
    d_norm = ops.sum(upstream[..., num_features:], -1, keepdims=True)
    return d_output, delta - d_norm


def _score_gradient(weights, value, d_output, delta):
    """d_s = p (d_o vᵀ − δ)."""
    return weights * (ops.matmul(d_output, _transposed(value)) - delta)


def _transposed(x):
    return ops.swapaxes(x, -1, -2)


class Blocks(NamedTuple):
    """How T queries and S keys are cut; the last blocks are padded."""

    queries: Any  # in a block
    keys: Any  # in a block
    num_query_blocks: Any
    num_key_blocks: Any
    num_keys: Any  # without the padding
    offset: Any  # query t sees keys up to t + offset; None = all
    mask: Any  # (B or 1, H or 1, T or 1, S or 1), or None

    @classmethod
    def of(cls, num_queries, num_keys, block_size, mask=None, causal=False):
        queries, num_query_blocks = even_blocks(num_queries, block_size)
        keys, num_key_blocks = even_blocks(num_keys, block_size)
        queries, keys = max(1, queries), max(1, keys)  # also where T or S is 0
        if mask is not None and mask.shape[2] != 1:
            mask = pad_to(mask, 2, queries * num_query_blocks)
        if mask is not None and mask.shape[3] != 1:
            mask = pad_to(mask, 3, keys * num_key_blocks)
        offset = num_keys - num_queries if causal else None
        numbers = num_query_blocks, num_key_blocks, num_keys
        return cls(queries, keys, *numbers, offset, mask)

    def num_visible_key_blocks(self, i):
        """Number of leading key blocks visible to some query of block i."""
        if self.offset is None:
            return self.num_key_blocks
        last = (i + 1) * self.queries + self.offset  # keys its last query sees
        return ops.clip(ceil_divide(last, self.keys), 0, self.num_key_blocks)

    def first_query_block(self, j):
        """Index of the first query block with a query that sees key block j."""
        if self.offset is None:
            return 0
        first = j * self.keys - self.offset  # first query that sees it
        return ops.clip(first // self.queries, 0, self.num_query_blocks)

    def scores(self, i, j, query, key):
        """Scores of query block i and key block j, −inf where hidden."""
        scores = ops.matmul(query, _transposed(key))
        t = i * self.queries + ops.arange(self.queries, dtype="int32")[:, None]
        s = j * self.keys + ops.arange(self.keys, dtype="int32")
        seen = s < self.num_keys
        if self.offset is not None:
            seen = ops.logical_and(seen, s <= t + self.offset)
        if self.mask is not None:
            seen = ops.logical_and(seen, self._mask_of(i, j))
        return ops.where(seen, scores, -float("inf"))

    def _mask_of(self, i, j):
        start, shape = [0, 0, 0, 0], list(ops.shape(self.mask))
        if self.mask.shape[2] != 1:
            start[2], shape[2] = i * self.queries, self.queries
        if self.mask.shape[3] != 1:
            start[3], shape[3] = j * self.keys, self.keys
        return ops.slice(self.mask, start, shape)


def _attend_in_blocks(query, key, value, mask, causal, block_size):
    """Output and log-sum-exp, `(B, H, T, V + 1)`."""
    num_queries, num_keys = ops.shape(query)[2], ops.shape(key)[2]
    blocks = Blocks.of(num_queries, num_keys, block_size, mask, causal)
    attend = _with_gradient(
        partial(_read_blocks, blocks), partial(_read_blocks_again, blocks)
    )
    result = attend(
        _cut(query, blocks.num_query_blocks, blocks.queries),
        _cut(key, blocks.num_key_blocks, blocks.keys),
        _cut(value, blocks.num_key_blocks, blocks.keys),
    )
    b, h, _, width = *ops.shape(query)[:3], value.shape[-1] + 1
    result = ops.transpose(result, (1, 2, 0, 3, 4))
    padded = blocks.num_query_blocks * blocks.queries
    return reshape(result, (b, h, padded, width))[:, :, :num_queries]


def _cut(x, number, size):
    """`(B, H, T, K)` as `number` blocks `(B, H, size, K)`."""
    b, h, _, k = ops.shape(x)
    x = reshape(pad_to(x, 2, number * size), (b, h, number, size, k))
    return ops.transpose(x, (2, 0, 1, 3, 4))


def _read_blocks(blocks, query, key, value):
    """Output and log-sum-exp of each query, side by side."""

    def write_query_block(i, result):
        q = query[i]  # (B, H, queries, K)

        def read(j, *so_far):
            scores = blocks.scores(i, j, q, key[j])
            return read_key_block(scores, value[j], *so_far)

        zero = ops.zeros_like(result[0])
        so_far = zero[..., :1] - float("inf"), zero[..., :1], zero[..., 1:]
        last = blocks.num_visible_key_blocks(i)
        highest, total, carried = count_loop(0, last, read, so_far)
        total = ops.where(total == 0, 1.0, total)  # nothing seen: 0, and −inf
        norm = highest + ops.log(total)
        both = ops.concatenate([carried / total, norm], axis=-1)
        return (write_block(result, i, both),)

    shape = (*ops.shape(query)[:-1], value.shape[-1] + 1)
    result = ops.zeros(shape, query.dtype)
    return count_loop(0, shape[0], write_query_block, (result,))[0]


def read_key_block(scores, value, highest, total, carried):
    """What a query remembers, after one more block of keys."""
    new = ops.maximum(highest, ops.amax(scores, axis=-1, keepdims=True))
    finite = _finite(new)  # it is −inf while nothing was seen
    shrink, powers = ops.exp(highest - finite), ops.exp(scores - finite)
    total = shrink * total + ops.sum(powers, axis=-1, keepdims=True)
    return new, total, shrink * carried + ops.matmul(powers, value)


def _finite(x):
    return ops.where(ops.isfinite(x), x, 0.0)


def _read_blocks_again(blocks, query, key, value, result, upstream):
    """Gradients of queries, keys and values."""
    d_output, delta = _output_gradient(result, upstream, value.shape[-1])
    norm = _finite(result[..., -1:])

    def add_key_block(j, d_query, d_key, d_value):
        k, v = key[j], value[j]

        def add_query_block(i, d_query, d_k, d_v):
            p = ops.exp(blocks.scores(i, j, query[i], k) - norm[i])
            d_s = _score_gradient(p, v, d_output[i], delta[i])
            return (
                write_block(d_query, i, d_query[i] + ops.matmul(d_s, k)),
                d_k + ops.matmul(_transposed(d_s), query[i]),
                d_v + ops.matmul(_transposed(p), d_output[i]),
            )

        first, last = blocks.first_query_block(j), blocks.num_query_blocks
        nothing = d_query, ops.zeros_like(k), ops.zeros_like(v)
        d_query, d_k, d_v = count_loop(first, last, add_query_block, nothing)
        return d_query, write_block(d_key, j, d_k), write_block(d_value, j, d_v)

    nothing = [ops.zeros_like(x) for x in (query, key, value)]
    return count_loop(0, blocks.num_key_blocks, add_key_block, nothing)


# Tiles: few queries with all the keys that they see. TensorFlow computes the
# softmax of whole rows in one operation, so nothing is merged. A tile belongs
# to one head, so a slice of it is a view; short sequences share a tile.


class Tiles(NamedTuple):
    """The tiles of M = B H heads with T queries and S keys."""

    heads: Any  # in a tile; several only if it has all their queries
    queries: Any  # in a tile
    num_head_blocks: Any
    num_query_blocks: Any
    num_queries: Any
    num_keys: Any
    offset: Any  # query t sees keys up to t + offset; None = all
    mask: Any  # rows (·, S or 1), or None
    mask_rows: Any  # which of them query t of head m reads, (M, T or 1)

    @classmethod
    def of(cls, scores_shape, mask=None, causal=False):
        """Choose the tiles for scores `(B, H, T, S)`."""
        b, h, t, s = scores_shape
        most = _clip(SCORES // s, 1, CAUSAL_QUERIES if causal else QUERIES)
        queries, num_query_blocks = even_blocks(t, most)
        heads = _clip(SCORES_OF_HEADS // t // s, 1, b * h)
        if not isinstance(num_query_blocks, int):
            heads = ops.where(num_query_blocks == 1, heads, 1)
        elif num_query_blocks > 1:
            heads = 1
        heads, num_head_blocks = even_blocks(b * h, heads)
        rows = None
        if mask is not None:
            mask_batch, mask_heads, mask_queries, _ = ops.shape(mask)
            head = ops.arange(b * h, dtype="int32")  # b H + h
            rows = (head // h) % mask_batch * mask_heads + head % h % mask_heads
            rows = rows[:, None] * mask_queries + ops.arange(
                mask_queries, dtype="int32"
            )
            mask = ops.reshape(mask, (-1, mask.shape[3] or s))
        offset = s - t if causal else None
        return cls(
            heads,
            queries,
            num_head_blocks,
            num_query_blocks,
            t,
            s,
            offset,
            mask,
            rows,
        )

    def query_rows(self, x, h, i):
        """The rows of a tile, `(heads, queries, ·)`, of rows `(M T, ·)`."""
        t, number = self.num_queries, self.queries
        if not (isinstance(t, int) and t % number == 0):
            number = ops.minimum(number, t - i * number)
        first = h * self.heads * t + i * self.queries
        return self._heads(x[first : first + self.heads * number], number)

    def visible_rows(self, x, h, i):
        """The rows that a tile sees, `(heads, keys, ·)`, of rows `(M S, ·)`."""
        s = self.num_keys
        number = s
        if self.offset is not None:
            number = _clip((i + 1) * self.queries + self.offset, 1, s)
        first = h * self.heads * s
        return self._heads(
            x[first : first + (self.heads - 1) * s + number], number
        )

    def _heads(self, rows, number):
        heads = 1 if isinstance(self.heads, int) and self.heads == 1 else -1
        return ops.reshape(rows, (heads, number, rows.shape[-1]))

    def scores_and_weights(self, h, i, query, key):
        """Scores of a tile and their softmax, 0 for queries that see no key."""
        scores = ops.matmul(query, _transposed(key))
        if self._ends_in_a_triangle():
            scores = hide_last_triangle(scores, self.queries)
        elif self.mask is not None or self.offset is not None:
            seen = self._seen(h, i, *ops.shape(scores)[1:])
            any_seen = ops.any(seen, axis=-1, keepdims=True)
            hidden = ops.where(any_seen, -float("inf"), 0.0)  # 0: not NaN
            scores = ops.where(seen, scores, ops.cast(hidden, scores.dtype))
            return scores, ops.where(any_seen, _softmax(scores), 0.0)
        return scores, _softmax(scores)

    def _ends_in_a_triangle(self):
        """Whether each query sees one key more than the query before it.

        Then only the last keys of a tile are hidden, in a triangle.
        """
        t, offset = self.num_queries, self.offset
        known = all(isinstance(x, int) for x in (t, offset))
        if not known or self.mask is not None:
            return False
        return offset >= 0 and self.queries > 1 and t % self.queries == 0

    def _seen(self, h, i, num_queries, num_keys):
        """Which keys the queries of a tile see, `(heads or 1, …, …)`."""
        seen = None
        queries = i * self.queries + ops.arange(num_queries, dtype="int32")
        if self.mask is not None:
            rows = self.mask_rows[h * self.heads : (h + 1) * self.heads]
            if self.mask_rows.shape[1] != 1:
                rows = ops.take(rows, queries, axis=1)
            seen = ops.take(self.mask, rows, axis=0)[..., :num_keys]
        if self.offset is None:
            return seen
        keys = ops.arange(num_keys, dtype="int32")
        past = (keys <= queries[:, None] + self.offset)[None]
        return past if seen is None else ops.logical_and(seen, past)


def _clip(x, low, high):
    if all(isinstance(value, int) for value in (x, low, high)):
        return max(low, min(x, high))
    return ops.maximum(low, ops.minimum(x, high))


def _softmax(scores):
    if scores.shape[-1] == 1:  # Keras warns about it
        return ops.ones_like(scores)
    return ops.softmax(scores, axis=-1)


def _attend_in_tiles(query, key, value, mask, causal, with_norm):
    """Output `(B, H, T, V)`, with the log-sum-exp in one column more."""
    b, h, t, _ = ops.shape(query)
    tiles = Tiles.of((b, h, t, ops.shape(key)[2]), mask, causal)
    attend = _with_gradient(
        partial(_read_tiles, tiles, with_norm),
        partial(_read_tiles_again, tiles),
    )
    result = attend(
        *(ops.reshape(x, (-1, x.shape[-1])) for x in (query, key, value)),
    )
    return reshape(result, (b, h, t, result.shape[-1]))


def _read_tiles(tiles, with_norm, query, key, value):
    """Rows `(M T, V)` of output, or `(M T, V + 1)` with log-sum-exp."""

    def read(tile):
        h, i = tile // tiles.num_query_blocks, tile % tiles.num_query_blocks
        q = tiles.query_rows(query, h, i)
        k, v = (tiles.visible_rows(x, h, i) for x in (key, value))
        scores, weights = tiles.scores_and_weights(h, i, q, k)
        result = ops.matmul(weights, v)
        if with_norm:  # log total, from the largest weight, exp(0) / total
            top = ops.max(weights, axis=-1, keepdims=True)
            norm = ops.max(scores, axis=-1, keepdims=True) - ops.log(top)
            norm = ops.where(top == 0, -float("inf"), norm)
            result = ops.concatenate([result, norm], axis=-1)
        return (ops.reshape(result, (-1, width)),), ()

    width = value.shape[-1] + with_norm
    number = tiles.num_head_blocks * tiles.num_query_blocks
    return join_tiles(read, number, [width], query.dtype)[0][0]


def _read_tiles_again(tiles, query, key, value, result, upstream):
    """Gradients of the rows of queries, keys and values."""
    d_output, delta = _output_gradient(result, upstream, value.shape[-1])

    def add_heads(h):
        def add_tile(i, d_key, d_value):
            q, d_o, delta_i = (
                tiles.query_rows(x, h, i) for x in (query, d_output, delta)
            )
            k, v = (tiles.visible_rows(x, h, i) for x in (key, value))
            _, p = tiles.scores_and_weights(h, i, q, k)
            d_s = _score_gradient(p, v, d_o, delta_i)
            d_q = ops.reshape(ops.matmul(d_s, k), (-1, query.shape[-1]))
            d_key = add_rows(d_key, ops.matmul(_transposed(d_s), q))
            d_value = add_rows(d_value, ops.matmul(_transposed(p), d_o))
            return (d_q,), (d_key, d_value)

        def add_rows(x, rows):
            if tiles.offset is None:
                return x + rows
            unseen = tiles.num_keys - ops.shape(rows)[1]
            return x + ops.pad(rows, ((0, 0), (0, unseen), (0, 0)))

        last = tiles.num_query_blocks - 1
        nothing = (
            ops.zeros_like(tiles.visible_rows(x, h, last)) for x in (key, value)
        )
        (d_query,), d_key_value = join_tiles(
            add_tile,
            tiles.num_query_blocks,
            [query.shape[-1]],
            query.dtype,
            tuple(nothing),
        )
        d_key, d_value = (
            ops.reshape(x, (-1, x.shape[-1])) for x in d_key_value
        )
        return (d_query, d_key, d_value), ()

    widths = [x.shape[-1] for x in (query, key, value)]
    return tuple(
        join_tiles(add_heads, tiles.num_head_blocks, widths, query.dtype)[0]
    )
