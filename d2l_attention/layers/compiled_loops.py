"""Loops in the graph: over time, over slots of a cache, over blocks.

The portable forms are `keras.ops.scan`, `while_loop` and `slice_update`.
TensorFlow has its own forms here. The gradient of `keras.ops.scan` does not
compile there under XLA. Its `while_loop` would run ten steps at a time, each
with blocks of its own in memory; two at a time is faster than one. Its
`slice_update` copies the whole array; `scatter_update` need not.
"""

from functools import partial

from d2l_attention.layers.reshaping import ceil_divide
import keras
from keras import ops, tree


def scan_states(step, state, inputs):
    """All the states that a recurrence goes through, `(T, ...)`.

        state_t = step(state_{t−1}, inputs_t),  t = 0 … T−1

    States and inputs `(T, ...)` are nests of tensors. On TensorFlow the loop
    has a declared maximum, without which its gradient does not compile under
    XLA.
    """
    if keras.backend.backend() == "tensorflow":
        return _scan_states_tensorflow(step, state, inputs)
    if tree.flatten(inputs)[0].shape[0] == 0:  # torch could not stack nothing
        return tree.map_structure(
            lambda x: ops.zeros((0, *x.shape), x.dtype), state
        )

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

    state = ops.convert_to_tensor(first, "int32"), *state
    if not _on_tensorflow():
        return ops.while_loop(condition, step, state)[1:]
    import tensorflow as tf

    return tf.while_loop(condition, step, state, parallel_iterations=2)[1:]


def join_tiles(tile, number, widths, dtype, state=()):
    """Rows of all tiles, below each other, and the last state; TensorFlow only.

    `tile(i, *state)` gives a tuple of rows, whose number may differ, and the
    next state. `widths` are the features of each of the rows.
    """
    import tensorflow as tf

    def write(i, *arrays_and_state):
        arrays, state = arrays_and_state[:many], arrays_and_state[many:]
        rows, state = tile(i, *state)
        pairs = zip(arrays, rows, strict=True)
        return i + 1, *(array.write(i, x) for array, x in pairs), *state

    many = len(widths)
    arrays = [
        tf.TensorArray(
            dtype, number, infer_shape=False, element_shape=(None, width)
        )
        for width in widths
    ]
    _, *last = tf.while_loop(
        lambda i, *_: i < number,
        write,
        (tf.constant(0), *arrays, *state),
        parallel_iterations=2,
    )
    return [array.concat() for array in last[:many]], last[many:]


def write_block(blocks, i, block):
    """`(N, …)` with block i replaced.

    A graph of TensorFlow writes into the tensor if nothing else reads it;
    `ops.slice_update` would copy it there.
    """
    if _on_tensorflow():
        return ops.scatter_update(blocks, [[i]], block[None])
    return ops.slice_update(blocks, (i, *(0 for _ in block.shape)), block[None])


def _on_tensorflow():
    return keras.backend.backend() == "tensorflow"
