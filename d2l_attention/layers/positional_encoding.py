"""The position of a token, as a vector that is added to the token's own."""

from d2l_attention._checks import check_positive, refuse
from d2l_attention._config import Configurable
import keras
from keras import ops
import numpy as np


def sinusoidal_encoding(length, dim):
    """Sines and cosines of the position; each pair has its own wavelength.

        P[t, 2j] = sin(t / 10000^(2j/D)),  P[t, 2j + 1] = cos(t / 10000^(2j/D))

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.5; documents
    001 (positional encoding) and 002.

    Args:
        length, dim: Ints, T positions and D features. If D is odd, the last
            cosine is left out.

    Returns:
        float32 array `(T, D)`.

    Example:
        >>> from d2l_attention import sinusoidal_encoding
        >>> print(sinusoidal_encoding(2, 4).round(2))  # sin 1 = 0.84
        [[0.   1.   0.   1.  ]
         [0.84 0.54 0.01 1.  ]]
    """
    pairs = np.arange(0, dim, 2)  # 2j
    angles = np.arange(length)[:, None] / 10000 ** (pairs / dim)  # (T, D/2)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # (T, D/2, 2)
    return waves.reshape(length, -1)[:, :dim].astype("float32")


class _PositionalEncoding(Configurable, keras.Layer):
    """Adds rows `start … start + T − 1` of a table `(max_length, D)`."""

    def __init__(self, max_length=1000, **kwargs):
        super().__init__(**kwargs)
        self.max_length = check_positive("max_length", max_length)
        self.supports_masking = True

    def call(self, x, start=0):
        if len(x.shape) != 3:
            raise ValueError(
                "x must have three axes (batch, positions, features). "
                f"Received: shape {tuple(x.shape)}."
            )
        length = x.shape[1]
        if isinstance(start, int) and isinstance(length, int):
            if start < 0 or start + length > self.max_length:
                raise ValueError(self._too_few(start + length - 1, start))
            return x + ops.cast(self.table[start : start + length], x.dtype)
        if isinstance(length, int) and length > self.max_length:
            raise ValueError(self._too_few(length - 1))
        steps = ops.arange(ops.shape(x)[1], dtype="int32")
        start = ops.reshape(ops.cast(start, "int32"), (-1, 1))
        positions = start + steps  # (1, T) or (B, T)
        rows = ops.clip(positions, 0, self.max_length - 1)
        rows = ops.cast(ops.take(self.table, rows, axis=0), x.dtype)
        return refuse(
            ops.greater_equal(positions, self.max_length),
            x + rows,  # (B, T, D)
            lambda: self._too_few(int(ops.max(positions))),
        )

    def _too_few(self, last, first=0):
        return (
            f"There are {self.max_length} positions, 0 … {self.max_length - 1}."
            f" Received: tokens at the positions {first} … {last}."
        )

    def compute_output_shape(self, x_shape):
        return tuple(x_shape)


@keras.saving.register_keras_serializable("d2l_attention")
class PositionalEncoding(_PositionalEncoding):
    """Adds `sinusoidal_encoding` to the tokens; nothing is learned.

        output_t = x_t + P[start + t]

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.5; documents
    001 (positional encoding) and 002.

    Args:
        max_length: Positive int, number of positions.

    Call arguments:
        x: Float tensor `(B, T, D)`, as the output is.
        start: Int, or int tensor `()` or `(B,)`, position of the first token
            of `x`. A decoder that feeds one token at a time passes its step.

    A tensor `start` may be negative, where padding stands before a text: the
    tokens before position 0 are given that of 0. In a graph, which knows no
    values, a token at a position of `max_length` or more becomes NaN.

    Raises:
        ValueError: If `max_length` is not positive, `x` has not three axes,
            or there are fewer positions than tokens need.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PositionalEncoding
        >>> layer, token = PositionalEncoding(max_length=9), np.zeros((1, 1, 4))
        >>> print(np.array(layer(token, start=5)).round(2))  # sin 5 = −0.96
        [[[-0.96  0.28  0.05  1.  ]]]
    """

    def build(self, input_shape):
        self.table = sinusoidal_encoding(self.max_length, input_shape[-1])


@keras.saving.register_keras_serializable("d2l_attention")
class LearnedPositionalEncoding(_PositionalEncoding):
    """Adds a learned vector for each position.

        output_t = x_t + table[start + t]

    Source: Gehring et al. (2017), arXiv:1705.03122, section 3.1; document
    002.

    Args:
        max_length: Positive int, number of positions, each with a vector.

    The call and its errors are those of `PositionalEncoding`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LearnedPositionalEncoding
        >>> layer = LearnedPositionalEncoding(max_length=9)
        >>> output = layer(np.zeros((1, 2, 4)), start=3)
        >>> bool(np.allclose(output[0], layer.table[3:5]))
        True
    """

    def build(self, input_shape):
        self.table = self.add_weight(
            (self.max_length, input_shape[-1]),
            keras.initializers.RandomNormal(stddev=0.02),
            name="table",
        )
