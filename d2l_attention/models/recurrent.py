"""Gated recurrent units: over a whole sequence, or one step."""

from typing import Any, NamedTuple

from d2l_attention.layers.compiled_loops import scan_states
from d2l_attention.layers.reshaping import reshape
import keras
from keras import ops


def gru(x, mask, cell):
    """A GRU over sequences `(B, S, D)`: all states `(B, S, U)`, and the last.

    At padding, where `mask` `(B, S)` is False, the state stays as it is.
    """
    parameters = GRUParameters.of(cell)
    states = _states_at_tokens(
        gru_step, parameters.project(x), mask, parameters, cell.units
    )
    return states, states[:, -1]


def _states_at_tokens(step, projected, mask, parameters, units):
    """All states `(B, S, U)` of a unit that starts at 0 and skips padding."""
    start = ops.zeros((ops.shape(projected)[0], units), projected.dtype)

    def next_state(state, inputs):
        projected, is_token = inputs
        return ops.where(is_token, step(projected, state, parameters), state)

    inputs = (
        ops.swapaxes(projected, 0, 1),  # (S, B, 3U)
        ops.swapaxes(mask, 0, 1)[..., None],  # (S, B, 1)
    )
    return ops.swapaxes(scan_states(next_state, start, inputs), 0, 1)


def gru_step(projected, state, cell):
    """One step of a GRU, whose input was projected before the loop.

        z, r = σ(x W + h U + b)
        h̃ = tanh(x W_h + b_h + r ∘ (h U_h + b′_h))
        h′ = z ∘ h + (1 − z) ∘ h̃

    It computes the same as `keras.layers.GRUCell`. That cell slices the three
    gates, and in the gradient each slice becomes a sum of padded tensors.
    `split` avoids this: a training step of chapter 05's model takes about a
    third less time.

    The input `GRUParameters.project(x)` is `(B, 3U)`, the state `(B, U)`.
    """
    recurrent = ops.matmul(state, cell.recurrent_kernel) + cell.recurrent_bias
    x_z, x_r, x_h = ops.split(projected, 3, axis=-1)  # (B, U) each
    h_z, h_r, h_h = ops.split(recurrent, 3, axis=-1)
    z, r = ops.sigmoid(x_z + h_z), ops.sigmoid(x_r + h_r)
    return z * state + (1 - z) * ops.tanh(x_h + r * h_h)


class GRUParameters(NamedTuple):
    """The parameters of a `keras.layers.GRUCell`, read once for a whole loop.

    D input features, U units; the gates z, r and h̃ stand side by side.
    """

    kernel: Any  # (D, 3U)
    bias: Any  # (3U,)
    recurrent_kernel: Any  # (U, 3U)
    recurrent_bias: Any  # (3U,)

    @classmethod
    def of(cls, cell):
        """The parameters of a built cell, in its compute dtype."""
        dtype = cell.compute_dtype
        kernel = ops.cast(cell.kernel.value, dtype)
        recurrent_kernel = ops.cast(cell.recurrent_kernel.value, dtype)
        bias, recurrent_bias = ops.unstack(ops.cast(cell.bias.value, dtype))
        return cls(kernel, bias, recurrent_kernel, recurrent_bias)

    def project(self, x):
        """x W + b, `(…, D)` to `(…, 3U)`."""
        if len(x.shape) == 2:
            return ops.matmul(x, self.kernel) + self.bias
        # One product of matrices compiles to faster code than a broadcast
        # product or an einsum.
        rows = ops.reshape(x, (-1, x.shape[-1]))
        projected = ops.matmul(rows, self.kernel) + self.bias
        shape = (*ops.shape(x)[:-1], self.kernel.shape[-1])
        return reshape(projected, shape)


class GatedUnit(keras.Layer):
    """The matrices of one gated recurrent unit, with one or more inputs.

        z = σ(Σ_i x_i W_z,i + s U_z),  r = σ(Σ_i x_i W_r,i + s U_r)
        s̃ = tanh(Σ_i x_i W_i + (r ∘ s) U)
        s′ = (1 − z) ∘ s + z ∘ s̃

    Unlike in `keras.layers.GRUCell`, r gates s before U (`reset_after=False`),
    z is the share of the new state (Keras's z is the share of the old), and
    there are no biases.

    Source: Bahdanau et al. (2015), arXiv:1409.0473, appendix A.

    `inputs` has the size of each input by its letter, as in `{"W": m}`.
    """

    def __init__(self, units, inputs, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.inputs = inputs

    def build(self):
        n = self.units
        self.matrices = {}
        for letter, size in [*self.inputs.items(), ("U", n)]:
            for gate in ("_z", "_r", ""):
                kind = "orthogonal" if letter == "U" else "glorot_uniform"
                self.matrices[letter + gate] = self.add_weight(
                    (size, n), kind, name=letter + gate
                )

    def joined(self, letter):
        """The matrices for z, r and s̃ side by side, `(size, 3n)`."""
        gates = [self.matrices[letter + gate] for gate in ("_z", "_r", "")]
        return ops.cast(ops.concatenate(gates, axis=1), self.compute_dtype)


def gated_states(x, mask, unit):
    """All states `(B, S, n)` of one direction, for inputs `(B, S, m)`.

    At padding the state stays as it is. The one input of `unit` is `"W"`.
    """
    projected = ops.matmul(x, unit.joined("W"))  # (B, S, 3n)
    recurrent = unit.joined("U")  # (n, 3n)
    return _states_at_tokens(gated_step, projected, mask, recurrent, unit.units)


def gated_step(projected, state, recurrent):
    """One step of the unit whose equations `GatedUnit` has, s to s′ `(B, n)`.

    `projected` `(B, 3n)` is Σ_i x_i W_i for z, r and s̃; `recurrent` `(n, 3n)`
    has U_z, U_r and U side by side.
    """
    n = state.shape[-1]
    gates = projected[:, : 2 * n] + ops.matmul(state, recurrent[:, : 2 * n])
    z, r = ops.split(ops.sigmoid(gates), 2, axis=-1)  # (B, n) each
    candidate = projected[:, 2 * n :]
    candidate += ops.matmul(r * state, recurrent[:, 2 * n :])  # (B, n)
    return (1 - z) * state + z * ops.tanh(candidate)
