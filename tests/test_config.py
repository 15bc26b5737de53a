"""Constructors that name an argument once; what is shown and saved of it."""

import inspect

import d2l_attention
from d2l_attention._config import Configurable
import keras
import numpy as np
import pytest


class Parent(Configurable, keras.Layer):
    def __init__(self, size, *, rate=0.5, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.size, self.rate = size, rate
        self.activation = keras.activations.get(activation)


class Child(Parent):
    def __init__(self, size, parts, *, rate=0.25, top=3, **options):
        super().__init__(size, rate=rate, **options)
        self.parts, self.top = parts, top


class Sibling(Parent):
    """It has no options of its parent, only those of Keras."""

    def __init__(self, size, **kwargs):
        super().__init__(size, rate=0.0, **kwargs)


class Grandchild(Child):
    pass


def test_a_signature_has_the_options_of_all_parents():
    shown = "(size, parts, *, rate=0.25, top=3, activation='relu', **kwargs)"
    assert str(inspect.signature(Child)) == shown
    assert str(inspect.signature(Grandchild)) == shown
    assert str(inspect.signature(Sibling)) == "(size, **kwargs)"


def test_the_signature_of_an_object_is_that_of_its_call():
    """As of any layer of Keras: `tf.function` binds its arguments by it."""
    layer, plain = Child(5, []), keras.layers.Dense(3)
    assert str(inspect.signature(layer)) == str(inspect.signature(plain))


@pytest.mark.parametrize("name", ["GroupedQueryAttention", "CausalBlock"])
def test_a_layer_may_be_compiled_as_it_is(name):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("tf.function compiles TensorFlow")
    sizes = {"GroupedQueryAttention": (4, 2, 3), "CausalBlock": (8, 2, 16)}
    layer = getattr(d2l_attention, name)(*sizes[name])
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    expected = layer(x)
    found = tf.function(layer)(tf.constant(x))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_config_has_every_argument_and_makes_the_same_again():
    inner = keras.layers.Dense(3, name="inner")
    layer = Grandchild(5, [inner], activation="tanh", top=7, name="a")
    config = layer.get_config()
    own = {x: config[x] for x in ("name", "size", "rate", "activation", "top")}
    assert own == {
        **{"name": "a", "size": 5, "rate": 0.25},
        **{"activation": "tanh", "top": 7},
    }
    again = Grandchild.from_config(config)
    assert again.parts[0].units == 3 and again.parts[0] is not inner
    assert again.get_config() == config


def test_an_argument_that_nobody_names_is_refused():
    with pytest.raises(ValueError, match="tops"):
        Child(5, [], tops=3)


def test_an_argument_that_is_no_attribute_is_no_silent_gap_in_the_config():
    class Forgetful(Parent):
        def __init__(self, size, *, forgotten=1, **options):
            super().__init__(size, **options)

    with pytest.raises(AttributeError, match="forgotten"):
        Forgetful(5).get_config()
