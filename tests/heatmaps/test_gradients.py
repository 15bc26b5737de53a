"""Gradients of an output by the weights: against finite differences."""

from functools import partial

from contract import draw, needs_fewer_key_heads, to_numpy
from d2l_attention import MultiHeadAttention
from d2l_attention.heatmaps import (
    adapters,
    get_attention_gradients,
    get_attention_weights,
    gradient_rollout,
)
import keras
from keras import layers, ops
import numpy as np
import pytest
from zoo import (
    a_row_that_counts_for_nothing_is_empty_by,
    a_sink_in_a_column_that_is_first,
    heads_in_the_batch,
)

X = draw(2, 5, 8)


class ShiftedAttention(keras.Layer):
    """Attention whose weights an attribute shifts: for finite differences."""

    def __init__(self, **options):
        super().__init__(**options)
        self.shift = np.zeros((2, 5, 5), "float32")

    def call(self, x):
        scores = ops.einsum("btd,bsd->bts", x, x) / 3
        return ops.matmul(ops.add(ops.softmax(scores), self.shift), x)


class Selves(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = ShiftedAttention(name="first_attention")
        self.second = ShiftedAttention(name="second_attention")

    def call(self, x):
        return self.second(x + ops.tanh(self.first(x)))


def chosen(outputs):
    return outputs[:, 1, 2] ** 2


@pytest.mark.every_backend
def test_the_gradients_are_those_of_finite_differences():
    model = Selves()
    outputs, maps, gradients = get_attention_gradients(
        model, X, chosen_output=chosen
    )
    assert (
        list(maps)
        == list(gradients)
        == [
            "first_attention",
            "second_attention",
        ]
    )
    _, plain = get_attention_weights(model, X)
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(model(X)))
    step = 1e-2
    for layer in (model.first, model.second):
        np.testing.assert_allclose(maps[layer.name], plain[layer.name])
        gradient = gradients[layer.name][:, 0]
        for t, s in ((1, 0), (1, 4), (3, 2)):
            values = []
            for sign in (1, -1):
                layer.shift[:, t, s] = sign * step
                values.append(to_numpy(chosen(model(X))))
                layer.shift[:, t, s] = 0
            slope = (values[0] - values[1]) / (2 * step)
            np.testing.assert_allclose(gradient[:, t, s], slope, atol=2e-2)
        assert np.abs(gradient).max() > 0.1


@pytest.mark.parametrize(
    "layer",
    [
        layers.MultiHeadAttention(2, 4, name="attention"),
        layers.GroupQueryAttention(4, 4, 2, name="attention"),
        layers.MultiHeadAttention(2, 4, attention_axes=(1,), name="attention"),
        MultiHeadAttention(2, 4, name="attention"),
    ],
)
def test_weight_times_gradient_adds_up_to_an_output_that_is_linear(layer):
    """y = Σ w (v W), so Σ w ∂y/∂w is y without the bias of the outputs."""
    ours = isinstance(layer, MultiHeadAttention)
    call = {"key": X} if ours else {"value": X}
    outputs, maps, gradients = get_attention_gradients(
        layer, X, **call, chosen_output=lambda y: y[:, 3, 1]
    )
    np.testing.assert_allclose(
        to_numpy(outputs), to_numpy(layer(X, **call)), atol=1e-5
    )
    _, plain = get_attention_weights(layer, X, **call)
    np.testing.assert_allclose(maps["attention"], plain["attention"], atol=1e-6)
    product = maps["attention"] * gradients["attention"]
    np.testing.assert_allclose(
        product.sum((1, 2, 3)), to_numpy(outputs)[:, 3, 1], atol=1e-5
    )
    assert np.abs(product[:, :, [0, 1, 2, 4]]).max() == 0, "other queries"


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "layer",
    [
        partial(layers.MultiHeadAttention, 2, 3),
        partial(layers.GroupQueryAttention, 3, 4, 2),
        partial(MultiHeadAttention, 2, 3),
    ],
)
def test_gradients_are_by_the_weights_before_dropout(layer):
    """y = Σ dropout(w) v W, whose gradient by a dropped weight is 0."""
    keras.utils.set_random_seed(1)  # which decides what is dropped
    layer = layer(dropout=0.4, name="attention")
    call = {"key": X} if isinstance(layer, MultiHeadAttention) else {"value": X}
    outputs, maps, gradients = get_attention_gradients(
        layer, X, **call, training=True, chosen_output=lambda y: y[:, 3, 1]
    )
    maps, gradients = (
        maps["attention"][:, :, 3],
        gradients["attention"][:, :, 3],
    )
    np.testing.assert_allclose(
        (maps * gradients).sum((1, 2)), to_numpy(outputs)[:, 3, 1], atol=1e-5
    )
    assert (gradients == 0).any() and (maps > 0).all()


