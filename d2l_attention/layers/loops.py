"""Loops in the graph: over time, over slots of a cache, over blocks.

The portable forms are `keras.ops.scan`, `while_loop` and `slice_update`.
TensorFlow has forms of its own here. The gradient of `keras.ops.scan` does
not compile there under XLA. Its `while_loop` would run ten steps at a time,
each with blocks of its own in memory; two at a time is faster than one. Its
`slice_update` copies the whole array; a `TensorArray` does not.
"""

from functools import partial

from d2l_attention.layers.chunks import ceil_divide
import keras
from keras import ops, tree


def scan_states(step, state, inputs):
    """All the states that a recurrence goes through.

        state_t = step(state_{t−1}, inputs_t),  t = 0 … T−1

    `keras.ops.scan` is the portable form. On TensorFlow its gradient does not
    compile under XLA (the loop has no declared maximum), so there the same
    loop is written with one.

    Args:
        step: Function `(state, inputs_t) -> state`; shapes and dtypes stay.
        state: Nest of tensors, the state before the first step.
        inputs: Nest of tensors `(T, ...)`, time first.

    Returns:
        The nest of `state`, each tensor `(T, ...)`.
    """
    if keras.backend.backend() == "tensorflow":
        return _scan_states_tensorflow(step, state, inputs)

    def carry_and_emit(state, inputs):
        state = step(state, inputs)
        return state, state

    return ops.scan(carry_and_emit, state, inputs)[1]


def _scan_states_tensorflow(step, state, inputs):
    import tensorflow as tf

    first = tree.flatten(inputs)[0]
    length = first.shape[0] or tf.shape(first)[0]
    read = tree.map_structure(
        lambda x: tf.TensorArray(
            x.dtype, size=length, element_shape=x.shape[1:]
        ).unstack(x),
        inputs,
    )
    written = [
        tf.TensorArray(x.dtype, size=length, element_shape=x.shape)
        for x in tree.flatten(state)
    ]

    def body(t, state, written):
        state = step(state, tree.map_structure(lambda x: x.read(t), read))
        pairs = zip(written, tree.flatten(state), strict=True)
        return t + 1, state, [array.write(t, x) for array, x in pairs]

    _, _, written = tf.while_loop(
        lambda t, *_: t < length,
        body,
        (0, state, written),
        maximum_iterations=length,
    )
    stacked = [array.stack() for array in written]
    return tree.pack_sequence_as(state, stacked)


def clip_or_low(x, low, high):
    """x between two bounds.

    An int if all three are ints. Otherwise a tensor on TensorFlow, and `low`
    on other backends, where a symbolic size has no value yet.
    """
    if all(isinstance(value, int) for value in (x, low, high)):
        return max(low, min(x, high))
    return ops.maximum(low, ops.minimum(x, high)) if _on_tensorflow() else low


def slices_may_vary():
    """Whether a slice in a loop may be of another size at each step.

    On TensorFlow it may, unless XLA compiles the graph. Only the control flow
    context of the graph, or of a graph around it, knows that, and it has no
    public name.
    """
    if not _on_tensorflow():
        return False
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    graph = tf.compat.v1.get_default_graph()
    return not control_flow_util.GraphOrParentsInXlaContext(graph)


def over_filled_slots(attend, length, size):
    """attend(n) over the first n of `size` slots, with n at least `length`.

    Where slices cannot grow, n is one of up to 16 fixed sizes, at least 64
    slots apart, and there is a branch for each.
    """
    if slices_may_vary():
        return attend(length)
    step = max(64, ceil_divide(size, 16))
    ends = [*range(step, size, step), size]
    if len(ends) == 1:
        return attend(size)
    branches = [partial(attend, n) for n in ends]
    return ops.switch((length - 1) // step, branches)


def first_rows(x, size):
    """The first `size` rows of `(H, S, K)`; `size` may be a tensor."""
    if x.shape[0] == 1:  # TensorFlow takes rows of a matrix without a copy
        return ops.slice(x[0], (0, 0), (size, x.shape[2]))[None]
    return ops.slice(x, (0, 0, 0), (ops.shape(x)[0], size, x.shape[2]))


def hide_last_triangle(scores, num_rows):
    """−inf in the upper triangle of the last columns, on TensorFlow.

        scores[h, t, s] = −inf where s > t + S − num_rows

    `scores` is `(H, n, S)`. `set_diag` touches only the triangle.
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


def place_of_highest(x):
    """Where the last axis is highest, `(…)`; the first of equals.

    `ops.argmax` reads the bits of floats, which neither ONNX nor TFLite can.
    """
    return ops.top_k(x, 1)[1][..., 0]


def count_loop(first, end, body, state):
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


def new_block_array(shape, dtype):
    """An array for N blocks of a shape `(N, …)`, each yet to be written."""
    if not _on_tensorflow():
        return ops.zeros(shape, dtype)
    import tensorflow as tf

    known = [size if isinstance(size, int) else None for size in shape[1:]]
    return tf.TensorArray(dtype, size=shape[0], element_shape=known)


def block_array_of(blocks):
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


def read_block(array, i):
    """Block i."""
    return array.read(i) if _on_tensorflow() else array[i]


def write_block(array, i, block):
    """The array with block i replaced."""
    if _on_tensorflow():
        return array.write(i, block)
    start = (i, *(0 for _ in block.shape))
    return ops.slice_update(array, start, block[None])


def stack_blocks(array):
    """The tensor `(N, …)` of all blocks."""
    return array.stack() if _on_tensorflow() else array


def wake_backend():
    """Let the backend meet its devices, and announce them, now.

    What makes TensorFlow announce XLA is the first function that it compiles.
    """
    ops.ones(())
    if _on_tensorflow():
        import tensorflow as tf

        tf.function(tf.identity, jit_compile=True)(0.0)


def _on_tensorflow():
    return keras.backend.backend() == "tensorflow"
