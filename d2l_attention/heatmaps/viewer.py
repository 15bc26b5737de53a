"""A page to explore attention: it works offline, also in a notebook.

What the page does stands in the folder `page`. Tokens enter it as text, never
as markup or script.
"""

import base64
from numbers import Integral
import zlib

from d2l_attention._page import Page
from d2l_attention.heatmaps.display import describe_attention, display_figure
from d2l_attention.heatmaps.labels import readable, right_to_left
from d2l_attention.heatmaps.palette import viridis
from d2l_attention.heatmaps.plots import plot_attention, tell_sums
from d2l_attention.heatmaps.selection import matrices_of, select_maps
import numpy as np

_LIMIT = 10_000_000  # bytes of a page
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
    window=None,
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
        weights, query_tokens, key_tokens, tokens: As in `plot_attention_grid`.
        layers, heads, sample, window, mask: As in `plot_attention_grid`.
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
        weights,
        query_tokens,
        key_tokens,
        tokens,
        layers,
        heads,
        sample,
        mask,
        window,
    )
    size = _packed_size(matrices_of(maps))
    if size > _LIMIT:
        raise ValueError(
            f"The page would have {size / 1e6:.1f} MB of weights; a page of "
            f"more than {_LIMIT / 1e6:.0f} MB is slow in every browser. Choose "
            "fewer maps with `layers=` and `heads=`, or give shorter lists of "
            "tokens; rows and columns after the last token are left out."
        )
    _check_sentence(maps, sentence_b)
    first = _first_shown(maps, heads, layer, head, view)
    return AttentionView(maps, heads, first, sentence_b)


