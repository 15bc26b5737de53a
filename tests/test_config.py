"""Constructors that name an argument once; what is shown and saved of it."""

import inspect

from d2l_attention._config import Configurable
import keras
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
