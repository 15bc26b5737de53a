"""The softmaxes of Keras, heard as they run, and what their axes are.

What its axes are, the operations of its layer say (`roles`).
"""

import contextlib
import math
import sys

import keras
from keras import ops, tree


@contextlib.contextmanager
def listen(hear, watch, formed, aside):
    """Call `hear(weights)` for each softmax of two axes or more.

    The axis that it runs over is moved to the end, `(…, T, S)`. Weights of two
    axes are those of one query, `(B, 1, S)`.

    The weights of `keras.ops.dot_product_attention`, which forms them inside,
    are formed beside it. What `watch` makes of weights takes their place as
    soon as there are any, and what `hear` returns, if it is not None. If it is,
    the fused operation runs within `aside()`, and `formed(weights, value,
    output)` tells of it.
    """
    nn = _module_of_softmax()
    softmax, attend = nn.softmax, nn.dot_product_attention

    def heard_softmax(x, axis=-1):
        weights = softmax(x, axis=axis)
        if not isinstance(axis, int) or len(weights.shape) < 2:
            return weights
        weights = watch(weights)
        changed = hear(as_rows(weights, axis))
        if changed is None:
            return weights
        if len(weights.shape) == 2:
            changed = changed[:, 0]
        return ops.moveaxis(changed, -1, axis)

    def heard_attend(query, key, value, **options):
        weights = watch(_weights_within(softmax, query, key, **options))
        changed = hear(weights)
        if changed is None:
            with aside():
                output = attend(query, key, value, **options)
            formed(weights, _for_each_head(value, query), output)
            return output
        value = _for_each_head(value, query)
        output = ops.einsum("bhts,bshk->bthk", changed, value)
        return ops.cast(output, query.dtype)

    nn.softmax, nn.dot_product_attention = heard_softmax, heard_attend
    try:
        yield
    finally:
        nn.softmax, nn.dot_product_attention = softmax, attend


def as_rows(weights, axis):
    """A softmax `(…, T, S)`, of two axes `(B, 1, S)`, whatever its axis."""
    if axis not in (-1, len(weights.shape) - 1):
        weights = ops.moveaxis(weights, axis, -1)
    return weights[:, None] if len(weights.shape) == 2 else weights


def _module_of_softmax():
    """Where a softmax of Keras over one axis ends, whoever asked for it.

    The public `keras.ops.softmax` would miss layers and functional models.
    """
    return sys.modules["keras.src.backend"].nn


def _weights_within(
    softmax, query, key, bias=None, mask=None, scale=None, is_causal=False, **_
):
    """The weights `(B, H, T, S)` of Keras's `dot_product_attention`.

    As there, a query that may see nothing sees all keys alike, and a causal
    query t sees the keys s ≤ t, however many keys there are.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    key = _for_each_head(key, query)
    scores = ops.einsum("bthk,bshk->bhts", query, key)
    scores = ops.cast(scores, "float32") * ops.cast(scale, "float32")
    if bias is not None:
        scores = scores + ops.cast(bias, "float32")
    if mask is not None:
        scores = ops.where(mask, scores, _LOWEST)
    if is_causal:
        t, s = ops.shape(scores)[-2:]
        past = ops.arange(t)[:, None] >= ops.arange(s)
        scores = ops.where(past, scores, _LOWEST)
    return ops.cast(softmax(scores, axis=-1), query.dtype)


_LOWEST = -1e30


def _for_each_head(key, query):
    """Keys of fewer heads than the queries, repeated."""
    return ops.repeat(key, query.shape[2] // key.shape[2], axis=2)


def may_hold_attention(layer):
    """Whether its own code may hold attention that it does not tell of."""
    if isinstance(layer, _HOLDS_WHAT_IT_IS_GIVEN):
        return True
    of_library = package_of(layer) in ("keras", "d2l_attention")
    return not of_library or bool(softmaxes_of_functional(layer))


_HOLDS_WHAT_IT_IS_GIVEN = (
    keras.layers.Lambda,
    keras.layers.TorchModuleWrapper,
    keras.layers.JaxLayer,
)


def softmaxes_of_functional(model):
    """The operations of a functional model that may be a softmax."""
    if package_of(model) != "keras":
        return []
    return [
        part
        for part in getattr(model, "operations", ())
        if not isinstance(part, keras.Layer)
        or isinstance(part, (keras.layers.Softmax, keras.layers.Lambda))
        or getattr(part, "activation", None) is keras.activations.softmax
    ]


def package_of(layer):
    return type(layer).__module__.partition(".")[0]


def may_be_attention(length, inputs):
    """Whether inputs have as many positions as a softmax runs over."""
    shapes = [tuple(getattr(x, "shape", ())) for x in tree.flatten(inputs)]
    between = [shape[1:-1] or shape[1:] for shape in shapes if len(shape) > 1]
    sizes = {n for shape in between for n in shape}
    sizes |= {math.prod(shape) for shape in between if None not in shape}
    return length in sizes


def to_heads(weights):
    """Weights `(B, H, T, S)` of a softmax of any number of head axes."""
    batch, *heads, t, s = ops.shape(weights)
    return ops.reshape(weights, (batch, math.prod(heads), t, s))