class FusedAttention(keras.Layer):
    def call(self, x):
        query = ops.reshape(x, (2, 5, 4, 2))
        return ops.dot_product_attention(
            query, query[:, :, :2], query[:, :, 2:]
        )


@pytest.mark.every_backend
@needs_fewer_key_heads
def test_the_fused_operation_has_gradients_too():
    layer = FusedAttention(name="fused")
    outputs, maps, gradients = get_attention_gradients(
        layer, X, chosen_output=lambda y: y[:, 3, 1, 0]
    )
    np.testing.assert_allclose(to_numpy(outputs), to_numpy(layer(X)), atol=1e-5)
    product = (maps["fused"] * gradients["fused"]).sum((1, 2, 3))
    np.testing.assert_allclose(
        product, to_numpy(outputs)[:, 3, 1, 0], atol=1e-5
    )


@pytest.mark.every_backend
def test_what_has_no_gradient_is_said():
    layer = layers.MultiHeadAttention(2, 4, name="attention")
    with pytest.raises(ValueError, match=r"\(B,\).*\(2, 5, 8\)"):
        get_attention_gradients(layer, X, X, chosen_output=lambda y: y)
    constant = ops.ones((2,))
    _, _, gradients = get_attention_gradients(
        layer, X, X, chosen_output=lambda y: constant
    )
    assert np.abs(gradients["attention"]).max() == 0


class NoSoftmax(keras.Layer):
    def weigh(self, x):
        return ops.ones((2, 5, 5)) / 5

    def call(self, x):
        return ops.matmul(self.weigh(x), x)


def test_weights_that_nobody_can_change_are_named(monkeypatch):
    monkeypatch.setattr(adapters, "_REGISTERED", [])

    def adapter(layer, record):
        weigh = layer.weigh

        def noting(x):
            record(weigh(x))
            return weigh(x)

        return [(layer, "weigh", noting)]

    adapters.register_attention_adapter(NoSoftmax, adapter)
    model = keras.Sequential([NoSoftmax(name="even")])
    _, maps = get_attention_weights(model, X)
    assert list(maps) == ["even"]
    with pytest.raises(ValueError, match="even.*not one gradient"):
        get_attention_gradients(model, X, chosen_output=chosen)


def test_the_rollout_of_gradients_is_its_recursion():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(5), (2, 3, 4, 5))  # (L, B, H, T, T)
    gradients = rng.normal(size=weights.shape)
    found = gradient_rollout(list(weights), list(gradients))
    assert found.shape == (2, 3, 1, 5, 5)
    for b in range(3):
        rollout = np.eye(5)
        for layer in range(2):
            mean = np.zeros((5, 5))
            for h in range(4):
                product = weights[layer, b, h] * gradients[layer, b, h]
                mean += np.where(product > 0, product, 0) / 4
            rollout = rollout + mean @ rollout
            np.testing.assert_allclose(found[layer, b, 0], rollout)
    named = gradient_rollout(
        dict(enumerate(weights)), dict(enumerate(gradients))
    )
    np.testing.assert_array_equal(named, found)
    with pytest.raises(ValueError, match="2 weights and 1 gradients"):
        gradient_rollout(list(weights), list(gradients[:1]))
    with pytest.raises(ValueError, match="as many keys as queries"):
        gradient_rollout(weights[:, ..., :4], gradients[:, ..., :4])


