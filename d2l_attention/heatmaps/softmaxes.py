"""The softmaxes of Keras, heard as they run."""

import contextlib
import sys

import keras
from keras import ops


@contextlib.contextmanager
def listen(hear):
    """Call `hear(weights)` for each softmax `(…, T, S)` over the last axis.

    The weights of `keras.ops.dot_product_attention`, which forms them inside,
    are formed beside it. What `hear` returns, if it is not None, takes the
    place of the weights.
    """
    nn = _module_of_softmax()
    softmax, attend = nn.softmax, nn.dot_product_attention

    def heard_softmax(x, axis=-1):
        weights = softmax(x, axis=axis)
        rank = len(weights.shape)
        if rank < 3 or axis not in (-1, rank - 1):
            return weights
        changed = hear(weights)
        return weights if changed is None else changed

    def heard_attend(query, key, value, **options):
        changed = hear(_weights_within(softmax, query, key, **options))
        if changed is None:
            return attend(query, key, value, **options)
        value = _for_each_head(value, query)
        output = ops.einsum("bhts,bshk->bthk", changed, value)
        return ops.cast(output, query.dtype)

    nn.softmax, nn.dot_product_attention = heard_softmax, heard_attend
    try:
        yield
    finally:
        nn.softmax, nn.dot_product_attention = softmax, attend


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
    """Whether a softmax in a layer's own code can be attention's."""
    ours_to_write = (keras.Model, keras.layers.Lambda)
    of_keras = type(layer).__module__.partition(".")[0] == "keras"
    return isinstance(layer, ours_to_write) or not of_keras
