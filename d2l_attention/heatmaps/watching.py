"""One run of a model, watched: which layer runs, and where it attends.

Stand-ins take the place of some methods while the model runs. They call the
methods, so the model computes what it always does, and note what they see.
"""

from collections import Counter
from collections.abc import Mapping
import contextlib
import functools
import inspect
import threading
from typing import Any, NamedTuple

from d2l_attention.heatmaps.adapters import (
    NO_WEIGHTS,
    adapter_of,
    on_the_path,
    put,
)
from d2l_attention.heatmaps.layer_names import name_layers
from d2l_attention.heatmaps.layouts import (
    looks_like_attention,
    may_be_attention,
    runs_over_features,
    to_map,
)
from d2l_attention.heatmaps.records import REASONS, beside, join_steps
from d2l_attention.heatmaps.selection import fits, select_layers
from d2l_attention.heatmaps.softmaxes import listen, may_hold_attention
import keras
from keras import ops


class _Frame(NamedTuple):
    """A call that has not returned yet."""

    path: str
    layer: keras.Layer
    inputs: Any
    softmaxes: list  # what softmaxes gave in it, but not in layers within
    num_records: int  # how many were made before it
    num_skips: int


class Run:
    """What is seen while a model runs once.

    Attributes:
        records: List of (path, weights) in the order of the calls.
        changed: List of (path, weights) that `change` gave.
    """

    def __init__(self, model, layers=None, change=None):
        self.records = []
        self.changed = []
        self._skips = []
        self._change = change
        self._layers = name_layers(model)
        self._adapters = {
            path: adapter
            for path, layer in self._layers.items()
            if (adapter := adapter_of(layer)) is not None
        }
        self._wanted = layers
        self._chosen = set(select_layers(self._adapters, layers))
        self._model = model
        self._running = []
        self._num_heard = 0
        self._thread = threading.get_ident()

    @contextlib.contextmanager
    def watch(self):
        """Put the stand-ins in place, and afterwards the methods back.

        One run at a time: all threads of a process share a model's layers
        and the softmax of Keras.
        """
        with _ONE_AT_A_TIME, contextlib.ExitStack() as stack:
            for path, layer in self._layers.items():
                put(stack, layer, "call", self._watched_call(path, layer))
                adapter = self._adapters.get(path)
                if path in self._chosen and callable(adapter):
                    if self._change:
                        change = functools.partial(self._changed, path)
                        adapter = on_the_path(adapter, change)
                    record = functools.partial(self._record, path)
                    for stand_in in adapter(layer, record):
                        put(stack, *stand_in)
            stack.enter_context(listen(self._hear))
            yield

    def maps(self, outputs):
        """Weights by path; the second call of a layer is `path#2`."""
        maps, calls = {}, Counter()
        for path, weights in self.records:
            weights = beside(outputs, weights)
            if weights is None:
                self._skip(path, "loop")
                continue
            calls[path] += 1
            again = f"#{calls[path]}" if calls[path] > 1 else ""
            maps[path + again] = weights
        return maps

    def skipped(self):
        """Dict of path to the reason why there are no weights."""
        return {path: REASONS[reason] for path, reason in self._skips}

    def _watched_call(self, path, layer):
        original = layer.call

        @functools.wraps(original)
        def call(*args, **kwargs):
            if self._is_elsewhere():
                return original(*args, **kwargs)
            num_heard = self._num_heard
            made = len(self.records), len(self._skips)
            frame = _Frame(path, layer, (args, kwargs), [], *made)
            self._running.append(frame)
            try:
                output = original(*args, **kwargs)
            finally:
                self._running.pop()
            self._leave(frame)
            if isinstance(layer, keras.layers.Softmax):
                if self._num_heard > num_heard:
                    self._replace_heard(output)
            elif isinstance(layer, keras.layers.RNN):
                self._join_steps(frame, output)
            elif looped := self._looped(frame, output):
                self._ask(frame, original, looped)
            return output

        return call

    def _hear(self, weights):
        """A softmax: whose is it, and shall it be changed?"""
        frame = self._owner_of_softmax()
        if frame is None or self._is_elsewhere():
            return
        self._num_heard += 1
        frame.softmaxes.append(weights)
        if self._change and frame.path in self._chosen:
            return self._changed(frame.path, weights)

    def _replace_heard(self, weights):
        """A `Softmax` layer sets masked weights to 0 after its softmax."""
        self._owner_of_softmax().softmaxes[-1] = weights

    def _owner_of_softmax(self):
        """The innermost call whose own code a softmax stands in, or None.

        A softmax in a `Lambda` within attention belongs to the attention.
        """
        frames = [
            frame
            for frame in reversed(self._running)
            if not isinstance(frame.layer, _SOFTMAX_LAYERS)
        ]
        if not frames:
            return None
        innermost, *others = frames
        if isinstance(innermost.layer, keras.layers.Lambda) and others:
            if others[0].path in self._adapters:
                return others[0]
        return innermost

    def _leave(self, frame):
        """A call returns: what were its softmaxes?"""
        path, layer, inputs, softmaxes = frame[:4]
        adapter = self._adapters.get(path)
        if adapter is None:
            if self._wanted is None and may_hold_attention(layer):
                if any(may_be_attention(w, inputs) for w in softmaxes):
                    self._skip(path, "unknown")
            return
        within = [name for name, _ in self.records[frame.num_records :]]
        if path not in self._chosen or path in within:
            return
        if adapter is NO_WEIGHTS:
            return self._skip(path, "none")
        # The softmax of a model, or beside attention, may be a classifier's.
        strict = isinstance(layer, keras.Model) or within
        maps = [
            to_map(layer, weights, inputs)
            for weights in softmaxes
            if looks_like_attention(weights, inputs)
            or not (strict or runs_over_features(weights, inputs))
        ]
        for weights in maps:
            if weights is None:
                self._skip(path, "axes")
            else:
                self._record(path, weights)
        if maps or self._skips[frame.num_skips :]:
            return
        if any(may_be_attention(w, inputs) for w in softmaxes):
            self._skip(path, "unknown")
        elif not within:
            self._skip(path, "features" if softmaxes else "fused")

    def _join_steps(self, frame, output):
        """The steps of a recurrent layer as rows of one map."""
        found = self._take_records(frame)
        args, kwargs = frame.inputs
        for path in dict.fromkeys(path for path, _ in found):
            rows = [weights for name, weights in found if name == path]
            inside = [w for w in rows if beside(output, w) is None]
            if inside:  # a loop of the graph; the first step is not a map
                self.records.append((path, inside[0]))
                continue
            steps = (args[0] if args else kwargs["sequences"]).shape[1]
            rows = join_steps(rows, steps, frame.layer.go_backwards)
            self.records += [(path, weights) for weights in rows]

    def _looped(self, frame, output):
        """Paths that ran in a loop of a layer that can be asked for them."""
        found = self.records[frame.num_records :]
        if not found or self._adapters.get(frame.path) is not None:
            return set()
        parameters = inspect.signature(frame.layer.call).parameters
        if "return_attention_scores" not in parameters:
            return set()
        calls = Counter(path for path, _ in found)
        return {
            path
            for path, weights in found
            if beside(output, weights) is None
            or (calls[path] > 1 and weights.shape[2] == 1)  # query by query
        }

    def _ask(self, frame, call, looped):
        """Put what `return_attention_scores` gives in the place of steps."""
        found = self._take_records(frame)
        kept = [record for record in found if record[0] not in looped]
        args, kwargs = frame.inputs
        if kwargs.get("training"):
            self.records += kept
            for path in sorted(looped):
                self._skip(path, "training")
            return
        self._running.append(frame)
        try:
            result = call(*args, **kwargs | {"return_attention_scores": True})
        finally:
            self._running.pop()
        self._take_records(frame)
        maps = result[-1] if isinstance(result, tuple) else None
        if not isinstance(maps, Mapping):
            self.records += found
            return
        is_model = frame.layer is self._model
        named = {
            name if is_model else f"{frame.path}/{name}": weights
            for name, weights in maps.items()
        }
        self.records += [record for record in kept if record[0] not in named]
        named = {p: w for p, w in named.items() if fits(p, self._wanted)}
        for path, weights in named.items():
            self._record(path, weights)
        for path in () if named else sorted(looped):
            self._skip(path, "loop")

    def _take_records(self, frame):
        found = self.records[frame.num_records :]
        del self.records[frame.num_records :]
        return found

    def _is_elsewhere(self):
        """Whether another thread uses the model meanwhile."""
        return threading.get_ident() != self._thread

    def _changed(self, path, weights):
        if self._is_elsewhere():
            return weights
        weights = self._change(weights)
        self.changed.append((path, weights))
        return weights

    def _record(self, path, weights):
        if self._is_elsewhere():
            return
        if len(weights.shape) == 3:
            weights = ops.expand_dims(weights, 1)  # one head
        self.records.append((path, weights))

    def _skip(self, path, reason):
        self._skips.append((path, reason))


_ONE_AT_A_TIME = threading.RLock()
_SOFTMAX_LAYERS = (keras.layers.Softmax, keras.layers.Activation)
