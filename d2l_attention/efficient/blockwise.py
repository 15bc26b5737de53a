"""Queries and keys in blocks, and the loops over them.

The portable forms are `keras.ops.while_loop` and `slice_update`. TensorFlow's
loop would run ten steps at a time, each with blocks of its own, and its
`slice_update` copies the whole array: there the loop has two steps at a time,
which is faster than one, and the array is a `TensorArray`.
"""

from functools import partial

import keras
from keras import ops, tree


def clip(x, low, high):
    """x between two bounds; `low` if x is a symbol, that nothing is known of.

    An int if all three are, on TensorFlow otherwise a tensor.
    """
    if all(isinstance(value, int) for value in (x, low, high)):
        return max(low, min(x, high))
    return ops.maximum(low, ops.minimum(x, high)) if _on_tensorflow() else low


def even_blocks(n, block_size):
    """Size and number of blocks for n positions, equal where n is known."""
    number = -(-n // block_size)
    if isinstance(n, int):
        number = max(1, number)
        return -(-n // number), number
    return block_size, number


def slices_may_grow():
    """Whether a slice in a loop may be of another size at each step.

    So it may on TensorFlow, unless XLA compiles what is traced. The one place
    that knows of that is the control flow context of the graph or of those
    around it, and it has no public name.
    """
    if not _on_tensorflow():
        return False
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    graph = tf.compat.v1.get_default_graph()
    return not control_flow_util.GraphOrParentsInXlaContext(graph)


def over_written(attend, length, size):
    """attend(n) over the first n ≥ `length` of `size` slots.

    Where slices cannot grow there are up to 16 branches, each with an n of
    its own, at least 64 slots apart.
    """
    if slices_may_grow():
        return attend(length)
    step = max(64, -(-size // 16))
    ends = [*range(step, size, step), size]
    if len(ends) == 1:
        return attend(size)
    branches = [partial(attend, n) for n in ends]
    return ops.switch((length - 1) // step, branches)


def first_rows(x, size):
    """`(H, S, K)` up to row `size`, which may be known in the loop alone."""
    if x.shape[0] == 1:  # the first rows of a matrix are not copied
        return ops.slice(x[0], (0, 0), (size, x.shape[2]))[None]
    return ops.slice(x, (0, 0, 0), (ops.shape(x)[0], size, x.shape[2]))


def hide_last_triangle(scores, num_rows):
    """−inf in the upper triangle of the last columns of `(H, n, S)`.

        scores[h, t, s] = −inf where s > t + S − num_rows

    TensorFlow's `set_diag` touches nothing else, a `where` copies all.
    """
    import tensorflow as tf

    size, shape = tf.shape(scores), scores.shape
    first = size[2] - num_rows + 1  # diagonal to be hidden
    hidden = tf.fill([size[0], num_rows - 1, num_rows - 1], -float("inf"))
    # Without a number for `first`, shape inference takes the many diagonals
    # for one; without a shape it leaves them alone.
    hidden = tf.raw_ops.PlaceholderWithDefault(input=hidden, shape=None)
    hidden = tf.cast(hidden, scores.dtype)
    scores = tf.linalg.set_diag(scores, hidden, k=[first, size[2] - 1])
    return tf.ensure_shape(scores, shape)


def with_rows_behind(x, like):
    """`(H, s, K)` with zeros behind, in the shape `(H, S, K)` of `like`."""
    if x.shape[1] == like.shape[1] and x.shape[1] is not None:
        return x
    x = ops.concatenate([x, ops.zeros_like(like)], axis=1)
    return x[:, : ops.shape(like)[1]]


def pad_to(x, axis, size):
    """Zeros, or False, behind an axis up to `size`."""
    if isinstance(size, int) and size == x.shape[axis]:
        return x
    shape = list(ops.shape(x))
    shape[axis] = size - shape[axis]
    return ops.concatenate([x, ops.zeros(shape, x.dtype)], axis=axis)


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
    taken = ops.take(rows, index + starts, axis=0)
    # JAX forgets the axes of `index` where there is nothing to take.
    return ops.reshape(taken, (*ops.shape(index), *features))


def repeat(first, end, body, state):
    """state = body(i, *state) for i = first … end − 1."""

    def condition(i, *state):
        return i < end

    def step(i, *state):
        return i + 1, *body(i, *state)

    start, state = ops.convert_to_tensor(first, "int32"), tuple(state)
    if not _on_tensorflow():
        return ops.while_loop(condition, step, (start, *state))[1:]
    import tensorflow as tf

    state = (start, *state)
    return tf.while_loop(condition, step, state, parallel_iterations=2)[1:]


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


def new_array(shape, dtype):
    """An array for N blocks of a shape `(N, …)`, each yet to be written."""
    if not _on_tensorflow():
        return ops.zeros(shape, dtype)
    import tensorflow as tf

    known = [size if isinstance(size, int) else None for size in shape[1:]]
    return tf.TensorArray(dtype, size=shape[0], element_shape=known)


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
