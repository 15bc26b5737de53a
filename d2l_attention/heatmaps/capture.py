"""The attention weights of a Keras model that was not made to show them."""

from collections.abc import Mapping
import io
import warnings
import zipfile

from d2l_attention._atomic import write_whole
from d2l_attention.heatmaps.selection import select_layers
from d2l_attention.heatmaps.watching import Run
import keras
import numpy as np


class AttentionMaps(Mapping):
    """Weights `(B, H, T, S)` by the path of their layer.

    A path holds the names on the way from the model to the layer, such as
    `decoder/block_1/cross_attention`. The second call of a layer has the
    path `path#2`, the third `path#3`. The maps stand in the order of the
    calls. Their values are NumPy arrays, but inside a traced function they
    are tensors of the graph.

    Args:
        maps: Mapping or pairs of path and weights.
        skipped: Dict of path to the reason why there are no weights.
    """

    def __init__(self, maps=(), skipped=()):
        self._maps = dict(maps)
        self.skipped = dict(skipped)

    def __getitem__(self, path):
        return self._maps[path]

    def __iter__(self):
        return iter(self._maps)

    def __len__(self):
        return len(self._maps)

    def __repr__(self):
        shapes = {path: tuple(w.shape) for path, w in self._maps.items()}
        skipped = f", skipped={self.skipped}" if self.skipped else ""
        return f"AttentionMaps({shapes}{skipped})"

    def select(self, layers):
        """The maps of a list of paths, or of a pattern like `"decoder/*"`."""
        chosen = select_layers(self._maps, layers)
        return AttentionMaps({path: self._maps[path] for path in chosen})

    def save(self, path):
        """Write a `.npz` file; it replaces an old file only when complete.

        NumPy's files know no bfloat16: it is written as float32, which holds
        each of its values. What was skipped is not written.
        """
        content = io.BytesIO()
        # Not `np.savez_compressed`, to which some names are arguments.
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, weights in _plain(self._maps).items():
                with archive.open(f"{name}.npy", "w") as file:
                    np.save(file, weights, allow_pickle=False)
        write_whole(path, content.getvalue())

    @classmethod
    def load(cls, path):
        """Read a file that `save` wrote."""
        with np.load(path) as file:
            return cls({name: file[name] for name in file.files})


def _plain(maps):
    return {
        path: np.asarray(w, "float32") if str(w.dtype) == "bfloat16" else w
        for path, w in maps.items()
    }


def get_attention_weights(model, *args, layers=None, **kwargs):
    """Call a model; return its outputs and its attention weights.

    The outputs equal `model(*args, **kwargs)` bit for bit: the model computes
    them as always, and the weights are only noted. This works eagerly and
    inside a `tf.function`, with and without XLA; there the maps hold tensors,
    which the function may return.

    The known attention layers are the layers of this package; the attention
    layers of `keras.layers`, with their subclasses; and layers with
    "attention" in the name of their class, as keras-hub's, whose weights are
    what `keras.ops.softmax` gives in them. `register_attention_adapter` adds
    others. A model whose attention runs inside a loop of its own is called
    once more with `return_attention_scores`, if it has that.

    Weights are those before dropout. What looks like attention and cannot be
    read is named in a warning and in `maps.skipped`: a layer that forms no
    weights, such as `FlashAttention`, one that runs inside a loop, one whose
    blocks of queries have keys of their own, and a softmax in a layer of an
    unknown kind. In such a layer, a softmax that is not Keras's
    (`tf.nn.softmax`) stays invisible.

    Args:
        model: A `keras.Model` or layer.
        *args: Inputs of the model, as it is called.
        layers: A list of paths of layers, or a pattern like `"encoder/*"`.
            All layers by default.
        **kwargs: Other arguments of the call, such as `training=True`.

    Returns:
        The outputs, and `AttentionMaps`.

    Raises:
        ValueError: If there are no weights to be had, or no layer matches.

    Warns:
        UserWarning: If a layer that looks like attention has no weights.

    Example:
        >>> layer = keras.layers.MultiHeadAttention(2, 4, name="attention")
        >>> x = np.ones((1, 3, 8), "float32")
        >>> _, maps = get_attention_weights(layer, x, x)
        >>> maps["attention"].shape
        (1, 2, 3, 3)
    """
    outputs, maps, told = _capture(model, args, kwargs, layers)
    if not maps:
        raise ValueError(told)
    if told:
        warnings.warn(told, stacklevel=2)
    return outputs, maps


def _capture(model, args, kwargs, layers):
    """Outputs and maps, and what there is to say about those not read."""
    build(model, args, kwargs)
    run = Run(model, layers)
    with run.watch():
        outputs = model(*args, **kwargs)
    maps = AttentionMaps(run.maps(outputs), run.skipped())
    told = "".join(f"\n  {path}: {why}" for path, why in maps.skipped.items())
    if not maps:
        told = (
            f"{type(model).__name__} {model.name!r} has no attention whose "
            f"weights can be read.{told or _HINT}"
        )
    elif told:
        told = f"There are no weights of{told}"
    return outputs, maps, told


def build(model, args, kwargs):
    """Call a model that has no weights yet, without training it."""
    if not model.built:
        training = {"training": False} if "training" in kwargs else {}
        model(*args, **kwargs | training)


_HINT = (
    " No attention layer of a known kind was called; "
    "`register_attention_adapter` adds kinds."
)


class AttentionRecorder(keras.callbacks.Callback):
    """Records the weights for fixed inputs while a model trains.

    After training, `frames` holds one `AttentionMaps` for each recorded
    epoch, and `epochs` the numbers of these epochs. The recorder draws
    nothing random and changes no loss. What cannot be read is told in one
    warning, and a frame may be empty: training goes on.

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
        self._told = False
        self.epochs = []
        self.frames = []

    def on_epoch_end(self, epoch, logs=None):
        if epoch % self.every == 0:
            _, maps, told = _capture(
                self.model, (self.inputs,), {}, self.layers
            )
            if told and not self._told:
                warnings.warn(told, stacklevel=2)
                self._told = True
            self.epochs.append(epoch)
            self.frames.append(maps)