@pytest.mark.every_backend
def test_a_model_is_left_as_the_call_leaves_it():
    """JAX runs it twice, the second time on tracers."""
    inputs = keras.Input((5, 8))
    x = layers.MultiHeadAttention(2, 4, dropout=0.4, seed=1)(inputs, inputs)
    models = [keras.Model(inputs, layers.BatchNormalization()(x))]
    models.append(keras.models.clone_model(models[0]))
    models[1].set_weights(models[0].get_weights())
    models[0](X, training=True)
    get_attention_gradients(
        models[1], X, training=True, chosen_output=lambda y: y[:, 3, 1]
    )
    plain, asked = (m.non_trainable_variables for m in models)
    for a, b in zip(plain, asked, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-5)
    models[1].predict(X, verbose=0)


class Noisy(keras.Model):
    """Its dropout draws from no generator of the model."""

    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4)

    def call(self, x):
        return self.attention(x, keras.random.dropout(x, 0.5))


@pytest.mark.every_backend
def test_gradients_are_of_the_very_run_that_gave_the_maps():
    def ask():
        return get_attention_gradients(
            Noisy(), X, chosen_output=lambda y: y[:, 3, 1]
        )

    if keras.backend.backend() == "jax":
        with pytest.raises(ValueError, match="draws from no seed generator"):
            ask()
        return
    outputs, *both = ask()
    (maps,), (gradients,) = (x.values() for x in both)
    product = (maps * gradients).sum((1, 2, 3))
    np.testing.assert_allclose(product, to_numpy(outputs)[:, 3, 1], atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="torch's")
def test_there_are_no_gradients_in_inference_mode():
    import torch

    layer = layers.MultiHeadAttention(2, 4)
    with torch.inference_mode(), pytest.raises(ValueError, match="outside it"):
        get_attention_gradients(layer, X, X, chosen_output=lambda y: y[:, 0, 0])


def test_an_empty_row_adds_nothing():
    layer, inputs, *_ = a_row_that_counts_for_nothing_is_empty_by(
        "weights", (1,)
    )
    _, maps, gradients = get_attention_gradients(
        layer, *inputs, chosen_output=lambda y: ops.sum(y, (1, 2))
    )
    np.testing.assert_array_equal(maps["some"][1, :, 3:], 0)
    _, mask, value = inputs
    expected = (value.sum(-1)[:, None] * mask[..., None])[:, None]
    np.testing.assert_allclose(
        maps["some"] * gradients["some"], maps["some"] * expected, atol=1e-5
    )


@pytest.mark.parametrize(
    ("case", "num_heads"),
    [
        (heads_in_the_batch(heads_first=True, equal=False), 4),
        (heads_in_the_batch(heads_first=False, equal=False), 4),
        (a_sink_in_a_column_that_is_first(True), 1),
        (a_sink_in_a_column_that_is_first(False), 1),
    ],
)
def test_gradients_have_the_axes_of_their_maps(case, num_heads):
    (x,) = case.inputs
    _, maps, gradients = get_attention_gradients(
        case.model, x, chosen_output=lambda y: ops.sum(y)[None]
    )
    # The sum of the output grows by the sum of the value.
    values = x.reshape(*x.shape[:2], num_heads, -1).sum(-1)
    expected = values.transpose(0, 2, 1)[:, :, None]
    expected = np.broadcast_to(expected, maps["some"].shape)
    np.testing.assert_allclose(gradients["some"], expected, atol=1e-5)


class DifferenceAttention(keras.Layer):
    def call(self, x):
        z = ops.einsum("btd,bsd->bts", x, x)
        weights = ops.softmax(z) - 0.5 * ops.softmax(z / 4)
        return ops.matmul(weights, x)


@pytest.mark.every_backend
def test_gradients_are_by_what_weighs_the_values():
    """Not by the softmaxes that it is made of."""
    x = draw(2, 5, 8)
    outputs, maps, gradients = get_attention_gradients(
        DifferenceAttention(name="difference"),
        x,
        chosen_output=lambda y: y[:, 1, 0],
    )
    expected = np.zeros((2, 1, 5, 5))
    expected[:, 0, 1] = x[:, :, 0]
    np.testing.assert_allclose(gradients["difference"], expected, atol=1e-6)
    weights = maps["difference"][:, 0]
    np.testing.assert_allclose(weights @ x, to_numpy(outputs), atol=1e-5)
