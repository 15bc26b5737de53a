"""The gated recurrent unit of RNNsearch, which has no biases."""

from d2l_attention.loops import scan_states
import keras
from keras import ops


class GatedWeights(keras.Layer):
    """The matrices of one gated recurrent unit, with one or more inputs.

        z = σ(Σ_i x_i W_z,i + s U_z),  r = σ(Σ_i x_i W_r,i + s U_r)
        s̃ = tanh(Σ_i x_i W_i + (r ∘ s) U)
        s′ = (1 − z) ∘ s + z ∘ s̃

    Unlike in `keras.layers.GRUCell`, r gates s before U (`reset_after=False`),
    z is the share of the new state (Keras's z is the share of the old), and
    there are no biases.

    Source: Bahdanau et al. (2015), arXiv:1409.0473, appendix A.

    Args:
        units: Positive int, number n of units.
        inputs: Dict of a letter to the size of an input, as in `{"W": m}`.
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


def gated_states(x, mask, weights):
    """All states of one direction. At padding the state stays as it is.

    Args:
        x: Float tensor `(B, S, m)`.
        mask: Bool tensor `(B, S)`, True at tokens.
        weights: A built `GatedWeights` with the one input `"W"`.

    Returns:
        Float tensor `(B, S, n)`.
    """
    recurrent = weights.joined("U")  # (n, 3n)
    projected = ops.matmul(x, weights.joined("W"))  # (B, S, 3n)
    inputs = (
        ops.swapaxes(projected, 0, 1),  # (S, B, 3n)
        ops.swapaxes(mask, 0, 1)[..., None],  # (S, B, 1)
    )

    def step(state, inputs):
        projected, is_token = inputs
        moved = gated_step(projected, state, recurrent)
        return ops.where(is_token, moved, state)

    start = ops.zeros((ops.shape(x)[0], weights.units), x.dtype)
    return ops.swapaxes(scan_states(step, start, inputs), 0, 1)


def gated_step(projected, state, recurrent):
    """One step of the unit whose equations `GatedWeights` has.

    Args:
        projected: Float tensor `(B, 3n)`, Σ_i x_i W_i for z, r and s̃.
        state: Float tensor `(B, n)`, s.
        recurrent: Float tensor `(n, 3n)`, U_z, U_r and U side by side.

    Returns:
        Float tensor `(B, n)`, s′.
    """
    n = state.shape[-1]
    gates = projected[:, : 2 * n] + ops.matmul(state, recurrent[:, : 2 * n])
    z, r = ops.split(ops.sigmoid(gates), 2, axis=-1)  # (B, n) each
    candidate = projected[:, 2 * n :]
    candidate += ops.matmul(r * state, recurrent[:, 2 * n :])  # (B, n)
    return (1 - z) * state + z * ops.tanh(candidate)
