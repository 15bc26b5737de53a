"""The softmaxes of Keras: heard as they run, and told from other ones."""

import contextlib
import math
import sys

import keras
from keras import ops, tree


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


def looks_like_attention(weights, inputs):
    """Whether both last axes are as long as inputs of the layer."""
    lengths, _ = _sizes(inputs)
    return weights.shape[-1] in lengths and weights.shape[-2] in lengths


def runs_over_positions(weights, inputs):
    """Whether a softmax can run over positions of the inputs."""
    lengths, _ = _sizes(inputs)
    return weights.shape[-1] in lengths


def runs_over_features(weights, inputs):
    """Whether a softmax runs over features of the inputs, not over keys."""
    lengths, features = _sizes(inputs)
    size = weights.shape[-1]
    return size in features and size not in lengths


def to_heads(weights):
    """Weights `(B, H, T, S)` of a softmax of any number of head axes.

    Without a head axis there is one head. Heads that share keys come as
    `(B, G, H / G, T, S)`.
    """
    batch, *heads, t, s = ops.shape(weights)
    return ops.reshape(weights, (batch, math.prod(heads), t, s))


def _sizes(inputs):
    """Numbers of positions and of features of the tensors of a call."""
    lengths, features = set(), set()
    for tensor in tree.flatten(inputs):
        shape = getattr(tensor, "shape", ())
        if len(shape) >= 2:
            # The positions of a picture stand on two axes.
            between = shape[1:-1] or shape[1:]
            lengths.update(between)
            if None not in between:
                lengths.add(math.prod(between))
        if len(shape) >= 3 and not _is_mask(tensor):
            features.add(shape[-1])
    return lengths - {None}, features - {None}


def _is_mask(tensor):
    return keras.backend.standardize_dtype(tensor.dtype) == "bool"
