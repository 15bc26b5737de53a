"""Queries and keys in a context: gates, means, and no leak."""

from contract import compile_for_training, draw, to_numpy
from d2l_attention import (
    ContextAttention,
    ContextGate,
    DynamicContextAttention,
    GlobalContextAttention,
    MultiHeadAttention,
    causal_mask,
)
from d2l_attention.layers.context import mean_context, segment_context
import keras
import numpy as np
import pytest

T, H = 9, 3
MASK = np.arange(T) < np.array([[4], [9]])
MASK[0, 0] = False


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("key_mask", [None, MASK])
def test_mean_context(causal, key_mask):
    x = draw(2, T, 7)
    found = to_numpy(mean_context(x, key_mask, causal))
    for b in range(2):
        for t in range(T):
            counted = np.ones(T, bool) if key_mask is None else key_mask[b]
            if causal:
                counted = counted & (np.arange(T) <= t)
            expected = x[b, counted].mean(0) if counted.any() else np.zeros(7)
            np.testing.assert_allclose(found[b, t], expected, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("key_mask", [None, MASK])
def test_segment_context(causal, key_mask):
    x = draw(2, T, 7)
    segments = np.array(
        [[0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 1, 1, 1, 2, 2, 3, 3]]
    )
    found = to_numpy(segment_context(x, segments, key_mask, causal))
    for b in range(2):
        for t in range(T):
            counted = segments[b] == segments[b, t]
            if key_mask is not None:
                counted = counted & key_mask[b]
            if causal:
                counted = counted & (np.arange(T) <= t)
            expected = x[b, counted].mean(0) if counted.any() else np.zeros(7)
            np.testing.assert_allclose(found[b, t], expected, atol=1e-6)


def test_every_token_its_own_segment_is_the_word_itself():
    x = draw(2, T, 7)
    segments = np.tile(np.arange(T), (2, 1))
    np.testing.assert_allclose(
        to_numpy(segment_context(x, segments)), x, atol=1e-6
    )


@pytest.mark.every_backend
def test_the_gate_is_the_equation():
    x, context = draw(2, T, H, 4), draw(2, T, 5)
    layer = ContextGate()
    found, gate = map(to_numpy, layer(x, context))
    u, v, w = (
        to_numpy(a) for a in (layer.context_layer.kernel, layer.v, layer.w)
    )
    moved = (context @ u).reshape(2, T, H, 4)
    expected = 1 / (1 + np.exp(-(x * v).sum(-1) - (moved * w).sum(-1)))
    np.testing.assert_allclose(gate, expected, atol=1e-6)
    expected = expected[..., None]
    np.testing.assert_allclose(
        found, (1 - expected) * x + expected * moved, atol=1e-6
    )


def close(layer, to=-1e4):
    """Gates at exactly 0, for contexts whose last feature is 1."""
    for gate in (layer.query_gate, layer.key_gate):
        u = np.zeros(gate.context_layer.kernel.shape, "float32")
        u[-1] = 1
        gate.context_layer.kernel.assign(u)
        gate.v.assign(np.zeros(gate.v.shape))
        gate.w.assign(np.full(gate.w.shape, to))


@pytest.mark.parametrize("mask", [None, to_numpy(causal_mask(T))])
def test_closed_gates_are_multi_head_attention_bit_for_bit(mask):
    x = draw(2, T, 7)
    context = np.concatenate([draw(2, T, 4), np.ones((2, T, 1))], -1)
    layer, plain = ContextAttention(H, 4), MultiHeadAttention(H, 4)
    options = {
        "attention_mask": mask,
        "key_mask": MASK,
        "return_attention_scores": True,
    }
    layer(x, context=context.astype("float32"))
    plain(x)
    for name in ("query", "key", "value", "output"):
        weights = getattr(layer, f"{name}_layer").get_weights()
        getattr(plain, f"{name}_layer").set_weights(weights)
    expected = plain(x, **options)
    opened = layer(x, context=context.astype("float32"), **options)
    assert np.abs(to_numpy(opened[1]) - to_numpy(expected[1])).max() > 0.01
    close(layer)
    found = layer(x, context=context.astype("float32"), **options)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b))


