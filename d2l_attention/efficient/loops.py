"""Loops over blocks, and arrays of blocks that a loop reads and writes.

The portable forms are `keras.ops.while_loop` and `slice_update`. TensorFlow's
loop would run ten steps at a time, each with blocks of its own, and its
`slice_update` copies the whole array: there the loop has one step at a time
and the array is a `TensorArray`.
"""

import keras
from keras import ops


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
