"""Whether what was guessed of a layer's softmax is true: it is run again.

Of a layer whose class is not known, the axes of its softmax are guessed from
shapes, which can agree by chance. The map is shown if it behaves as one:

- The map of a sentence stays when the other sentences of its batch change.
- When one position changes, the scores of one column change, in the same
  place, and no others; and when a query changes, so does its row, alone. A
  softmax over classes, experts or features does not do that.
- Each weight counts for the output of its row. If not, the weights are cut,
  masked, or divided by their sum after the softmax.

What happens to the weights otherwise (a mixture of heads, a square) is not
seen: the map shows what the softmax gave.
"""

from collections.abc import Callable
import itertools
import math
from typing import NamedTuple

from keras import ops, tree
import numpy as np

TINY = 1e-6  # weights below it are not told from 0
_NOISE = 3e-6  # of rounding, in the logarithm of a weight
_LOUDNESS = 0.0, 0.3, 2.0  # queries that are all alike show little
_MOST_RUNS = 8  # to see whether each weight counts


class Reading(NamedTuple):
    """A way to read a softmax `(…, T, S)` as a map `(B, H, T, S)`."""

    read: Callable
    sink: int | None = None  # the column that is no key
    rows: int = -2  # the axis of queries, before it is read


def true_place(readings, inputs, again):
    """The place of the first reading that is true, or None.

    Args:
        readings: List of `Reading`.
        inputs: `(args, kwargs)` of the layer.
        again: Function `(inputs, change=None)` that runs the layer once more,
            without dropout, and gives the softmax and the output. `change`
            makes of the weights what the layer uses in their place.
    """
    weights, _ = again(inputs)
    # A mask of two axes is `(T, S)` or `(B, S)`, and a tensor may have two
    # axes that are as long as the keys.
    options = _LOUDNESS, (False, True), (True, False)
    for place, reading in enumerate(readings):
        plain = _to_floats(reading.read(weights))
        for option in itertools.product(*options):
            try:
                if _Probe(inputs, plain, *option).confirms(reading, again):
                    return place
            except _Unlike:
                break
            except Exception:  # the layer's own, about inputs not its own
                continue
    return None


class _Unlike(Exception):
    """The weights are not what the output is made of."""


