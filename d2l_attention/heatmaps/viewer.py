"""A page to explore attention: it works offline, also in a notebook.

Tokens enter the page as text, never as markup or script. What the page does
stands in the folder `page`, in files of HTML, CSS and JavaScript.
"""

from d2l_attention._page import Page
from d2l_attention.heatmaps.describe import describe_attention
from d2l_attention.heatmaps.display import display_figure
from d2l_attention.heatmaps.opening import (
    check_sentence,
    first_shown,
    head_numbers,
    sentence_start,
)
from d2l_attention.heatmaps.packing import pack_weights, packed_size
from d2l_attention.heatmaps.palette import viridis
from d2l_attention.heatmaps.plots import plot_attention
from d2l_attention.heatmaps.selection import hide, select_maps
from d2l_attention.heatmaps.tokens import readable, right_to_left
import numpy as np

LIMIT = 10_000_000  # bytes of a page
_SCRIPTS = (  # each may use what stands before it
    "data",
    "text",
    "colours",
    "pen",
    "map",
    "pointer",
    "overview",
    "links",
    "lines",
    "export",
    "main",
)


def view_attention(
    weights,
    *,
    query_tokens=None,
    key_tokens=None,
    tokens=None,
    layers=None,
    heads=None,
    sample=0,
    mask=None,
    layer=None,
    head=None,
    view="map",
    sentence_b=None,
):
    """A page on which readers choose layer and head, and read every cell.

    The page has three views: an overview of all layers and heads, a map of
    one head, and lines between tokens, in which heads lie over each other. It
    works by mouse, touch, keyboard and screen reader. In a notebook it shows
    itself below a still picture, which notebooks that are not trusted show
    too.

    Layers of at most 64 queries and keys are rounded to 1/65534 of the
    largest weight of all. Longer ones are rounded to 1/254 of the largest
    weight of the row, or more coarsely where the page would exceed 2 MB. The
    page says which. Cells that may not be attended are hatched.

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
        layer: Str, path of the layer that is shown first.
        head: Int, number of the head that is shown first, or `"mean"`.
        view: `"overview"`, `"map"` or `"lines"`, the view that is shown
            first.
        sentence_b: Int, position of the first token of the second sentence,
            if the tokens are of two sentences. The page then offers to show
            the weights within and between the two.

    Returns:
        An `AttentionView`.

    Raises:
        ValueError: If the page could be larger than 10 MB, a weight is
            negative, no layer matches, tokens do not fit, or there is no such
            `layer`, `head`, `view` or `sentence_b`.
    """
    maps = select_maps(
        weights, query_tokens, key_tokens, tokens, layers, heads, sample
    )
    size = packed_size({path: found[0] for path, found in maps.items()})
    if size > LIMIT:
        raise ValueError(
            f"The page would have {size / 1e6:.1f} MB of weights; a page of "
            f"more than {LIMIT / 1e6:.0f} MB is slow in every browser. Choose "
            "fewer maps with `layers=` and `heads=`, or give shorter lists of "
            "tokens; rows and columns behind the last token are left out."
        )
    check_sentence(maps, sentence_b)
    first = first_shown(maps, heads, layer, head, view)
    return AttentionView(maps, heads, mask, first, sentence_b)


class AttentionView(Page):
    """The page that `view_attention` returns; a notebook displays it."""

    still_folds = True

    def __init__(self, maps, heads, mask, first, sentence_b):
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
        packed = pack_weights(shown, most)
        data = {
            "colours": viridis(),
            "most": most,
            "first": first,
            "layers": [
                {
                    "path": path,
                    "kind": _kind(path),
                    "heads": head_numbers(matrices, heads),
                    "queries": _names(queries, matrices.shape[1]),
                    "keys": _names(keys, matrices.shape[2]),
                    "backward": right_to_left(keys),
                    "sentence_b": sentence_start(matrices, sentence_b),
                    **packed[path],
                }
                for path, (matrices, queries, keys) in maps.items()
            ],
        }
        super().__init__(
            "Attention",
            package=__package__,
            body="page/body.html",
            styles=["page/page.css"],
            scripts=[f"page/{name}.js" for name in _SCRIPTS],
            data=data,
        )
        path = list(maps)[first["layer"]]
        # The picture that a notebook shows even if it is not trusted.
        self._shown_first = _first_map(path, shown[path], first["head"], heads)
        self._tokens = maps[path][1:]

    def _still(self):
        title, weights = self._shown_first
        queries, keys = self._tokens
        tokens = {"query_tokens": queries, "key_tokens": keys}
        ax = plot_attention(
            weights, **tokens, vmax=self._data["most"], max_cells=500
        )
        alt = describe_attention(weights, **tokens)
        return display_figure(ax, f"{title}. {alt}")

    def _height(self):
        return f"{_pixels(self._data)}px"

    def __repr__(self):
        paths = [layer["path"] for layer in self._data["layers"]]
        return f"AttentionView({paths})"


def _first_map(path, matrices, head, heads):
    """Title and weights of the map that a notebook shows as a picture."""
    if head == -1:
        title, weights = "mean of the heads", matrices.mean(0)
    elif head is None:
        title, weights = "first head", matrices[0]
    else:
        title = f"head {head_numbers(matrices, heads)[head]}"
        weights = matrices[head]
    return f"{path} {title}".lstrip(), weights.filled(np.nan)


def _kind(path):
    """What attends to what, as far as the path of the layer says."""
    kinds = ("cross", "decoder", "encoder")  # a decoder has cross-attention
    return next((kind for kind in kinds if kind in path.lower()), "")


def _names(tokens, size):
    tokens = range(size) if tokens is None else tokens
    return [readable(token) for token in tokens]


def _pixels(data):
    """Pixels of the frame in a notebook, as the page's style lays it out.

    A page that turns out higher scrolls within its frame.
    """
    layer, view = data["layers"][data["first"]["layer"]], data["first"]["view"]
    queries, keys = layer["queries"], layer["keys"]
    if view == "overview":
        height = 210 + 80 * len(data["layers"])
    elif view == "lines":
        height = 280 + 22 * max(len(queries), len(keys))
    else:
        label = 7 * min(14, max(map(len, keys)))
        lists = sum(_pixels_of_list(tokens) for tokens in (queries, keys))
        height = 340 + 28 * len(queries) + label + lists
    return min(900, height)


def _pixels_of_list(tokens):
    """Pixels of a list of tokens that is about 900 pixels wide."""
    width = sum(8 * min(20, len(token)) + 14 for token in tokens)
    return min(126, 24 * -(-width // 900))
