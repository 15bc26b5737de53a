"""What the operations of a layer, as they run, say of the axes of tensors."""

import contextlib
import itertools
import math

from d2l_attention.heatmaps.roles import (
    BATCH,
    EITHER,
    OTHER,
    POSITION,
    UNKNOWN,
    Traced,
    fresh,
)
from keras import tree

_WEIGHING = "softmax", "scaled_dot_product", "logsumexp"  # operations


class Listener:
    """Notes what is known of each tensor that operations give.

    A backend says how tensors are told apart (`key`) and how its operations
    are heard (`hearing`); each is a call of `note`. Of all tensors, only the
    weights of a softmax are kept alive.
    """

    ELEMENTWISE = frozenset()  # operations on numbers in the same place
    RULES = {}  # of others, the method that has their rule, if not their own

    def __init__(self, tracker):
        self.tracker = tracker
        self.is_heard = False  # whether operations are told now
        self.added = None  # what is added to tensors, by their places
        self._known = {}
        self._is_paused = False

    @contextlib.contextmanager
    def listening(self):
        """Hear each operation."""
        with self.hearing() as is_heard:
            self.is_heard = is_heard
            try:
                yield
            finally:
                self.is_heard = False
        self._known.clear()

    @contextlib.contextmanager
    def paused(self):
        before, self._is_paused = self._is_paused, True
        try:
            yield
        finally:
            self._is_paused = before

    def of(self, tensor):
        """What is known of a tensor.

        One that was never seen depends on no input.
        """
        if (known := self._known.get(self.key(tensor))) is None:
            known = fresh(tuple(getattr(tensor, "shape", ())))
            known.number = self.number(tensor)
            self.put(tensor, known)
        return known

    def place_of(self, tensor):
        """The number of the operation that gave it; None if none are counted.

        On JAX, the same operation has the same number in another run.
        """

    def put(self, tensor, traced):
        self._known[self.key(tensor)] = traced

    def traced(self, nest):
        """What is known of the tensors in the output of a layer."""
        tensors = [x for x in tree.flatten(nest) if self.is_tensor(x)]
        return [self.of(x) for x in tensors]

    def enter(self, inputs, afresh=False, with_ids=False):
        """The inputs of a layer say what their axes are.

        Within another, those say it of which nothing is known, unless `afresh`.
        Integers `(B, T)` beside features are a mask, or, `with_ids`, tokens.
        """
        tensors = [
            x
            for x in tree.flatten(inputs)
            if self.is_tensor(x) and len(x.shape) and self.kind(x) != "bool"
        ]
        if self.is_heard:  # learned tokens may be inputs, a mask is none
            data = [x for x in tensors if self.of(x).data]
            first = {(len(x.shape), x.shape[0]) for x in data}
            tensors = [
                x
                for x in tensors
                if self.of(x).data
                or not data
                or afresh
                and (len(x.shape), x.shape[0]) in first
            ]
        floats = [x for x in tensors if self.kind(x) == "float"]
        deepest = max((len(x.shape) for x in floats), default=0)
        batch = next((x.shape[0] for x in floats if len(x.shape) == deepest), 0)
        have_ids = any(
            len(x.shape) > 1 for x in tensors if self.kind(x) == "int"
        )
        for x in tensors:
            rank = len(x.shape)
            if deepest > 2 and self.kind(x) == "int":
                if not with_ids or rank != 2:
                    continue
            middle = POSITION if rank == 3 else EITHER
            kinds = [BATCH, *[middle] * (rank - 2), OTHER][:rank]
            if self.kind(x) == "int":
                kinds = [BATCH, *[POSITION] * (rank - 1)]
            elif deepest <= 2 and not have_ids:
                kinds = [POSITION, OTHER][:rank]  # without a batch
            elif rank < deepest == 3 or deepest > 2 and x.shape[0] != batch:
                kinds[0] = UNKNOWN  # a mask (T, S), a bias of heads (H, T, S)
            self.put(x, self._entered(x, kinds, afresh))

    def _entered(self, x, kinds, afresh):
        known = self.of(x)
        new = fresh(tuple(x.shape), kinds, data=True)
        if afresh or not known.data:
            return new
        if known.weights:
            return known
        axes = list(known.axes)
        for i in range(len(kinds) - 1):
            if UNKNOWN in {p.kind for p in axes[i]}:
                axes[i] = new.axes[i]
        return Traced(axes, True)

    def put_recurrent(self, inputs, output):
        """A recurrent layer has the positions of its sequence, whatever it ran.

        That may be a loop of the backend, or steps that are stacked.
        """
        tensors = filter(self.is_tensor, tree.flatten(inputs))
        sequence = next((x for x in tensors if len(x.shape) > 2), None)
        if sequence is None or not self.of(sequence).data:
            return
        axes = self.of(sequence).axes
        for x in filter(self.is_tensor, tree.flatten(output)):
            is_same = len(x.shape) > 2 and x.shape[1] == sequence.shape[1]
            kept = axes[: 2 if is_same else 1]
            new = fresh(tuple(x.shape[len(kept) :])).axes
            self.put(x, Traced([*kept, *new], data=True))

    def note(self, name, inputs, outputs, rule, source=None):
        """An operation: `rule` says what comes of it, or None.

        Args:
            name: Str, in a reason why something could not be followed.
            inputs, outputs: Lists of tensors.
            rule: Function without arguments, a `Traced` for each output.
            source: "constant" or "random", if it reads no numbers.
        """
        inputs = [self.of(x) for x in inputs]
        shapes = [tuple(x.shape) for x in outputs]
        found = self.trace(name, inputs, shapes, rule, source)
        for x, traced in zip(outputs, found, strict=True):
            if traced.weights:
                traced.weights = traced.weights.at(x, traced.axes)
            self.put(x, traced)

    def trace(self, name, inputs, shapes, rule, source=None):
        """What is known of outputs of some shapes, by what is of inputs."""
        try:
            if source or not any(x.data or x.weights for x in inputs):
                found = [fresh(shape) for shape in shapes]
                is_random = not source and any(x.random for x in inputs)
                for x in found:
                    x.random = source == "random" or is_random
            else:
                found = rule()
        except Exception:  # a rule that does not fit this operation after all
            found = None
        if found is not None:
            return found
        if any(word in name.lower() for word in _WEIGHING):
            self.tracker.miss(name)
        return [self.tracker.unknown(inputs, s, name) for s in shapes]

    def by_rule(self, name, *args):
        """What comes of an operation, by the method with its rule, or None."""
        rule = self.RULES.get(name, name)
        rule = "elementwise" if name in self.ELEMENTWISE else rule
        rule = getattr(self, f"_{rule}", None)
        made = rule and rule(name, *args)
        return [made] if isinstance(made, Traced) else made

    def part(self, x, axis, start, size):
        """What is known of a part of a tensor along an axis."""
        cuts = [None] * len(x.axes)
        cuts[axis] = start, start + size, 1
        return self.tracker.cut(x, cuts)

    def parts(self, x, axis, sizes):
        """The same, of parts that stand one after the other."""
        ends = itertools.accumulate(sizes)
        pairs = zip(ends, sizes, strict=True)
        return [self.part(x, axis, end - size, size) for end, size in pairs]

    def written(self, cache, rows):
        """A cache, of which a part is written anew."""
        axes = []
        for mine, new in zip(cache.axes, rows.axes, strict=True):
            size = [math.prod(p.size for p in axis) for axis in (mine, new)]
            if size[0] == size[1]:
                options = [(cache.data, mine), (True, new)]
                axes.append(self.tracker.common(options))
            else:
                kinds = [p.kind for p in [*mine, *new]]
                axes.append(fresh((size[0],), max(kinds)).axes[0])
        return Traced(axes, True)
