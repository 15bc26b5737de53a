"""Heatmaps in words."""

from d2l_attention.heatmaps.selection import hide, to_numpy
from d2l_attention.heatmaps.tokens import readable
import numpy as np


def describe_attention(
    weights, *, query_tokens=None, key_tokens=None, mask=None, top=3
):
    """A heatmap in words, for readers who cannot see it.

    Args:
        weights: Float array `(T, S)`.
        query_tokens: List of T str.
        key_tokens: List of S str.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend.
        top: Int, number of the largest weights to name.

    Returns:
        Str of one or two sentences.

    Raises:
        ValueError: If `weights` does not have two axes, or the tokens do not
            fit it.
    """
    weights = to_numpy(weights, "weights", 2)
    queries = _names(query_tokens, 0, weights.shape)
    keys = _names(key_tokens, 1, weights.shape)
    shown = hide(weights, mask)
    text = f"Heatmap of {len(queries)} queries by {len(keys)} keys"
    largest = [
        f"“{queries[t]}” to “{keys[s]}” {shown[t, s]:.2f}"
        for t, s in _largest_cells(shown, top)
    ]
    if largest:
        text += (
            f", weights from {shown.min():.2f} to {shown.max():.2f}. "
            f"Largest: {', '.join(largest)}"
        )
    hidden = np.ma.count_masked(shown)
    masked = "1 cell is masked" if hidden == 1 else f"{hidden} cells are masked"
    return f"{text}. {masked}." if hidden else f"{text}."


def _names(tokens, axis, shape):
    """Readable tokens of an axis; its positions if there are no tokens."""
    tokens = range(shape[axis]) if tokens is None else tokens
    if len(tokens) != shape[axis]:
        raise ValueError(
            "There must be a token for each row and column. Received: "
            f"{len(tokens)} tokens for weights of shape {shape}."
        )
    return [readable(token) for token in tokens]


def _largest_cells(weights, number):
    """Row and column of the largest weights that are not masked."""
    order = np.argsort(-weights.filled(-np.inf), axis=None, kind="stable")
    cells = zip(*np.unravel_index(order, weights.shape), strict=True)
    shown = [cell for cell in cells if weights[cell] is not np.ma.masked]
    return shown[:number]
