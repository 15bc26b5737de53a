"""Whether what was guessed of a layer's softmax is true: it is run again.

Where the operations of a layer do not tell the axes of its softmax (`roles`),
they are guessed from shapes, which can agree by chance. The map is shown if it
behaves as one:

- The map of a sentence stays when the other sentences of its batch change.
- When one position changes, the scores of one column change, in the same
  place, and no others; and when a query changes, so does its row, alone. A
  softmax over classes, experts or features does not do that.
- Each weight counts for the output of its row. If not, the weights are cut,
  masked, or divided by their sum after the softmax. A whole row may count for
  nothing, as that of a query of padding: then it is shown as 0.

What happens to the weights otherwise (a mixture of heads, a square) is not
seen: the map shows what the softmax gave.
"""

from collections.abc import Callable
import itertools
import math
from typing import NamedTuple

from d2l_attention._checks import as_array
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
    """The place of the first reading that is true, and its idle rows; or None.

    A row is idle, in a bool array `(B, T)` or None, if its weights change
    nothing that the layer gives.

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
        plain = as_array(reading.read(weights), "float64")
        for option in itertools.product(*options):
            try:
                probe = _Probe(inputs, plain, *option)
                if probe.confirms(reading, again):
                    return place, probe.idle
            except _Unlike:
                break
            except Exception:  # the layer's own, about inputs not its own
                continue
    return None


def without_rows(reading, idle):
    """The reading that gives 0 in idle rows `(B, T)`."""
    keep = ~idle[:, None, :, None]
    return reading._replace(
        read=lambda weights: ops.where(keep, reading.read(weights), 0)
    )


def masks(arrays):
    """What is 0 in inputs, as bytes: calls that are alike may differ in it."""
    arrays = [x for x in arrays if x is not None and x.dtype.kind not in "OSU"]
    return tuple(
        (x != 0 if _is_mask(x) else x.any(-1)).tobytes() for x in arrays
    )


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
        self.idle = None
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
        if x is None or x.dtype == bool or x.ndim < 2 or self._is_shared(x):
            return []
        if not _is_number(x):  # ids, or a mask of ints
            return [] if have_numbers or x.max() < 2 else [(1,)]
        if x.ndim == 2:
            return [] if self.have_batch else [(0,)]
        between = range(1, x.ndim - 1)
        alone = [(axis,) for axis in between]
        alone = alone if self.first else alone[::-1]
        return [*alone, tuple(between)]

    def _is_shared(self, x):
        """Whether all sentences have it: moved, it would change the first."""
        return len(x) != self.batch > 1

    def make(self, loudness, moved=(), position=None, strength=2.0):
        """The inputs; in the arrays `moved`, one position is another."""
        made = tree.flatten(self.inputs)
        for i, x in enumerate(self.arrays):
            if x is None or self._is_shared(x):
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

        def run(inputs):
            return as_array(reading.read(again(inputs)[0]), "float64")

        before = run(self.make(self.loudness))
        if not self._first_stays(self.plain, before):
            return False
        for length, offsets in self._keys():
            which = self.places[length]
            if self.num_keys != length:  # one of several
                chosen = list(which)[0 if self.first else -1]
                which = {chosen: which[chosen]}
            if not self._columns_follow(before, which, length, offsets, run):
                continue
            if not self._rows_follow(before, which, length, run):
                continue
            if not self._counts(reading, again):
                raise _Unlike
            return True
        return False

    def _columns_follow(self, before, which, length, offsets, run):
        """Whether one column changes with one position, and no other."""
        b = self._clearest(before)
        missing = 2 if self.num_keys in self.places else 1
        for position in self._positions(before[b], length):
            after = run(self.make(self.loudness, which, position))
            if not self._first_stays(before, after):
                return False
            if np.array_equal(before, after):
                continue  # a cache, at this place, is written anew
            row = position if self.num_queries == length else None
            pair = before[b], after[b]
            offsets = [n for n in offsets if follows(*pair, position + n, row)]
            if not offsets:
                return False
            missing -= 1
            if not missing:
                return True
        return False

    def _first_stays(self, before, after):
        return self.batch == 1 or is_close(before[0], after[0])

    def _keys(self):
        """Positions of inputs, and where among the keys they may begin."""
        n, total = self.num_queries, self.num_keys
        if total in self.places:
            yield total, [0]
        # Keys may be the positions of two inputs, one after the other, of
        # which the longer is no query that changes its own row.
        for length in sorted(self.places, reverse=True):
            if total - length in self.places:
                yield length, [0, total - length]
                break
        # Or each is made of several positions: any column may follow. Or they
        # are a cache that is written anew.
        if n in self.places and n != total > 3:
            yield n, [*range(1 - n, total)]

    def _clearest(self, weights):
        """The sentence whose rows best show what scores do.

        In a window of a picture, say, each position may see itself alone.
        """
        first = min(1, self.batch - 1)
        return first + int(_mass(weights)[first:].sum((1, 2)).argmax())

    def _positions(self, weights, length):
        """The positions whose columns best show what their scores do."""
        best = _mass(weights).sum(0)[:length].argsort()[::-1]
        return [int(position) for position in best[:4]]

    def _rows_follow(self, before, which, length, run):
        """Whether a query that changes changes its row, and no other."""
        queries = self.places.get(self.num_queries)
        if queries is None or self.num_queries == 1:
            return True
        b = self._clearest(before)
        spread = before[b].max(-1) - before[b].min(-1)
        seen = ((before[b] > TINY).sum(-1) * (spread > _NOISE)).max(0)
        is_made = length == self.num_queries > self.num_keys
        if seen.max() < 3 or is_made:
            return True  # no row shows it
        position = int(seen.argmax())  # of a row that is not even
        for strength in (0.2, 2.0):
            moved = self.make(self.loudness, queries, position, strength)
            pair = before[b], run(moved)[b]
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
        """Whether each weight counts, for the output of its row alone.

        Each sentence is asked, since each has a mask of its own.
        """
        tried, counted = self._try_cells(reading, again, self.inputs)
        empty = tried.any(-1) & ~counted.any(-1)
        # In an idle row, no key counts, though each does in other rows.
        idle = empty & (counted.any(1)[:, None] | ~tried).all(-1)
        missing = tried & ~counted & ~idle[..., None]
        if missing.any():
            # A position of zeros may be a mask, which ends with the zeros.
            inputs = self._without_zeros(1e-9)
            masked = missing & self._try_cells(reading, again, inputs)[1]
            if (masked & ~empty[..., None]).any():
                return False
            idle |= masked.any(-1)
        if missing.any() or not tried.any():
            # Or its value is 0, and any weight of it counts for nothing.
            inputs = self._without_zeros(max(self.loudness, 0.3))
            others = self._try_cells(reading, again, inputs)
            tried = tried if tried.any() else others[0]
            counted |= others[1] & ~idle[..., None]
            idle |= tried.any(-1) & ~counted.any(-1)
        tried &= ~idle[..., None]
        counted &= tried
        if not counted.any() or counted.sum() < 0.9 * tried.sum():
            return False
        if idle.any() and self._change_nothing(idle, reading, again):
            self.idle = idle
        return (counted.any(1) == tried.any(1)).all()

    def _without_zeros(self, loudness):
        """The inputs, with noise in what is no mask."""
        made = tree.flatten(self.inputs)
        for i, x in enumerate(self.arrays):
            if _is_number(x) and (x.ndim > 2 or not self.have_batch):
                if not _is_mask(x):
                    noise = _noise(x, np.random.default_rng(i))
                    x = (x + loudness * noise).astype(x.dtype)
                    made[i] = ops.convert_to_tensor(x)
        return tree.pack_sequence_as(self.inputs, made)

    def _try_cells(self, reading, again, inputs):
        """Which cells were tried, and which count: bools `(B, T, S)`."""
        raw, output = again(inputs)
        before = float_arrays(output)
        places = _places(raw, reading)

        def run_without(cells):
            """With a number at some cells that no output overlooks."""
            cells = np.moveaxis(cells, -2, reading.rows)
            return float_arrays(again(inputs, _put_at(cells, -1e3))[1])

        tried = np.zeros((self.batch, *places.shape[2:]), bool)
        counted = tried.copy()
        twice = float_arrays(again(inputs, lambda w: 2 * w)[1])
        if all(map(is_close, before, twice)):
            return tried, counted  # they are divided by their sum
        weights = np.moveaxis(as_array(raw, "float64"), reading.rows, -2)
        seen = weights > TINY
        num_rows, num_columns = weights.shape[-2:]
        rows, columns = np.indices((num_rows, num_columns))
        if reading.sink is not None:
            sink = columns == reading.sink % num_columns
            if not all(map(is_close, before, run_without(seen & sink))):
                raise _Unlike  # it has a value: it is a key
            seen = seen & ~sink
        shape = self.batch, num_rows
        has_rows = any(array.shape[:2] == shape for array in before)
        shifts = {*np.linspace(0, num_columns - 1, _MOST_RUNS).astype(int)}
        # Every other row, to see that the others stay; or one column, where
        # the output has no rows.
        parts = {0, min(1, num_rows - 1)} if has_rows else {0}
        for shift, part in itertools.product(shifts, parts):
            is_hit = columns == (rows * has_rows + shift) % num_columns
            is_hit &= (rows % 2 == part) | (not has_rows)
            cells = seen & is_hit
            if not cells.any():
                continue
            moved = _rows_that_differ(before, run_without(cells), shape)
            if has_rows and moved[:, ~is_hit.any(1)].any():
                raise _Unlike
            cells = np.moveaxis(cells, -2, reading.rows).ravel()[places].any(1)
            tried |= cells
            counted |= cells & moved[..., None]
        return tried, counted

    def _change_nothing(self, idle, reading, again):
        """Whether rows may have any weights: not a bit of the output moves.

        It does where the layer gives its weights.
        """
        raw, output = again(self.inputs)
        places = _places(raw, reading)
        cells = np.zeros(math.prod(raw.shape), bool)
        cells[places.swapaxes(1, 2)[idle]] = True
        cells = cells.reshape(raw.shape)
        return all(
            np.array_equal(a, b)
            for number in (-1e3, 1e3)
            for a, b in zip(
                float_arrays(output),
                float_arrays(again(self.inputs, _put_at(cells, number))[1]),
                strict=True,
            )
        )


def _places(raw, reading):
    """Where in a softmax each cell `(B, H, T, S)` of its map stands."""
    places = np.arange(math.prod(raw.shape), dtype="int32").reshape(raw.shape)
    return ops.convert_to_numpy(reading.read(ops.convert_to_tensor(places)))


def _put_at(cells, number):
    return lambda w: ops.where(cells, ops.cast(number, w.dtype), w)


def _mass(weights):
    """How well the scores of cells `(…, H, T, S)` show in their weights."""
    mass = (weights * (1 - weights)).sum(-3)  # a weight of 1 does not
    if mass.shape[-2] == mass.shape[-1]:
        mass = mass * (1 - np.eye(mass.shape[-1]))
    return mass


def _rows_that_differ(before, after, shape):
    """Which rows of the output differ, `(B, T)`; or sentences, `(B, 1)`.

    Or `(1, 1)`, if it does, where an output has another first axis.
    """
    where = [differs(a, b) for a, b in zip(before, after, strict=True)]
    for array in where:
        if array.shape[:2] == shape:
            return array.reshape(*shape, -1).any(-1)
    if all(array.shape[:1] == shape[:1] for array in where):
        by_sentence = [array.reshape(len(array), -1) for array in where]
        return np.concatenate(by_sentence, axis=1).any(-1, keepdims=True)
    return np.full((1, 1), any(array.any() for array in where))


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


def _is_mask(x):
    """Whether it may be one: of two axes, or of two different numbers."""
    if x.ndim < 3 or not x.size:
        return True
    low, high = x.min(), x.max()
    return low != high and bool(((x == low) | (x == high)).all())


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


def is_close(a, b):
    return not differs(a, b).any()


def differs(a, b, share=1e-3, axis=None):
    """Where arrays differ by a share of the largest number along axes."""
    kind = np.result_type(a.dtype, b.dtype, "float32")
    a, b = a.astype(kind), b.astype(kind)
    largest = np.abs(a).max(axis, keepdims=True, initial=1e-12)
    return ~(np.abs(a - b) <= share * largest)


def float_arrays(output):
    """The arrays of floats that a layer gave."""
    arrays = [_numpy(x) for x in tree.flatten(output)]
    return [
        np.nan_to_num(x.astype("float64"))
        for x in arrays
        if x is not None and x.dtype != bool
    ]


def _numpy(x):
    """An array of one or more axes, or None."""
    if not len(getattr(x, "shape", ())):
        return None
    return np.array(ops.convert_to_numpy(x))
