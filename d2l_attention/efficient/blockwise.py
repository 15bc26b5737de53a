"""Queries and keys in blocks, and the loops over them.

The portable forms are `keras.ops.while_loop` and `slice_update`. TensorFlow's
loop would run ten steps at a time, each with blocks of its own, and its
`slice_update` copies the whole array: there the loop has one step at a time
and the array is a `TensorArray`.
"""

from typing import Any, NamedTuple

import keras
from keras import ops, tree


class Blocks(NamedTuple):
    """How many blocks of which size, and who may see whom."""

    queries: int  # in a block
    keys: int
    num_queries: Any  # blocks
    num_keys: Any
    offset: Any  # S − T: query t stands at key t + offset
    causal: bool
    mask: Any  # (b, h, t, S) in whole blocks; b, h and t may be 1; or None

    @classmethod
    def of(cls, t, s, block_size, causal, mask):
        """For t queries and s keys; a mask as `flash_attention` takes it."""
        (queries, num_queries), (keys, num_keys) = (
            even_blocks(n, block_size) for n in (t, s)
        )
        if mask is not None:
            mask = ops.convert_to_tensor(mask)
            mask = mask[None] if len(mask.shape) == 2 else mask
            mask = mask[:, None] if len(mask.shape) == 3 else mask
            if mask.shape[2] != 1:
                mask = pad_to(mask, 2, num_queries * queries)
            if mask.shape[3] != 1:
                mask = pad_to(mask, 3, num_keys * keys)
        one_for_all = mask is not None and mask.shape[3] == 1
        if one_for_all or not isinstance(s, int) or num_keys * keys != s:
            present = ops.arange(num_keys * keys, dtype="int32") < s
            present = present[None, None, None]
            mask = present if mask is None else ops.logical_and(mask, present)
        return cls(queries, keys, num_queries, num_keys, s - t, causal, mask)

    def seen_by(self, i):
        """Key blocks that all queries of block i see, and that any sees."""
        if not self.causal:
            return self.num_keys, self.num_keys
        first = i * self.queries + self.offset + 1  # keys its first query sees
        last = first + self.queries - 1
        whole = ops.clip(first // self.keys, 0, self.num_keys)
        return whole, ops.clip(-(-last // self.keys), 0, self.num_keys)

    def seeing(self, j):
        """The first query block where any sees key block j, and where all."""
        if not self.causal:
            return 0, 0
        first = j * self.keys - self.offset  # the query that sees its first key
        last = first + self.keys - 1
        some = ops.clip(first // self.queries, 0, self.num_queries)
        return some, ops.clip(-(-last // self.queries), 0, self.num_queries)

    def scores(self, i, j, query, key, diagonal):
        """Scores of a block, −inf where nothing may be attended."""
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
        if self.mask is not None:
            b, h, t, _ = ops.shape(self.mask)
            everyone = self.mask.shape[2] == 1
            start = (0, 0, 0 if everyone else i * self.queries, j * self.keys)
            size = (b, h, 1 if everyone else self.queries, self.keys)
            seen = ops.slice(self.mask, start, size)
            scores = ops.where(seen, scores, -float("inf"))
        if diagonal:
            rows = i * self.queries + ops.arange(self.queries, dtype="int32")
            columns = j * self.keys + ops.arange(self.keys, dtype="int32")
            seen = columns <= rows[:, None] + self.offset
            scores = ops.where(seen, scores, -float("inf"))
        return scores


def even_blocks(n, block_size):
    """Size and number of blocks for n positions, equal where n is known."""
    number = -(-n // block_size)
    size = -(-n // number) if isinstance(n, int) else block_size
    return size, number


def pad_to(x, axis, size):
    """Zeros, or False, behind an axis up to `size`."""
    shape = list(ops.shape(x))
    shape[axis] = size - shape[axis]
    return ops.concatenate([x, ops.zeros(shape, x.dtype)], axis=axis)


def split(x, size):
    """`(B, T, H, K)` in blocks of `size`, `(N, B, H, size, K)`."""
    b, t, h, k = ops.shape(x)
    number = -(-t // size)
    x = ops.reshape(pad_to(x, 1, number * size), (b, number, size, h, k))
    return ops.transpose(x, (1, 0, 3, 2, 4))


def join(x):
    """Blocks `(N, B, H, n, V)` as `(B, N n, H, V)`."""
    number, b, h, size, v = ops.shape(x)
    x = ops.transpose(x, (1, 0, 3, 2, 4))
    return ops.reshape(x, (b, number * size, h, v))


def pages(x, size):
    """`(B, T, …)` in pages `(B, N, size, …)`, filled up with zeros."""
    batch, length, *features = ops.shape(x)
    number = -(-length // size)
    x = pad_to(x, 1, number * size)
    return ops.reshape(x, (batch, number, size, *features))


def unpage(x, length):
    """Pages `(B, N, P, …)` as `(B, length, …)`."""
    batch, number, size, *features = ops.shape(x)
    return ops.reshape(x, (batch, number * size, *features))[:, :length]


def with_neighbors(x, before, after):
    """Pages `(B, N, P, …)` each among its neighbors, `(B, N, S, …)`.

    Beyond the first and the last page stand zeros, False in a mask: nothing
    wraps around.
    """
    batch, number, *page = ops.shape(x)
    first, last = (
        ops.zeros((batch, n, *page), x.dtype) for n in (before, after)
    )
    x = ops.concatenate([first, x, last], axis=1)
    shifted = [x[:, i : i + number] for i in range(before + 1 + after)]
    return ops.concatenate(shifted, axis=2)


def take_rows(x, index):
    """Of `(B, T, …)` the rows at `(B, M)`, as `(B, M, …)`."""
    batch, length, *features = ops.shape(x)
    starts = length * ops.arange(batch, dtype=index.dtype)[:, None]
    rows = ops.reshape(x, (batch * length, *features))
    return ops.take(rows, index + starts, axis=0)


def repeat(first, end, body, state):
    """state = body(i, *state) for i = first … end − 1."""

    def condition(i, *state):
        return i < end

    def step(i, *state):
        return i + 1, *body(i, *state)

    start = ops.convert_to_tensor(first, "int32")
    if not _on_tensorflow():
        return ops.while_loop(condition, step, (start, *state))[1:]
    import tensorflow as tf

    state = (start, *state)
    return tf.while_loop(condition, step, state, parallel_iterations=1)[1:]


def prefixes(combine, first, elements):
    """The states before each element, of state = combine(state, element).

    TensorFlow's own scan can be compiled with its gradient, that of
    `keras.ops` cannot.
    """
    if not _on_tensorflow():

        def step(state, element):
            return combine(state, element), state

        return ops.scan(step, first, elements)[1]
    import tensorflow as tf

    states = tf.scan(combine, elements, first, parallel_iterations=1)
    return tree.map_structure(
        lambda x, after: ops.concatenate([x[None], after[:-1]], axis=0),
        first,
        states,
    )


def array_of(blocks):
    """An array with the contents of the tensor `(N, …)`."""
    if not _on_tensorflow():
        return blocks
    import tensorflow as tf

    return tf.TensorArray(
        blocks.dtype,
        size=tf.shape(blocks)[0],
        element_shape=blocks.shape[1:],
        clear_after_read=False,
    ).unstack(blocks)


def read(array, i):
    """Block i."""
    return array.read(i) if _on_tensorflow() else array[i]


def write(array, i, block):
    """The array with block i replaced."""
    if _on_tensorflow():
        return array.write(i, block)
    start = (i, *(0 for _ in block.shape))
    return ops.slice_update(array, start, block[None])


def stack(array):
    """The tensor `(N, …)` of all blocks."""
    return array.stack() if _on_tensorflow() else array


def _on_tensorflow():
    return keras.backend.backend() == "tensorflow"
