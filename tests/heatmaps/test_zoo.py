"""Each attention of the zoo gives its true map, or is named: none is lost."""

import re
import warnings

from contract import draw, to_numpy
from d2l_attention.heatmaps import (
    adapters,
    get_attention_weights,
    register_attention_adapter,
)
from d2l_attention.heatmaps.capture import Run
import keras
from keras import ops, tree
import numpy as np
import pytest
from zoo import (
    CASES,
    B,
    D,
    T,
    of_function,
    scores,
    softmax,
    telling,
)
from zoo_of_operations import LAYOUTS, in_layout


def ask(model, *args, **kwargs):
    """Outputs, maps, and the reasons why there are no others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outputs, maps = get_attention_weights(model, *args, **kwargs)
        except ValueError as error:
            said = re.findall("\n  (.*?): (.*)", str(error))
            return model(*args, **kwargs), {}, dict(said)
    return outputs, dict(maps), maps.skipped


@pytest.mark.parametrize("build", CASES.values())
def test_each_attention_gives_its_true_map_or_is_named(build):
    model, inputs, paths, named, options = build()
    model(*inputs, **options)  # builds it
    with telling() as told:
        plain = model(*inputs, **options)
    outputs, maps, skipped = ask(model, *inputs, **options)
    for found, wanted in zip(
        tree.flatten(outputs), tree.flatten(plain), strict=True
    ):
        np.testing.assert_array_equal(to_numpy(found), to_numpy(wanted))
    assert list(maps) == paths, skipped
    for weights, truth in zip(maps.values(), told, strict=True):
        assert np.ptp(truth, axis=-1).max() > 0.04  # no even map passes
        np.testing.assert_allclose(weights, truth, atol=1e-5)
    assert skipped.keys() == named.keys()
    for name, reason in named.items():
        assert reason in skipped[name]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(B, T, D), (6, 6, 12)])
def test_what_is_registered_is_read_by_its_operations(
    layout, size, monkeypatch
):
    """Whatever its axes are; and it may attend to what is no input."""
    call, heads = in_layout(layout, 2 if size[2] == D else 6), draw(4, D)
    methods = {"call": lambda self, x: call(x)}
    mixer = type("Mixer", (keras.Layer,), methods)(name="mixer")
    monkeypatch.setattr(adapters, "_REGISTERED", [])
    register_attention_adapter(type(mixer))
    x = draw(*size)
    with telling() as told:
        mixer(x)
    np.testing.assert_allclose(ask(mixer, x)[1]["mixer"], told[0], atol=1e-6)
    methods = {"call": lambda self, x: ops.softmax(x @ heads.T) @ heads}
    memory = type("Memory", (keras.Layer,), methods)(name="memory")
    register_attention_adapter(type(memory))
    x = ops.convert_to_tensor(draw(B, T, D))
    expected = softmax(to_numpy(x) @ heads.T)[:, None]
    np.testing.assert_allclose(ask(memory, x)[1]["memory"], expected, atol=1e-6)


AFTER = {
    "a difference of two": "difference of 2 softmaxes",
    "heads that talk": "mixed",
    "a head that is switched off": "product with constants",
    "a gate for each key": "product with inputs",
    "the mean of heads": "mean along an axis",
    "padding is cut after the softmax": "product with constants",
    "a sink in a column that is first True": "5 of 6 keys kept",
    "the future is cut after the softmax": "product with constants",
    "weights before dropout": None,
    "scores of layout bhts": None,
}


def test_each_map_of_a_layer_has_its_own_words():
    def call(x):
        y = ops.matmul(ops.softmax(scores(x)), x)
        return y + ops.matmul(ops.softmax(scores(x)) ** 2, x)

    model, inputs, *_ = of_function(call, draw(B, T, D))
    _, maps = get_attention_weights(model, *inputs)
    assert maps.after_softmax == {"some, softmax 2": "power with constants"}


@pytest.mark.parametrize("name", AFTER)
def test_what_became_of_a_softmax_is_told(name):
    model, inputs, *_ = CASES[name].values[0]()
    _, maps = get_attention_weights(model, *inputs)
    told = maps.after_softmax
    assert told == ({"some": AFTER[name]} if AFTER[name] else {})
    assert (f"after_softmax={told}" in repr(maps)) == bool(told)
    assert maps.select("*").after_softmax == told


class FoldedHeads(keras.Layer):
    """Heads that stand in the batch, in an order that sizes do not tell."""

    def call(self, x):
        heads = ops.concatenate([x, 2 * x], axis=0)
        mixed = ops.matmul(ops.softmax(scores(heads)), heads)
        return mixed[:B] + mixed[B:]


class FoldedHeadsAttention(FoldedHeads):
    pass


class PlainHeads(FoldedHeads):
    def call(self, x):
        return ops.matmul(ops.softmax(scores(x)), x)


@pytest.mark.parametrize("kind", [FoldedHeads, FoldedHeadsAttention])
def test_what_is_not_heard_is_named(kind, monkeypatch):
    """As where a version of the backend no longer tells its operations."""
    monkeypatch.setattr(Run, "_listener_of_operations", lambda self: None)
    _, maps, skipped = ask(kind(name="folded"), draw(B, T, D))
    assert not maps
    assert "operations were not heard" in skipped["folded"]


@pytest.mark.parametrize("kind", [FoldedHeads, PlainHeads])
def test_what_is_registered_and_not_heard_has_the_usual_axes(kind, monkeypatch):
    monkeypatch.setattr(Run, "_listener_of_operations", lambda self: None)
    monkeypatch.setattr(adapters, "_REGISTERED", [])
    register_attention_adapter(kind)
    x = draw(B, T, D)
    _, maps, skipped = ask(kind(name="folded"), x)
    if kind is FoldedHeads:
        assert "first axis of its softmax is not the batch" in skipped["folded"]
    else:
        expected = softmax(x @ x.swapaxes(1, 2) / 4)[:, None]
        np.testing.assert_allclose(maps["folded"], expected, atol=1e-5)


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="torch has no graph"
)
def test_in_a_graph_layers_of_other_kinds_are_named():
    layer, x, found = PlainHeads(name="plain"), draw(B, T, D), []
    layer(x)

    def traced(x):
        found.append(ask(layer, x)[1:])
        return x

    if keras.backend.backend() == "jax":
        import jax

        jax.jit(traced)(x)
    else:
        import tensorflow as tf

        tf.function(traced)(x)
    ((maps, skipped),) = found
    assert not maps
    assert "operations were not heard" in skipped["plain"]


def test_other_kinds_are_chosen_by_their_names():
    x = keras.Input((T, D))
    y = PlainHeads(name="second")(PlainHeads(name="first")(x))
    model = keras.Model(x, y)
    _, maps = get_attention_weights(model, draw(B, T, D), layers="sec*")
    assert list(maps) == ["second"]
    with pytest.raises(ValueError, match="called.*'third'.*'first', 'second'"):
        get_attention_weights(model, draw(B, T, D), layers=["third"])


def attend_with_jax(x):
    import jax

    return jax.nn.softmax(x @ x.swapaxes(-1, -2) / 4) @ x


def attend_with_a_mean(x):
    import jax

    def _mean(weights, x):  # called as JAX's own
        return (weights[..., None] * x[:, None]).sum(2)

    return jax.jit(_mean)(jax.nn.softmax(x @ x.swapaxes(1, 2) / 4), x)


def attend_with_the_fused_function(x):
    import jax

    heads = x[:, :, None]
    return jax.nn.dot_product_attention(heads, heads, heads, scale=0.25)[
        :, :, 0
    ]


WAYS = {
    "as it is": lambda jax: attend_with_jax,
    "compiled": lambda jax: jax.jit(attend_with_jax),
    "compiled twice": lambda jax: jax.jit(jax.jit(attend_with_jax)),
    "a part compiled": lambda jax: (
        lambda x: jax.jit(jax.nn.softmax)(x @ x.swapaxes(-1, -2) / 4) @ x
    ),
    "over the batch": lambda jax: jax.vmap(attend_with_jax),
    "remembered": lambda jax: jax.checkpoint(attend_with_jax),
    "a sum that is called mean": lambda jax: attend_with_a_mean,
    "the fused function": lambda jax: attend_with_the_fused_function,
}


@pytest.mark.every_backend
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX's functions")
@pytest.mark.parametrize("way", WAYS)
def test_attention_of_jax_is_read_whatever_runs_it(way):
    import jax

    function = WAYS[way](jax)
    methods = {"call": lambda self, x: function(x)}
    layer = type("OfJax", (keras.Layer,), methods)(name="of_jax")
    x = draw(B, T, D)
    plain = layer(x)
    outputs, maps, _ = ask(layer, x)
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(plain))
    expected = softmax(x @ x.swapaxes(1, 2) / 4)[:, None]
    np.testing.assert_allclose(maps["of_jax"], expected, atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="torch's mode")
def test_attention_is_read_in_inference_mode():
    import torch

    x = ops.convert_to_tensor(draw(B, T, D))
    with torch.inference_mode():
        _, maps, _ = ask(PlainHeads(name="plain"), x)
    z = to_numpy(x)
    expected = softmax(z @ z.swapaxes(1, 2) / 4)[:, None]
    np.testing.assert_allclose(maps["plain"], expected, atol=1e-5)


def wrapped():
    """Attention of the backend's own, in the layer that Keras has for it."""
    if keras.backend.backend() == "torch":
        import torch

        class Mixer(torch.nn.Module):
            def forward(self, x):
                return torch.softmax(x @ x.mT / 4, -1) @ x

        return keras.layers.TorchModuleWrapper(Mixer(), name="wrapped")

    def call(params, inputs):
        return attend_with_jax(inputs)

    return keras.layers.JaxLayer(call, params={}, name="wrapped")


@pytest.mark.every_backend
@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow", reason="it compiles a JaxLayer"
)
def test_what_keras_wraps_is_read():
    layer, x = wrapped(), draw(B, T, D)
    _, maps, skipped = ask(layer, x)
    expected = softmax(x @ x.swapaxes(1, 2) / 4)[:, None]
    assert list(maps) == ["wrapped"], skipped
    np.testing.assert_allclose(maps["wrapped"], expected, atol=1e-5)
