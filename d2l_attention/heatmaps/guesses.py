"""Whether what was guessed of a layer's softmax is true: it is run again.

Of a layer whose class is not known, the axes of its softmax are guessed from
shapes, which can agree by chance. The map is shown if it behaves as one:

- The map of a sentence stays when the other sentences of its batch change.
- When one position changes, the scores of one column change, in the same
  place, and no others. A softmax over classes or experts has no such column.
- The output depends on the size of the weights, and on the smallest of a row.
  If not, the weights are cut or divided by their sum after the softmax.
"""

import itertools
import math

from keras import ops, tree
import numpy as np

TINY = 1e-6  # weights below it are not told from 0


def true_reading(readings, inputs, weights, output, again):
    """The first of the readings that is true, or None.

    Args:
        readings: Functions that make a map `(B, H, T, S)` of the softmax.
        inputs: `(args, kwargs)` of the layer.
        weights: What the softmax gave.
        output: What the layer gave.
        again: Function `(inputs, change=None)` that runs the layer once more
            and gives the softmax and the output. `change` makes of the weights
            what the layer uses in their place.
    """
    if not _are_used(inputs, weights, output, again):
        return None
    for reading, *options in itertools.product(readings, *_OPTIONS):
        before = to_floats(reading(weights))
        probe = _make_probe(inputs, before, *options)
        if probe is None:
            continue
        drawn, moved, position, columns = probe
        try:
            drawn = to_floats(reading(again(drawn)[0]))
            moved = to_floats(reading(again(moved)[0]))
        except Exception:  # the layer's own, about inputs that do not suit it
            continue
        if len(before) > 1 and not _is_close(before[0], drawn[0]):
            continue
        if any(
            _follows(drawn[-1], moved[-1], position, column)
            for column in columns
        ):
            return reading
    return None


# Queries that are all alike show little, and loud ones see one key only; a
# mask of two axes is `(T, S)` or `(B, S)`; and two axes of a tensor may be as
# long as the keys.
_OPTIONS = (False, True), (False, True), (True, False)


def _are_used(inputs, weights, output, again):
    """Whether the output needs the weights as they are."""
    _, twice = again(inputs, lambda weights: 2 * weights)
    before, twice = _arrays(output), _arrays(twice)
    if all(map(_is_close, before, twice)):
        return False
    _, cut = again(inputs, _without_the_smallest)
    rows = (weights.shape[0], weights.shape[-2])
    for array, other in zip(before, _arrays(cut), strict=True):
        differs = _differs(array, other)
        if array.shape[:2] == rows:  # a row of zeros, or of one zero, stays
            differs = differs.reshape(*rows, -1).any(-1)
            return differs.mean() > 0.5
        if differs.any():
            return True
    return False


def _without_the_smallest(weights):
    """A large negative number in the place of each row's smallest weight."""
    seen = to_floats(weights)
    seen = np.where(seen > TINY, seen, np.inf)
    smallest = (seen == seen.min(-1, keepdims=True)) & np.isfinite(seen)
    return ops.where(smallest, ops.cast(-1e3, weights.dtype), weights)


