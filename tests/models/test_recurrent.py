from contract import draw, to_numpy
from d2l_attention.models.recurrent import GRUParameters, gru, gru_step
import keras
from keras import ops
import numpy as np
import pytest


def make_cell(units=5, inputs=3):
    cell = keras.layers.GRUCell(units)
    cell.build((None, inputs))
    cell.set_weights(
        [draw(*w.shape, seed=i) for i, w in enumerate(cell.get_weights())]
    )
    return cell


def test_a_step_equals_the_equations_in_numpy():
    cell = make_cell()
    weights = GRUParameters.of(cell)
    x, h = draw(2, 3), draw(2, 5)
    kernel, recurrent, (bias, recurrent_bias) = (
        w.astype("float64") for w in cell.get_weights()
    )
    a, b = x @ kernel + bias, h @ recurrent + recurrent_bias
    z, r = 1 / (1 + np.exp(-(a + b)[:, :10].reshape(2, 2, 5))).swapaxes(0, 1)
    candidate = np.tanh(a[:, 10:] + r * b[:, 10:])
    np.testing.assert_allclose(
        to_numpy(gru_step(weights.project(x), h, weights)),
        z * h + (1 - z) * candidate,
        atol=1e-5,
    )


def test_a_step_equals_the_cell_of_keras():
    cell = make_cell()
    weights = GRUParameters.of(cell)
    x, h = draw(2, 3), draw(2, 5)
    np.testing.assert_allclose(
        to_numpy(gru_step(weights.project(x), h, weights)),
        to_numpy(cell(x, [h])[0]),
        atol=1e-6,
    )


@pytest.mark.every_backend
def test_whole_sequences_equal_the_layer_of_keras():
    cell = make_cell()
    x, mask = draw(2, 7, 3), np.arange(7) < np.array([[4], [7]])
    layer = keras.layers.GRU(5, return_sequences=True, return_state=True)
    layer.build((None, None, 3))
    layer.set_weights(cell.get_weights())
    expected, last = layer(x, mask=ops.convert_to_tensor(mask))
    states, final = gru(ops.convert_to_tensor(x), mask, cell)
    np.testing.assert_allclose(
        to_numpy(states)[mask], to_numpy(expected)[mask], atol=1e-6
    )
    np.testing.assert_allclose(to_numpy(final), to_numpy(last), atol=1e-6)


def test_what_lies_behind_the_last_token_does_not_count():
    cell = make_cell()
    x, mask = draw(2, 7, 3), np.arange(7) < np.array([[4], [0]])
    other = np.where(mask[..., None], x, 1e3).astype("float32")
    states, final = gru(ops.convert_to_tensor(x), mask, cell)
    changed, changed_final = gru(ops.convert_to_tensor(other), mask, cell)
    np.testing.assert_array_equal(
        to_numpy(states)[mask], to_numpy(changed)[mask]
    )
    np.testing.assert_array_equal(to_numpy(final), to_numpy(changed_final))
    assert (to_numpy(final)[1] == 0).all()  # a sentence without a token
