"""How the weights of each kind of attention layer are read as it runs."""

import inspect
import math

import keras
from keras import ops


def register_attention_adapter(layer_class, adapter):
    """Teach `get_attention_weights` to read another kind of layer.

    Args:
        layer_class: Class of the layer; the adapter also serves subclasses.
        adapter: Function `(layer, record)` that returns a list of
            `(owner, name, stand_in)`. `owner` is the layer or a part of it.
            While the model runs, the function `stand_in` replaces the method
            `name` of `owner`: it calls the method, gives the weights
            `(B, H, T, S)` or `(B, T, S)` to `record`, and returns the result
            of the method.

    Raises:
        TypeError: If `layer_class` is not a class of layers.
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
    """The adapter of layers whose `call` takes `return_attention_scores`."""
    original = layer.call
    signature = inspect.signature(original)

    def call(*args, **kwargs):
        output = original(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.arguments["return_attention_scores"] = True
        bound.arguments["training"] = False  # weights before dropout
        record(original(*bound.args, **bound.kwargs)[1])
        return output

    return [(layer, "call", call)]


def _by_attend(layer, record):
    """The adapter of this package's layers, which have `attend`."""
    original = layer.attend

    def attend(*args, **kwargs):
        output, weights = original(*args, **kwargs)
        record(weights)
        return output, weights

    return [(layer, "attend", attend)]


def _of_no_weights(layer, record):
    """The adapter of this package's layers that form no weights."""
    return []


def _by_softmax(layer, record):
    """The adapter of layers whose weights come from their `Softmax` layer."""
    (softmax,) = _softmaxes(layer)
    original_call, original_softmax = layer.call, softmax.call
    seen = []

    def weigh(*args, **kwargs):
        weights = original_softmax(*args, **kwargs)
        # Heads that share keys come as (B, G, H / G, T, S).
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
    parts = flatten_layers(layer, include_self=False)
    return [part for part in parts if isinstance(part, keras.layers.Softmax)]


def flatten_layers(layer, include_self=True):
    """The layers inside a layer or model, at any depth, and itself.

    Keras has this walk as a private method only: its public `model.layers`
    lists the direct parts of a model, and other layers have no such list.
    """
    return layer._flatten_layers(include_self=include_self)


_ADAPTERS = [
    (keras.layers.MultiHeadAttention, _by_call),
    (keras.layers.GroupQueryAttention, _by_call),
    (keras.layers.Attention, _by_call),  # and AdditiveAttention
]


def adapter_of(layer):
    """The adapter of a layer, or None if it is not a known attention layer."""
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
