"""The attention weights of a Keras model that was not made to show them.

While the model runs, its attention layers are watched: their own call goes
on as it was, and the weights are taken beside it. Nothing of the model is
changed, stored or left behind.
"""

from collections.abc import Mapping
import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from d2l_attention.heatmaps.adapters import adapter_of
from d2l_attention.heatmaps.selection import select_layers
import keras
from keras import ops, tree
import numpy as np


class AttentionMaps(Mapping):
    """Weights `(B, H, T, S)` by the path of their layer.

    A layer that was called again has `path#2`, `path#3` and so on. The order
    is that of the calls. Inside a traced function the values are tensors of
    the graph, otherwise numpy arrays.
    """

    def __init__(self, maps=()):
        self._maps = dict(maps)

    def __getitem__(self, path):
        return self._maps[path]

    def __iter__(self):
        return iter(self._maps)

    def __len__(self):
        return len(self._maps)

    def __repr__(self):
        shapes = {path: tuple(w.shape) for path, w in self._maps.items()}
        return f"AttentionMaps({shapes})"

    def select(self, layers):
        """Those of a list of paths, or of a pattern like `"decoder/*"`."""
        chosen = select_layers(self._maps, layers)
        return AttentionMaps({path: self._maps[path] for path in chosen})

    def save(self, path):
        """Write a `.npz` file; one that was there stays until this is whole."""
        path = Path(path)
        beside = path.with_name(f"{path.name}.part")
        try:
            with beside.open("wb") as file:
                np.savez_compressed(file, **self._maps)
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path):
        """Read what `save` wrote."""
        with np.load(path) as file:
            return cls({name: file[name] for name in file.files})


def get_attention_weights(model, inputs, *, layers=None, training=False):
    """Call a model once; its outputs, and the weights that made them.

    The outputs are those of `model(inputs)`, bit for bit: the model computes
    them as ever, and the weights are computed beside it. Works eagerly and
    inside a `tf.function`, with and without XLA, where the maps hold tensors
    that the function may return.

    It knows the attention layers of this package, `keras.layers`'
    `MultiHeadAttention`, `GroupQueryAttention`, `Attention` and
    `AdditiveAttention`, what derives from them, and layers named attention
    that own a `keras.layers.Softmax`, as most of keras-hub's do. Of others it
    learns by `register_attention_adapter`. The weights are those before
    dropout. Layers that form none, such as `FlashAttention`, are left out. At a
    query that may attend to nothing, Keras's layers may average over all keys
    where the weights shown are 0.

    Args:
        model: A built `keras.Model` or layer.
        inputs: What the model is called with.
        layers: Which layers: a list of paths, or a pattern like
            `"encoder/*"`. All by default.
        training: Whether dropout is active.

    Returns:
        The outputs, and `AttentionMaps`.

    Raises:
        ValueError: If the model has no attention layer that is known, no
            layer matches, none of them forms weights, attention runs inside a
            loop of the graph, or a fused operation leaves no weights to see.
    """
    if not model.built:
        model(inputs)
    calls = {}
    with _watch(model, layers, calls):
        outputs = model(inputs, training=training)
    if not calls:
        raise ValueError(
            f"The attention layers of {type(model).__name__} {model.name!r} "
            "that were asked for form no weights, as flash and linear-cost "
            "attention do not, or were not called."
        )
    return outputs, AttentionMaps(
        {
            path: _concrete(weights, path, outputs)
            for path, weights in calls.items()
        }
    )


@contextlib.contextmanager
def _watch(model, layers, calls):
    """Stand-ins for the methods of all attention layers, for one call."""
    watched = {}
    for layer in model._flatten_layers():
        adapter = adapter_of(layer)
        if adapter is not None:
            watched[layer.path] = layer, adapter
    if not watched:
        raise ValueError(
            f"{type(model).__name__} {model.name!r} has no attention layer "
            "that is known. `register_attention_adapter` teaches others."
        )
    patched = []
    try:
        for path in select_layers(watched, layers):
            layer, adapter = watched[path]
            for owner, name, method in adapter(layer, _recorder(path, calls)):
                before = owner.__dict__.get(name)
                patched.append((owner, name, before))
                object.__setattr__(owner, name, method)
        yield
    finally:
        for owner, name, before in reversed(patched):
            if before is None:
                object.__delattr__(owner, name)
            else:
                object.__setattr__(owner, name, before)


