"""The softmaxes of Keras, heard as they run, and what their axes are.

The axes of a softmax are guessed from the inputs of its layer.
"""

import contextlib
import itertools
import math
import sys
from typing import NamedTuple

from d2l_attention.heatmaps.guesses import Reading
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
    """Whether a softmax in a layer's own code can be attention's."""
    ours_to_write = (keras.Model, keras.layers.Lambda)
    of_keras = type(layer).__module__.partition(".")[0] == "keras"
    return isinstance(layer, ours_to_write) or not of_keras


def looks_like_attention(weights, inputs):
    """Whether both last axes are as long as inputs of the layer."""
    lengths = _sizes(inputs, weights).lengths
    return weights.shape[-1] in lengths and weights.shape[-2] in lengths


def may_be_attention(weights, inputs, lengths=()):
    """Whether a softmax of an unknown layer can run over keys.

    Either its last axis is as long as inputs; or there are heads, and as many
    keys as queries, as in windows that a layer cuts, or one more, a sink; or
    it pools a tensor whose length is one of `lengths`.
    """
    batch, *heads, t, s = weights.shape
    sizes = _sizes(inputs, weights)
    if s is None:
        return False
    if heads and t not in (1, None):
        sink = t == s - 1 and sizes.hold(t)
        return t == s or sink or sizes.hold(s)
    if not heads and t == 1:
        if batch not in (None, *sizes.batches):
            return False  # of each position, over something else
        return s in sizes.lengths or s in lengths
    return sizes.hold(s)


def lengths_of(inputs):
    """How many positions tensors `(B, T, D)` have, if that is known."""
    shapes = [getattr(x, "shape", ()) for x in tree.flatten(inputs)]
    return {shape[1] for shape in shapes if len(shape) == 3} - {1, None}


def runs_over_features(weights, inputs, may_have_sink=False):
    """Whether a softmax runs over features of the inputs, not over keys."""
    sizes, size = _sizes(inputs, weights), weights.shape[-1]
    if size not in sizes.features or sizes.hold(size):
        return False
    return not (may_have_sink and sizes.hold(size - 1))


def readings(layer, weights, inputs):
    """How the weights of a layer's softmax may be read as `(B, H, T, S)`.

    A list of `Reading`, the likeliest first. Heads may be folded into the
    batch, `(B H, T, S)` or `(H B, T, S)`; there may be no batch, `(H, T, S)`;
    and heads may share keys, `(B, G, H / G, T, S)`. There may be a column more
    than keys, at the end or before them: a sink, which takes weight and gives
    nothing. What runs over other things than positions is no map, and neither
    are blocks of queries, each with keys of its own.
    """
    batch, *heads, t, s = weights.shape
    sizes = _sizes(inputs, weights)
    if s is not None and not sizes.hold(s) and sizes.hold(s - 1):
        return [
            reading._replace(
                read=lambda w, cut=cut, read=reading.read: read(w[..., cut]),
                sink=sink,
            )
            for sink, cut in ((-1, slice(None, -1)), (0, slice(1, None)))
            for reading in readings(layer, weights[..., cut], inputs)
        ]
    if sizes.have_no_batch and t in sizes.batches - sizes.lengths:
        return [Reading(lambda w: to_heads(ops.expand_dims(w, 0)))]
    if t != 1 and not sizes.hold(t) and not sizes.hold(s):
        return []
    if not heads:
        return _unfolded(layer, weights, sizes)
    if batch is not None and sizes.batches and batch not in sizes.batches:
        return []
    if len(heads) > 1 and (
        not (sizes.hold(t) and sizes.hold(s))
        or any(n > 1 < t and n * t in sizes.lengths for n in heads if t)
    ):
        return []
    if len(heads) != 1 or heads[0] not in sizes.lengths:
        return [Reading(to_heads)]
    heads_last = Reading(lambda w: ops.swapaxes(w, 1, 2), rows=-3)
    found = [Reading(to_heads), heads_last]
    return found if t in sizes.lengths else found[::-1]


def to_heads(weights):
    """Weights `(B, H, T, S)` of a softmax of any number of head axes."""
    batch, *heads, t, s = ops.shape(weights)
    return ops.reshape(weights, (batch, math.prod(heads), t, s))


def _unfolded(layer, weights, sizes):
    """`(B H, T, S)` as `(B, H, T, S)`; H is 1 where there are no heads."""
    num_heads = getattr(layer, "num_heads", None)
    batch, t, s = weights.shape
    as_is = Reading(to_heads)
    if batch is None:  # in a graph, where B and B H look alike
        return [as_is] if num_heads in (None, 1) else []
    if batch == sizes.batch or not sizes.batches:
        return [as_is]
    heads, rest = divmod(batch, sizes.batch)
    if rest or not sizes.hold(t) or num_heads not in (None, heads):
        return [as_is] if batch in sizes.batches else []

    def batch_first(weights):
        return ops.reshape(weights, (sizes.batch, heads, *weights.shape[1:]))

    def heads_first(weights):
        weights = ops.reshape(weights, (heads, sizes.batch, *weights.shape[1:]))
        return ops.swapaxes(weights, 0, 1)

    ways = [batch_first] if sizes.batch == 1 else [batch_first, heads_first]
    return [Reading(way) for way in ways]


class _Sizes(NamedTuple):
    """Sizes of the tensors of a call, as far as they are known."""

    lengths: set  # numbers of positions
    joined: set  # positions of two tensors in a row, or of three axes
    features: set
    batches: set  # sizes of the first axis
    batch: int | None  # that of the first tensor
    have_no_batch: bool  # all may be (positions, features)

    def hold(self, size):
        """Whether a size, if it is known, can be one of positions."""
        return size in (None, *self.lengths, *self.joined)


def _sizes(inputs, weights):
    rows = tuple(weights.shape[-2:])
    shapes = [
        (tuple(tensor.shape), _is_mask(tensor, rows))
        for tensor in tree.flatten(inputs)
        if len(getattr(tensor, "shape", ())) >= 2
    ]
    lengths, volumes, features, sequences = set(), set(), set(), []
    for shape, is_mask in shapes:
        # The positions of a picture stand on two axes.
        between = shape[1:-1] or shape[1:]
        lengths.update(between)
        if None not in between:
            size = math.prod(between)
            (volumes if len(between) > 2 else lengths).add(size)
        if len(shape) >= 3 and not is_mask:
            features.add(shape[-1])
        if len(shape) >= 3 and not is_mask and None not in between:
            sequences.append(between)
    flat = all(len(shape) == 2 for shape, _ in shapes)
    batches = [shape[0] for shape, _ in shapes if flat or len(shape) > 2]
    batches = [batch for batch in batches if batch is not None]
    return _Sizes(
        lengths - {None},
        volumes
        | {
            a + b
            for some, others in itertools.combinations(sequences, 2)
            for a, b in itertools.product(some, others)
        },
        features - {None},
        set(batches),
        batches[0] if batches else None,
        flat,
    )


def _is_mask(tensor, rows):
    """Whether it forbids keys, or adds to scores as `(B, 1, T, S)`."""
    *first, t, s = tensor.shape
    if len(first) == 2 and first[1] == 1 and (t, s) == rows:
        return True
    return keras.backend.standardize_dtype(tensor.dtype) == "bool"
