"""What the axes of a softmax are: told from the inputs of its layer."""

import itertools
import math
from typing import NamedTuple

import keras
from keras import ops, tree


def looks_like_attention(weights, inputs):
    """Whether both last axes are as long as inputs of the layer."""
    lengths = _sizes(inputs, weights).lengths
    return weights.shape[-1] in lengths and weights.shape[-2] in lengths


def may_be_attention(weights, inputs):
    """Whether a softmax of an unknown layer can run over keys.

    Either its last axis is as long as an input; or there are heads, and as
    many keys as queries, as in windows that a layer cuts.
    """
    *_, t, s = weights.shape
    square = len(weights.shape) > 3 and t == s and t not in (1, None)
    return square or s in _sizes(inputs, weights).lengths


def runs_over_features(weights, inputs):
    """Whether a softmax runs over features of the inputs, not over keys."""
    sizes, size = _sizes(inputs, weights), weights.shape[-1]
    return size in sizes.features and size not in sizes.lengths


def to_map(layer, weights, inputs):
    """Weights `(B, H, T, S)` of a layer's softmax, or None.

    Heads may be folded into the batch, `(B H, T, S)`; there may be no batch,
    `(H, T, S)`; and heads may share keys, `(B, G, H / G, T, S)`. What runs
    over other things than positions is no map, and neither are blocks of
    queries, each with keys of its own.
    """
    if type(layer).__name__ == "GptOssAttention":  # of keras-hub
        weights = weights[..., :-1]  # a sink takes weight and gives nothing
    batch, *heads, t, s = weights.shape
    sizes = _sizes(inputs, weights)
    if sizes.have_no_batch and t in sizes.batches - sizes.lengths:
        return to_heads(ops.expand_dims(weights, 0))
    if t != 1 and not sizes.hold(t) and not sizes.hold(s):
        return None
    if not heads:
        return _unfold(layer, weights, sizes)
    if batch is not None and sizes.batches and batch not in sizes.batches:
        return None
    if len(heads) > 1 and (
        not (sizes.hold(t) and sizes.hold(s))
        or any(n > 1 < t and n * t in sizes.lengths for n in heads if t)
    ):
        return None
    return to_heads(weights)


def to_heads(weights):
    """Weights `(B, H, T, S)` of a softmax of any number of head axes.

    Without a head axis there is one head. Heads that share keys come as
    `(B, G, H / G, T, S)`.
    """
    batch, *heads, t, s = ops.shape(weights)
    return ops.reshape(weights, (batch, math.prod(heads), t, s))


def _unfold(layer, weights, sizes):
    """`(B H, T, S)` as `(B, H, T, S)`; H is 1 where there are no heads."""
    num_heads = getattr(layer, "num_heads", None)
    batch, t, s = ops.shape(weights)
    if weights.shape[0] is None:  # in a graph, where B and B H look alike
        return to_heads(weights) if num_heads in (None, 1) else None
    if batch in sizes.batches or not sizes.batches:
        return to_heads(weights)
    found, rest = divmod(batch, sizes.batch)
    if rest or not sizes.hold(t) or num_heads not in (None, found):
        return None
    return ops.reshape(weights, (sizes.batch, found, t, s))


class _Sizes(NamedTuple):
    """Sizes of the tensors of a call, as far as they are known.

    Attributes:
        lengths: Set of numbers of positions.
        joined: Set of numbers of positions of two tensors, one behind other.
        features: Set of numbers of features.
        batches: Set of sizes of the first axis.
        batch: That of the first tensor.
        have_no_batch: Whether all may be `(positions, features)`.
    """

    lengths: set
    joined: set
    features: set
    batches: set
    batch: int | None
    have_no_batch: bool

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
    lengths, features, sequences = set(), set(), []
    for shape, is_mask in shapes:
        # The positions of a picture stand on two axes.
        between = shape[1:-1] or shape[1:]
        lengths.update(between)
        if None not in between:
            lengths.add(math.prod(between))
        if len(shape) >= 3 and not is_mask:
            features.add(shape[-1])
        if len(shape) == 3 and not is_mask and None not in between:
            sequences.append(shape[1])
    flat = all(len(shape) == 2 for shape, _ in shapes)
    batches = [shape[0] for shape, _ in shapes if flat or len(shape) > 2]
    batches = [batch for batch in batches if batch is not None]
    return _Sizes(
        lengths - {None},
        {sum(pair) for pair in itertools.combinations(sequences, 2)},
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