def _make_probe(inputs, before, is_loud, is_flat, first):
    """Inputs, and the same with something else in one position.

    All sentences are the first; if `is_loud`, noise is added to the others,
    or to the only one.

    Returns:
        Both inputs, the position (None where queries are no positions), and
        the columns in which it may show; or None without inputs of positions.
    """
    batch, _, num_queries, num_keys = before.shape
    originals = tree.flatten(inputs)
    arrays = [None if x is None else _numpy(x) for x in originals]
    have_batch = any(x is not None and x.ndim > 2 for x in arrays)
    places = {}  # number of positions → which array → their axes
    for i, x in enumerate(arrays):
        for axes in _axes_of_positions(x, have_batch, first):
            length = math.prod(x.shape[axis] for axis in axes)
            places.setdefault(length, {}).setdefault(i, axes)
    # Keys may be the positions of two inputs, one after the other.
    lengths = [n for n in places if num_keys in (n, *(n + m for m in places))]
    if num_keys in lengths:
        length = num_keys
    elif num_queries in places and not lengths:
        length = num_queries
    elif lengths:
        length = max(lengths)
    else:
        return None
    # A weight of 1 does not show what its score does.
    mass = (before[0] * (1 - before[0])).sum(0)
    if num_queries == num_keys:
        mass = mass * (1 - np.eye(num_keys))
    position = int(mass.sum(0)[:length].argmax())
    columns = {position, position + num_keys - length}
    if not lengths:  # keys are made of several positions each
        columns = range(num_keys)
    which = [*places[length]]
    if num_keys not in lengths:  # one of several
        which = which[:1] if first else which[-1:]
    rng = np.random.default_rng(0)
    drawn, moved = [], []
    for i, x in enumerate(arrays):
        if x is None:
            drawn.append(originals[i])
            moved.append(originals[i])
            continue
        x = x.copy()
        is_batch = len(x) == batch > 1
        if is_batch and (x.ndim > 2 or is_flat):
            x[:] = x[:1]
        others = x[1:] if is_batch else x
        # What all sentences share would change the first one, too.
        if is_loud and len(x) == batch and _is_number(x) and x.ndim > 2:
            others += _noise(others, rng)
        drawn.append(ops.convert_to_tensor(x))
        if i in which:
            x = x.copy()
            _move(x[1:] if is_batch else x, places[length][i], position, rng)
        moved.append(ops.convert_to_tensor(x))
    return (
        tree.pack_sequence_as(inputs, drawn),
        tree.pack_sequence_as(inputs, moved),
        position if num_queries == length else None,
        columns,
    )


def _axes_of_positions(x, have_batch, first):
    """Axes of a tensor that may run over positions, alone or together."""
    if x is None or x.dtype == bool or x.ndim < 2:
        return []
    if x.ndim == 2:
        if not _is_number(x):
            return [(1,)]
        return [] if have_batch else [(0,)]
    between = range(1, x.ndim - 1)
    alone = [(axis,) for axis in between]
    return [*(alone if first else alone[::-1]), tuple(between)]


def _is_number(x):
    """Whether it holds features, no ids and no mask."""
    return x.dtype.kind not in "biu"


def _noise(x, rng):
    scale = 2 * (x.astype("float32").std() + 0.1)
    return (scale * rng.normal(size=x.shape)).astype(x.dtype)


def _move(x, axes, position, rng):
    """Put something else in one position of all sentences."""
    place = [slice(None)] * x.ndim
    where = np.unravel_index(position, [x.shape[axis] for axis in axes])
    for axis, index in zip(axes, where, strict=True):
        place[axis] = int(index)
    place = tuple(place)
    if _is_number(x):
        x[place] += _noise(x, rng)[place]
    else:
        ids = np.unique(x)
        x[place] = ids[(np.searchsorted(ids, x[place]) + 1) % len(ids)]


def _follows(before, after, position, column):
    """Whether the scores of one column changed, and of no other.

    Up to a number for each row, a score is the logarithm of its weight.
    """
    at = np.arange(before.shape[1])
    rows = at != position  # whose query changed
    if before.shape[1] == before.shape[2]:
        rows &= at != column
    before, after = before[:, rows], after[:, rows]
    if before.shape[-1] == 1:
        return True
    seen = (before > TINY) & (after > TINY)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(seen, np.log(after / before), np.nan)
    others = np.delete(change, column, axis=-1)
    some = ~np.isnan(others).all(-1)
    if not some.any():
        return False
    middle = np.nanmedian(others[some], axis=-1, keepdims=True)
    spread = np.nanmax(np.abs(others[some] - middle))
    moved = np.abs(change[some][:, [column]] - middle)
    moved = np.nanmax(moved) if not np.isnan(moved).all() else 0.0
    return moved > max(10 * spread, _NOISE)


_NOISE = 3e-6  # of rounding, in the logarithm of a weight


def _is_close(a, b):
    return not _differs(a, b).any()


def _differs(a, b):
    """Where two arrays differ, in proportion to the largest number."""
    return ~(np.abs(a - b) <= 1e-3 * np.abs(a).max(initial=1e-12))


def _arrays(output):
    """The arrays of floats that a layer gave."""
    arrays = [_numpy(x) for x in tree.flatten(output) if x is not None]
    return [
        np.nan_to_num(x.astype("float64"))
        for x in arrays
        if x is not None and x.dtype != bool
    ]


def _numpy(x):
    """An array of one or more axes, or None."""
    if not getattr(x, "shape", ()):
        return None
    return np.array(ops.convert_to_numpy(x))


def to_floats(tensor):
    return np.asarray(ops.convert_to_numpy(tensor), "float64")
