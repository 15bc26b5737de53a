"""The attention weights of a Keras model that was not made to show them.

While the model runs, stand-ins replace some methods of its attention layers:
they call the methods and record the weights. Afterwards the model is as it
was before.
"""

from collections.abc import Mapping
import contextlib
import io
from typing import NamedTuple

from d2l_attention._atomic import write_whole
from d2l_attention.heatmaps.adapters import adapter_of, flatten_layers
from d2l_attention.heatmaps.selection import select_layers
import keras
from keras import ops, tree
import numpy as np


class AttentionMaps(Mapping):
    """Weights `(B, H, T, S)` by the path of their layer.

    The second call of a layer has the path `path#2`, the third `path#3`. The
    maps stand in the order of the calls. Their values are NumPy arrays, but
    inside a traced function they are tensors of the graph.
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
        """The maps of a list of paths, or of a pattern like `"decoder/*"`."""
        chosen = select_layers(self._maps, layers)
        return AttentionMaps({path: self._maps[path] for path in chosen})

    def save(self, path):
        """Write a `.npz` file; it replaces an old file only when complete."""
        content = io.BytesIO()
        np.savez_compressed(content, **self._maps)
        write_whole(path, content.getvalue())

    @classmethod
    def load(cls, path):
        """Read a file that `save` wrote."""
        with np.load(path) as file:
            return cls({name: file[name] for name in file.files})


def get_attention_weights(model, inputs, *, layers=None, training=False):
    """Call a model once; return its outputs and its attention weights.

    The outputs equal `model(inputs)` bit for bit: the model computes them as
    always, and the weights are only recorded. This works eagerly and inside a
    `tf.function`, with and without XLA; there the maps hold tensors, which
    the function may return.

    The known attention layers are the layers of this package; of
    `keras.layers`, `MultiHeadAttention`, `GroupQueryAttention`, `Attention`
    and `AdditiveAttention`, with their subclasses; and layers whose class name
    ends in attention and which own one `keras.layers.Softmax`, as most of
    keras-hub's do. `register_attention_adapter` adds others.

    Weights are recorded before dropout. Layers that form no weights, such as
    `FlashAttention`, are left out. For a query that may attend to nothing the
    recorded weights are 0, though Keras's own layers may average over all
    keys there.

    Args:
        model: A `keras.Model` or layer.
        inputs: Inputs of the model.
        layers: A list of paths of layers, or a pattern like `"encoder/*"`.
            All layers by default.
        training: Whether dropout is active.

    Returns:
        The outputs, and `AttentionMaps`.

    Raises:
        ValueError: If the model has no known attention layer, no layer
            matches, none of them forms weights, attention runs inside a loop
            of the graph, or a fused operation forms no weights.
    """
    if not model.built:
        model(inputs)
    calls = {}
    with _watch(model, layers, calls):
        outputs = model(inputs, training=training)
    if not calls:
        raise ValueError(
            f"The chosen attention layers of {type(model).__name__} "
            f"{model.name!r} form no weights (flash and linear-cost attention "
            "form none), or were not called."
        )
    return outputs, AttentionMaps(
        {
            path: _concrete(weights, path, outputs)
            for path, weights in calls.items()
        }
    )


@contextlib.contextmanager
def _watch(model, layers, calls):
    """Put the stand-ins in place for one call, then the methods back."""
    watched = {}
    for layer in flatten_layers(model):
        adapter = adapter_of(layer)
        if adapter is not None:
            watched[layer.path] = layer, adapter
    if not watched:
        raise ValueError(
            f"{type(model).__name__} {model.name!r} has no attention layer "
            "of a known kind. `register_attention_adapter` adds other kinds."
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
    """The weights as a NumPy array, or in a traced function as a tensor."""
    graph = _graph(weights)
    if graph is not None and graph is not _graph(tree.flatten(outputs)[0]):
        raise ValueError(
            f"The attention of {path.split('#')[0]!r} runs inside a loop of "
            "the graph, and its weights cannot leave the loop. If the model "
            "has `return_attention_scores`, ask the model for them."
        )
    return weights if graph is not None else ops.convert_to_numpy(weights)


def _graph(tensor):
    return None if hasattr(tensor, "numpy") else getattr(tensor, "graph", None)


class MaskLeak(NamedTuple):
    """Attention on positions that may not be attended."""

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

    Where T = S the queries are taken to be the keys, and the rows of padding
    are not checked.

    Args:
        maps: Mapping of layer path to weights `(B, H, T, S)`.
        key_mask: Bool array `(B, S)`, True at tokens, or a dict of path to
            such an array.
        causal: Whether row t may attend to columns 0 … t only.
        tolerance: Float, the share of a row that is not yet a leak.

    Returns:
        List of `MaskLeak(layer, head, kind, mass)`; `mass` is the largest
        share of a row. There is one leak for each layer, head and kind that
        has any.

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
    """Records the weights for fixed inputs while a model trains.

    After training, `frames` holds one `AttentionMaps` for each recorded
    epoch, and `epochs` the numbers of these epochs. The recorder draws
    nothing random and changes no loss.

    Args:
        inputs: Inputs of the model.
        layers: A list of paths of layers, or a pattern like `"encoder/*"`.
            All layers by default.
        every: Positive int, epochs from one frame to the next.

    Raises:
        ValueError: If `every` is not positive.
    """

    def __init__(self, inputs, *, layers=None, every=1):
        super().__init__()
        if every < 1:
            raise ValueError(f"`every` must be positive. Received: {every}.")
        self.inputs = inputs
        self.layers = layers
        self.every = every
        self.epochs = []
        self.frames = []

    def on_epoch_end(self, epoch, logs=None):
        if epoch % self.every == 0:
            _, maps = get_attention_weights(
                self.model, self.inputs, layers=self.layers
            )
            self.epochs.append(epoch)
            self.frames.append(maps)
