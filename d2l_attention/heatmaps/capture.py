"""The attention weights of a Keras model that was not made to show them."""

from collections import Counter, deque
from collections.abc import Mapping
import contextlib
import functools
import importlib
import inspect
import io
import json
import threading
from typing import Any, NamedTuple
import warnings
import zipfile

from d2l_attention._atomic import write_whole
from d2l_attention._checks import as_array
from d2l_attention.heatmaps.adapters import (
    BY_NAME,
    BY_SOFTMAX,
    NoWeights,
    adapter_of,
    on_the_path,
    put,
    weights_by_identity,
)
from d2l_attention.heatmaps.generation import Links, join_steps
from d2l_attention.heatmaps.roles import (
    OTHER,
    UNKNOWN,
    Reader,
    Tracker,
    join_chunks,
    reader_of,
)
from d2l_attention.heatmaps.selection import fits, select_layers
from d2l_attention.heatmaps.softmaxes import (
    as_rows,
    listen,
    may_be_attention,
    may_hold_attention,
    package_of,
    softmaxes_of_functional,
    to_heads,
)
import keras
from keras import ops, tree
import numpy as np


class AttentionMaps(Mapping):
    """Weights `(B, H, T, S)` by the path of their layer.

    A path holds the names on the way from the model to the layer, such as
    `decoder/block_1/cross_attention`. The second call of a layer has the
    path `path#2`, the third `path#3`; but where a model generates, the steps
    of a layer are one map, NaN where a token did not exist yet. A second map
    of one call has the path `path, softmax 2`, after its place in the layer.
    The maps stand in the order of the calls. Their values are NumPy arrays,
    through which no gradient flows (`get_attention_gradients` has them); inside
    a traced function they are tensors of the graph.

    Args:
        maps: Mapping or pairs of path and weights.
        skipped: Dict of path to the reason why there are no weights.
        num_samples: Int, how many inputs the model was called on. A layer that
            cuts them into windows has more in its batch.
        after_softmax: Dict of path to what a layer makes of its softmax before
            it weighs values, as "difference of 2 softmaxes". Its map is what
            it weighs with.
    """

    _TOLD = "skipped", "num_samples", "after_softmax"  # besides the maps

    def __init__(self, maps=(), skipped=(), num_samples=None, after_softmax=()):
        self._maps = dict(maps)
        self.after_softmax = dict(after_softmax)
        self.skipped = dict(skipped)
        self.num_samples = num_samples

    def __getitem__(self, path):
        if path not in self._maps:
            raise KeyError(
                f"There is no map {path!r}. There are: {', '.join(self._maps)}."
            )
        return self._maps[path]

    def __iter__(self):
        return iter(self._maps)

    def __len__(self):
        return len(self._maps)

    def __repr__(self):
        shapes = {path: tuple(w.shape) for path, w in self._maps.items()}
        more = "".join(
            f", {name}={value}"
            for name in ("after_softmax", "skipped")
            if (value := getattr(self, name))
        )
        return f"AttentionMaps({shapes}{more})"

    def select(self, layers):
        """The maps of a list of paths, or of a pattern like `"decoder/*"`."""
        chosen = select_layers(self._maps, layers)
        chosen = {path: self._maps[path] for path in chosen}
        after = {p: w for p, w in self.after_softmax.items() if p in chosen}
        return AttentionMaps(
            chosen, num_samples=self.num_samples, after_softmax=after
        )

    def save(self, path):
        """Write a `.npz` file; it replaces an old file only when complete.

        NumPy's files know no bfloat16: it is written as float32, which holds
        each of its values.
        """
        told = {name: getattr(self, name) for name in self._TOLD}
        content = io.BytesIO()
        # Not `np.savez_compressed`, to which some names are arguments.
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, weights in self._maps.items():
                with archive.open(f"{name}.npy", "w") as file:
                    np.save(file, as_array(weights), allow_pickle=False)
            archive.writestr("told.json", json.dumps(told))
        write_whole(path, content.getvalue())

    @classmethod
    def load(cls, path):
        """Read a file that `save` wrote."""
        with np.load(path) as file:
            names = [name for name in file.files if name != "told.json"]
            told = json.loads(file["told.json"]) if names != file.files else {}
            return cls({name: file[name] for name in names}, **told)


