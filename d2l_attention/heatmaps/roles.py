"""What the axes of attention weights are, read from a layer's operations.

Each axis of a tensor is a product of pieces. The inputs of a layer say what
theirs are (the batch, positions, or something else), and each operation says
where its axes come from. A softmax gives new pieces, so that its weights are
known wherever they go. Where they meet values, in a sum over keys, their axes
are read:

- what is summed over are the keys;
- what the values have too is the batch, a window or a head;
- what is left are the queries.

An operation without a rule gives pieces of which nothing is known, and weights
that depend on them are not read: no axis is told by its size.
"""

import math
from typing import Any, NamedTuple

from keras import ops

# What a piece can be, the surest last. What a layer stacked may be positions,
# heads or experts; an axis between the first and the last of an input with
# four or more, positions, as of a picture, or heads.
UNKNOWN, OTHER, STACKED, EITHER, POSITION, BATCH = range(6)


class Piece:
    """A factor of an axis.

    A piece of a softmax knows its softmax, whether that ran over it, and the
    piece `of` the scores that it was.
    """

    def __init__(self, size, kind=OTHER, *, of=None, softmax=None, key=False):
        self.size, self.kind = size, kind
        self.of, self.softmax, self.key = of, softmax, key
        self.whole = None  # what it is a part of
        self.where = None  # where in that
        self.joined = []  # what stands one after the other in it
        self.repeats = False  # whether all its parts are the same
        self._parts = {}  # cut twice alike, it gives the same

    def split(self, outer):
        """Two pieces of `outer` and `size // outer`."""
        sizes = outer, self.size // outer
        return [self._part(("split", outer, i), n) for i, n in enumerate(sizes)]

    def cut(self, cut):
        """The part at `range(*cut)`."""
        size = len(range(*cut))
        return self if size == self.size else self._part(("cut", *cut), size)

    def _part(self, where, size):
        if where not in self._parts:
            of = self.of and self.of._part(where, size)
            part = Piece(
                size, self.kind, of=of, softmax=self.softmax, key=self.key
            )
            part.whole, part.where = self, where
            self._parts[where] = part
        return self._parts[where]

    def is_repeat(self):
        return any(piece.repeats for piece in self.origins())

    def origins(self):
        """It, what it is a part of or made of, and what it was in scores."""
        found, waiting = [], [self]
        while waiting:
            piece = waiting.pop()
            found.append(piece)
            before = piece.whole, piece.of, *piece.joined
            waiting += [x for x in before if x is not None]
        return found


class Weights(NamedTuple):
    """What became of a softmax."""

    softmaxes: frozenset  # their numbers
    changes: tuple = ()  # what happened to it, in words
    times: tuple = ()  # (values, weights before) of products with data
    is_sum: bool = False
    is_part: bool = False  # whether some rows, heads or keys were taken
    is_dropped: bool = False
    version: Any = None  # another object for other numbers
    unscaled: Any = None  # these, before dropout scales them
    # As they are shown, and the latest tensor with them: cast, dropped, in
    # another order. Who hears the operations fills it in.
    tensor: Any = None
    axes: Any = None
    latest: Any = None

    def changed(self, word, **others):
        """With other numbers."""
        return self._replace(
            changes=(*self.changes, word),
            version=object(),
            unscaled=None,
            tensor=None,
            axes=None,
            latest=None,
            **others,
        )

    def at(self, tensor, axes):
        """In a tensor that has them, with these axes."""
        if self.tensor is None:
            return self._replace(tensor=tensor, axes=axes)
        return self._replace(latest=tensor)


class Traced:
    """What is known of a tensor."""

    def __init__(self, axes, data=False, weights=None):
        self.axes = axes  # of each, a list of pieces; of size 1, none
        self.data = data  # whether it depends on an input
        self.weights = weights
        self.random = False
        self.is_exp = False
        self.exp_of = None  # what it is the exponential of
        self.sum_of = None  # what it is the sum of, and over which axes
        self.number = None  # of a constant without axes
        self.narrow = None  # what was repeated to it

    @property
    def shape(self):
        return tuple(math.prod(p.size for p in axis) for axis in self.axes)

    def is_same_exp(self, other):
        """Whether both are one exponential, be it computed twice."""
        return self is other or None is not self.exp_of is other.exp_of


