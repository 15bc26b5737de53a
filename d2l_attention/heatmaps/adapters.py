"""How the weights of each kind of attention layer are read as it runs."""

import contextlib
import functools
import inspect
from typing import NamedTuple

from d2l_attention._checks import as_array
from d2l_attention.heatmaps.comparing import differs, is_close
import keras
from keras import ops, tree
import numpy as np


def register_attention_adapter(layer_class, adapter=None):
    """Teach `get_attention_weights` to read another kind of layer.

    Without an adapter, the weights are what `keras.ops.softmax` (or the
    layer `keras.layers.Softmax`) gives inside the layer: `(B, T, S)`,
    `(B, H, T, S)`, or with more axes of heads.

    Args:
        layer_class: Class of the layer; the adapter also serves subclasses.
        adapter: Function `(layer, record)` that returns a list of
            `(owner, name, stand_in)`. `owner` is the layer or a part of it.
            While the model runs, the function `stand_in` replaces the method
            `name` of `owner`: it calls the method, gives the weights
            `(B, H, T, S)` or `(B, T, S)` to `record`, and returns the result
            of the method. `record(weights, keys)` with keys `(B, S, …)` lets
            the calls of a generation be joined.

    Raises:
        TypeError: If `layer_class` is not a class of layers, or `adapter` is
            not a function.
    """
    if not (
        inspect.isclass(layer_class) and issubclass(layer_class, keras.Layer)
    ):
        raise TypeError(
            "`layer_class` must be a class of layers. "
            f"Received: {layer_class!r}."
        )
    if not (adapter is None or callable(adapter)):
        raise TypeError(f"`adapter` must be a function. Received: {adapter!r}.")
    _REGISTERED.insert(0, (layer_class, adapter or BY_SOFTMAX))


BY_SOFTMAX = "by softmax"  # its weights are what a softmax inside it gives
BY_NAME = "by name"  # the same, if its operations say so


class NoWeights(NamedTuple):
    """In the place of an adapter: the mechanism forms no weights."""

    reason: str = "its mechanism forms no weights for pairs of queries and keys"
    by_identity: bool = False  # whether `weights_by_identity` may read it


def adapter_of(layer):
    """The adapter of a layer, or None if it is no attention that is known.

    `BY_SOFTMAX` and `NoWeights` stand for layers without an adapter. What a
    reader registered goes before all; then a layer can say that it forms no
    weights: its `weights_from` is a sentence that names what gives them.
    """
    for layer_class, adapter in _REGISTERED:
        if isinstance(layer, layer_class):
            return adapter
    weights_from = getattr(layer, "weights_from", None)
    if isinstance(weights_from, str):
        parts = "project_value", "join_heads"
        by_identity = all(hasattr(layer, part) for part in parts)
        again = (
            "Named by `layers=`, it is run again with identity values, which "
            "give them. "
        )
        return NoWeights(
            "its mechanism forms no weights. "
            f"{again if by_identity else ''}{weights_from}",
            by_identity,
        )
    for layer_class, adapter in _OF_KERAS:
        if isinstance(layer, layer_class):
            return adapter
    ours = ("project_query", "project_key", "project_value")
    if all(inspect.ismethod(getattr(layer, name, None)) for name in ours):
        return _by_attend if hasattr(layer, "attend") else NoWeights()
    if isinstance(layer, keras.layers.TorchModuleWrapper) and any(
        "attention" in type(part).__name__.lower()
        for part in layer.module.modules()
    ):
        return NoWeights("its attention is a module of torch, not a layer")
    name = type(layer).__name__.lower()
    if any(word in name for word in _WEIGHTLESS):
        return NoWeights()
    if "attention" in name and "attentionmask" not in name:
        return BY_NAME
    # Keras's name for the method; a block of keras-hub's has it, too.
    if inspect.ismethod(getattr(layer, "_compute_attention", None)):
        return BY_NAME
    return None


_WEIGHTLESS = (
    "deformable",  # samples points between the keys
    "deltanet",  # linear attention: a state in the place of keys
    "timemix",  # of RWKV, the same
)


_MOST_KEYS = 1024  # of identity values, `(S, S)` for each head


