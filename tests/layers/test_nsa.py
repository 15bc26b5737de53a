"""NSA: three attentions, each as a loop has it."""

from contract import attention_inputs, check_layer, check_steps, draw, to_numpy
from d2l_attention import NativeSparseAttention, WindowAttention
import keras
import numpy as np
import pytest

SIZES = {
    "num_heads": 6,
    "num_kv_heads": 2,
    "key_dim": 4,
    "value_dim": 5,
    "output_dim": 11,
}


def make_layer(**options):
    return NativeSparseAttention(
        block_size=3, top=2, window=3, **SIZES, **options
    )


def assert_close(found, expected, atol=1e-6):
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), 0, atol)


@pytest.mark.every_backend
def test_contract():
    check_layer(
        make_layer,
        attention_inputs(),
        num_heads=6,
        output_dim=11,
        by_position=True,
        weights=False,
    )


def test_gates_of_a_window_alone_are_window_attention():
    x, sizes = draw(2, 13, 7), SIZES | {"num_kv_heads": 6}
    layer = NativeSparseAttention(block_size=3, top=2, window=4, **sizes)
    window = WindowAttention(window=4, **sizes)
    layer.build(x.shape)
    window.build(x.shape)
    kernels = [to_numpy(w) for w in layer.weights]
    kernels[1] = kernels[1][:, 2 * 6 * 4 :]  # the last of three
    kernels[2] = kernels[2][:, 2 * 6 * 5 :]
    window.set_weights(kernels[:4])
    expected = to_numpy(window(x))
    project = layer.project_query

    def gates(x, start=0):
        query = to_numpy(project(x, start)).copy()
        query[..., -3:] = 0, 0, 1
        return keras.ops.convert_to_tensor(query)

    layer.project_query = gates
    assert_close(layer(x), expected)


def test_three_attentions_as_a_loop_has_them():
    layer, x = make_layer(), draw(1, 11, 7)
    layer(x)
    full = to_numpy(layer.project_query(x))[0]
    query, gates = full[..., :4], full[..., 4:]
    keys = np.split(to_numpy(layer.project_key(x))[0], 3, axis=1)
    values = np.split(to_numpy(layer.project_value(x))[0], 3, axis=1)
    output = np.zeros((11, 6, 5))

    def attend(q, k, v):
        if not len(k):
            return np.zeros(v.shape[-1])
        weights = np.exp(k @ q / 2)
        return weights @ v / weights.sum()

    for t, g in np.ndindex(11, 2):
        own, members = t // 3, range(3 * g, 3 * g + 3)
        full = slice(0, 3 * own)
        means, mean_values = (
            x[0][full, g].reshape(own, 3, x[0].shape[-1]).mean(1)
            for x in (keys, values)
        )
        share = np.zeros(own)
        for h in members:
            weights = np.exp(means @ query[t, h] / 2)
            share += weights / weights.sum()
        best = [own, *np.argsort(-share)[:1]]
        read = [x for x in range(t + 1) if x // 3 in best]
        near = range(max(0, t - 2), t + 1)
        for h in members:
            parts = (
                attend(query[t, h], means, mean_values),
                attend(query[t, h], keys[1][read, g], values[1][read, g]),
                attend(query[t, h], keys[2][near, g], values[2][near, g]),
            )
            output[t, h] = sum(map(np.multiply, gates[t, h], parts))
    expected = output.reshape(11, 30) @ to_numpy(layer.output_layer.kernel)
    assert_close(layer(x)[0], expected, atol=1e-5)


def test_steps_of_any_size_equal_the_whole():
    check_steps(make_layer())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": 0}, "window=0"),
        ({"num_kv_heads": 4}, "num_kv_heads=4"),
        ({"frequencies": [1.0, 0.5, 0.1]}, "3 frequencies"),
    ],
)
def test_what_cannot_be_is_refused(options, told):
    sizes = {"block_size": 3, "top": 2, "window": 3, **SIZES, **options}
    with pytest.raises(ValueError, match=told):
        NativeSparseAttention(**sizes)
