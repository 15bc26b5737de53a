"""A page to explore attention: it works offline, also in a notebook.

Tokens enter the page as text, never as markup or script, and the page's own
policy forbids every network request.
"""

import base64
import html
from importlib import resources
import json

from d2l_attention._atomic import write_whole
from d2l_attention.heatmaps.describe import describe_attention
from d2l_attention.heatmaps.display import display_figure
from d2l_attention.heatmaps.plots import plot_attention
from d2l_attention.heatmaps.selection import hide, select_maps
from d2l_attention.heatmaps.tokens import readable, right_to_left
import matplotlib
import numpy as np

LIMIT = 10_000_000  # bytes of a page
_NO_WEIGHT = 65535  # the two bytes of a cell that has no weight


def view_attention(
    weights,
    query_tokens=None,
    key_tokens=None,
    *,
    tokens=None,
    layers=None,
    heads=None,
    sample=0,
    mask=None,
):
    """A page on which readers choose layer and head, and read every cell.

    The page works by mouse, by keyboard and by screen reader. In a notebook
    it shows itself below a still picture, which notebooks that are not
    trusted show too.

    Weights are rounded to 1/65534 of the largest weight, which is the top of
    the colour scale. Cells that may not be attended are chequered.

    Args:
        weights: Float array `(H, T, S)` or `(B, H, T, S)`, or a mapping of
            layer path to such an array.
        query_tokens: List of str, the tokens of the rows. Rows behind the
            last token (padding) are left out.
        key_tokens: List of str, the tokens of the columns. Columns behind the
            last token are left out.
        tokens: Dict of layer path to a pair of lists (query tokens, key
            tokens), for layers with tokens of their own. Other layers take
            `query_tokens` and `key_tokens`.
        layers: A list of paths of a mapping, or a pattern like
            `"decoder/*/cross_attention"`. All layers by default.
        heads: List of int; all heads by default.
        sample: Int, which sentence of the batch.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend, or a
            dict of path to one.

    Returns:
        An `AttentionView`.

    Raises:
        ValueError: If the page would be larger than 10 MB, a weight is
            negative, no layer matches, or tokens do not fit.
    """
    maps = select_maps(
        weights, query_tokens, key_tokens, tokens, layers, heads, sample
    )
    size = sum(matrices.size for matrices, _, _ in maps.values()) * 8 // 3
    if size > LIMIT:
        raise ValueError(
            f"The page would have {size / 1e6:.1f} MB of weights; a page of "
            f"more than {LIMIT / 1e6:.0f} MB is slow in every browser. Choose "
            "fewer maps with `layers=` and `heads=`, or give shorter lists of "
            "tokens; rows and columns behind the last token are left out."
        )
    return AttentionView(maps, heads, mask)


class AttentionView:
    """The page that `view_attention` returns; a notebook displays it."""

    def __init__(self, maps, heads, mask):
        shown = {
            path: hide(matrices, mask, path)
            for path, (matrices, _, _) in maps.items()
        }
        values = [matrices.compressed() for matrices in shown.values()]
        lowest = min(v.min(initial=0.0) for v in values)
        if lowest < 0:
            raise ValueError(
                f"Weights must not be negative. Received: {lowest}."
            )
        most = float(max(v.max(initial=0.0) for v in values)) or 1.0
        layers = []
        for path, (_, queries, keys) in maps.items():
            matrices = shown[path]
            numbers = range(len(matrices)) if heads is None else heads
            layers.append(
                {
                    "path": path,
                    "heads": [int(head) for head in numbers],
                    "queries": _names(queries, matrices.shape[1]),
                    "keys": _names(keys, matrices.shape[2]),
                    "backward": right_to_left(keys),
                    "weights": _encode(matrices, most),
                }
            )
        self._data = {
            "colours": _colours(),
            "most": most,
            "layers": layers,
        }
        path, (_, queries, keys) = next(iter(maps.items()))
        # The picture that a notebook shows even if it is not trusted.
        self._still = (path, shown[path][0], queries, keys, most)

    def to_html(self):
        """The whole page, as a str."""
        page = resources.files(__package__) / "viewer.html"
        data = json.dumps(self._data)  # all ASCII
        for char in "<>&":
            data = data.replace(char, f"\\u{ord(char):04x}")
        before, after = page.read_text(encoding="utf-8").split("@DATA@")
        return before + data + after

    def save(self, path):
        """Write the page; it replaces an old file only when complete."""
        write_whole(path, self.to_html().encode())

    def _repr_html_(self):
        path, weights, queries, keys, most = self._still
        ax = plot_attention(
            weights.filled(np.nan), queries, keys, vmax=most, max_cells=500
        )
        alt = describe_attention(weights.filled(np.nan), queries, keys)
        still = display_figure(ax, f"{path} first head. {alt}".lstrip()).data
        page = html.escape(self.to_html(), quote=True)
        rows = max(len(layer["queries"]) for layer in self._data["layers"])
        height = min(900, 450 + 28 * rows)  # the page scrolls within
        return (
            f"<details open><summary>Still picture</summary>{still}</details>"
            '<iframe sandbox="allow-scripts" title="Attention, to explore" '
            f'style="width:100%;height:{height}px;border:0" '
            f'srcdoc="{page}"></iframe>'
        )

    def __repr__(self):
        paths = [layer["path"] for layer in self._data["layers"]]
        return f"AttentionView({paths})"


def _names(tokens, size):
    tokens = range(size) if tokens is None else tokens
    return [readable(token) for token in tokens]


def _encode(matrices, most):
    """The weights with two bytes for each cell, low byte first, as base64."""
    levels = np.rint(matrices.filled(0) / most * (_NO_WEIGHT - 1))
    levels = np.where(np.ma.getmaskarray(matrices), _NO_WEIGHT, levels)
    return base64.b64encode(levels.astype("<u2").tobytes()).decode()


def _colours():
    table = matplotlib.colormaps["viridis"](np.arange(256), bytes=True)
    return base64.b64encode(table[:, :3].tobytes()).decode()
