"""A vision Transformer, and two encoders that learn from pairs."""

import math

from d2l_attention._checks import check_dict, check_positive, check_rate, differ
from d2l_attention._config import Configurable
from d2l_attention.layers.base import wide
from d2l_attention.layers.images import (
    PatchEmbedding,
    check_grid,
    contrastive_loss,
    unit,
)
from d2l_attention.layers.positional_encoding import LearnedPositionalEncoding
from d2l_attention.models.transformer import TransformerEncoder
import keras
from keras import ops
import numpy as np

FIRST_SCALE, LARGEST_SCALE = 1 / 0.07, 100.0  # of cosines, as in CLIP's paper


@keras.saving.register_keras_serializable("d2l_attention")
class VisionTransformer(Configurable, keras.Model):
    """An encoder over the patches of a picture; [CLS] answers.

        x = [CLS; W patch_1 + b; …; W patch_N + b] + positions
        logits = W encoder(x)_0 + b

    Positions are learned, one for [CLS] and one for each patch, so all
    pictures have the size of the first ones; `resized` makes a model for
    another size.

    Source: Dosovitskiy et al. (2021), arXiv:2010.11929, section 3.1.
    Unlike the paper, attention has no biases unless asked for.

    Args:
        num_classes: Positive int, number of logits.
        patch_size: Positive int, pixels on a side of a patch.
        dim: Positive int, features D.
        num_layers: Positive int, number of blocks.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width of the position-wise nets; None = 4 `dim`.
        dropout: Float in [0, 1), rate of dropout on tokens, weights and
            residuals.
        activation, use_bias, normalize_first: As in `TransformerEncoder`.

    Call arguments:
        images: Float tensor `(B, height, width, channels)`.
        training: Whether dropout is active.
        return_attention_scores: If True, also return a dict of
            `"block_i/self_attention"`, weights `(B, H, 1 + N, 1 + N)`. Token
            0 is [CLS]; the patches follow, row by row from the top left.

    Returns:
        Logits `(B, num_classes)`, of float32 or wider.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import VisionTransformer
        >>> model = VisionTransformer(3, patch_size=4, dim=8, num_layers=1)
        >>> images = np.zeros((2, 12, 8, 3), "float32")
        >>> logits, maps = model(images, return_attention_scores=True)
        >>> tuple(maps["block_0/self_attention"].shape)  # 1 + 3 · 2 tokens
        (2, 4, 7, 7)
    """

    def __init__(
        self,
        num_classes,
        patch_size,
        dim,
        num_layers,
        num_heads=4,
        ffn_dim=None,
        *,
        dropout=0.0,
        activation="gelu",
        use_bias=False,
        normalize_first=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_classes = check_positive("num_classes", num_classes)
        self.patch_size = check_positive("patch_size", patch_size)
        self.dim = check_positive("dim", dim)
        self.num_layers = check_positive("num_layers", num_layers)
        self.num_heads = check_positive("num_heads", num_heads)
        self.ffn_dim = check_positive("ffn_dim", ffn_dim, 4 * self.dim)
        self.dropout = check_rate("dropout", dropout)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.normalize_first = normalize_first
        policy = {"dtype": self.dtype_policy}  # Keras does not hand it down
        self.embedding = PatchEmbedding(patch_size, dim, **policy)
        self.encoder = TransformerEncoder(
            dim,
            num_layers,
            num_heads,
            self.ffn_dim,
            dropout=dropout,
            activation=activation,
            use_bias=use_bias,
            normalize_first=normalize_first,
            max_length=None,
            name="encoder",
            **policy,
        )
        self.output_layer = keras.layers.Dense(
            self.num_classes, dtype=wide(self.dtype_policy.variable_dtype)
        )

    def build(self, input_shape):
        rows, columns = check_grid(input_shape, self.patch_size)
        if rows is None or columns is None:
            raise ValueError(
                "Each patch has a position of its own, so the size of a "
                f"picture must be known. Received: {tuple(input_shape)}."
            )
        self.image_size = tuple(input_shape[1:3])
        tokens = (None, 1 + rows * columns, self.dim)
        normal = keras.initializers.RandomNormal(stddev=0.02)
        self.cls = self.add_weight((1, 1, self.dim), normal, name="cls")
        self.positions = LearnedPositionalEncoding(
            tokens[1], dtype=self.dtype_policy
        )
        self.embedding.build(input_shape)
        self.positions.build(tokens)
        self.encoder.build(tokens)
        self.output_layer.build((None, self.dim))

    def call(self, images, training=None, return_attention_scores=False):
        check_grid(images.shape, self.patch_size)
        if any(map(differ, images.shape[1:3], self.image_size)):
            raise ValueError(
                "Positions are learned for pictures of "
                f"{self.image_size[0]} × {self.image_size[1]} pixels. "
                f"Received: {tuple(images.shape)}."
            )
        x = self.embedding(images)  # (B, N, D)
        cls = ops.cast(self.cls, x.dtype)
        cls = ops.broadcast_to(cls, (ops.shape(x)[0], 1, self.dim))
        x = self.positions(ops.concatenate([cls, x], axis=1))
        x = self.encoder(
            x,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        maps = {}
        if return_attention_scores:
            x, maps = x
        logits = self.output_layer(x[:, 0])
        return (logits, maps) if return_attention_scores else logits

    def compute_output_shape(self, input_shape):
        return input_shape[0], self.num_classes

    def resized(self, image_size):
        """A model with these weights, for pictures of another size.

        The positions of the patches are interpolated in both directions.

        Source: Dosovitskiy et al. (2021), arXiv:2010.11929, section 3.2.

        Args:
            image_size: Two ints, height and width in pixels.

        Returns:
            Built `VisionTransformer`.
        """
        if not self.built:
            raise ValueError(
                "The model must be built, or it has no positions to resize. "
                f"Received: {self.name!r}, not built."
            )
        model = type(self).from_config(self.get_config())
        channels = self.embedding.dense.kernel.shape[0] // self.patch_size**2
        model.build((None, *image_size, channels))
        old, new = (
            [pixels // self.patch_size for pixels in x.image_size]
            for x in (self, model)
        )
        table = ops.convert_to_tensor(self.positions.table)
        places = ops.reshape(table[1:], (1, *old, self.dim))
        places = ops.image.resize(places, new, data_format="channels_last")
        places = ops.reshape(places, (-1, self.dim))
        for mine, other in zip(self.weights, model.weights, strict=True):
            if mine is self.positions.table:
                mine = ops.concatenate([table[:1], places])
            other.assign(mine)
        return model

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["image_size"] = np.array(self.image_size)

    def load_own_variables(self, store):
        """Refuse weights of as many patches that have other places."""
        store = {name: store[name] for name in store.keys()}
        saved = tuple(map(int, np.array(store.pop("image_size"))))
        if saved != self.image_size:
            (h, w), (height, width) = saved, self.image_size
            raise ValueError(
                f"The weights are of pictures of {h} × {w} pixels, and the "
                f"model was built for {height} × {width}. Load them into a "
                f"model of {h} × {w}, and take "
                f"`model.resized(({height}, {width}))`."
            )
        super().load_own_variables(store)


@keras.saving.register_keras_serializable("d2l_attention")
class ContrastivePair(Configurable, keras.Model):
    """Two encoders whose vectors are alike for a picture and its text.

        u = W_u image_encoder(image),  v = W_v text_encoder(text)
        loss = contrastive_loss(u, v, e^τ)

    τ is learned. It begins at ln(1/0.07), and e^τ is kept at 100 or less. `fit`
    needs no labels: the other pairs of the batch are the wrong answers. The
    loss of one example depends on the whole batch, so `sample_weight` is
    refused; without labels, `fit` itself ignores it.

    Source: Radford et al. (2021), arXiv:2103.00020, sections 2.3 to 2.5.

    Args:
        image_encoder, text_encoder: Layers or models; each makes one vector
            `(B, …)` of an input.
        dim: Positive int, features of the space that both meet in.

    Call arguments:
        inputs: Dict of `"image"` and `"text"`, what the encoders take.
        training: Whether the encoders train.

    Returns:
        Dict of `"image"` and `"text"`, vectors `(B, dim)` of length 1.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from d2l_attention import ContrastivePair
        >>> encoders = keras.layers.Dense(4), keras.layers.Dense(4)
        >>> model = ContrastivePair(*encoders, dim=5)
        >>> found = model({"image": np.ones((2, 3)), "text": np.ones((2, 7))})
        >>> np.linalg.norm(np.array(found["image"]), axis=1).round(3).tolist()
        [1.0, 1.0]
        >>> print(np.array(model.scale()).round(2))
        14.29
    """

    def __init__(self, image_encoder, text_encoder, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = check_positive("dim", dim)
        self.image_encoder = image_encoder
        self.text_encoder = text_encoder
        dense = {"use_bias": False, "dtype": self.dtype_policy}
        self.image_layer = keras.layers.Dense(self.dim, name="W_u", **dense)
        self.text_layer = keras.layers.Dense(self.dim, name="W_v", **dense)
        self.log_scale = self.add_weight(
            (),
            keras.initializers.Constant(math.log(FIRST_SCALE)),
            name="log_scale",
            constraint=_at_most_the_largest,
        )

    def scale(self):
        """e^τ, the factor of the cosines."""
        return ops.exp(self.log_scale)

    def encode_image(self, images, training=None):
        """Vectors `(B, dim)` of length 1 of pictures."""
        x = self.image_encoder(images, training=training)
        return unit(self.image_layer(x))

    def encode_text(self, texts, training=None):
        """Vectors `(B, dim)` of length 1 of texts."""
        x = self.text_encoder(texts, training=training)
        return unit(self.text_layer(x))

    def build(self, input_shape):
        check_dict(input_shape, "image", "text")
        for name, encoder, layer in (
            ("image", self.image_encoder, self.image_layer),
            ("text", self.text_encoder, self.text_layer),
        ):
            if not encoder.built:
                encoder.build(input_shape[name])
            layer.build(encoder.compute_output_shape(input_shape[name]))

    def call(self, inputs, training=None):
        check_dict(inputs, "image", "text")
        return {
            "image": self.encode_image(inputs["image"], training),
            "text": self.encode_text(inputs["text"], training),
        }

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The contrastive loss of a batch; there are no labels and weights."""
        if sample_weight is not None:
            raise ValueError(
                "In a batch of pairs no example has a loss of its own, so "
                "there is no `sample_weight`. Received: "
                f"{type(sample_weight).__name__}."
            )
        loss = contrastive_loss(y_pred["image"], y_pred["text"], self.scale())
        return sum(self.losses, loss)


def _at_most_the_largest(log_scale):
    """After each step; so that τ can fall again, unlike with a minimum."""
    return ops.minimum(log_scale, math.log(LARGEST_SCALE))
