"""How weights are taken from each kind of attention layer as it runs."""

import inspect
import math

import keras
from keras import ops


def register_attention_adapter(layer_class, adapter):
    """Teach `get_attention_weights` a layer of other people's.

    Args:
        layer_class: Class of the layer; its subclasses are meant too.
        adapter: Function `(layer, record)` that returns a list of
            `(owner, name, stand_in)`: while the model runs, `stand_in` takes
            the place of the method `name` of `owner`, the layer or a part of
            it. It calls the method, hands weights `(B, H, T, S)` or
            `(B, T, S)` to `record`, and returns what the method returned.

    Raises:
        TypeError: If `layer_class` is no class of layers.
    """
    if not (
        inspect.isclass(layer_class) and issubclass(layer_class, keras.Layer)
    ):
        raise TypeError(
            "`layer_class` must be a class of layers. "
            f"Received: {layer_class!r}."
        )
    _ADAPTERS.insert(0, (layer_class, adapter))


def _by_call(layer, record):
    """For layers whose `call` takes `return_attention_scores`."""
    original = layer.call
    signature = inspect.signature(original)

    def call(*args, **kwargs):
        output = original(*args, **kwargs)
        asked = signature.bind(*args, **kwargs)
        asked.arguments["return_attention_scores"] = True
        asked.arguments["training"] = False  # weights before dropout
        record(original(*asked.args, **asked.kwargs)[1])
        return output

    return [(layer, "call", call)]


def _by_attend(layer, record):
    """For the layers of this package, where all weights pass `attend`."""
    original = layer.attend

    def attend(*args, **kwargs):
        output, weights = original(*args, **kwargs)
        record(weights)
        return output, weights

    return [(layer, "attend", attend)]


def _of_no_weights(layer, record):
    """For the layers of this package that form no weights: never recorded."""
    return []


def _by_softmax(layer, record):
    """For layers whose weights come out of a `Softmax` layer of their own."""
    (softmax,) = _softmaxes(layer)
    original_call, original_softmax = layer.call, softmax.call
    seen = []

    def weigh(*args, **kwargs):
        weights = original_softmax(*args, **kwargs)
        # Grouped heads, (B, G, H / G, T, S), lie group by group.
        batch, *heads, t, s = ops.shape(weights)
        seen.append(ops.reshape(weights, (batch, math.prod(heads), t, s)))
        return weights

    def call(*args, **kwargs):
        output = original_call(*args, **kwargs)
        if not seen:
            raise ValueError(
                f"The attention of {layer.path!r} ran as one fused operation, "
                "which forms no weights on this backend."
            )
        record(seen.pop())
        return output

    return [(layer, "call", call), (softmax, "call", weigh)]


def _softmaxes(layer):
    parts = layer._flatten_layers(include_self=False)
    return [part for part in parts if isinstance(part, keras.layers.Softmax)]


_ADAPTERS = [
    (keras.layers.MultiHeadAttention, _by_call),
    (keras.layers.GroupQueryAttention, _by_call),
    (keras.layers.Attention, _by_call),  # and AdditiveAttention
]


def adapter_of(layer):
    """The adapter of a layer, or None where it is not known to attend."""
    for layer_class, adapter in _ADAPTERS:
        if isinstance(layer, layer_class):
            if adapter is not _by_call or _takes_scores(layer):
                return adapter
    ours = ("project_query", "project_key", "project_value")
    if all(inspect.ismethod(getattr(layer, name, None)) for name in ours):
        return _by_attend if hasattr(layer, "attend") else _of_no_weights
    name = type(layer).__name__.lower()
    if name.endswith("attention") and len(_softmaxes(layer)) == 1:
        return _by_softmax
    return None


def _takes_scores(layer):
    return "return_attention_scores" in inspect.signature(layer.call).parameters