def get_attention_weights(model, *args, layers=None, run=None, **kwargs):
    """Call a model; return its outputs and its attention weights.

    The outputs equal `model(*args, **kwargs)` bit for bit: the model computes
    them as always, and the weights are only noted. This works eagerly and
    inside a `tf.function`, with and without XLA; there the maps hold tensors,
    which the function may return.

    A map is what a layer weighs its values with. The layers of this package
    and of `keras.layers`, with their subclasses, say it themselves. Of any
    other layer, and of a functional model of `Dot`, `Softmax` and the like,
    the operations tell it: each axis is followed from the inputs to the sum
    over keys, so the map is that of the very softmax that was used, whatever
    its class is called; `after_softmax` says what it is if it is no plain
    softmax. This needs an eager call. `register_attention_adapter` adds what
    is read otherwise, and is believed. A model whose attention runs inside a
    loop of its own is called once more with `return_attention_scores`, if it
    has that.

    While a model generates, it calls its layers once a token. These calls are
    joined: row t of the map `(B, H, T, S)` is what the t-th token looked at
    when it was read. A decoder that takes the steps of a model with `start`
    and `step`, as `GreedyDecoder` does, is called as any model. Another way
    to generate, such as keras-hub's `generate` or a loop of your own, is
    given by `run`, and must run eagerly. Calls are joined if each goes on
    with the keys of the one before. Those of beams, which change their order,
    or of several texts, do not: a warning names them, and each has its own
    map. Sentences that have ended have rows until the last one ends.

    Weights are those before dropout. A layer of this package that forms none,
    such as `FlashAttention`, is read if `layers` names it: it is run again
    with the identity matrix for its values, up to 1,024 keys. What else looks
    like attention and cannot be read is named in a warning and in
    `maps.skipped`, as one that runs inside a loop or a compiled function, or
    whose operations have no rule.

    Args:
        model: A `keras.Model` or layer.
        *args: Inputs of the model, as it is called.
        layers: A list of paths of layers, or a pattern like `"encoder/*"`.
            All layers by default.
        run: Function that is called on the inputs in the place of `model`,
            which it calls; `model` must have been called before.
        **kwargs: Other arguments of the call, such as `training=True`.

    Returns:
        The outputs, and `AttentionMaps`.

    Raises:
        TypeError: If `model` is no model or layer of Keras.
        ValueError: If there are no weights to be had, no layer matches, or
            `run` is given for a model that is not built.

    Warns:
        UserWarning: If a layer that looks like attention has no weights, or
            the calls of a layer are not joined while a model generates.

    Example:
        >>> layer = keras.layers.MultiHeadAttention(2, 4, name="attention")
        >>> x = np.ones((1, 3, 8), "float32")
        >>> _, maps = get_attention_weights(layer, x, x)
        >>> maps["attention"].shape
        (1, 2, 3, 3)
    """
    outputs, maps, warning = _capture(model, args, kwargs, layers, run)
    if not maps:
        raise ValueError(warning)
    if warning:
        warnings.warn(warning, stacklevel=2)
    return outputs, maps


def _capture(model, args, kwargs, layers, call=None):
    """Outputs and maps, and what there is to say about those not read."""
    if call is None:
        build(model, args, kwargs)
    elif not getattr(model, "built", False):
        raise ValueError(
            f"{model!r} has no layers to watch before it is called the first "
            "time. Call it once before `run`."
        )
    run = Run(model, layers)
    with run.watch():
        outputs = (call or model)(*args, **kwargs)
    num_samples = _num_samples(args, kwargs)
    maps = run.maps(outputs, num_samples, is_generation=call is not None)
    maps = AttentionMaps(maps, run.skipped(), num_samples, run.after_softmax)
    warning = "".join(
        f"\n  {path}: {why}" for path, why in maps.skipped.items()
    )
    if not maps:
        warning = (
            f"{type(model).__name__} {model.name!r} has no attention whose "
            f"weights can be read.{warning or _HINT}"
        )
    elif warning:
        warning = f"There are no weights of{warning}"
    if run.notes:
        warning += f"\nNot joined:{''.join(run.notes)}"
    return outputs, maps, warning.lstrip()


def _num_samples(args, kwargs):
    """The length of the first axis of the inputs, if all have the same."""
    shapes = [getattr(x, "shape", ()) for x in tree.flatten((args, kwargs))]
    lengths = {shape[0] for shape in shapes if len(shape) > 1}
    return lengths.pop() if len(lengths) == 1 else None


def build(model, args, kwargs):
    """Call a model that has no weights yet, without training it."""
    if not isinstance(model, keras.Layer):
        raise TypeError(
            "`model` must be a model or a layer of Keras 3; wrap a function in "
            "`keras.layers.Lambda` and its layers in a `keras.Model`, or give "
            "it as `run=` beside the model that it calls. "
            f"Received: {model!r}."
        )
    if not model.built:
        training = {"training": False} if "training" in kwargs else {}
        model(*args, **kwargs | training)


_HINT = (
    " No softmax over positions was seen that weighs values; "
    "`register_attention_adapter` adds what is read otherwise."
)


class AttentionRecorder(keras.callbacks.Callback):
    """Records the weights for fixed inputs while a model trains.

    After training, `frames` holds one `AttentionMaps` for each recorded
    epoch, and `epochs` the numbers of these epochs. The recorder draws
    nothing random and changes no loss. What cannot be read is named in one
    warning, and a frame may be empty: training goes on.

    Args:
        inputs: Inputs of the model.
        layers: A list of paths of layers, or a pattern like `"encoder/*"`.
            All layers by default.
        every: Positive int, epochs from one frame to the next.
    """

    def __init__(self, inputs, *, layers=None, every=1):
        super().__init__()
        if every < 1:
            raise ValueError(f"`every` must be positive. Received: {every}.")
        self.inputs = inputs
        self.layers = layers
        self.every = every
        self._has_warned = False
        self.epochs = []
        self.frames = []

    def on_epoch_end(self, epoch, logs=None):
        if epoch % self.every == 0:
            _, maps, warning = _capture(
                self.model, (self.inputs,), {}, self.layers
            )
            if warning and not self._has_warned:
                warnings.warn(warning, stacklevel=2)
                self._has_warned = True
            self.epochs.append(epoch)
            self.frames.append(maps)


class _Frame(NamedTuple):
    """A call that has not returned yet."""

    path: str
    layer: keras.Layer
    inputs: Any
    softmaxes: list  # what softmaxes gave in it, but not in layers within
    num_records: int  # how many were made before it
    num_skips: int
    changed: list  # what its softmaxes gave, changed


