"""What the operations of a layer, as they run, say of the axes of tensors."""

import contextlib

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

    def __init__(self, tracker):
        self.tracker = tracker
        self.is_heard = False  # whether operations are told now
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
        key = self.key(tensor)
        if key not in self._known:
            self._known[key] = fresh(tuple(tensor.shape))
            self._known[key].number = self.number(tensor)
        return self._known[key]

    def put(self, tensor, traced):
        self._known[self.key(tensor)] = traced

    def traced(self, nest):
        """What is known of the tensors in the output of a layer."""
        tensors = [x for x in tree.flatten(nest) if self.is_tensor(x)]
        return [self.of(x) for x in tensors]

    def enter(self, inputs):
        """The inputs of a layer say what their axes are, where none did."""
        tensors = [
            x
            for x in tree.flatten(inputs)
            if self.is_tensor(x) and len(x.shape) and self.kind(x) != "bool"
        ]
        floats = [x for x in tensors if self.kind(x) == "float"]
        deepest = max((len(x.shape) for x in floats), default=0)
        batch = next((x.shape[0] for x in floats if len(x.shape) == deepest), 0)
        have_ids = any(
            len(x.shape) > 1 for x in tensors if self.kind(x) == "int"
        )
        for x in floats if deepest > 2 else tensors:
            rank = len(x.shape)
            middle = POSITION if rank == 3 else EITHER
            kinds = [BATCH, *[middle] * (rank - 2), OTHER][:rank]
            if self.kind(x) == "int":
                kinds = [BATCH, *[POSITION] * (rank - 1)]
            elif deepest <= 2 and not have_ids:
                kinds = [POSITION, OTHER][:rank]  # without a batch
            elif rank < deepest == 3 or deepest > 2 and x.shape[0] != batch:
                kinds[0] = UNKNOWN  # a mask (T, S), a bias of heads (H, T, S)
            self.put(x, self._entered(x, kinds))

    def _entered(self, x, kinds):
        known = self.of(x)
        new = fresh(tuple(x.shape), kinds, data=True)
        if not known.data:
            return new
        if len(kinds) != 3 or known.weights:
            return known
        axes = list(known.axes)
        for i, kind in enumerate(kinds[:2]):
            if not any(p.kind >= min(kind, EITHER) for p in axes[i]):
                axes[i] = new.axes[i]
        return Traced(axes, True)

    def note(self, name, inputs, outputs, rule, source=None):
        """An operation: `rule` says what comes of it, or None.

        Args:
            name: Str, in a reason why something could not be followed.
            inputs, outputs: Lists of tensors.
            rule: Function without arguments, a `Traced` for each output.
            source: "constant" or "random", if it reads no numbers.
        """
        try:
            traced = [self.of(x) for x in inputs]
            if source or not any(x.data or x.weights for x in traced):
                found = [fresh(tuple(x.shape)) for x in outputs]
                is_random = not source and any(x.random for x in traced)
                for x in found:
                    x.random = source == "random" or is_random
            else:
                found = rule()
        except Exception:  # a rule that does not fit this operation after all
            found = None
        if found is None:
            if any(word in name.lower() for word in _WEIGHING):
                self.tracker.miss(name)
            traced = [self.of(x) for x in inputs]
            shapes = [tuple(x.shape) for x in outputs]
            found = [self.tracker.unknown(traced, s, name) for s in shapes]
        for x, traced in zip(outputs, found, strict=True):
            if traced.weights:
                traced.weights = traced.weights.at(x, traced.axes)
            self.put(x, traced)
