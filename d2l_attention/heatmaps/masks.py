"""Attention where a mask forbids it."""

from typing import NamedTuple

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
    maps, key_mask=None, *, use_causal_mask=False, tolerance=1e-6
):
    """Find attention on padding, or on the future.

    Where T = S the queries are taken to be the keys, and the rows of padding
    are not checked.

    Args:
        maps: Mapping of layer path to weights `(B, H, T, S)`.
        key_mask: Bool array `(B, S)`, True at tokens, or a dict of path to
            such an array.
        use_causal_mask: Whether row t may attend to the columns s ≤ t + S − T
            only, as `causal_mask(T, S)` has it: the last row sees all.
        tolerance: Float, the share of a row that is not yet a leak.

    Returns:
        List of `MaskLeak(layer, head, kind, mass)`; `mass` is the largest
        share of a row. There is one leak for each layer, head and kind that
        has any.

    Raises:
        ValueError: If a mask does not fit its layer, or is for a path that
            is not there.
    """
    if isinstance(key_mask, dict):
        _check_paths(key_mask, maps)
    leaks = []
    for path, weights in maps.items():
        weights = np.asarray(weights, "float64")
        batch, num_heads, t, s = weights.shape
        mask = key_mask
        if isinstance(key_mask, dict):  # a later call has its layer's mask
            mask = key_mask.get(path, key_mask.get(path.split("#")[0]))
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
        if use_causal_mask:
            future = np.triu(np.ones((t, s), bool), 1 + s - t)
            forbidden["the future"] = future[None]
        for kind, cells in forbidden.items():
            mass = (weights * cells[:, None]).sum(-1) * rows[:, None]
            for head, most in enumerate(mass.max(axis=(0, 2))):
                if most > tolerance:
                    leaks.append(MaskLeak(path, head, kind, float(most)))
    return leaks


def _check_paths(masks, maps):
    known = {*maps, *(path.split("#")[0] for path in maps)}
    unknown = [path for path in masks if path not in known]
    if unknown:
        raise ValueError(
            f"There are masks for {unknown}, which are not among the maps: "
            f"{list(maps)}."
        )