class _Place(NamedTuple):
    """Where an operation stands in a run."""

    frame: _Frame | None  # its owner
    num_records: int  # how many were made before it


@contextlib.contextmanager
def _without_trace(layers, to_run):
    """What runs of layers change in them is put back.

    Attributes are kept of `layers`, variables of those that are to run.
    """
    before = [(layer, dict(vars(layer))) for layer in layers]
    # Runs append to copies: TensorFlow cannot save a list that was cut.
    for layer, attributes in before:
        for name, value in attributes.items():
            if isinstance(value, list):
                object.__setattr__(layer, name, [*value])
    variables = {id(v): v for x in to_run for v in x.non_trainable_variables}
    variables = [
        (v, np.array(ops.convert_to_numpy(v))) for v in variables.values()
    ]
    try:
        yield
    finally:
        for variable, value in variables:
            variable.assign(value)
        for layer, attributes in before:
            for name, value in attributes.items():
                if vars(layer).get(name) is not value:
                    object.__setattr__(layer, name, value)
            for name in vars(layer).keys() - attributes.keys():
                object.__delattr__(layer, name)


class Run:
    """What is seen while a model runs once.

    Stand-ins take the place of some methods while the model runs. They call
    the methods, so the model computes what it always does, and note what they
    see: `records` are the (path, weights) in the order of the calls, `changed`
    those that `change` gave, as they were heard, and `readers` read them.

    On JAX, `changed` has the places of operations too, by which `added` says
    what is added to what they give.
    """

    def __init__(self, model, layers=None, change=None, added=None):
        self.records = []
        self.changed = []  # (path, weights, place or None)
        self._skips = []
        self._change = change
        self._layers = _name_layers(model)
        self._adapters = {
            path: adapter
            for path, layer in self._layers.items()
            if (adapter := adapter_of(layer)) is not None
        }
        # Others that can hold attention in their own code, of no known kind.
        softmaxes = [
            part
            for layer in self._layers.values()
            for part in softmaxes_of_functional(layer)
        ]
        self._softmaxes = {  # layers that are a softmax, for their model
            path for path, layer in self._layers.items() if layer in softmaxes
        }
        self._others = self._softmaxes | {
            path
            for path, layer in self._layers.items()
            if path not in self._adapters and may_hold_attention(layer)
        }
        self._wanted = layers
        others = [path for path in self._layers if path in self._others]
        self._chosen = set(select_layers([*self._adapters, *others], layers))
        self._model = model
        self.readers = {}  # path → how each of its softmaxes is read
        self._unread_steps = set()  # paths
        self.after_softmax = {}  # name of a map → what happened to its weights
        self._words = []  # pairs of a map and what happened to it
        self._running = []
        self._called = set()  # paths
        self._runs_again = False  # a layer, to be read by identity
        self._num_heard = 0
        self._num_steps = 0  # of a model that writes token by token
        self._num_starts = 0
        self._in_protocol = False
        self._before_steps = []  # weights of its start
        self._state = None  # what it returned at last
        self._is_broken = False  # whether a step did not go on with that
        self._num_model_calls = 0
        self._links = {}  # path → those between its calls
        self.notes = []  # what there is to say of calls that are not joined
        self._thread = threading.get_ident()
        self._followed = {
            path
            for path in self._chosen
            if path in self._others
            or isinstance(self._adapters[path], str)
            and package_of(self._layers[path]) != "keras"
        }
        # Numbers of softmaxes that the model gives, or that were named.
        self._given = set()
        self._listener = self._listener_of_operations()
        if self._listener is not None:
            self._listener.added = added

    def _listener_of_operations(self):
        """What hears the operations of layers that are followed, or None."""
        backend = keras.backend.backend()
        if not self._followed or backend not in _LISTENERS:
            return None
        module, name = _LISTENERS[backend]
        module = importlib.import_module(f"d2l_attention.heatmaps.{module}")
        return getattr(module, name)(Tracker(self._place))

    @contextlib.contextmanager
    def watch(self):
        """Put the stand-ins in place, and afterwards the methods back.

        One run at a time: all threads of a process share a model's layers
        and the softmax of Keras.
        """
        with _ONE_AT_A_TIME, contextlib.ExitStack() as stack:
            for path, layer in self._layers.items():
                put(stack, layer, "call", self._watched_call(path, layer))
                if all(callable(getattr(layer, n, None)) for n in _PROTOCOL):
                    for name in _PROTOCOL:
                        method = getattr(layer, name)
                        method = self._watched_protocol(name, method)
                        put(stack, layer, name, method)
                adapter = self._adapters.get(path)
                if path in self._chosen and callable(adapter):
                    if self._change:
                        change = functools.partial(self._changed, path)
                        adapter = on_the_path(adapter, change)
                    record = functools.partial(self._record, path)
                    for stand_in in adapter(layer, record):
                        put(stack, *stand_in)
                    if callable(step := getattr(layer, "step", None)):
                        put(
                            stack, layer, "step", self._watched_step(path, step)
                        )
            stack.enter_context(
                listen(self._hear, self._watch, self._formed, self._aside)
            )
            yield
        self._name_unseen()

    def maps(self, outputs, num_samples=None, is_generation=False):
        """Weights by path; the second call of a layer is `path#2`."""
        calls, before, order, words = {}, Counter(), [], {}
        for path, weights in self.records:
            array = beside(outputs, weights)
            if array is None:
                self._skip(path, _REASONS["loop"])
                continue
            before[path] += any(weights is w for w in self._before_steps)
            calls.setdefault(path, []).append(array)
            told = [said for w, said in self._words if w is weights]
            words.setdefault(path, []).append("".join(told))
            order.append(path)
        if is_generation or self._num_steps:
            calls |= self._joined(calls, before, num_samples)
        maps, seen = {}, Counter()
        for path in order:
            seen[path] += 1
            if seen[path] <= len(calls[path]):
                again = f"#{seen[path]}" if seen[path] > 1 else ""
                maps[path + again] = calls[path][seen[path] - 1]
                if told := words[path][seen[path] - 1]:
                    self.after_softmax[path + again] = told
        return maps

    def _joined(self, calls, before, num_samples):
        """The maps that are joined, and a note of those that are not."""
        several = {
            path: maps
            for path, maps in calls.items()
            if len(maps) > 1 and all(isinstance(w, np.ndarray) for w in maps)
        }
        joined = {}
        if not self._is_broken and self._num_starts < 2:  # one text each
            fit = {
                path: maps
                for path, maps in several.items()
                if num_samples in (None, len(maps[0]))
            }
            links = {p: getattr(self._links.get(p), "made", []) for p in fit}
            joined = join_steps(
                fit, links, before, self._num_steps, self._num_model_calls
            )
        for path in [path for path in several if path not in joined]:
            links = self._links.get(path)
            why = "do not go on with one another's keys, as where several "
            why += "beams or texts are written"
            if links is None or len(links.made) != len(several[path]):
                why = "have weights without keys, by which calls are joined"
            self.notes.append(
                f"\n  {path}: its {len(several[path])} calls {why}, so each "
                f"has a map of its own, {path}#2 and so on"
            )
        return joined

    def skipped(self):
        """Dict of path to the reason why there are no weights."""
        return dict(self._skips)

    def _watched_call(self, path, layer):
        original = layer.call

        @functools.wraps(original)
        def call(*args, **kwargs):
            if self._is_elsewhere():
                return original(*args, **kwargs)
            if self._runs_again and isinstance(layer, _DROPPING):
                return args[0] if args else kwargs["inputs"]
            self._called.add(path)
            self._num_model_calls += layer is self._model
            num_heard = self._num_heard
            if path in self._followed and isinstance(layer, keras.Model):
                args, kwargs = tree.map_structure(_as_tensor, (args, kwargs))
            made = len(self.records), len(self._skips)
            frame = _Frame(path, layer, (args, kwargs), [], *made, [])
            self._running.append(frame)
            with self._following(frame):
                try:
                    output = original(*args, **kwargs)
                finally:
                    self._running.pop()
                if not self._runs_again:
                    with self._aside():
                        self._leave(frame, original, output)
            if isinstance(layer, keras.layers.Softmax):
                if self._num_heard > num_heard and path not in self._others:
                    self._replace_heard(layer, output)
            elif isinstance(layer, keras.layers.RNN):
                self._join_recurrent_steps(frame, output)
                if self._listener is not None and self._listener.is_heard:
                    self._listener.put_recurrent(frame.inputs, output)
            elif looped := self._looped(frame, output):
                self._ask(frame, original, looped)
            return output

        return call

    @contextlib.contextmanager
    def _following(self, frame):
        """Hear the operations of a layer whose weights they tell."""
        listener = self._listener
        if listener is None or self._runs_again:
            yield
        elif listener.is_heard:  # within another
            if frame.path in self._followed:
                # A layer of a known kind has inputs of the usual axes.
                listener.enter(frame.inputs, afresh=self._is_outermost(frame))
            yield
        elif frame.path in self._followed:
            listener.enter(frame.inputs, with_ids=frame.path in self._others)
            with listener.listening():
                yield
        else:
            yield

    def _is_outermost(self, frame):
        """Whether it is a layer of a known kind, and within no other."""
        known = [f for f in self._running if f.path in self._adapters]
        layers = [f for f in known if not isinstance(f.layer, keras.Model)]
        return layers == [frame]

    def _is_followed(self, frame):
        listener = self._listener
        is_heard = listener is not None and listener.is_heard
        return is_heard and frame.path in self._followed

    def _formed(self, weights, value, output):
        """Weights `(B, H, T, S)` were formed beside a fused operation."""
        listener = self._listener
        if listener is not None and listener.is_heard:
            traced = [listener.of(weights), listener.of(value)]
            letters = ["bhts", "bshv"]
            made = listener.tracker.contract(traced, letters, "bthv")
            listener.put(output, made)

    def _aside(self):
        """While an operation runs of which `_formed` tells."""
        listener = self._listener
        return (
            contextlib.nullcontext() if listener is None else listener.paused()
        )

    def _owner(self):
        """The call of a layer whose attention an operation may be, or None.

        That is the innermost of a known kind, to which belongs what its parts
        compute; or else of a layer that is not Keras's.
        """
        running = self._running[::-1]
        known = [frame for frame in running if frame.path in self._adapters]
        layers = [f for f in known if not isinstance(f.layer, keras.Model)]
        others = [f for f in running if f in known or f.path in self._others]
        return next(iter(layers or others), None)

    def _place(self):
        return _Place(self._owner(), len(self.records))

    def _watched_step(self, path, original):
        """A step of a layer on a cache, which may show no weights."""

        @functools.wraps(original)
        def step(*args, **kwargs):
            made = len(self.records)
            result = original(*args, **kwargs)
            if all(name != path for name, _ in self.records[made:]):
                self._unread_steps.add(path)
            return result

        return step

    def _watched_protocol(self, name, original):
        """A model that can `start` and `step` generates; its parts may, too."""

        @functools.wraps(original)
        def method(*args, **kwargs):
            if self._in_protocol:
                return original(*args, **kwargs)
            if name == "start":
                self._num_starts += 1
            else:
                self._note_step(*args, **kwargs)
            self._in_protocol = True
            try:
                result = original(*args, **kwargs)
            finally:
                self._in_protocol = False
            if name == "step":
                is_pair = isinstance(result, tuple) and len(result) == 2
                self._state = result[1] if is_pair else None
            else:
                self._state = result
            return result

        return method

    def _note_step(self, token=None, state=None, *args, **kwargs):
        """A step goes on if it has the state that was returned at last."""
        if not self._num_steps:
            self._before_steps = [weights for _, weights in self.records]
        self._num_steps += 1
        if not _are_equal(state, self._state):
            self._is_broken = True  # beams in another order, say

    def _note_call(self, frame, output):
        """How a call goes on with those before, if its keys are not known."""
        tensors = [
            [
                array
                for x in tree.flatten(nest)
                if len(getattr(x, "shape", ())) > 2
                and (array := _array(x)) is not None
            ]
            for nest in (frame.inputs, output)
        ]
        self._links.setdefault(frame.path, Links()).note_call(*tensors)

    def _hear(self, weights):
        """A softmax: whose is it, and shall it be changed?"""
        frame = self._owner()
        if frame is None or self._is_elsewhere():
            return
        self._num_heard += 1
        is_believed = self._adapters.get(frame.path) == BY_SOFTMAX
        if is_believed or not self._is_of_parameters(weights):
            frame.softmaxes.append(weights)
        if self._runs_again:
            return
        if self._change and frame.path in self._chosen:
            if not self._is_followed(frame):
                return self._changed(frame.path, weights)
            # Which are the weights is known when the layer returns.
            place = self._listener.place_of(weights)
            frame.changed.append((frame.path, weights, place))
            return weights

    def _is_of_parameters(self, weights):
        """Whether a softmax depends on no input, as far as it is heard."""
        listener = self._listener
        if listener is None or not listener.is_heard:
            return False
        return listener.is_tensor(weights) and not listener.of(weights).data

    def _watch(self, weights):
        """Change what a softmax gave, in a layer whose operations are heard."""
        frame = self._owner()
        if not self._change or frame is None or not self._is_followed(frame):
            return weights
        if self._listener.place_of(weights) is not None:
            return weights  # what is added to it is, where it is given
        return self._change(weights)

    def _replace_heard(self, layer, weights):
        """A `Softmax` layer sets masked weights to 0 after its softmax."""
        (axis,) = tree.flatten(layer.axis)  # Keras may write (3,) for 3
        weights = as_rows(weights, axis)
        softmaxes = self._owner().softmaxes
        if softmaxes:  # else it is one of parameters
            softmaxes[-1] = weights

    def _leave(self, frame, call, output):
        """A call returns: what were its softmaxes?"""
        path, layer, inputs, softmaxes = frame[:4]
        if path not in self._chosen:
            return
        self._note_given(output)
        adapter = self._adapters.get(path)
        within = [name for name, _ in self.records[frame.num_records :]]
        named = [name for name, _ in self._skips[frame.num_skips :]]
        if path in within + named:
            return
        if isinstance(adapter, NoWeights):
            if self._change and adapter.by_identity:
                return self._skip(path, _REASONS["gradients"])
            if self._wanted is None or not adapter.by_identity:
                return self._skip(path, adapter.reason)
            return self._read_by_identity(frame, call, output)
        if self._read_roles(frame, output):
            return
        if adapter is None:
            softmaxes = [w for w in softmaxes if not _is_given(w, output)]
            if any(may_be_attention(w.shape[-1], inputs) for w in softmaxes):
                self._skip(path, _REASONS["unheard"])
            return
        if adapter == BY_NAME:
            if softmaxes or not within + named:
                self._skip(path, _REASONS["unheard" if softmaxes else "fused"])
            return
        self.changed += frame.changed
        readable = [w for w in softmaxes if self._has_usual_axes(w, inputs)]
        for weights in readable:
            self._record(path, to_heads(weights))
        if len(readable) == 1:
            self._note_call(frame, output)
        if not readable and not within:
            self._skip(path, _REASONS["axes" if softmaxes else "fused"])

    def _has_usual_axes(self, weights, inputs):
        """Whether the first axis of a softmax is the batch, as far as seen."""
        shapes = [getattr(x, "shape", ()) for x in tree.flatten(inputs)]
        batches = {shape[0] for shape in shapes if len(shape) > 1}
        return weights.shape[0] in (None, *batches) or None in batches

    def _note_given(self, output):
        """Softmaxes that the outermost layer gives, as a classifier does."""
        listener = self._listener
        if listener is None or not listener.is_heard:
            return
        if not any(frame.path in self._followed for frame in self._running):
            for traced in listener.traced(output):
                weights = traced.weights
                if weights and not (weights.times or weights.is_sum):
                    self._given |= weights.softmaxes

    def _read_by_identity(self, frame, call, output):
        args, kwargs = frame.inputs
        if any(_array(x) is None for x in tree.flatten(output)):
            return self._skip(frame.path, _REASONS["identity"])
        self._running.append(frame)  # which hears what its layers within say
        self._runs_again = True

        def run_again():
            with _without_trace(self._layers.values(), [frame.layer]):
                return call(*args, **kwargs)

        try:
            weights = weights_by_identity(frame.layer, run_again, output)
        finally:
            self._runs_again = False
            self._running.pop()
        self._record(frame.path, weights)
        self._note_call(frame, output)

    def _read_roles(self, frame, output):
        """Record what the operations of a layer tell of its softmaxes.

        What comes back is False if they tell nothing.
        """
        listener = self._listener
        if not self._is_followed(frame):
            return False
        tracker, outputs = listener.tracker, listener.traced(output)
        adapter = self._adapters.get(frame.path)
        own = [n for n, at in enumerate(tracker.places) if at.frame is frame]
        uses = [use for use in tracker.uses if use.place.frame is frame]
        unseen = [name for at, name in tracker.unseen if at.frame is frame]
        for name in dict.fromkeys(unseen):
            if adapter is None and "dot_product" not in name:
                continue  # the log-softmax of a classifier
            self._skip(f"{frame.path}, {name}", _REASONS["unseen operation"])
        if len(own) < len(frame.softmaxes) or not (own or uses):
            return False
        read, whys, reasons = {}, {}, {}
        for use in uses:
            reader = reader_of(use, outputs, tracker, adapter == BY_SOFTMAX)
            if isinstance(reader, Reader):
                # For values in several parts, the same weights are used again.
                same = read.setdefault(use.weights.version, (use, reader))
                reader = reader if same[1].is_like(reader) else None
            for n in use.weights.softmaxes:
                if reader is None:
                    whys[n] = use.reason or "what its axes are"
                elif isinstance(reader, str):
                    reasons[n] = reader
        done = [n for use, _ in read.values() for n in use.weights.softmaxes]
        for use, _ in read.values():
            for n in use.weights.softmaxes:
                if use.weights.is_part and done.count(n) > 1:
                    whys[n] = "several parts of it are used"
        lost = tracker.lost.keys() & {*own} - {*done}
        whys |= {n: tracker.lost[n] for n in lost}
        whys |= dict.fromkeys(tracker.altered & {*own}, "it is written into")
        if whys and adapter == BY_SOFTMAX:
            return False
        read = [
            (use, reader)
            for use, reader in read.values()
            if not whys.keys() & use.weights.softmaxes
        ]
        if self._record_read(frame, own, read) == 1:
            self._note_call(frame, output)
        done = {n for use, _ in read for n in use.weights.softmaxes}
        for n, why in whys.items():
            reasons[n] = f"{_REASONS['open']}: {why}"
        if adapter is not None:
            reasons = dict.fromkeys(own, _REASONS["no values"]) | reasons
        self._name_others(frame, own, done, reasons)
        return True

    def _record_read(self, frame, own, read):
        """Record weights, each with its reader; chunks of queries as one."""
        named = {}  # path → the softmaxes of its maps
        maps = [reader.read(use.shown()[0]) for use, reader in read]
        joined = join_chunks([reader for _, reader in read])
        for number, places in enumerate(joined):
            whole = [maps[i] for i in places]
            whole = ops.concatenate(whole, 2) if whole[1:] else whole[0]
            use = read[places[0]][0]
            softmax = min(use.weights.softmaxes)
            path = self._path_of(frame, softmax)
            before = named.setdefault(path, [])
            before.append(softmax)
            if softmax in own and before.count(softmax) < len(before):
                path += f", softmax {own.index(softmax) + 1}"
            self._record(path, whole, at=use.place.num_records + number)
            if changes := use.weights.changes:
                self._words.append((whole, ", ".join(dict.fromkeys(changes))))
            for i in places:
                use, reader = read[i]
                self.readers.setdefault(path, []).append(reader)
                if self._change:
                    weights = use.shown()[0]
                    place = self._listener.place_of(weights)
                    self.changed.append((path, weights, place))
        return len(joined)

    def _path_of(self, frame, number):
        """A model of layers has its maps under the names of the softmaxes."""
        owner = self._listener.tracker.places[number].frame
        is_softmax = owner is not None and owner.path in self._softmaxes
        return owner.path if is_softmax else frame.path

    def _name_others(self, frame, own, done, reasons):
        """Name softmaxes of a layer that are no maps, but run over keys."""
        is_known = frame.path in self._adapters
        within = frame.num_records < len(self.records)
        for n, reason in reasons.items():
            if n in done:
                continue
            if not is_known and not self._may_be_attention(n, frame):
                continue
            if self._listener.tracker.kinds[n] == OTHER:
                reason = _REASONS["features"]
                if within and is_known:
                    continue  # a router, a classifier
            number = own.index(n) + 1 if n in own else "of a part"
            number = f", softmax {number}" if done else ""
            self._skip(self._path_of(frame, n) + number, reason)
            self._given.add(n)

    def _may_be_attention(self, number, frame):
        """Whether a softmax of a layer of no known kind runs over positions.

        If its axis is not known, its size says whether it may.
        """
        tracker = self._listener.tracker
        if tracker.kinds[number] == UNKNOWN:
            return may_be_attention(tracker.lengths[number], frame.inputs)
        uses = [u for u in tracker.uses if number in u.weights.softmaxes]
        is_chosen = not any(use.has_queries() for use in uses)
        return tracker.kinds[number] != OTHER or not is_chosen

    def _name_unused(self):
        """Name softmaxes over keys, of layers of no known kind, without use."""
        tracker = self._listener.tracker
        done = {n for use in tracker.uses for n in use.weights.softmaxes}
        owners = [place.frame for place in tracker.places]
        for n, owner in enumerate(owners):
            if owner is None or owner.path not in self._chosen & self._others:
                continue
            if n in done | self._given or not self._may_be_attention(n, owner):
                continue
            own = [i for i, other in enumerate(owners) if other is owner]
            number = f", softmax {own.index(n) + 1}" if own[1:] else ""
            why = _REASONS["no values"]
            if n in tracker.lost:
                why = f"{_REASONS['open']}: {tracker.lost[n]}"
            self._skip(owner.path + number, why)

    def _name_unseen(self):
        """Name layers that a compiled function, or a step, may have run."""
        if self._listener is not None:
            self._name_unused()
        for path in sorted(self._unread_steps):
            self.records = [r for r in self.records if r[0] != path]
            self._skip(path, _REASONS["step"])
        if self._num_steps:
            read = {path for path, _ in self.records}
            for path, adapter in self._adapters.items():
                is_unseen = path in self._chosen - read - self._called
                is_unseen &= path not in self._unread_steps
                if is_unseen and not isinstance(adapter, str):
                    self._skip(path, _REASONS["step"])
        if _hold_compiled(self._layers.values()):
            for path, adapter in self._adapters.items():
                is_seen = path in self._called or path not in self._chosen
                if not is_seen and not isinstance(adapter, NoWeights):
                    self._skip(path, _REASONS["unseen"])

    def _join_recurrent_steps(self, frame, output):
        """The steps of a recurrent layer as rows of one map."""
        records = self._take_records(frame)
        args, kwargs = frame.inputs
        for path in dict.fromkeys(path for path, _ in records):
            rows = [weights for name, weights in records if name == path]
            inside = [w for w in rows if beside(output, w) is None]
            if inside:  # a loop of the graph; the first step is not a map
                self.records.append((path, inside[0]))
                continue
            steps = (args[0] if args else kwargs["sequences"]).shape[1]
            rows = _rows_of_steps(rows, steps, frame.layer.go_backwards)
            self.records += [(path, weights) for weights in rows]

    def _looped(self, frame, output):
        """Paths that ran in a loop of a layer that can be asked for them."""
        records = self.records[frame.num_records :]
        if not records or self._adapters.get(frame.path) is not None:
            return set()
        parameters = inspect.signature(frame.layer.call).parameters
        if "return_attention_scores" not in parameters:
            return set()
        calls = Counter(path for path, _ in records)
        return {
            path
            for path, weights in records
            if beside(output, weights) is None
            or (calls[path] > 1 and weights.shape[2] == 1)  # query by query
        }

    def _ask(self, frame, call, looped):
        """Put what `return_attention_scores` gives in the place of steps."""
        records = self._take_records(frame)
        others = [record for record in records if record[0] not in looped]
        args, kwargs = frame.inputs
        if kwargs.get("training"):
            self.records += others
            for path in sorted(looped):
                self._skip(path, _REASONS["training"])
            return
        self._running.append(frame)
        try:
            result = call(*args, **kwargs | {"return_attention_scores": True})
        finally:
            self._running.pop()
        self._take_records(frame)
        maps = result[-1] if isinstance(result, tuple) else None
        if not isinstance(maps, Mapping):
            self.records += records
            return
        is_model = frame.layer is self._model
        named = {
            name if is_model else f"{frame.path}/{name}": weights
            for name, weights in maps.items()
        }
        self.records += [record for record in others if record[0] not in named]
        named = {p: w for p, w in named.items() if fits(p, self._wanted)}
        for path, weights in named.items():
            self._record(path, weights)
        for path in () if named else sorted(looped):
            self._skip(path, _REASONS["loop"])

    def _take_records(self, frame):
        records = self.records[frame.num_records :]
        del self.records[frame.num_records :]
        return records

    def _is_elsewhere(self):
        """Whether another thread uses the model meanwhile."""
        return threading.get_ident() != self._thread

    def _changed(self, path, weights):
        if self._is_elsewhere():
            return weights
        weights = self._change(weights)
        self.changed.append((path, weights, None))
        return weights

    def _record(self, path, weights, keys=None, at=None):
        """Note weights; a sentence in their place says why there are none.

        `keys` `(B, S, …)` tell whether a call goes on with one before, and
        `at` the place among the records, if they are not the last.
        """
        if self._is_elsewhere():
            return
        if isinstance(weights, str):
            return self._skip(path, weights)
        if len(weights.shape) == 3:
            weights = ops.expand_dims(weights, 1)  # one head
        place = len(self.records) if at is None else at
        self.records.insert(place, (path, weights))
        if keys is not None and not self._runs_again:
            arrays = _array(weights), _array(keys)
            if arrays[0] is not None and arrays[1] is not None:
                self._links.setdefault(path, Links()).note(*arrays)

    def _skip(self, path, reason):
        self._skips.append((path, reason))


