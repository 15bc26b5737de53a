from contract import draw, to_numpy
from d2l_attention.layers.compiled_loops import scan_states
from keras import ops
import numpy as np
import pytest


@pytest.mark.every_backend
def test_scan_goes_through_every_state():
    inputs = draw(7, 2, 3)
    states = scan_states(
        lambda state, x: {"sum": state["sum"] + x, "count": state["count"] + 1},
        {"sum": ops.zeros((2, 3)), "count": ops.zeros((2,))},
        inputs,
    )
    np.testing.assert_allclose(
        to_numpy(states["sum"]), np.cumsum(inputs, axis=0), atol=1e-6
    )
    np.testing.assert_array_equal(
        to_numpy(states["count"])[:, 0], np.arange(1, 8)
    )
