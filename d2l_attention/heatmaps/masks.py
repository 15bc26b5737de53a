"""Attention where a mask forbids it."""

from typing import NamedTuple

from d2l_attention._checks import as_array
from d2l_attention.heatmaps.selection import by_path, check_mapping, to_numpy
import numpy as np


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


def check_attention_masks(
    maps,
    key_mask=None,
    *,
    query_mask=None,
    use_causal_mask=False,
    window=None,
    tolerance=1e-6,
):
    """Find attention on padding, on the future, or outside a window.

    Each argument but the last may be a dict of path, or of a pattern like
    `"decoder/*"`, to what holds there; other layers are then not checked for
    it. Rows of padding count, too, unless `query_mask` says which they are, or
    they look at all keys evenly: Keras leaves such rows where a mask allows
    nothing.

    Args:
        maps: Mapping of layer path to weights `(B, H, T, S)`.
        key_mask: Bool array `(B, S)`, True at tokens.
        query_mask: Bool array `(B, T)`, True at the rows to check; all by
            default.
        use_causal_mask: Bool, whether row t may attend to the columns
            s ≤ t + S − T only, as `causal_mask(T, S)` has it: the last row
            sees all.
        window: Pair of ints, how far back and ahead a row may attend, as in
            `window_mask`.
        tolerance: Float, the share of a row that is not yet a leak.

    Returns:
        List of `MaskLeak(layer, head, kind, mass)`; `mass` is the largest
        share of a row. There is one leak for each layer, head and kind that
        has any.

    Raises:
        TypeError: If `maps` is not a mapping.
        ValueError: If no argument says where a row may not attend, a mask
            does not fit its layer or is for a path that is not there, or
            `window` is not a pair.

    Example:
        >>> off_by_one = np.array([[[[0.0, 0.0, 1.0]] * 3]])
        >>> (leak,) = check_attention_masks(
        ...     {"layer": off_by_one}, window=(1, 1)
        ... )
        >>> leak.kind, leak.mass
        ('keys outside its window', 1.0)
    """
    check_mapping(maps)
    if key_mask is None and window is None and not use_causal_mask:
        raise ValueError(
            "There is nothing to check. Name what the model promises: "
            "`key_mask=` where there is padding, `use_causal_mask=True`, or "
            "`window=(before, after)`."
        )
    options = {
        "key_mask": key_mask,
        "query_mask": query_mask,
        "use_causal_mask": use_causal_mask,
        "window": window,
    }
    options = {
        name: by_path(name, given, maps) for name, given in options.items()
    }
    leaks = []
    for path, weights in maps.items():
        weights = to_numpy(weights, f"weights of {path!r}", 4)
        weights = np.nan_to_num(weights)  # keys that did not exist yet
        here = {name: given[path] for name, given in options.items()}
        rows, forbidden = _forbidden(path, weights, **here)
        for kind, cells in forbidden.items():
            mass = (weights * cells[:, None]).sum(-1) * rows[:, None]
            for head, most in enumerate(mass.max(axis=(0, 2))):
                if most > tolerance:
                    leaks.append(MaskLeak(path, head, kind, float(most)))
    return leaks


def _forbidden(path, weights, key_mask, query_mask, use_causal_mask, window):
    """The rows to check `(B, T)`, and the cells `(B, T, S)` of each kind."""
    batch, _, t, s = weights.shape
    offsets = np.arange(s) - np.arange(t)[:, None] - (s - t)
    forbidden = {}
    rows = np.ones((batch, t), bool)
    if key_mask is not None:
        keys = _fitting(key_mask, (batch, s), "key", path)
        forbidden["padding"] = np.broadcast_to(~keys[:, None], (batch, t, s))
        if t == s:
            even = np.isclose(weights, 1 / s, rtol=1e-2).all(axis=(1, 3))
            rows = keys | ~even
    if query_mask is not None:
        rows = _fitting(query_mask, (batch, t), "query", path)
    if use_causal_mask:
        forbidden["the future"] = (offsets > 0)[None]
    if window is not None:
        if np.shape(window) != (2,):
            raise ValueError(
                "`window` must be a pair (before, after), how far back and "
                f"ahead a row may attend. Received: {window!r}."
            )
        before, after = window
        outside = (offsets < -before) | (offsets > after)
        forbidden["keys outside its window"] = outside[None]
    return rows, forbidden


def _fitting(mask, shape, kind, path):
    mask = as_array(mask, bool)
    if mask.shape != shape:
        raise ValueError(
            f"The {kind} mask of {path!r} must be {shape}, its sentences and "
            f"their positions. Received: shape {mask.shape}."
        )
    return mask