_LISTENERS = {  # each imports its backend
    "jax": ("jax_operations", "JaxListener"),
    "tensorflow": ("tensorflow_operations", "TensorFlowListener"),
    "torch": ("torch_operations", "TorchListener"),
}
_PROTOCOL = "start", "step"
_ONE_AT_A_TIME = threading.RLock()
_DROPPING = (
    keras.layers.Dropout,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
    keras.layers.SpatialDropout1D,
)


def _name_layers(model):
    """Dict of the layers in a model, at any depth, by their paths.

    A layer is told from another by identity: two submodels that each hold a
    layer `attention` give `encoder/attention` and `decoder/attention`. Where
    parts of one layer share a name, the second is called `name:2`. A layer
    that is reached on several ways has the shortest of their names. The
    model itself has its name, or `name:0` if a part of it has that.
    """
    paths = {id(model): model.name}
    layers = {}
    waiting = deque([("", model)])
    while waiting:
        way, layer = waiting.popleft()
        seen = Counter()
        for part in _parts_of(layer):
            seen[part.name] += 1
            if id(part) in paths:
                continue
            path = f"{way}{part.name}"
            if seen[part.name] > 1:
                path += f":{seen[part.name]}"
            paths[id(part)] = path
            layers[path] = part
            waiting.append((f"{path}/", part))
    taken = model.name in layers
    return {f"{model.name}:0" if taken else model.name: model} | layers