def _recorder(path, calls):
    def record(weights):
        if len(weights.shape) == 3:
            weights = ops.expand_dims(weights, 1)  # one head
        again = sum(name.split("#")[0] == path for name in calls)
        calls[f"{path}#{again + 1}" if again else path] = weights

    return record


def _concrete(weights, path, outputs):
    """A numpy array; inside a traced function the tensor, if it can leave."""
    graph = _graph(weights)
    if graph is not None and graph is not _graph(tree.flatten(outputs)[0]):
        raise ValueError(
            f"The attention of {path.split('#')[0]!r} runs inside a loop of "
            "the graph, which its weights cannot leave. Ask the model for "
            "them, if it has `return_attention_scores`."
        )
    return weights if graph is not None else ops.convert_to_numpy(weights)


def _graph(tensor):
    return None if hasattr(tensor, "numpy") else getattr(tensor, "graph", None)


class MaskLeak(NamedTuple):
    """Attention where none may be."""

    layer: str
    head: int
    kind: str
    mass: float

    def __str__(self):
        return (
            f"{self.layer}, head {self.head}: up to {self.mass:.1%} of a row's "
            f"attention lies on {self.kind}"
        )


def check_attention_masks(maps, key_mask=None, *, causal=False, tolerance=1e-6):
    """Find attention on padding, or on the future.

    Rows of padding are not looked at where queries are keys (T = S).

    Args:
        maps: Mapping of layer path to weights `(B, H, T, S)`.
        key_mask: Bool array `(B, S)`, True at tokens, or a dict of path to
            such an array.
        causal: Whether row t may attend to columns 0 … t only.
        tolerance: Float, what a row may have there all the same.

    Returns:
        List of `MaskLeak(layer, head, kind, mass)`, the largest share of a
        row for each layer, head and kind; empty if there is none.

    Raises:
        ValueError: If a mask does not fit its layer.
    """
    leaks = []
    for path, weights in maps.items():
        weights = np.asarray(weights, "float64")
        batch, num_heads, t, s = weights.shape
        mask = key_mask.get(path) if isinstance(key_mask, dict) else key_mask
        rows = np.ones((batch, t), bool)
        forbidden = {}
        if mask is not None:
            mask = np.asarray(mask, bool)
            if mask.shape != (batch, s):
                raise ValueError(
                    f"The mask of {path!r} must be (batch, keys), "
                    f"{(batch, s)}. Received: shape {mask.shape}."
                )
            rows = mask if t == s else rows
            forbidden["padding"] = ~mask[:, None]
        if causal:
            forbidden["the future"] = np.triu(np.ones((t, s), bool), 1)[None]
        for kind, cells in forbidden.items():
            mass = (weights * cells[:, None]).sum(-1) * rows[:, None]
            for head, most in enumerate(mass.max(axis=(0, 2))):
                if most > tolerance:
                    leaks.append(MaskLeak(path, head, kind, float(most)))
    return leaks


class AttentionRecorder(keras.callbacks.Callback):
    """Records the weights for the same inputs as a model trains.

    After training, `frames` holds one `AttentionMaps` for each recorded epoch
    and `epochs` their numbers. Training goes on as without it: nothing
    random is drawn, no loss changes.

    Args:
        inputs: What the model is called with.
        layers: See `get_attention_weights`.
        every: Positive int, epochs from one frame to the next.

    Raises:
        ValueError: If `every` is not positive.
    """

    def __init__(self, inputs, *, layers=None, every=1):
        super().__init__()
        if every < 1:
            raise ValueError(f"`every` must be positive. Received: {every}.")
        self.inputs, self.layers, self.every = inputs, layers, every
        self.epochs, self.frames = [], []

    def on_epoch_end(self, epoch, logs=None):
        if epoch % self.every == 0:
            _, maps = get_attention_weights(
                self.model, self.inputs, layers=self.layers
            )
            self.epochs.append(epoch)
            self.frames.append(maps)
