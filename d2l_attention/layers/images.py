"""Pictures as tokens, learned queries, and a loss for pairs.

A picture is cut into patches, and each patch is a token. A few learned
queries read any number of tokens. Two encoders learn from pairs alone.
"""

from d2l_attention._checks import check_positive, check_rate, differ
from d2l_attention._config import Configurable
from d2l_attention.layers.base import drop, output_spec, wide
from d2l_attention.layers.masking import merge_masks
from d2l_attention.layers.multi_head import (
    HeadProjections,
    multi_head_attention,
)
from d2l_attention.layers.reshaping import reshape
import keras
from keras import ops


def patches(images, size):
    """Cut pictures into squares, each a row of numbers.

        patch n = r · columns + c  has the pixels
            images[r size … (r + 1) size − 1, c size … (c + 1) size − 1]

    Patches are numbered row by row from the top left, and so are the pixels of
    a patch; the channels of a pixel are adjacent. A dense layer on them is a
    convolution whose stride is its size, with the same kernel.

    A height or width that only the graph knows is checked as it runs, by the
    backend's reshape.

    Source: Dosovitskiy et al. (2021), arXiv:2010.11929, section 3.1.

    Args:
        images: Tensor `(B, height, width, channels)`.
        size: Positive int, pixels on a side of a patch; divides height and
            width.

    Returns:
        Tensor `(B, N, size · size · channels)` with N = rows · columns.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import patches
        >>> pixels = np.arange(16).reshape(1, 4, 4, 1)
        >>> np.array(patches(pixels, 2))[0].tolist()[1]  # at the top right
        [2, 3, 6, 7]
    """
    images = ops.convert_to_tensor(images)
    check_grid(images.shape, size)
    batch, height, width, channels = ops.shape(images)
    rows, columns = height // size, width // size
    is_known = isinstance(rows, int) and isinstance(columns, int)
    # With −1, a size that does not divide would mix pictures of a batch.
    cut = reshape if is_known else ops.reshape
    pixels = cut(images, (batch, rows, size, columns, size, channels))
    pixels = ops.transpose(pixels, (0, 1, 3, 2, 4, 5))
    return cut(pixels, (batch, rows * columns, size * size * channels))


def check_grid(shape, size):
    """Rows and columns of the patches of pictures; None where unknown."""
    check_positive("size", size)
    if len(shape) != 4:
        raise ValueError(
            "Pictures must have four axes (batch, height, width, channels). "
            f"Received: {tuple(shape)}."
        )
    for name, pixels in zip(("height", "width"), shape[1:3], strict=True):
        if isinstance(pixels, int) and pixels % size:
            raise ValueError(
                f"Patches of {size} × {size} pixels must fill the picture, and "
                f"{size} does not divide its {name} of {pixels}. Received: "
                f"{tuple(shape)}."
            )
    return tuple(
        pixels // size if isinstance(pixels, int) else None
        for pixels in shape[1:3]
    )


@keras.saving.register_keras_serializable("d2l_attention")
class PatchEmbedding(Configurable, keras.Layer):
    """A token for each patch of a picture.

        token n = W (pixels of patch n) + b

    Source: Dosovitskiy et al. (2021), arXiv:2010.11929, equation 1, without
    its [CLS] and positions.

    Args:
        patch_size: Positive int, pixels on a side of a patch.
        dim: Positive int, features D of a token.

    Call arguments:
        x: Float tensor `(B, height, width, channels)`.

    Returns:
        Float tensor `(B, N, D)`, the patches row by row.

    Example:
        >>> import numpy as np
        >>> import keras
        >>> from d2l_attention import PatchEmbedding
        >>> image = np.random.default_rng(0).random((1, 6, 9, 3))
        >>> layer = PatchEmbedding(3, 5)
        >>> tokens = layer(image)
        >>> convolution = keras.layers.Conv2D(5, 3, strides=3, use_bias=False)
        >>> convolution.build(image.shape)
        >>> kernel = np.array(layer.dense.kernel).reshape(3, 3, 3, 5)
        >>> _ = convolution.kernel.assign(kernel)  # the same numbers
        >>> rows = np.array(convolution(image)).reshape(1, 6, 5)
        >>> bool(np.allclose(rows, tokens, atol=1e-5))
        True
    """

    def __init__(self, patch_size, dim, **kwargs):
        super().__init__(**kwargs)
        self.patch_size = check_positive("patch_size", patch_size)
        self.dim = check_positive("dim", dim)
        self.dense = keras.layers.Dense(self.dim, dtype=self.dtype_policy)

    def build(self, x_shape):
        check_grid(x_shape, self.patch_size)
        features = self.patch_size**2 * x_shape[-1]
        self.dense.build((None, None, features))

    def call(self, x):
        return self.dense(patches(x, self.patch_size))

    def compute_output_shape(self, x_shape):
        rows, columns = check_grid(x_shape, self.patch_size)
        known = rows is not None and columns is not None
        return x_shape[0], rows * columns if known else None, self.dim


