"""The blocks of flash attention: how they are cut, and the scores of one."""

from typing import Any, NamedTuple

from d2l_attention.layers.chunks import (
    ceil_divide,
    even_blocks,
    pad_to,
    reshape,
)
from d2l_attention.layers.loops import (
    clip_or_low,
    first_rows,
    hide_last_triangle,
    slices_may_vary,
)
from keras import ops

# Chosen by measuring 512 to 32,768 tokens on two cores.
SCORES = 2**21  # held at a time for one head, 8 MB in float32
SCORES_OF_HEADS = 2**19  # heads share a block up to this many scores, 2 MB
QUERIES = 512  # in a block
CAUSAL_QUERIES = 256  # smaller blocks skip more of the hidden keys
LONGEST_ROW = 2**15  # keys; a longer row would leave too few queries in a block
QUERIES_OF_LONGER = 256  # in a block, where rows are cut
SQUARE = 512  # queries and keys in a block where slices cannot grow


class Blocks(NamedTuple):
    """The sizes and numbers of blocks, and which keys a query may see.

    Queries are cut into `(num_head_blocks num_query_blocks, heads, queries,
    K)`, keys into `(num_head_blocks num_key_blocks, heads, keys, K)`, values
    like keys.
    """

    heads: Any  # in a block, of the B H heads of all sequences
    queries: Any  # in a block
    keys: Any  # in a block
    num_head_blocks: Any
    num_query_blocks: Any
    num_key_blocks: Any
    whole_rows: bool  # one block has all keys
    slices_vary: bool  # slices of keys may differ in length at each step
    offset: Any  # query t sees keys up to t + offset; None = all
    mask: Any  # (M, T or 1, S or 1), or None
    mask_rows: Any  # which of the M masks each head reads

    @classmethod
    def of(cls, scores_shape, block_size=None, mask=None, causal=False):
        """Choose the blocks for scores `(B, H, T, S)`."""
        b, h, t, s = scores_shape
        slices_vary = slices_may_vary()
        whole_rows = False
        if block_size is None and not slices_vary:
            block_size = SQUARE
        if block_size is not None:
            queries = keys = block_size
        elif isinstance(s, int) and s > LONGEST_ROW:
            queries, keys = QUERIES_OF_LONGER, SCORES // QUERIES_OF_LONGER
        else:
            most = CAUSAL_QUERIES if causal else QUERIES
            queries = clip_or_low(clip_or_low(SCORES // s, 1, most), 1, t)
            keys, whole_rows = s, True
        whole_rows = whole_rows or (isinstance(s, int) and s <= keys)
        queries, num_query_blocks = even_blocks(t, queries)
        keys, num_key_blocks = (s, 1) if whole_rows else even_blocks(s, keys)
        heads = clip_or_low(SCORES_OF_HEADS // (queries * keys), 1, b * h)
        heads, num_head_blocks = even_blocks(b * h, heads)
        blocks = cls(
            heads,
            queries,
            keys,
            num_head_blocks,
            num_query_blocks,
            num_key_blocks,
            whole_rows,
            slices_vary,
            offset=s - t if causal else None,
            mask=None,
            mask_rows=None,
        )
        mask = blocks._padded_mask(mask, s)
        if mask is None:
            return blocks
        mask_batch, mask_heads, *pair = ops.shape(mask)
        head = ops.arange(num_head_blocks * heads, dtype="int32")  # b H + h
        mask_row = ((head // h) % mask_batch) * mask_heads
        return blocks._replace(
            mask=reshape(mask, (mask_batch * mask_heads, *pair)),
            mask_rows=mask_row + (head % h) % mask_heads,
        )

    def _padded_mask(self, mask, num_keys):
        """The mask in four axes, False beyond all queries and keys."""
        keys = self.num_key_blocks * self.keys
        if mask is not None:
            mask = ops.convert_to_tensor(mask)
            mask = ops.expand_dims(mask, 0) if len(mask.shape) == 2 else mask
            mask = ops.expand_dims(mask, 1) if len(mask.shape) == 3 else mask
            if mask.shape[2] != 1:
                mask = pad_to(mask, 2, self.num_query_blocks * self.queries)
            if mask.shape[3] != 1:
                mask = pad_to(mask, 3, keys)
        if self.whole_rows or (isinstance(keys, int) and keys == num_keys):
            return mask
        present = (ops.arange(keys, dtype="int32") < num_keys)[None, None, None]
        return present if mask is None else ops.logical_and(mask, present)

    def cut(self, x, size):
        """`(B, H, T, K)` as blocks `(·, heads, size, K)`, head by head."""
        b, h, t, k = ops.shape(x)
        number = ceil_divide(t, size)
        num_heads = self.num_head_blocks * self.heads
        x = reshape(x, (b * h, t, k))
        x = pad_to(pad_to(x, 0, num_heads), 1, number * size)
        blocks = (self.num_head_blocks, self.heads, number, size)
        x = ops.transpose(reshape(x, (*blocks, k)), (0, 2, 1, 3, 4))
        num_blocks = self.num_head_blocks * number
        return reshape(x, (num_blocks, self.heads, size, k))

    def join(self, x, shape):
        """Blocks of queries as one tensor of the shape `(B, H, T, V)`."""
        b, h, t, v = shape
        blocks = (self.num_head_blocks, self.num_query_blocks)
        x = reshape(x, (*blocks, self.heads, self.queries, v))
        x = ops.transpose(x, (0, 2, 1, 3, 4))
        num_heads = self.num_head_blocks * self.heads
        x = reshape(x, (num_heads, self.num_query_blocks * self.queries, v))
        return reshape(x[: b * h, :t], shape)

    def num_visible_key_blocks(self, i):
        """Number of leading key blocks visible to some query of block i."""
        if self.offset is None or self.whole_rows:
            return self.num_key_blocks
        last = (i + 1) * self.queries + self.offset  # keys its last query sees
        return ops.clip(ceil_divide(last, self.keys), 0, self.num_key_blocks)

    def first_query_block(self, j):
        """Index of the first query block with a query that sees key block j."""
        if self.offset is None or self.whole_rows:
            return 0
        first = j * self.keys - self.offset  # first query that sees it
        return ops.clip(first // self.queries, 0, self.num_query_blocks)

    @property
    def ends_in_a_triangle(self):
        """Whether only the last triangle of `visible_keys` is hidden."""
        plain = self.whole_rows and self.slices_vary and self.mask is None
        if not plain or not self._all_see_the_first_key():
            return False
        keys = self.offset + self.num_query_blocks * self.queries
        return self.queries > 1 and keys == self.keys

    def _all_see_the_first_key(self):
        return isinstance(self.offset, int) and self.offset >= 0

    def visible_keys(self, i, x):
        """The rows of keys or values `(heads, S, ·)` that query block i sees.

        Where a slice cannot grow, or several blocks hold the keys: all rows.
        """
        if self.offset is None or not (self.whole_rows and self.slices_vary):
            return x
        last = (i + 1) * self.queries + self.offset
        return first_rows(x, ops.clip(last, 1, self.keys))

    def scores_and_weights(self, h, i, j, query, key):
        """Scores of a block, their softmax, and which queries see a key.

        Scores and weights are `(heads, queries, keys)`. The third is a bool
        `(…, queries, 1)`, or None if every query sees a key. The weights of a
        query that sees none mean nothing.
        """
        # The query was divided by √K before it was cut.
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
        if self.ends_in_a_triangle:
            scores = hide_last_triangle(scores, self.queries)
            return scores, ops.softmax(scores, axis=-1), None
        seen, any_seen = self._seen(h, i, j, ops.shape(key)[1])
        if seen is not None:
            hidden = -float("inf")
            if any_seen is not None:  # a softmax of −inf alone would be NaN
                hidden = ops.where(any_seen, hidden, 0.0)
            scores = ops.where(seen, scores, ops.cast(hidden, scores.dtype))
        if scores.shape[-1] == 1:  # Keras's softmax warns about it
            return scores, ops.ones_like(scores), any_seen
        return scores, ops.softmax(scores, axis=-1), any_seen

    def _seen(self, h, i, j, num_keys):
        """Which keys each query of a block sees, and whether it sees any.

        The first broadcasts to the block's scores. None means all True.
        """
        seen = any_seen = None
        if self.mask is not None:
            seen = self._masked(h, i, j, num_keys)
            any_seen = ops.any(seen, axis=-1, keepdims=True)
        if self.offset is None:
            return seen, any_seen
        rows = i * self.queries + ops.arange(self.queries, dtype="int32")
        columns = ops.arange(self.keys, dtype="int32")
        columns = j * self.keys + ops.slice(columns, (0,), (num_keys,))
        rows = rows[:, None] + self.offset
        past = columns <= rows
        if seen is not None:
            seen = ops.logical_and(seen, past)
            return seen, ops.any(seen, axis=-1, keepdims=True)
        if self.whole_rows and self._all_see_the_first_key():
            return past, None
        return past, rows >= j * self.keys

    def _masked(self, h, i, j, num_keys):
        """The mask of a block, `(heads or 1, queries or 1, keys or 1)`."""
        many, t, s = ops.shape(self.mask)
        start, size = [0, 0, 0], [many, 1, 1]
        if self.mask.shape[1] != 1:
            start[1], size[1] = i * self.queries, self.queries
        if self.mask.shape[2] != 1:
            start[2], size[2] = j * self.keys, num_keys
        seen = ops.slice(self.mask, start, size)
        if self.mask.shape[0] == 1:
            return seen
        first = [h * self.heads]
        rows = ops.slice(self.mask_rows, first, [self.heads])
        return ops.take(seen, rows, axis=0)