def weights_by_identity(layer, run_again, output):
    """The weights `(B, H, T, S)` of a layer that forms none; or why not.

    Attention with the identity matrix for its values returns its weights. The
    layer runs again, with a stand-in between its `project_value` and its
    `join_heads`. What comes back are weights if, times random values, they
    give the heads of these. The true values might be too small to tell.

    `run_again` runs the layer that gave `output`, and leaves no trace in it, so
    that all runs start alike.
    """
    project, join = layer.project_value, layer.join_heads
    seen = {}

    def run(values):
        def project_value(value):
            projected = project(value)
            seen.setdefault("values", projected)
            return values(projected)

        def join_heads(heads):
            seen["heads"] = heads
            # Those of identity values do not fit what comes after.
            return join(seen.setdefault("true heads", heads))

        with contextlib.ExitStack() as stack:
            put(stack, layer, "project_value", project_value)
            put(stack, layer, "join_heads", join_heads)
            return run_again()

    def heads_of(values):
        run(lambda projected: ops.cast(values, projected.dtype))
        return as_array(seen["heads"], "float32")

    again = run(lambda projected: projected)
    if not {"values", "heads"} <= seen.keys():
        return "it did not call `project_value` and `join_heads`"
    again, output = (
        list(map(as_array, tree.flatten(nest))) for nest in (again, output)
    )
    if not all(map(is_close, output, again)):
        return "it gives another output when it runs again, as with noise"
    batch, s, heads, _ = shape = seen["values"].shape
    if s > _MOST_KEYS:
        return (
            f"it has {s} keys; up to {_MOST_KEYS} can be read by identity; "
            "shorten the input, or use a layer that forms weights"
        )
    identity = np.broadcast_to(np.eye(s)[:, None], (batch, s, heads, s))
    random = np.random.default_rng(0).normal(size=shape)
    try:
        weights = heads_of(identity)  # (B, T, H, S)
        found = heads_of(random)  # (B, T, H, V)
    except Exception:  # the layer's own, about values that do not fit
        return "it does not run with identity values"
    # Values of fewer heads than the queries are those of several.
    random = np.repeat(random, found.shape[2] // heads, axis=2)
    expected = np.einsum("bths,bshv->bthv", weights, random)
    if differs(expected, found, share=0.01, axis=(1, 3)).any():
        return "its output is not a weighted sum of its values"
    return weights.transpose(0, 2, 1, 3)


def on_the_path(adapter, change):
    """The adapter whose recorded weights are those the output comes from.

    `change` gives what to use in their place. Softmaxes of Keras are changed
    where they are heard, by `Run`, and not here.
    """
    if adapter is _by_scores:  # and no longer the fused operation
        return _by_scores_alone
    if adapter is _by_attend:
        return functools.partial(_by_changed_dropout, change=change)
    return adapter


def _by_scores(layer, record):
    """The adapter of Keras's attention with heads, and of its subclasses.

    Keras documents `_compute_attention` as the method to override: whatever
    the `call` of a subclass looks like, its weights come from there.
    """
    original = layer._compute_attention
    axes = len(getattr(layer, "_attention_axes", None) or (1,))

    def compute(*args, **kwargs):
        result = original(*args, **kwargs)
        if isinstance(result, tuple):
            weights = result[1]
            if weights is None:  # the fused operation: ask again
                output, weights = _scores(layer, original, args, kwargs)
                if weights is None:
                    return result  # of a subclass; its softmax is heard
                value = args[2] if args[2:] else kwargs["value"]
                if not _agree(result[0], output, weights, value):
                    record(_DISAGREE)
                    return result
                weights = _even_where_empty(weights)
            record(_join_axes(weights, axes), _key_of(args, kwargs))
        return result

    return [(layer, "_compute_attention", compute)]


def _key_of(args, kwargs):
    """The second of query, key and value."""
    return args[1] if args[1:] else kwargs.get("key")


def _by_scores_alone(layer, record):
    original = layer._compute_attention
    axes = len(getattr(layer, "_attention_axes", None) or (1,))

    def compute(*args, **kwargs):
        result = _scores(layer, original, args, kwargs)
        if isinstance(result, tuple) and result[1] is not None:
            record(_join_axes(result[1], axes))
        return result

    return [(layer, "_compute_attention", compute)]


def _scores(layer, compute, args, kwargs):
    """Output and weights of the path that forms them.

    `MultiHeadAttention` is asked by an argument, `GroupQueryAttention` by an
    attribute that its `call` sets.
    """
    bound = inspect.signature(compute).bind(*args, **kwargs)
    if "return_attention_scores" in bound.signature.parameters:
        bound.arguments["return_attention_scores"] = True
    asked = {"_return_attention_scores": True, "_flash_attention": False}
    with contextlib.ExitStack() as stack:
        for name, value in asked.items():
            if hasattr(layer, name):
                put(stack, layer, name, value)
        return compute(*bound.args, **bound.kwargs)


_DISAGREE = (
    "its fused operation and the one that forms weights give different "
    "outputs, so the weights are not those of the output"
)


def _agree(fused, output, weights, value):
    """Whether both outputs `(B, T, H, K)` are the same.

    Where a query may see nothing, the fused one should be the mean of the
    values `(B, S, G, K)`. (torch's in float16 is not: what it adds to the
    scores of hidden keys is not felt there.) In a graph, nothing can be
    compared.
    """
    try:
        fused, output, weights, value = (
            as_array(x, "float32") for x in (fused, output, weights, value)
        )
    except Exception:  # each backend has its own for a tensor of a graph
        return True
    is_seen = (weights > 0).any(-1)
    if not is_seen.all():
        sees = np.moveaxis(is_seen, 1, 2)[..., None]  # (B, T, H, 1)
        if sees.ndim != fused.ndim:
            return True
        mean = value.mean(1, keepdims=True)
        mean = np.repeat(mean, fused.shape[2] // value.shape[2], axis=2)
        output = np.where(sees, output, mean)
    # In float16, both paths may differ by 2 % of the largest number.
    return not differs(output, fused, share=0.05).any()


def _even_where_empty(weights):
    """What Keras's fused operation does for a query that may see nothing."""
    some = ops.any(weights > 0, axis=-1, keepdims=True)
    even = ops.ones_like(weights) / ops.shape(weights)[-1]
    return ops.where(some, weights, even)


def _join_axes(weights, axes):
    """`(…, H, *T, *S)` as `(B, H, T, S)`, for `attention_axes` of Keras."""
    shape = ops.shape(weights)
    batch = shape[: -2 * axes - 1]
    heads, t, s = shape[-2 * axes - 1], shape[-2 * axes : -axes], shape[-axes:]
    joined = _product(batch), heads, _product(t), _product(s)
    return ops.reshape(weights, joined)


def _product(sizes):
    """Like `math.prod`, but one size stays what it is, known or not."""
    first, *rest = sizes
    for size in rest:
        first = first * size
    return first


def _by_attend(layer, record):
    """The adapter of this package's layers, which have `attend`."""
    original = layer.attend

    def attend(*args, **kwargs):
        output, weights = original(*args, **kwargs)
        record(weights, _key_of(args, kwargs))
        return output, weights

    return [(layer, "attend", attend)]


def _by_changed_dropout(layer, record, change):
    """This package's layers drop weights before they use them."""
    dropout = _ChangedDropout(layer.dropout_layer, change)
    return [*_by_attend(layer, record), (layer, "dropout_layer", dropout)]


class _ChangedDropout:
    rate = 1.0  # so that the layer calls it

    def __init__(self, dropout_layer, change):
        self.dropout_layer = dropout_layer
        self.change = change

    def __call__(self, weights, training=None):
        return self.dropout_layer(self.change(weights), training=training)


def put(stack, owner, name, value):
    """Set an attribute of a layer; leaving `stack` puts back what was there.

    Keras's own way of setting attributes would track the stand-in.
    """
    before = owner.__dict__.get(name, stack)
    object.__setattr__(owner, name, value)
    if before is stack:
        stack.callback(object.__delattr__, owner, name)
    else:
        stack.callback(object.__setattr__, owner, name, before)


_REGISTERED = []  # the latest first
_OF_KERAS = [
    (keras.layers.MultiHeadAttention, _by_scores),
    (keras.layers.GroupQueryAttention, _by_scores),
    (keras.layers.Attention, BY_SOFTMAX),  # and AdditiveAttention
]
