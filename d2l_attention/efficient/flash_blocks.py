"""Which heads, queries and keys flash attention takes at a time."""

from typing import Any, NamedTuple

from d2l_attention.efficient.blockwise import (
    clip,
    even_blocks,
    first_rows,
    hide_last_triangle,
    pad_to,
    slices_may_grow,
)
from keras import ops

# Measured from 512 to 32,768 tokens, on two cores. Scores of one head held at
# a time, and of several: 8 and 2 MB in float32.
SCORES, SCORES_OF_HEADS = 2**21, 2**19
QUERIES, CAUSAL_QUERIES = 512, 256  # in a block; fewer, and more is skipped
# A block of few queries makes slow products, so behind this many keys the
# keys are cut, too.
LONGEST_ROW, QUERIES_OF_LONGER = 2**15, 256
SQUARE = 512  # where slices cannot grow


class Blocks(NamedTuple):
    """How many blocks of which size, and who may see whom.

    Queries lie in `(num_heads num_queries, heads, queries, K)`, keys in
    `(num_heads num_keys, heads, keys, K)`, values alike.
    """

    heads: Any  # in a block, of the B H heads of all sequences
    queries: Any
    keys: Any
    num_heads: Any  # blocks
    num_queries: Any
    num_keys: Any
    whole_rows: bool  # one block has all keys
    grows: bool  # a slice of them may be longer at each step
    offset: Any  # query t sees keys up to t + offset; None = all
    mask: Any  # (M, T or 1, S or 1), or None
    mask_rows: Any  # which of the M masks each head reads

    @classmethod
    def of(cls, shape, block_size=None, mask=None, causal=False):
        """For scores `(B, H, T, S)`, and a mask that broadcasts to them."""
        b, h, t, s = shape
        grows = slices_may_grow()
        if block_size is None and not grows:
            block_size = SQUARE
        if block_size is not None:
            queries = keys = block_size
        elif isinstance(s, int) and s > LONGEST_ROW:
            queries, keys = QUERIES_OF_LONGER, SCORES // QUERIES_OF_LONGER
        else:
            most = CAUSAL_QUERIES if causal else QUERIES
            queries, keys = clip(clip(SCORES // s, 1, most), 1, t), s
        whole_rows = keys is s or (isinstance(s, int) and s <= keys)
        queries, num_queries = even_blocks(t, queries)
        keys, num_keys = (s, 1) if whole_rows else even_blocks(s, keys)
        heads = clip(SCORES_OF_HEADS // (queries * keys), 1, b * h)
        heads, num_heads = even_blocks(b * h, heads)
        sizes = (heads, queries, keys, num_heads, num_queries, num_keys)
        offset = s - t if causal else None
        blocks = cls(*sizes, whole_rows, grows, offset, None, None)
        mask = blocks._whole_blocks(mask, s)
        if mask is None:
            return blocks
        many, heads, *pair = ops.shape(mask)
        head = ops.arange(blocks.num_heads * blocks.heads, dtype="int32")
        return blocks._replace(
            mask=ops.reshape(mask, (many * heads, *pair)),
            mask_rows=head // h % many * heads + head % h % heads,
        )

    def _whole_blocks(self, mask, num_keys):
        """The mask in four axes, False beyond all queries and keys."""
        keys = self.num_keys * self.keys
        if mask is not None:
            mask = ops.convert_to_tensor(mask)
            mask = mask[None] if len(mask.shape) == 2 else mask
            mask = mask[:, None] if len(mask.shape) == 3 else mask
            if mask.shape[2] != 1:
                mask = pad_to(mask, 2, self.num_queries * self.queries)
            if mask.shape[3] != 1:
                mask = pad_to(mask, 3, keys)
        if self.whole_rows or (isinstance(keys, int) and keys == num_keys):
            return mask
        present = (ops.arange(keys, dtype="int32") < num_keys)[None, None, None]
        return present if mask is None else ops.logical_and(mask, present)

    def split(self, x, size):
        """`(B, H, T, K)` in blocks `(·, heads, size, K)`, head by head."""
        b, h, t, k = ops.shape(x)
        number = -(-t // size)
        x = ops.reshape(x, (b * h, t, k))
        x = pad_to(pad_to(x, 0, self.num_heads * self.heads), 1, number * size)
        x = ops.reshape(x, (self.num_heads, self.heads, number, size, k))
        x = ops.transpose(x, (0, 2, 1, 3, 4))
        return ops.reshape(x, (self.num_heads * number, self.heads, size, k))

    def join(self, x, shape):
        """Blocks of queries as `(B, H, T, V)`, which is the shape."""
        b, h, t, v = shape
        blocks = (self.num_heads, self.num_queries, self.heads, self.queries)
        x = ops.transpose(ops.reshape(x, (*blocks, v)), (0, 2, 1, 3, 4))
        rows = (self.num_heads * self.heads, self.num_queries * self.queries)
        return ops.reshape(ops.reshape(x, (*rows, v))[: b * h, :t], shape)

    def key_blocks(self, i):
        """How many of them, from the first on, queries of block i see."""
        if self.offset is None or self.whole_rows:
            return self.num_keys
        last = (i + 1) * self.queries + self.offset  # keys its last query sees
        return ops.clip(-(-last // self.keys), 0, self.num_keys)

    def first_queries(self, j):
        """The first block of queries in which any sees key block j."""
        if self.offset is None or self.whole_rows:
            return 0
        first = j * self.keys - self.offset  # the query that sees its first key
        return ops.clip(first // self.queries, 0, self.num_queries)

    @property
    def ends_in_a_triangle(self):
        """Whether all that is hidden in `keys_seen` is their last triangle."""
        plain = self.whole_rows and self.grows and self.mask is None
        if not plain or not self._all_see_the_first_key():
            return False
        keys = self.offset + self.num_queries * self.queries
        return self.queries > 1 and keys == self.keys

    def _all_see_the_first_key(self):
        return isinstance(self.offset, int) and self.offset >= 0

    def keys_seen(self, i, x):
        """Of a block of all keys or values `(heads, S, ·)` those i sees."""
        if self.offset is None or not (self.whole_rows and self.grows):
            return x
        last = (i + 1) * self.queries + self.offset
        return first_rows(x, ops.clip(last, 1, self.keys))

    def weights(self, h, i, j, query, key):
        """Scores of a block, their softmax among its keys, and who sees any.

        Scores and weights are `(heads, queries, keys)`, the third is a bool
        `(…, queries, 1)`, or None if each query sees some key. The weights
        of a query that sees none mean nothing.
        """
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
        if scores.shape[-1] == 1:  # of which Keras's softmax warns
            return scores, ops.ones_like(scores), any_seen
        return scores, ops.softmax(scores, axis=-1), any_seen

    def _seen(self, h, i, j, num_keys):
        """Bool that broadcasts to a block's scores, and whether any is True.

        None means that all are.
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