class Use(NamedTuple):
    """Weights that meet values, in a sum over keys."""

    place: Any
    weights: Weights
    axes: list
    keys: list  # pieces that are summed over
    others: list  # pieces that are summed over with them, as heads
    shared: list  # pieces that the values have too
    reason: str | None  # why they are not the weights of a map

    def has_queries(self):
        """Whether it attends, though to no positions of the inputs.

        Its keys are its own queries, as of features that are tokens; or its
        queries, positions, see the same values. What a router or a gate
        chooses is another for each.
        """
        if self.reason != _NO_POSITIONS:
            return False
        others = [p for a in self.axes for p in a if p not in self.keys]
        seen = origins_in([self.keys]) - {*self.keys}
        own = [p for p in others if p not in self.shared]
        return any(seen.intersection(p.origins()) for p in others) or any(
            EITHER <= p.kind < BATCH for p in own
        )

    def shown(self):
        """The tensor with the weights, and its axes.

        That is the tensor before a cast, a dropout and another order of its
        axes; or None, if it was dropped and cut, or no one can see it.
        """
        if self.weights.tensor is None:
            return None, self.axes
        mine, theirs = (
            {p for axis in axes for p in axis}
            for axes in (self.axes, self.weights.axes)
        )
        more = {p for p in mine - theirs if not p.is_repeat()}
        if theirs <= mine and not more:
            return self.weights.tensor, self.weights.axes
        if self.weights.is_dropped:
            return None, self.axes
        return self.weights.latest, self.axes


def fresh(shape, kind=OTHER, data=False):
    kinds = [kind] * len(shape) if isinstance(kind, int) else kind
    pieces = zip(shape, kinds, strict=True)
    return Traced([[Piece(n, k)] if n != 1 else [] for n, k in pieces], data)


def shared_axis(options):
    """The pieces of an axis that several tensors share, from the surest."""
    options = [axis for axis in options if axis]
    if not options:
        return []
    return max(
        options,
        key=lambda axis: (
            any(p.softmax is not None for p in axis),
            max(p.kind for p in axis),
            len(axis),
        ),
    )


def _is_tiny(x):
    return x.number is not None and abs(x.number) <= 1e-4


def _is_batch(options):
    kinds = [{p.kind for p in axis} for data, axis in options if data]
    return bool(kinds) and all(BATCH in kind for kind in kinds)


