"""Constructors that name an argument once.

A constructor names what is its own, and hands `**options` to its parent's:

    class Child(Parent):
        def __init__(self, size, top, *, width=1, **options):
            super().__init__(size, **options)
            self.top, self.width = top, width

`help(Child)`, `Child?` and the reference show the keyword arguments of the
parent too, because the signature of the class holds them. An argument is an
attribute of the same name, so it is in the config. A constructor that takes
`**kwargs` instead adds only those of Keras: `name`, `dtype`, `trainable`. A
name that no constructor takes arrives at Keras, which refuses it.
"""

import inspect

import keras


class Configurable:
    """A layer or a model whose config is the arguments of its constructor."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.__signature__ = _OfClass(_signature(cls))

    def get_config(self):
        values = {x: getattr(self, x) for x in _arguments(type(self))}
        if "activation" in values:
            values["activation"] = keras.activations.serialize(self.activation)
        save = keras.saving.serialize_keras_object
        values = {name: save(value) for name, value in values.items()}
        return {**super().get_config(), **values}

    @classmethod
    def from_config(cls, config):
        load = keras.saving.deserialize_keras_object
        given = {x: load(config[x]) for x in _arguments(cls) if x in config}
        return super().from_config(config | given)


class _OfClass:
    """A signature that the class has, and its objects have not.

    `inspect.signature(layer)` is that of a call; `tf.function` reads it.
    """

    def __init__(self, signature):
        self.signature = signature

    def __get__(self, layer, cls=None):
        if layer is not None:
            raise AttributeError("__signature__")
        return self.signature


def _arguments(cls):
    """The names of a class's arguments, without those of Keras."""
    parameters = cls.__signature__.parameters.values()
    return [x.name for x in parameters if x.kind is not x.VAR_KEYWORD]


def _signature(cls):
    """The signature of the constructor, with the parent's keyword arguments."""
    owner, *parents = (x for x in cls.__mro__ if "__init__" in vars(x))
    signature = inspect.signature(owner.__init__)
    _, *own = signature.parameters.values()  # not `self`
    if not own or own[-1].name != "options":
        return signature.replace(parameters=own)
    *own, _ = own
    names = {x.name for x in own}
    *inherited, last = _signature(parents[0]).parameters.values()
    own += [
        x for x in inherited if x.kind is x.KEYWORD_ONLY and x.name not in names
    ]
    return signature.replace(parameters=[*own, last])