def _parts_of(layer):
    """The layers that a layer or model holds, without theirs.

    Keras has this walk as a private method only: its public `model.layers`
    lists the parts of a model, and other layers have no such list.
    """
    return layer._flatten_layers(include_self=False, recursive=False)


_REASONS = {
    "fused": "no softmax of its inputs over keys was seen; use "
    "`keras.ops.softmax`, or teach where its weights are by "
    "`register_attention_adapter`",
    "unseen operation": "this operation may weigh values, and forms no weights "
    "that can be seen",
    "open": "what becomes of its softmax could not be followed",
    "no values": "its softmax meets no values in it, in a sum over keys",
    "features": "its softmax does not run over positions of its inputs",
    "axes": "the first axis of its softmax is not the batch, and what its axes "
    "are could not be followed",
    "unheard": "its operations were not heard, which say what its softmax runs "
    "over: call the model eagerly, or teach its axes by "
    "`register_attention_adapter`",
    "gradients": "it forms no weights, so there are no gradients by them",
    "identity": "it forms no weights, and only an eager call can be run again "
    "with identity values",
    "loop": "it ran in a graph, or in a loop of one, which its weights cannot "
    "leave: call the model eagerly, for instance after "
    "`compile(run_eagerly=True)`, and on JAX within `jax.disable_jit()`; a "
    "model with `return_attention_scores` can be asked for them",
    "unseen": "it was not called, or a compiled function ran it unseen; "
    "`tf.config.run_functions_eagerly(True)` lets it be seen",
    "step": "its step reads a part of the cache alone, or slots that are not "
    "the tokens in their order, as a ring or a state; call the model on the "
    "finished text instead",
    "training": "it ran inside a loop, and asking its model once more would "
    "drop other units",
}