@keras.saving.register_keras_serializable("d2l_attention")
class LearnedQueryAttention(HeadProjections):
    """A few learned queries read all tokens: T vectors for any number of them.

        head_h = softmax(I W_q,h (X W_k,h)ᵀ / √K) X W_v,h
        output = [head_1; …; head_H] W_o

    The queries I `(T, D)` are parameters, the same for every input. Neither the
    order of the tokens nor a second copy of each changes the output. Padding is
    read by none, but has to be finite, since 0 · NaN is NaN.

    Source: Lee et al. (2019), arXiv:1810.00825, section 3.2 (pooling by
    multi-head attention); Jaegle et al. (2021), arXiv:2103.03206, section 3.1
    (Perceiver); Li et al. (2023), arXiv:2301.12597, section 3.1 (Q-Former).
    Unlike these, it is the attention alone, without residual, norm or a
    position-wise net.

    Args:
        num_queries: Positive int, T.
        num_heads, key_dim: As in `MultiHeadAttention`.
        dropout, value_dim, output_dim, use_bias: As there.

    Call arguments:
        x: Float tensor `(B, S, D)`.
        mask: Bool tensor `(B, S)`, True at the tokens that exist.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked the weights `(B, H, T, S)` as
        they were before dropout. Where no token exists, weights are 0.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LearnedQueryAttention
        >>> layer = LearnedQueryAttention(2, num_heads=1, key_dim=4)
        >>> x = np.random.default_rng(0).normal(size=(1, 3, 5))
        >>> twice = np.concatenate([x, x], axis=1)  # six tokens
        >>> bool(np.allclose(layer(x), layer(twice), atol=1e-5))
        True
    """

    def __init__(
        self, num_queries, num_heads, key_dim, *, dropout=0.0, **options
    ):
        super().__init__(num_heads, key_dim, **options)
        self.num_queries = check_positive("num_queries", num_queries)
        self.dropout = check_rate("dropout", dropout)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )

    # Keras looks for an argument of `call` for each shape that is named here.
    def build(self, x_shape):
        super().build(x_shape)
        # As large as a token that was normalized.
        normal = keras.initializers.RandomNormal(stddev=1.0)
        shape = (self.num_queries, x_shape[-1])
        self.queries = self.add_weight(shape, normal, name="queries")

    def attend(self, query, key, value, mask=None, *, training=None):
        """Output and weights for projected queries, keys and values."""
        heads, weights = multi_head_attention(
            query,  # (B, T, H, K)
            key,  # (B, S, H, K)
            value,  # (B, S, H, V)
            mask,
            lambda weights: drop(self.dropout_layer, weights, training),
        )
        return self.join_heads(heads), weights  # (B, T, D), (B, H, T, S)

    def call(
        self, x, *, mask=None, return_attention_scores=False, training=None
    ):
        queries = self.project_query(ops.expand_dims(self.queries, 0))
        shape = (ops.shape(x)[0], *queries.shape[1:])
        output, weights = self.attend(
            ops.broadcast_to(queries, shape),
            self.project_key(x),
            self.project_value(x),
            merge_masks(None, mask),
            training=training,
        )
        return (output, weights) if return_attention_scores else output

    def compute_mask(self, x, mask=None):
        return None  # the output has other positions

    def compute_output_shape(self, x_shape):
        features = self.output_dim or x_shape[-1]
        return x_shape[0], self.num_queries, features

    def compute_output_spec(
        self, x, *, mask=None, return_attention_scores=False, training=None
    ):
        batch, size, _ = x.shape
        return output_spec(
            self,
            self.compute_output_shape(x.shape),
            (batch, self.num_heads, self.num_queries, size),
            return_attention_scores,
        )


def unit(x):
    """Vectors along the last axis divided by their lengths, in float32."""
    x = ops.convert_to_tensor(x)
    x = ops.cast(x, wide(x.dtype))
    return x / ops.maximum(ops.norm(x, axis=-1, keepdims=True), 1e-12)


def contrastive_loss(images, texts, scale):
    """How badly each of B pictures finds its text among B, and each text it.

        z_ij = scale û_i · v̂_j
        rows    = mean_i (ln Σ_j e^{z_ij} − z_ii)
        columns = mean_j (ln Σ_i e^{z_ij} − z_jj)
        loss    = (rows + columns) / 2

    Source: Radford et al. (2021), arXiv:2103.00020, figure 3.

    Args:
        images, texts: Float tensors `(B, D)`; row i of both is one pair. They
            are divided by their lengths here.
        scale: Positive float or tensor `()`, one over the temperature.

    Returns:
        Float tensor `()`: ln B if all pairs are alike.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import contrastive_loss
        >>> alike, apart = np.ones((8, 3)), np.eye(8)
        >>> print(np.array(contrastive_loss(alike, alike, 1.0)).round(3))
        2.079
        >>> print(np.array(contrastive_loss(apart, apart, 1.0)).round(3))
        1.274
    """
    images, texts = (ops.convert_to_tensor(x) for x in (images, texts))
    shapes = tuple(images.shape), tuple(texts.shape)
    if [*map(len, shapes)] != [2, 2] or any(map(differ, *shapes)):
        raise ValueError(
            "There must be one text for each picture, both (B, D). Received: "
            f"images {shapes[0]}, texts {shapes[1]}."
        )
    images, texts = unit(images), unit(texts)
    z = ops.matmul(images, ops.transpose(texts))  # (B, B)
    z = ops.cast(scale, z.dtype) * z
    right = ops.diagonal(z)
    rows = ops.mean(ops.logsumexp(z, axis=1) - right)
    columns = ops.mean(ops.logsumexp(z, axis=0) - right)
    return (rows + columns) / 2
