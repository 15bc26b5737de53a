"""Which tokens are global, and who may attend to whom because of them."""

from d2l_attention.masking import causal_mask, window_mask
import keras
from keras import ops
import numpy as np


def longformer_mask(
    num_tokens, window, global_positions=(), use_causal_mask=False
):
    """Which pairs of tokens `longformer_attention` lets attend.

        mask[t, s] = |t − s| ≤ window, or t or s is global

    Args:
        num_tokens: Int, T = S.
        window: Non-negative int, tokens on each side.
        global_positions: Ints, or an int tensor `(G,)`.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Bool tensor `(T, T)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import longformer_mask
        >>> mask = longformer_mask(4, window=1, global_positions=[0])
        >>> print(np.array(mask).astype(int))
        [[1 1 1 1]
         [1 1 1 0]
         [1 1 1 1]
         [1 0 1 1]]
    """
    near = window_mask(num_tokens, num_tokens, window, window)
    positions = to_positions(global_positions)
    is_global = is_among(positions[None], num_tokens)[0]  # (T,)
    mask = ops.logical_or(near, is_global)  # (T, T)
    mask = ops.logical_or(mask, is_global[:, None])
    if use_causal_mask:
        mask = ops.logical_and(mask, causal_mask(num_tokens))
    return mask


def to_positions(positions):
    """The positions as a tensor; refuse a mask, which is read as 0 and 1."""
    if not hasattr(positions, "dtype"):
        positions = np.asarray(positions)
    dtype = keras.backend.standardize_dtype(positions.dtype)
    if "int" not in dtype and 0 not in positions.shape:
        raise ValueError(
            "`global_positions` must be integers, the places of the global "
            f"tokens. Received: dtype {dtype}. For a mask of tokens, take "
            "`np.flatnonzero(mask)`."
        )
    return ops.cast(positions, "int32")


def of_each_sample(positions, batch):
    """Positions `(G,)` or `(B, G)` as `(B, G)`."""
    positions = to_positions(positions)
    if len(positions.shape) == 1:
        positions = ops.tile(positions[None], (batch, 1))
    return positions


def is_among(positions, num_tokens):
    """Whether each token is among the positions `(B, G)`: `(B, T)`."""
    tokens = ops.arange(num_tokens, dtype="int32")
    return ops.any(ops.equal(tokens, ops.expand_dims(positions, -1)), axis=1)


def counts_once(positions):
    """Whether each of `(B, G)` is a token that no earlier position names."""
    same = ops.equal(  # (B, G, G)
        ops.expand_dims(positions, -1), ops.expand_dims(positions, 1)
    )
    so_far = ops.cast(causal_mask(positions.shape[-1]), "int32")
    occurrence = ops.sum(ops.cast(same, "int32") * so_far, axis=-1)
    return ops.logical_and(positions >= 0, occurrence == 1)