class Tracker:
    """Follows the axes of tensors through operations, and notes what it finds.

    `places` are those of the softmaxes, by their numbers; `kinds` says what
    each ran over, and `lengths` over how many. `uses` are the sums over keys,
    and `lost` says why a softmax could not be followed.
    """

    def __init__(self, place):
        self._place = place  # function: where in a run an operation stands
        self.places = []
        self.kinds = []
        self.lengths = []
        self.uses = []
        self.lost = {}
        self.altered = set()  # numbers of those that were written into
        self.unseen = []  # (place, operation) that may weigh values by itself
        self.consumed = set()  # pieces summed over in a product of inputs
        self.projected = set()  # the same, in a product with parameters

    # Movement

    def reshape(self, x, shape):
        waiting, axes = [p for axis in x.axes for p in axis], []
        for size in shape:
            axis, done = [], 1
            while done < size and waiting:
                piece = waiting.pop(0)
                if size % (done * piece.size) == 0:
                    axis.append(piece)
                elif size % done == 0 and piece.size % (size // done) == 0:
                    piece, rest = piece.split(size // done)
                    axis.append(piece)
                    waiting.insert(0, rest)
                else:
                    return self.unknown([x], shape, "a reshape across its axes")
                done *= piece.size
            axes.append(axis)
        moved = self._moved(x, axes)
        moved.sum_of = x.sum_of
        return moved

    def _moved(self, x, axes, weights=None):
        moved = Traced(axes, x.data, weights or x.weights)
        moved.random, moved.is_exp = x.random, x.is_exp
        return moved

    def transpose(self, x, order):
        return self._moved(x, [x.axes[i] for i in order])

    def cut(self, x, cuts):
        """`cuts` has, for each axis, the arguments of a range, or None."""
        axes, weights = [], x.weights
        for axis, size, cut in zip(x.axes, x.shape, cuts, strict=True):
            if cut is None or len(range(*cut)) == size and cut[2] > 0:
                axes.append(axis)
                continue
            parts = self._cut_axis(axis, cut)
            if parts is None:
                shape = [
                    n if c is None else len(range(*c))
                    for n, c in zip(x.shape, cuts, strict=True)
                ]
                return self.unknown([x], shape, "a slice across its axes")
            axes.append(parts)
            if weights:
                what = "keys kept" if any(p.key for p in axis) else "taken"
                word = f"{len(range(*cut))} of {size} {what}"
                weights = weights.changed(word, is_part=True)
        return self._moved(x, axes, weights)

    def _cut_axis(self, axis, cut):
        size = len(range(*cut))
        if len(axis) == 1:
            return [axis[0].cut(cut)] if size > 1 else []
        inner = math.prod(p.size for p in axis[1:])
        if cut[2] != 1 or cut[0] % inner or size % inner or not size:
            return None
        first = cut[0] // inner
        outer = axis[0].cut((first, first + size // inner, 1))
        return ([outer] if outer.size > 1 else []) + axis[1:]

    def join(self, parts, axis):
        """Tensors one after the other along an axis."""
        axes = self._axes_of_parts(parts, "it is joined with others")
        size = sum(x.shape[axis] for x in parts)
        pieces = [p for x in parts for p in x.axes[axis]]
        kinds = {p.kind for p in pieces} or {OTHER}
        if BATCH in kinds and parts[1:]:  # of heads, say, if all are the same
            first = parts[0].axes[axis]
            if any(x.axes[axis] != first for x in parts):
                kinds.add(UNKNOWN)
            else:
                axes[axis] = [Piece(len(parts), STACKED), *first]
                return Traced(axes, any(x.data for x in parts))
        joined = Piece(size, UNKNOWN if UNKNOWN in kinds else max(kinds))
        joined.joined = pieces
        axes[axis] = [joined] if size > 1 else []
        return Traced(axes, any(x.data for x in parts))

    def stack(self, parts, axis):
        """Tensors beside each other along a new axis."""
        axes = self._axes_of_parts(parts, "it is stacked with others")
        stacked = Piece(len(parts), STACKED)
        axes.insert(axis, [stacked] if parts[1:] else [])
        return Traced(axes, any(x.data for x in parts))

    def _axes_of_parts(self, parts, why):
        for x in parts:
            if x.weights:
                self._lose(x.weights, why)
        each = zip(*(x.axes for x in parts), strict=True)
        return [
            self.common([(x.data, a) for x, a in zip(parts, of, strict=True)])
            for of in each
        ]

    def take(self, rows, ids, axis):
        """Rows at indices: of an embedding, or positions in another order."""
        if rows.weights:
            return None
        taken = ids.axes
        if rows.data:
            kinds = [p.kind for p in rows.axes[axis]]
            kind = UNKNOWN if ids.data else max(kinds, default=OTHER)
            taken = fresh(ids.shape, kind).axes
        axes = rows.axes[:axis] + taken + rows.axes[axis + 1 :]
        return Traced(axes, rows.data or ids.data)

    def repeat(self, x, shape):
        axes = []
        for axis, n in zip(
            [[]] * (len(shape) - len(x.axes)) + x.axes, shape, strict=True
        ):
            times = n // math.prod(p.size for p in axis)
            copies = Piece(times)
            copies.repeats = True
            axes.append([copies, *axis] if times > 1 else axis)
        return self._moved(x, axes)

    def keep(self, x, shape):
        """Axes of the same size stay; another size is of the same kind."""
        if x.weights:
            self._lose(x.weights, "what comes after it is not known")
        axes = []
        for axis, before, n in zip(x.axes, x.shape, shape, strict=True):
            kind = max((p.kind for p in axis), default=OTHER)
            new = [Piece(n, kind)] if n > 1 else []
            axes.append(axis if n == before else new)
        return Traced(axes, x.data)

    def unknown(self, inputs, shape, why):
        """What comes of an operation without a rule."""
        for x in inputs:
            if x.weights:
                self._lose(x.weights, why)
        data = any(x.data for x in inputs)
        return fresh(tuple(shape), UNKNOWN if data else OTHER, data)

    def miss(self, name):
        """An operation may weigh values by itself."""
        self.unseen.append((self._place(), name))

    def _lose(self, weights, why):
        for number in weights.softmaxes:
            self.lost.setdefault(number, why)

    # Arithmetic

    def elementwise(self, inputs, shape, name):
        """`name` is that of the operation."""
        if name in DIVIDES and len(inputs) == 2:
            x, by = inputs
            if x.is_exp and by.sum_of and by.sum_of[0].is_same_exp(x):
                axes = by.sum_of[1]
                if len(axes) == 1:  # a softmax, written out
                    return self.softmax(x, axes[0])
        each = [
            [
                (x.data, x.axes[k])
                for x in inputs
                if (k := i - len(shape) + len(x.axes)) >= 0
                and x.shape[k] == n > 1
            ]
            for i, n in enumerate(shape)
        ]
        batches = [i for i, options in enumerate(each) if _is_batch(options)]
        axes = [
            self.common(options, any(k != i for k in batches))
            for i, options in enumerate(each)
        ]
        made = Traced(axes, any(x.data for x in inputs))
        made.random = any(x.random for x in inputs) and not made.data
        made.weights = self._weights_of(inputs, name)
        keeps = {*PLAIN, *MULTIPLIES, *CHOOSES}
        made.is_exp = name in EXP or (
            name in keeps and any(x.is_exp for x in inputs)
        )
        if name in EXP:
            made.exp_of = inputs[0]
        elif name in PLAIN:
            made.exp_of = inputs[0].exp_of
        if all(math.prod(x.shape) == 1 for x in inputs[1:]):
            made.sum_of = inputs[0].sum_of  # a cast, or an epsilon
        return made

    def common(self, options, has_batch=False):
        """The pieces of an axis of operands, `(depends on inputs, pieces)`.

        `has_batch` says whether another axis is the batch.
        """
        sure = [axis for data, axis in options if data]
        kinds = [{p.kind for p in axis} for axis in sure]
        told = [BATCH in k for k in kinds if k != {UNKNOWN}]
        if any(told) and not all(told):
            if not has_batch:  # who is right?
                size = math.prod(p.size for p in sure[0])
                return [Piece(size, UNKNOWN)]
            pairs = zip(sure, kinds, strict=True)
            sure = [axis for axis, kind in pairs if BATCH not in kind]
            return shared_axis(sure)
        either = any(EITHER in k for k in kinds)
        if sure and either:
            known = [
                a
                for a, k in zip(sure, kinds, strict=True)
                if EITHER not in k and k != {OTHER}
            ]
            return shared_axis(known or sure)
        return shared_axis([axis for _, axis in options])

    def _weights_of(self, inputs, name):
        """What an elementwise operation makes of weights."""
        with_weights = [x for x in inputs if x.weights]
        if not with_weights:
            return None
        weights = with_weights[0].weights
        if weights.times and not self._is_linear(inputs, name):
            for x in with_weights:
                self._lose(x.weights, "what comes of its product is no sum")
            return None
        if len(inputs) == 1:
            if name in PLAIN:
                return weights
            return weights.changed(_WORDS.get(name, name))
        if len(with_weights) > 1:
            numbers = [x.weights.softmaxes for x in with_weights]
            together = frozenset().union(*numbers)
            is_norm = name in DIVIDES and with_weights[1].weights.is_sum
            word = _NORM if is_norm else f"{_WORDS.get(name, name)} of two"
            if len(together) > 1:
                what = _WORDS.get(name, name)
                word = f"{what} of {len(together)} softmaxes"
            is_sum = all(x.weights.is_sum for x in with_weights)
            return weights.changed(word, softmaxes=together, is_sum=is_sum)
        others = [x for x in inputs if not x.weights]
        if any(x.random for x in others) and name in {*MULTIPLIES, *CHOOSES}:
            # Dropout: as it was before. A choice comes after a scale.
            if name in CHOOSES:
                weights = weights.unscaled or weights
            return weights._replace(is_dropped=True, unscaled=None)
        is_number = all(math.prod(x.shape) == 1 for x in others)
        if is_number and not any(x.data for x in others):
            if name in ADDS and all(_is_tiny(x) for x in others):
                return weights
            if name in {*MULTIPLIES, *DIVIDES}:
                return weights.changed("scaled")._replace(unscaled=weights)
        if name in MULTIPLIES and others[0].data:
            pair = others[0], with_weights[0]
            return weights.changed(_BY_INPUTS, times=(*weights.times, pair))
        if name in CHOOSES:
            return weights.changed("mask")
        what = "inputs" if any(x.data for x in others) else "constants"
        word = f"{_WORDS.get(name, name)} with {what}"
        return weights.changed(word)

    def _is_linear(self, inputs, name):
        """Whether a sum over keys can come after it as well as before."""
        others = [x for x in inputs if not x.weights]
        if name in PLAIN or any(x.random for x in others):
            return True
        is_epsilon = bool(others) and all(_is_tiny(x) for x in others)
        if is_epsilon and name in ADDS and name not in LARGEST:
            return True
        return name in {*MULTIPLIES, *DIVIDES}

    def softmax(self, x, axis):
        number = len(self.places)
        axis %= len(x.axes)
        axes = [
            [
                Piece(p.size, p.kind, of=p, softmax=number, key=i == axis)
                for p in pieces
            ]
            for i, pieces in enumerate(x.axes)
        ]
        self.places.append(self._place())
        self.kinds.append(max((p.kind for p in x.axes[axis]), default=OTHER))
        self.lengths.append(x.shape[axis])
        return Traced(
            axes, x.data, Weights(frozenset([number]), version=object())
        )

    def reduce(self, x, over, keepdims, name):
        over = {i % len(x.axes) for i in over}
        axes = [
            [] if i in over else axis
            for i, axis in enumerate(x.axes)
            if keepdims or i not in over
        ]
        made = Traced(axes, x.data)
        if name in SUMS:
            made.sum_of = x, sorted(over)
        if not x.weights:
            self.projected.update(*(x.axes[i] for i in over))
            return made
        weights, gone = x.weights, [p for i in over for p in x.axes[i]]
        is_over_keys = any(p.softmax in weights.softmaxes for p in gone)
        if name in {*SUMS, "Mean"} and weights.times:
            is_one_key = any(x.shape[i] == 1 for i in over)
            if (is_over_keys or is_one_key) and self._use_product(x, over):
                return made
        is_sum = name in SUMS or weights.is_sum
        word = f"{name.lower()} along an axis"
        made.weights = weights.changed(word, is_sum=is_sum)
        return made

    def _use_product(self, x, over):
        """Σ weights · values, of which the product came first."""
        gone = {p for i in over for p in x.axes[i]}
        for values, before in reversed(x.weights.times):
            rank = max(len(values.axes), len(before.axes))
            mine = [[p for p in a if not p.is_repeat()] for a in before.axes]
            axes = [[]] * (rank - len(mine)) + mine
            have = [[]] * (rank - len(values.axes)) + values.axes
            if gone:  # the axes may have another order by now
                pairs = enumerate(zip(axes, have, strict=True))
                over = {i for i, (a, b) in pairs if gone & {*a, *b}}
            kept = [i for i in range(rank) if i not in over]
            if any(have[i] and not axes[i] for i in kept):
                break
        else:
            return False  # a gate, and its sum
        weights, reason = before.weights, None
        if (values, before) != x.weights.times[-1]:
            self._note_use(weights, before.axes, [], [], _AGAIN)
            return True
        if axes[-1] and have[-1] and rank - 1 not in over:
            reason = _FOR_EACH_FEATURE
        shared = [p for i in kept if have[i] for p in axes[i]]
        summed = [(axes[i], have[i]) for i in over]
        self._note_use(weights, before.axes, summed, shared, reason)
        return True

    def contract(self, operands, letters, kept):
        """A product of tensors, summed over what is not `kept`.

        `letters` name the axes of each operand.
        """
        axes_of = {}
        for x, names in zip(operands, letters, strict=True):
            for name, axis in zip(names, x.axes, strict=True):
                axes_of.setdefault(name, []).append((x.data, axis))
        axes = [self.common(axes_of[name]) for name in kept]
        made = Traced(axes, any(x.data for x in operands))
        is_weights = [
            x.weights is not None and not x.weights.is_sum for x in operands
        ]
        if all(is_weights) and len(operands) == 2:
            # What weights have scaled, feature by feature, is a value, and so
            # are shares of features.
            plain = [not self._are_values(x.weights) for x in operands]
            is_weights = plain if any(plain) else is_weights
            if all(x.weights.times for x in operands):
                is_weights = [False, False]  # a product of values
        is_by_inputs = sum(x.data for x in operands) > 1
        for name in axes_of.keys() - {*kept}:
            for data, axis in axes_of[name]:
                if is_by_inputs and len(axis) == 1:
                    self.consumed.update(axis)
                elif data:
                    self.projected.update(axis)
        if not any(is_weights):
            return made
        if len(operands) == 1:
            made.weights = operands[0].weights
            if len(kept) < len(letters[0]):
                made.weights = made.weights.changed("summed")
            return made
        k = is_weights.index(True)
        x, values = operands[k], operands[1 - k]
        mine, theirs = letters[k], letters[1 - k]
        of_values = dict(zip(theirs, values.axes, strict=True))
        pairs = [
            (name, axis, of_values.get(name, []))
            for name, axis in zip(mine, x.axes, strict=True)
        ]
        summed = [pair for name, *pair in pairs if name not in kept]
        shared = [p for n, a, b in pairs if n in kept and b for p in a]
        gone = [p for axis, _ in summed for p in axis]
        is_over_keys = any(self._is_key(p, x.weights) for p in gone)
        is_one_key = not gone and bool(summed)
        weights, reason = x.weights, None
        if all(is_weights):
            reason = _OF_WEIGHTS
            self._note_use(values.weights, values.axes, [], [], reason)
        elif not values.data and not is_over_keys and not is_one_key:
            made.weights = weights.changed("mixed")
            return made
        elif not values.data:
            reason = _OF_PARAMETERS
        self._note_use(weights, x.axes, summed, shared, reason)
        return made

    def _are_values(self, weights):
        kinds = {self.kinds[n] for n in weights.softmaxes}
        return bool(weights.times) or kinds == {OTHER}

    def _is_key(self, piece, weights):
        return piece.key and piece.softmax in weights.softmaxes

    def _note_use(self, weights, axes, summed, shared, reason):
        """`summed` has pairs of the pieces of weights and those of values."""
        over_keys = [
            pair
            for pair in summed
            if any(self._is_key(p, weights) for p in pair[0])
        ]
        gone = [p for own, _ in summed for p in own]
        keys = [p for p in gone if not over_keys or self._is_key(p, weights)]
        others = [p for p in gone if p not in keys]  # heads, summed with them
        values = [p for _, of_values in over_keys or summed for p in of_values]
        kinds = {p.kind for p in [*keys, *values]}
        if UNKNOWN in {p.kind for axis in axes for p in axis}:
            return self._lose(weights, "where its axes come from is not known")
        if reason is None and OTHER in kinds and kinds & {EITHER, STACKED}:
            return self._lose(weights, "which of its axes hold positions")
        if reason is None and BATCH in kinds:
            reason = _FIRST_AXIS
        if reason is None and kinds and max(kinds) == STACKED:
            reason = _STACKED
        if reason is None and kinds == {OTHER}:
            reason = _NO_POSITIONS
        is_whole = over_keys or not keys or _NORM in weights.changes
        if reason is None and not is_whole:
            reason = _OVER_QUERIES
        place = self._place()
        use = Use(place, weights, axes, keys, others, shared, reason)
        self.uses.append(use)


_NO_POSITIONS = "its softmax does not run over positions of its inputs"
_FIRST_AXIS = (
    "its softmax runs over the first axis of its inputs, which is the batch"
)
_STACKED = "its softmax runs over what the layer has stacked"
_FOR_EACH_FEATURE = "each feature of its values has weights of its own"
_OVER_QUERIES = "its softmax does not run over the keys, which it sums over"
_AGAIN = "its weights are multiplied again after they met its values"
_OF_WEIGHTS = "its softmax weighs the weights of another"
_OF_PARAMETERS = "its softmax weighs parameters, not inputs"

_NORM = "divided by its sum"
_BY_INPUTS = "product with inputs"
# What an operation makes of weights, as `AttentionMaps.after_softmax` says it.
_WORDS = {
    "Sub": "difference",
    "AddV2": "sum",
    "Mul": "product",
    "RealDiv": "quotient",
    "Pow": "power",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Square": "square",
}
PLAIN = {"Identity", "Cast", "StopGradient", "CheckNumerics", "PreventGradient"}
EXP = {"Exp"}
MULTIPLIES = {"Mul", "MulNoNan"}
DIVIDES = {"RealDiv", "DivNoNan", "Div"}
LARGEST = {"Maximum"}
ADDS = {"AddV2", "Add", *LARGEST}
SUMS = {"Sum"}
CHOOSES = {"SelectV2", "Select"}


def origins_in(axes):
    return {o for axis in axes for p in axis for o in p.origins()}


class Reader(NamedTuple):
    """Reads a tensor with weights as a map `(B, H, T, S)`."""

    sizes: list  # of the pieces, in the order of the axes
    order: list
    shape: tuple
    query: Piece | None = None  # of the scores
    keys: tuple = ()  # of the scores

    def is_like(self, other):
        """Whether it reads the same weights in the same way."""
        return (self.order, self.shape) == (other.order, other.shape)

    def read(self, weights):
        pieces = ops.transpose(ops.reshape(weights, self.sizes), self.order)
        return ops.reshape(pieces, self.shape)


def reader_of(use, outputs, tracker, is_registered=False):
    """How the weights of a use are read; a sentence if they are no map.

    `outputs` are those of the layer. None, if it cannot be told. What somebody
    registered may attend to other things than positions of its inputs.
    """
    allowed = (_NO_POSITIONS, _OF_PARAMETERS, _STACKED) if is_registered else ()
    if use.reason and use.reason not in allowed:
        return None if use.reason == _STACKED else use.reason
    tensor, axes = use.shown()
    if tensor is None:
        return None
    roles = _roles(use, axes, outputs, tracker)
    if not isinstance(roles, list):
        return roles
    pieces = [p for axis in axes for p in axis]
    names = "batch", "windows", "heads", "queries", "keys"
    groups = [[i for i, r in enumerate(roles) if r == name] for name in names]
    queries, keys = ([pieces[i].of for i in g] for g in groups[-2:])
    batch, windows, *rest = groups
    groups = [batch + windows, *rest]
    return Reader(
        [p.size for p in pieces],
        [i for group in groups for i in group],
        tuple(math.prod(pieces[i].size for i in group) for group in groups),
        queries[0] if len(queries) == 1 else None,
        keys,
    )


def _roles(use, axes, outputs, tracker):
    """The role of each piece of the axes; or as `reader_of` answers."""
    pieces = [p for axis in axes for p in axis]
    keys = {o for p in use.keys for o in p.origins()}

    def is_beside_keys(piece):
        """Whether the keys are another part of what it is a part of."""
        return any(o.whole in keys for o in piece.origins() if o.whole)

    def is_group(piece):
        """Whether it is a part of heads, of which another part is shared."""
        wholes = {o.whole for o in piece.origins()} - {None}
        shared = {o.whole for p in use.shared for o in p.origins()}
        return bool(wholes & shared) and not is_beside_keys(piece)

    left = [p for p in pieces if p not in use.keys and p.kind != BATCH]
    own = [p for p in left if p not in use.shared and p not in use.others]
    queries = [
        p
        for p in own
        if p.kind == POSITION or (p.kind == EITHER and not is_group(p))
    ]
    of_batch = {
        p for axis in axes if BATCH in {q.kind for q in axis} for p in axis
    }
    heads = [p for p in use.shared if p.kind < EITHER and not p.is_repeat()]
    roles = {p: "keys" for p in pieces if p in use.keys}
    roles |= {p: "batch" for p in pieces if p.kind == BATCH and p not in roles}
    roles |= {p: "queries" for p in queries}
    for p in left:
        if p in roles:
            continue
        if p in use.others or (p.kind == EITHER and p not in use.shared):
            roles[p] = "heads"
        elif p in use.shared and is_beside_keys(p):
            roles[p] = "windows"
        elif p in use.shared and p.kind == POSITION:
            if not queries:
                return None  # values for each pair, or for each of a group?
            roles[p] = "windows"
        elif p in use.shared:
            is_beside = heads or p in of_batch
            is_window = p.kind == EITHER and is_beside and queries
            roles[p] = "windows" if is_window else "heads"
    others = [p for p in left if p not in roles]
    # Latent queries are summed over, too, by those that attend to them later.
    later = origins_in(
        [p for p in axis if p not in u.keys]
        for u in tracker.uses
        if u is not use
        for axis in u.axes
    )
    if any(p in tracker.consumed and p not in later for p in others):
        return _FOR_EACH_FEATURE
    # Learned queries, or heads that share their keys.
    given = [x.axes for x in outputs if not x.weights]
    alone = origins_in(axis for x in given for axis in x if len(axis) == 1)
    merged = origins_in(axis for x in given for axis in x if len(axis) > 1)
    merged |= {o for p in tracker.projected for o in p.origins()}
    latent = [p for p in others if p in alone]
    for p in others:
        if queries and p in alone | merged:
            roles[p] = "heads"
        elif not queries and len(latent) == 1 and p in alone | merged:
            roles[p] = "queries" if p in latent else "heads"
        elif not queries and not latent and len(others) == 1 and p in merged:
            roles[p] = "heads"
        else:
            return None
    for axis in axes:  # of one axis, a part is not a head, and another a query
        if {p for p in axis if p in queries} and {*axis} & {*others}:
            return None
    return [roles[p] for p in pieces]


def join_chunks(readers):
    """Which maps are of queries that were taken in chunks, with the same keys.

    What comes back is a list of lists of places in `readers`, one for each
    map. Chunks are joined if there is one of each.
    """
    chunks = {}
    for i, reader in enumerate(readers):
        piece = reader.query
        if piece is not None and piece.where and piece.where[0] == "cut":
            chunks.setdefault((piece.whole, tuple(reader.keys)), []).append(i)
    joined = {}
    for (whole, _), places in chunks.items():
        cuts = [readers[i].query.where[1:] for i in places]
        ends = [0, *(end for _, end, _ in cuts)]
        starts = [*(start for start, _, _ in cuts), whole.size]
        if starts == ends and {step for *_, step in cuts} == {1}:
            joined[places[0]] = places
    inside = {i for places in joined.values() for i in places[1:]}
    every = range(len(readers))
    return [joined.get(i, [i]) for i in every if i not in inside]
