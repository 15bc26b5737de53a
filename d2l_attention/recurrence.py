"""Recurrence over time steps inside the graph."""

from typing import Any, NamedTuple

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


def gru_step(projected, state, cell):
    """One step of a GRU whose input was projected before the loop.

        z, r = σ(x W + h U + b)
        h̃ = tanh(x W_h + b_h + r ∘ (h U_h + b′_h))
        h′ = z ∘ h + (1 − z) ∘ h̃

    The same function as `keras.layers.GRUCell`, whose slices of the three
    gates become padded sums in the gradient: split apart, a training step of
    chapter 05's model takes about a third less time.

    Args:
        projected: Float tensor `(B, 3U)`, `GRUWeights.project` of the input.
        state: Float tensor `(B, U)`, h.
        cell: `GRUWeights`.

    Returns:
        Float tensor `(B, U)`, h′.
    """
    recurrent = ops.matmul(state, cell.recurrent_kernel) + cell.recurrent_bias
    x_z, x_r, x_h = ops.split(projected, 3, axis=-1)
    h_z, h_r, h_h = ops.split(recurrent, 3, axis=-1)
    z, r = ops.sigmoid(x_z + h_z), ops.sigmoid(x_r + h_r)
    return z * state + (1 - z) * ops.tanh(x_h + r * h_h)


class GRUWeights(NamedTuple):
    """The weights of a `keras.layers.GRUCell`, read once for a whole loop."""

    kernel: Any
    bias: Any
    recurrent_kernel: Any
    recurrent_bias: Any

    @classmethod
    def of(cls, cell):
        kernel, recurrent_kernel, bias = (
            ops.cast(variable.value, cell.compute_dtype)
            for variable in (cell.kernel, cell.recurrent_kernel, cell.bias)
        )
        bias, recurrent_bias = ops.unstack(bias)
        return cls(kernel, bias, recurrent_kernel, recurrent_bias)

    def project(self, x):
        """x W + b, `(..., 3U)`."""
        if len(x.shape) == 2:
            return ops.matmul(x, self.kernel) + self.bias
        # One matrix product: neither broadcast nor einsum compiles as well.
        rows = ops.reshape(x, (-1, x.shape[-1]))
        projected = ops.matmul(rows, self.kernel) + self.bias
        shape = (*ops.shape(x)[:-1], self.kernel.shape[-1])
        return ops.reshape(projected, shape)


def gru(x, mask, cell):
    """A GRU over whole sequences; behind the last token its state stays.

    Args:
        x: Float tensor `(B, S, D)`.
        mask: Bool tensor `(B, S)`, True at tokens.
        cell: A built `keras.layers.GRUCell`.

    Returns:
        All states `(B, S, U)` and the last `(B, U)`.
    """
    weights = GRUWeights.of(cell)
    inputs = (
        ops.swapaxes(weights.project(x), 0, 1),
        ops.swapaxes(mask, 0, 1)[..., None],
    )

    def step(state, inputs):
        projected, is_token = inputs
        return ops.where(is_token, gru_step(projected, state, weights), state)

    start = ops.zeros((ops.shape(x)[0], cell.units), x.dtype)
    states = scan_states(step, start, inputs)
    return ops.swapaxes(states, 0, 1), states[-1]