def test_open_gates_know_the_context_only():
    x, context = draw(2, T, 7), draw(2, T, 5)
    context[..., -1] = 1
    layer = ContextAttention(H, 4)
    _, weights = layer(x, context=context, return_attention_scores=True)
    close(layer, to=1e4)
    before, after = (
        to_numpy(layer(y, context=context, return_attention_scores=True)[1])
        for y in (x, draw(2, T, 7, seed=3))
    )
    np.testing.assert_array_equal(before, after)
    assert np.abs(to_numpy(weights) - before).max() > 0.01


LAYERS = {
    "global": lambda **k: GlobalContextAttention(H, 4, **k),
    "dynamic": lambda **k: DynamicContextAttention(H, 4, **k),
}


@pytest.mark.parametrize("name", LAYERS)
def test_padding_moves_nothing(name):
    x, layer = draw(2, T, 7), LAYERS[name]()
    before = to_numpy(layer(x, key_mask=MASK))
    changed = np.where(MASK[..., None], x, 50).astype("float32")
    after = to_numpy(layer(changed, key_mask=MASK))
    np.testing.assert_array_equal(before[MASK], after[MASK])
    everything = to_numpy(layer(x))
    assert np.abs(before[MASK] - everything[MASK]).max() > 1e-3


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("asked", [False, True])
def test_later_tokens_move_nothing_in_causal_use(name, asked):
    layer, x = LAYERS[name](), draw(2, T, 7)

    def run(x):
        options = {"use_causal_mask": True, "return_attention_scores": asked}
        output = layer(x, **options)
        return to_numpy(output[0] if asked else output)

    changed = x.copy()
    changed[:, 5:] *= -3
    before, after = run(x), run(changed)
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert np.abs(before[:, 5:] - after[:, 5:]).min(-1).max() > 1e-3


def test_the_mean_of_everything_does_leak():
    """Or the test above would pass for any context."""
    layer, x = LAYERS["global"](), draw(2, T, 7)
    changed = x.copy()
    changed[:, 5:] *= -3
    before, after = (
        to_numpy(layer(y, attention_mask=causal_mask(T))) for y in (x, changed)
    )
    assert np.abs(before[:, :5] - after[:, :5]).max() > 1e-3


def test_the_global_layer_takes_the_mean_of_its_tokens():
    x = draw(2, T, 7)
    layer, given = GlobalContextAttention(H, 4), ContextAttention(H, 4)
    layer.build(x.shape)
    given.build(x.shape, x.shape)
    given.set_weights(layer.get_weights())
    expected = given(x, context=mean_context(x, MASK), key_mask=MASK)
    np.testing.assert_array_equal(
        to_numpy(layer(x, key_mask=MASK)), to_numpy(expected)
    )


def test_the_dynamic_layer_looks_twice():
    x = draw(2, T, 7)
    layer, given = DynamicContextAttention(H, 4), ContextAttention(H, 4)
    layer.build(x.shape)
    given.build(x.shape, (2, T, 12))
    given.set_weights(layer.get_weights())
    plain = MultiHeadAttention(H, 4, output_dim=12)
    plain.build(x.shape)
    for name in ("query", "key", "value"):
        weights = getattr(layer, f"{name}_layer").get_weights()
        getattr(plain, f"{name}_layer").set_weights(weights)
    plain.output_layer.kernel.assign(np.eye(12))
    context = plain(x, key_mask=MASK)
    expected = given(x, context=context, key_mask=MASK)
    np.testing.assert_allclose(
        to_numpy(layer(x, key_mask=MASK)), to_numpy(expected), atol=1e-6
    )


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("name", "dtype"),
    zip(LAYERS, ["float32", "mixed_float16"], strict=True),
)
def test_saves_compiles_and_trains(name, dtype, tmp_path):
    inputs = keras.Input((None, 7))
    keras.utils.set_random_seed(0)
    layer = LAYERS[name](dropout=0.1, dtype=dtype)
    model = keras.Model(inputs, layer(inputs, return_attention_scores=True))
    assert [x.shape for x in model.outputs] == [
        (None, None, 7),
        (None, H, None, None),
    ]
    x = draw(8, T, 7)
    assert [x.dtype for x in model.outputs] == [
        keras.backend.standardize_dtype(y.dtype) for y in model(x)
    ]
    trained = keras.Model(inputs, model.outputs[0])
    compile_for_training(trained, keras.optimizers.Adam(0.02), "mse")
    losses = trained.fit(x, x, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    trained.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.layers[-1].get_config() == layer.get_config()
    np.testing.assert_array_equal(to_numpy(again(x)), to_numpy(trained(x)))