class AttentionView(Page):
    """The page that `view_attention` returns; a notebook displays it."""

    still_folds = True

    def __init__(self, maps, heads, first, sentence_b):
        shown = matrices_of(maps)
        values = [matrices.compressed() for matrices in shown.values()]
        lowest = min(v.min(initial=0.0) for v in values)
        if lowest < 0:
            raise ValueError(
                f"Weights must not be negative. Received: {lowest}."
            )
        most = float(max(v.max(initial=0.0) for v in values)) or 1.0
        packed = _pack_weights(shown, most)
        data = {
            "colours": viridis(),
            "most": most,
            "first": first,
            "layers": [
                {
                    "path": path,
                    "kind": _kind(path),
                    "heads": _head_numbers(matrices, heads),
                    "queries": _names(queries, matrices.shape[1]),
                    "keys": _names(keys, matrices.shape[2]),
                    "backward": right_to_left(keys),
                    "sentence_b": _sentence_start(matrices, sentence_b),
                    "sums": tell_sums(matrices.data),
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
        title = f"head {_head_numbers(matrices, heads)[head]}"
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
    """Pixels of the frame in a notebook of about 1000 pixels.

    A page that turns out higher scrolls within its frame.
    """
    layer, view = data["layers"][data["first"]["layer"]], data["first"]["view"]
    queries, keys = layer["queries"], layer["keys"]
    if view == "overview":
        return min(900, 130 + 80 * len(data["layers"]))
    if view == "lines":
        return min(900, 200 + 22 * max(len(queries), len(keys)))
    cell = min(48, 480 / len(keys), 620 / len(queries))
    cells = cell * len(queries) + 7 * min(14, max(map(len, keys))) + 30
    readout = 180 + _pixels_of_list(queries) + _pixels_of_list(keys)
    return min(900, 80 + round(max(cells, readout)))


def _pixels_of_list(tokens):
    """Pixels of a list of tokens that is 320 pixels wide."""
    width = sum(9 * min(20, len(token)) + 12 for token in tokens)
    return min(144, 27 * -(-width // 320))


_VIEWS = ("overview", "map", "lines")


def _first_shown(maps, heads, layer, head, view):
    """Places of the layer and head shown first; -1 is the mean, None any."""
    paths = list(maps)
    if layer is not None and layer not in paths:
        raise ValueError(
            f"`layer` must be one of the layers shown: {paths}. "
            f"Received: {layer!r}."
        )
    place = 0 if layer is None else paths.index(layer)
    numbers = _head_numbers(maps[paths[place]][0], heads)
    if head not in (None, "mean", *numbers):
        raise ValueError(
            f"`head` must be 'mean' or one of {numbers}, the heads shown of "
            f"layer {paths[place]!r}. Received: {head!r}."
        )
    if view not in _VIEWS:
        raise ValueError(
            f"`view` must be one of {list(_VIEWS)}. Received: {view!r}."
        )
    if head == "mean":
        head = -1
    elif head is not None:
        head = numbers.index(head)
    return {"layer": place, "head": head, "view": view}


def _check_sentence(maps, sentence_b):
    """Refuse a second sentence that begins in no layer."""
    if sentence_b is None:
        return
    longest = max(min(matrices.shape[1:]) for matrices, _, _ in maps.values())
    whole = isinstance(sentence_b, Integral)
    if not whole or not 0 < sentence_b < longest:
        raise ValueError(
            "`sentence_b` must be the position of a token after the first, "
            f"an int from 1 to {longest - 1}. Received: {sentence_b!r}."
        )


def _sentence_start(matrices, sentence_b):
    """The place where sentence B begins, or None if the layer is shorter."""
    if sentence_b is None or sentence_b >= min(matrices.shape[1:]):
        return None
    return int(sentence_b)


def _head_numbers(matrices, heads):
    """The numbers that the shown heads have in their layer."""
    return [int(n) for n in (range(len(matrices)) if heads is None else heads)]


_SMALL = 64  # most queries and keys of a layer that keeps 16 bits
# The weights of a page of 2 MB; the rest is for tokens, style and scripts.
_ROOM = 1_880_000
_FINE = 65_534  # levels of 16 bits; one more value says "no weight"
_COARSE = (254, 127, 63, 48)  # levels of 8 bits; fewer levels deflate better


def _packed_size(maps):
    """The most characters that the weights of `maps` can take."""
    return sum(
        matrices.size * (2 if _is_small(matrices) else 1) * 4 // 3
        for matrices in maps.values()
    )


def _pack_weights(maps, most):
    """Deflate all layers, coarser where the page would become too long.

    The lines of a causal map fade with the number of keys, so a long layer
    is measured by `peaks`, the largest weight of each row, not by `most`, the
    largest of all. Masked cells of `(H, T, S)` have no weight.
    """
    packed = {
        path: _pack_small(matrices, most)
        for path, matrices in maps.items()
        if _is_small(matrices)
    }
    taken = sum(len(layer["weights"]) for layer in packed.values())
    rest = {path: maps[path] for path in maps if path not in packed}
    for levels in _COARSE:
        long = {path: _pack_long(rest[path], levels) for path in rest}
        if taken + sum(_length(layer) for layer in long.values()) <= _ROOM:
            break
    packed |= long
    return {path: packed[path] for path in maps}


def _is_small(matrices):
    return max(matrices.shape[1:]) <= _SMALL


def _pack_small(matrices, most):
    cells = np.rint(matrices.filled(0) / most * _FINE)
    cells = np.where(np.ma.getmaskarray(matrices), _FINE + 1, cells)
    pairs = cells.astype("<u2").reshape(-1, 1).view("u1")
    # All low bytes stand before all high bytes, which deflate better alone.
    return {"levels": _FINE, "weights": _deflate(pairs.T.tobytes())}


def _pack_long(matrices, levels):
    values = matrices.filled(0)
    peaks = values.max(-1).astype("<f4")
    scale = np.where(peaks > 0, peaks, 1).astype("f8")
    cells = np.rint(values / scale[..., None] * levels)
    cells = np.where(np.ma.getmaskarray(matrices), 255, cells)
    return {
        "levels": levels,
        "weights": _deflate(cells.astype("u1").tobytes()),
        "peaks": _deflate(peaks.tobytes()),
    }


def _length(layer):
    return len(layer["weights"]) + len(layer["peaks"])


def _deflate(content):
    """The shorter of two ways: runs of equal bytes, or each byte alone.

    Random weights have no runs, and looking for some costs a tenth.
    """
    packed = []
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        packer = zlib.compressobj(strategy=strategy)
        packed.append(packer.compress(content) + packer.flush())
    return base64.b64encode(min(packed, key=len)).decode()