class _Probe:
    """Inputs for further runs, in which noise or one position is changed.

    Of several sentences, all become the first, which itself stays as it is.
    """

    def __init__(self, inputs, plain, loudness, is_flat, first):
        self.inputs, self.plain = inputs, plain
        self.loudness, self.is_flat, self.first = loudness, is_flat, first
        self.batch, _, self.num_queries, self.num_keys = plain.shape
        self.arrays = [_numpy(x) for x in tree.flatten(inputs)]
        numbers = [x for x in self.arrays if _is_number(x)]
        self.have_batch = any(x.ndim > 2 for x in numbers)
        self.places = {}  # number of positions → which array → their axes
        for i, x in enumerate(self.arrays):
            for axes in self._axes_of_positions(x, bool(numbers)):
                length = math.prod(x.shape[axis] for axis in axes)
                self.places.setdefault(length, {}).setdefault(i, axes)

    def _axes_of_positions(self, x, have_numbers):
        """Axes that may run over positions, alone or together."""
        if x is None or x.dtype == bool or x.ndim < 2:
            return []
        if not _is_number(x):  # ids, or a mask of ints
            return [] if have_numbers or x.max() < 2 else [(1,)]
        if x.ndim == 2:
            return [] if self.have_batch else [(0,)]
        between = range(1, x.ndim - 1)
        alone = [(axis,) for axis in between]
        alone = alone if self.first else alone[::-1]
        return [*alone, tuple(between)]

    def make(self, loudness, moved=(), position=None, strength=2.0):
        """The inputs; in the arrays `moved`, one position is another."""
        made = tree.flatten(self.inputs)
        for i, x in enumerate(self.arrays):
            # What all sentences share would change the first one, too.
            if x is None or len(x) != self.batch > 1:
                continue
            x = x.copy()
            if self.batch > 1 and (x.ndim > 2 or self.is_flat):
                x[:] = x[:1]
            others = x[1:] if self.batch > 1 else x
            rng = np.random.default_rng(i)
            if _is_number(x) and (x.ndim > 2 or not self.have_batch):
                others += loudness * _noise(others, rng)
            if i in moved:
                _move(others, moved[i], position, strength, rng)
            made[i] = ops.convert_to_tensor(x)
        return tree.pack_sequence_as(self.inputs, made)

    def confirms(self, reading, again):
        """Whether maps of these inputs behave as attention."""
        length, offsets = self._keys()
        if length is None:
            return False

        def run(inputs):
            return _to_floats(reading.read(again(inputs)[0]))

        before = run(self.make(self.loudness))
        if not self._first_stays(self.plain, before):
            return False
        which = self.places[length]
        if self.num_keys != length:  # one of several
            chosen = list(which)[0 if self.first else -1]
            which = {chosen: which[chosen]}
        for position in self._positions(before, length):
            after = run(self.make(self.loudness, which, position))
            if not self._first_stays(before, after):
                return False
            row = position if self.num_queries == length else None
            pair = before[-1], after[-1]
            offsets = [n for n in offsets if follows(*pair, position + n, row)]
            if not offsets:
                return False
        if not self._rows_follow(before, which, run):
            return False
        if not self._counts(reading, again):
            raise _Unlike
        return True

    def _first_stays(self, before, after):
        return self.batch == 1 or _is_close(before[0], after[0])

    def _keys(self):
        """Positions of an input, and where among the keys they may begin."""
        if self.num_keys in self.places:
            return self.num_keys, [0]
        # Keys may be the positions of two inputs, one after the other.
        for length in self.places:
            if self.num_keys - length in self.places:
                return length, [0, self.num_keys - length]
        # Or each is made of several positions: any column may follow.
        if self.num_queries in self.places and self.num_keys > 3:
            n = self.num_queries
            return n, [*range(1 - n, self.num_keys)]
        return None, []

    def _positions(self, weights, length):
        """Two positions whose columns show what their scores do."""
        # A weight of 1 does not.
        mass = (weights[-1] * (1 - weights[-1])).sum(0)
        if self.num_queries == self.num_keys:
            mass = mass * (1 - np.eye(self.num_keys))
        best = mass.sum(0)[:length].argsort()[::-1]
        number = 2 if self.num_keys in self.places else 1
        return [int(position) for position in best[:number]]

    def _rows_follow(self, before, which, run):
        """Whether a query that changes changes its row, and no other."""
        queries = self.places.get(self.num_queries)
        if queries is None or self.num_queries == 1:
            return True
        spread = before[-1].max(-1) - before[-1].min(-1)
        seen = ((before[-1] > TINY).sum(-1) * (spread > _NOISE)).max(0)
        is_made = self._keys()[0] == self.num_queries > self.num_keys
        if seen.max() < 3 or is_made:
            return True  # no row shows it
        position = int(seen.argmax())  # of a row that is not even
        for strength in (0.2, 2.0):
            moved = self.make(self.loudness, queries, position, strength)
            pair = before[-1], run(moved)[-1]
            if set(queries) & set(which):  # keys change, too
                columns = [
                    position,
                    position + self.num_keys - self.num_queries,
                ]
                pair = [np.delete(x, columns, axis=-1) for x in pair]
            change = _share_moved(*pair).max((0, 2))
            others = np.delete(change, position).max(initial=0.0)
            if change[position] > max(10 * others, _NOISE):
                return True
        return False

    def _counts(self, reading, again):
        """Whether each weight counts, for the output of its row alone."""
        inputs = self.make(max(self.loudness, 0.3))
        raw, output = again(inputs)
        before = _arrays(output)

        def run(change):
            return _arrays(again(inputs, change)[1])

        def run_without(cells):
            """With a number at some cells that no output overlooks."""
            cells = np.moveaxis(cells, -2, reading.rows)
            return run(lambda w: ops.where(cells, ops.cast(-1e3, w.dtype), w))

        if all(map(_is_close, before, run(lambda w: 2 * w))):
            return False  # they are divided by their sum
        weights = np.moveaxis(_to_floats(raw), reading.rows, -2)
        seen = weights > TINY
        num_rows, num_columns = weights.shape[-2:]
        rows, columns = np.indices((num_rows, num_columns))
        if reading.sink is not None:
            sink = columns == reading.sink % num_columns
            if not all(map(_is_close, before, run_without(seen & sink))):
                return False  # it has a value: it is a key
            seen = seen & ~sink
        tried = np.zeros((num_rows, num_columns), bool)
        counted = tried.copy()
        shifts = {*np.linspace(0, num_columns - 1, _MOST_RUNS).astype(int)}
        # Every other row, to see that the others stay.
        for shift, odd in itertools.product(shifts, {0, min(1, num_rows - 1)}):
            is_hit = rows % 2 == odd
            is_hit &= columns == (rows + shift) % num_columns
            cells = seen & is_hit
            if not cells.any():
                continue
            shape = self.batch, num_rows
            differs = _rows_that_differ(before, run_without(cells), shape)
            has_rows = differs.shape[1] == num_rows
            if has_rows and differs[:, ~is_hit.any(1)].any():
                return False
            cells = cells.any(tuple(range(cells.ndim - 2)))
            tried |= cells
            counted |= cells & differs.any(0)[:, None]
        by_column = counted.any(0)[tried.any(0)]
        return by_column.all() and counted.sum() >= 0.9 * tried.sum()


