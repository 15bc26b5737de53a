"""One run of a model, watched: which layer runs, and where it attends.

Stand-ins take the place of some methods while the model runs. They call the
methods, so the model computes what it always does, and note what they see.
"""

from collections import Counter
from collections.abc import Mapping
import contextlib
import functools
import inspect
from typing import Any, NamedTuple

from d2l_attention.heatmaps.adapters import (
    NO_WEIGHTS,
    adapter_of,
    layout_of,
    on_the_path,
    put,
)
from d2l_attention.heatmaps.layer_names import name_layers
from d2l_attention.heatmaps.selection import select_layers
from d2l_attention.heatmaps.softmaxes import (
    listen,
    looks_like_attention,
    runs_over_features,
)
import keras
from keras import ops, tree

_REASONS = {
    "none": "its mechanism forms no weights for pairs of queries and keys",
    "fused": "no softmax of Keras ran in it, but perhaps a fused operation "
    "or the backend's own softmax",
    "features": "its softmax runs over features, not over keys",
    "loop": "it ran inside a loop of the graph, which its weights cannot "
    "leave; a model with `return_attention_scores` can be asked for them",
    "unknown": "its softmax looks like attention, but it is of no known kind; "
    "`register_attention_adapter` adds kinds",
}


class _Frame(NamedTuple):
    """A call that has not returned yet."""

    path: str
    layer: keras.Layer
    inputs: Any
    softmaxes: list  # what softmaxes gave in it, but not in layers within
    records: int  # how many were made before it
    skips: int


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
        self._all = layers is None
        self._chosen = set(select_layers(self._adapters, layers))
        self._running = []

    @contextlib.contextmanager
    def watch(self):
        """Put the stand-ins in place, and afterwards the methods back."""
        with contextlib.ExitStack() as stack:
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
        return {path: _REASONS[reason] for path, reason in self._skips}

    def _watched_call(self, path, layer):
        original = layer.call

        @functools.wraps(original)
        def call(*args, **kwargs):
            made = len(self.records), len(self._skips)
            frame = _Frame(path, layer, (args, kwargs), [], *made)
            self._running.append(frame)
            try:
                output = original(*args, **kwargs)
            finally:
                self._running.pop()
            self._leave(frame)
            if isinstance(layer, keras.layers.RNN):
                self._join_steps(frame, output)
            elif self._ran_in_a_loop(frame, output):
                self._ask(frame, original)
            return output

        return call

    def _hear(self, weights):
        """A softmax: whose is it, and shall it be changed?"""
        frame = self._owner_of_softmax()
        if frame is None:
            return None
        frame.softmaxes.append(weights)
        if self._change and frame.path in self._chosen:
            return self._changed(frame.path, weights)
        return None

    def _owner_of_softmax(self):
        """The call that a softmax belongs to; None if it is no attention."""
        frames = [
            frame
            for frame in reversed(self._running)
            if not isinstance(frame.layer, _SOFTMAX_LAYERS)
        ]
        for frame, around in zip(frames, [*frames[1:], None], strict=True):
            if not isinstance(frame.layer, keras.layers.Lambda):
                return frame
            if around is None or around.path not in self._adapters:
                return frame
        return None

    def _leave(self, frame):
        """A call returns: what were its softmaxes?"""
        path, layer, inputs, softmaxes = frame[:4]
        adapter = self._adapters.get(path)
        if adapter is None:
            if self._all and _may_hold_attention(layer):
                if any(looks_like_attention(w, inputs) for w in softmaxes):
                    self._skip(path, "unknown")
            return
        within = [name for name, _ in self.records[frame.records :]]
        if path not in self._chosen or path in within:
            return
        if adapter is NO_WEIGHTS:
            return self._skip(path, "none")
        # The softmax of a model, or beside attention, may be a classifier's.
        strict = isinstance(layer, keras.Model) or within
        maps = [
            weights
            for weights in softmaxes
            if looks_like_attention(weights, inputs)
            or not (strict or runs_over_features(weights, inputs))
        ]
        for weights in maps:
            self._record(path, layout_of(layer)(weights))
        if not (maps or within or self._skips[frame.skips :]):
            self._skip(path, "features" if softmaxes else "fused")

    def _join_steps(self, frame, output):
        """The steps of a recurrent layer as rows of one map.

        Keras runs the first step once more, before the others, where it asks
        a step for its dtype.
        """
        steps = tree.flatten(frame.inputs)[0].shape[1]
        found = self._take_records(frame)
        for path in dict.fromkeys(path for path, _ in found):
            rows = [weights for name, weights in found if name == path]
            if any(beside(output, weights) is None for weights in rows):
                self._skip(path, "loop")
                continue
            rows = rows[1:] if len(rows) == steps + 1 else rows
            queries = {weights.shape[2] for weights in rows}
            if len(rows) == steps and queries == {1}:
                rows = [ops.concatenate(rows, axis=2)]
            self.records += [(path, weights) for weights in rows]

    def _ran_in_a_loop(self, frame, output):
        """Whether attention did, of a layer that can be asked for it."""
        found = self.records[frame.records :]
        if not found or self._adapters.get(frame.path) is not None:
            return False
        parameters = inspect.signature(frame.layer.call).parameters
        if "return_attention_scores" not in parameters:
            return False
        again = len({path for path, _ in found}) < len(found)
        return again or any(beside(output, w) is None for _, w in found)

    def _ask(self, frame, call):
        """Replace records by what `return_attention_scores` gives."""
        found = self._take_records(frame)
        args, kwargs = frame.inputs
        if kwargs.get("training"):  # another call would drop other units
            for path in {path for path, _ in found}:
                self._skip(path, "loop")
            return
        kwargs = kwargs | {"return_attention_scores": True}
        _, maps = call(*args, **kwargs)
        self._take_records(frame)
        if not isinstance(maps, Mapping):
            self.records += found
            return
        is_model = frame.path == next(iter(self._layers))
        for name, weights in maps.items():
            self._record(name if is_model else f"{frame.path}/{name}", weights)

    def _take_records(self, frame):
        found = self.records[frame.records :]
        del self.records[frame.records :]
        return found

    def _changed(self, path, weights):
        weights = self._change(weights)
        self.changed.append((path, weights))
        return weights

    def _record(self, path, weights):
        if len(weights.shape) == 3:
            weights = ops.expand_dims(weights, 1)  # one head
        self.records.append((path, weights))

    def _skip(self, path, reason):
        self._skips.append((path, reason))


def beside(outputs, weights):
    """The weights as the outputs are: an array, or a tensor of their graph.

    None if the weights belong to a graph within, such as that of a loop.
    """
    array = _array(weights)
    if array is not None:
        return array
    output = tree.flatten(outputs)[0]
    if _array(output) is not None:
        return None
    same = getattr(weights, "graph", None) is getattr(output, "graph", None)
    return weights if same else None


def _array(tensor):
    try:
        return ops.convert_to_numpy(tensor)
    except Exception:  # each backend has its own for a tensor of a graph
        return None


def _may_hold_attention(layer):
    """Whether a softmax in a layer's own code can be attention's."""
    ours_to_write = (keras.Model, keras.layers.Lambda)
    of_keras = type(layer).__module__.partition(".")[0] == "keras"
    return isinstance(layer, ours_to_write) or not of_keras


_SOFTMAX_LAYERS = (keras.layers.Softmax, keras.layers.Activation)