def _hold_compiled(layers):
    """Whether layers have a `tf.function` that their `call` may run."""
    kinds = {kind for layer in layers for kind in type(layer).__mro__}
    return any(
        hasattr(value, "get_concrete_function") and name not in _OF_TRAINING
        for owner in (*layers, *kinds)
        for name, value in vars(owner).items()
    )


_OF_TRAINING = "train_function", "test_function", "predict_function"


def _are_equal(state, before):
    """Whether two nests of tensors are the same, or hold the same numbers."""
    pairs = [tree.flatten(nest) for nest in (state, before)]
    return len(pairs[0]) == len(pairs[1]) and all(
        a is b
        or (_array(a) is not None and np.array_equal(_array(a), _array(b)))
        for a, b in zip(*pairs, strict=True)
    )


def _is_given(weights, output):
    """Whether a softmax is what its layer gives."""
    weights = _array(weights)
    given = [_array(x) for x in tree.flatten(output) if hasattr(x, "shape")]
    same = [
        x is not None and np.array_equal(x.ravel(), weights.ravel())
        for x in given
        if weights is not None
    ]
    return any(same)


def beside(outputs, weights):
    """The weights as the outputs are: an array, or a tensor of their graph.

    None if the weights belong to a graph within, such as that of a loop.
    """
    array = _array(weights)
    if array is not None:
        return array
    tensors = [x for x in tree.flatten(outputs) if hasattr(x, "shape")]
    if not tensors or _array(tensors[0]) is not None:
        return None
    output = tensors[0]
    same = getattr(weights, "graph", None) is getattr(output, "graph", None)
    return weights if same else None


def _as_tensor(x):
    """What Keras makes of an array in the inputs of a functional model."""
    is_array = isinstance(x, np.ndarray) and x.dtype.kind in "biuf"
    return ops.convert_to_tensor(x) if is_array else x


def _array(tensor):
    try:
        return ops.convert_to_numpy(tensor)
    except Exception:  # each backend has its own for a tensor of a graph
        return None


def _rows_of_steps(rows, num_steps, go_backwards):
    """The weights of the steps of a recurrent layer, as few maps.

    There is one map for each call within a step, with a row for each step in
    the order of the inputs; or the rows come back, if they are not that. Keras
    runs the first step once more, before the others, where it asks a step for
    its dtype.
    """
    calls, rest = divmod(len(rows), num_steps + 1)  # calls in a step
    if rest:
        calls = len(rows) // num_steps
    else:
        rows = rows[calls:]
    one_query = {weights.shape[2] for weights in rows} == {1}
    if not one_query or len(rows) != calls * num_steps:
        return rows
    each = [rows[i::calls] for i in range(calls)]
    if go_backwards:
        each = [steps[::-1] for steps in each]
    return [ops.concatenate(steps, axis=2) for steps in each]