def _rows_that_differ(before, after, shape):
    """Which rows of the output differ, `(B, T)`; or `(1, 1)`, if it does."""
    differs = [_differs(a, b) for a, b in zip(before, after, strict=True)]
    for array in differs:
        if array.shape[:2] == shape and shape[1] > 1:
            return array.reshape(*shape, -1).any(-1)
    return np.full((1, 1), any(array.any() for array in differs))


def follows(before, after, column, row=None):
    """Whether the scores of one column changed, and of no other.

    Up to a number for each row, a score is the logarithm of its weight. The
    row whose query changed is left out.
    """
    if before.shape[-1] == 1:
        return True
    if not 0 <= column < before.shape[-1]:
        return False
    at = np.arange(before.shape[1])
    rows = at != row
    if before.shape[1] == before.shape[2]:
        rows &= at != column
    change = _log_ratio(before[:, rows], after[:, rows])
    others = np.delete(change, column, axis=-1)
    some = ~np.isnan(others).all(-1)
    if not some.any():
        return False
    middle = np.nanmedian(others[some], axis=-1)
    spread = np.nanmax(np.abs(others[some] - middle[..., None]))
    moved = np.abs(change[some][:, column] - middle)
    return np.nan_to_num(moved).max() > max(10 * spread, _NOISE)


def _log_ratio(before, after):
    seen = (before > TINY) & (after > TINY)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(seen, np.log(after / before), np.nan)


def _share_moved(before, after):
    """How much the weights move, as shares of a row that has any."""
    least = 1e-3
    sums = [weights.sum(-1, keepdims=True) for weights in (before, after)]
    shares = [
        weights / np.maximum(total, least)
        for weights, total in zip((before, after), sums, strict=True)
    ]
    return np.abs(shares[1] - shares[0]) * (np.minimum(*sums) > least)


def _is_number(x):
    """Whether it holds features, no ids and no mask."""
    return x is not None and x.dtype.kind not in "biu"


def _noise(x, rng):
    scale = x.astype("float32").std() + 0.1
    return (scale * rng.normal(size=x.shape)).astype(x.dtype)


def _move(x, axes, position, strength, rng):
    """Put something else in one position of all sentences."""
    place = [slice(None)] * x.ndim
    where = np.unravel_index(position, [x.shape[axis] for axis in axes])
    for axis, index in zip(axes, where, strict=True):
        place[axis] = int(index)
    place = tuple(place)
    if _is_number(x):
        x[place] += strength * _noise(x, rng)[place]
    else:
        ids = np.unique(x)
        x[place] = ids[(np.searchsorted(ids, x[place]) + 1) % len(ids)]


def _is_close(a, b):
    return not _differs(a, b).any()


def _differs(a, b):
    """Where two arrays differ, in proportion to the largest number."""
    return ~(np.abs(a - b) <= 1e-3 * np.abs(a).max(initial=1e-12))


def _arrays(output):
    """The arrays of floats that a layer gave."""
    arrays = [_numpy(x) for x in tree.flatten(output)]
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


def _to_floats(tensor):
    return np.asarray(ops.convert_to_numpy(tensor), "float64")
