"""Random features: their directions, and the logarithms of the features."""

import math

import keras
from keras import ops


def orthogonal_directions(num_features, size, seed=None, dtype="float32"):
    """Random directions, orthogonal in blocks, each distributed as N(0, I).

        W_block = diag(r) Q sign(diag R),   Q R = a normal matrix,
        r = the lengths of other normal vectors

    Without the signs, the rows are not distributed as N(0, I), since QR
    decompositions fix the sign of R or of Q. Estimates are then biased, most
    of all where `size` is small.

    Source: Choromanski et al. (2021), arXiv:2009.14794, section 2.4;
    Mezzadri (2007), arXiv:math-ph/0609050, for the signs.

    Args:
        num_features: Positive int, F.
        size: Positive int, K.
        seed: Int or `keras.random.SeedGenerator`.
        dtype: Dtype of the result.

    Returns:
        Float tensor `(F, K)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import orthogonal_directions
        >>> w = np.array(orthogonal_directions(num_features=3, size=3, seed=0))
        >>> products = w @ w.T
        >>> off_diagonal = products[~np.eye(3, dtype=bool)]
        >>> bool(np.allclose(off_diagonal, 0, atol=1e-5))
        True
    """
    if not isinstance(seed, keras.random.SeedGenerator):
        seed = keras.random.SeedGenerator(seed)
    blocks = -(-num_features // size)
    shape = (blocks, size, size)
    q, r = ops.qr(keras.random.normal(shape, seed=seed, dtype="float32"))
    signs = ops.sign(ops.diagonal(r, axis1=1, axis2=2))[:, None]
    normal = keras.random.normal(shape, seed=seed, dtype="float32")
    lengths = ops.sqrt(ops.sum(normal**2, axis=-1, keepdims=True))
    directions = q * signs * lengths  # (blocks, K, K)
    directions = ops.reshape(directions, (blocks * size, size))
    return ops.cast(directions[:num_features], dtype)


def log_features(x, directions):
    """Logarithms of positive random features, which estimate exp(q·k / √K).

        log φ(x)_f = w_f·x / K^¼ − ‖x‖² / 2√K − log √F
        E[φ(q)·φ(k)] = exp(q·k / √K)   for w_f ~ N(0, I)

    Source: Choromanski et al. (2021), arXiv:2009.14794, lemma 1.

    Args:
        x: Float tensor `(…, K)`.
        directions: Float tensor `(F, K)`, rows w_f.

    Returns:
        Float tensor `(…, F)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import log_features
        >>> x, directions = np.array([[2.0]]), np.array([[3.0]])
        >>> np.array(log_features(x, directions)).round(2).tolist()  # 6 − 4/2
        [[4.0]]
    """
    num_features, size = directions.shape
    x = x / size**0.25
    half = ops.sum(x * x, axis=-1, keepdims=True) / 2  # (…, 1)
    projected = ops.matmul(x, ops.transpose(directions))  # (…, F)
    return projected - half - math.log(num_features) / 2


@keras.saving.register_keras_serializable("d2l_attention")
class OrthogonalDirections(keras.initializers.Initializer):
    """Initializer that draws `orthogonal_directions`."""

    def __init__(self, seed=None):
        self.seed = seed

    def __call__(self, shape, dtype=None):
        return orthogonal_directions(*shape, self.seed, dtype or "float32")

    def get_config(self):
        return {"seed": self.seed}
