"""A page to explore attention: it works offline, also in a notebook.

What the page does stands in the folder `page`. Tokens enter it as text, never
as markup or script.
"""

import base64
import math
from numbers import Integral
import zlib

from d2l_attention._html_page import Page
from d2l_attention.heatmaps.drawing import pool_blocks, tell_sums
from d2l_attention.heatmaps.labels import readable_tokens, right_to_left
from d2l_attention.heatmaps.notebook_figures import (
    describe_attention,
    display_figure,
)
from d2l_attention.heatmaps.palette import viridis
from d2l_attention.heatmaps.plots import plot_attention
from d2l_attention.heatmaps.selection import (
    Selection,
)
import numpy as np

_LIMIT = 10_000_000  # bytes of a page
_LONGEST, _MOST_CELLS = 2048, 32_000_000  # what a browser holds
# The still picture; a larger one takes seconds to draw.
_STILL_INCHES, _STILL_CELLS, _STILL_TICKS, _LONG_DPI = 7, 500, 32, 100
_SCRIPTS = (  # each may use what stands before it
    "data",
    "text",
    "hidden",
    "colours",
    "pen",
    "map",
    "pointer",
    "order",
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
    view=None,
    sentence_b=None,
    hide_keys=(),
    scores=None,
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
    page says which. Cells that may not be attended are hatched. Where there
    are more than 2,048 queries or keys, or 32 million weights, a cell is the
    largest of a block of them, and the name of the layer says of how many.

    Args:
        weights, query_tokens, key_tokens, tokens: As in `plot_attention_grid`.
        layers, heads, sample, window, mask: As in `plot_attention_grid`.
        layer: Str, path of the layer that is shown first.
        head: Int, number of the head that is shown first, or `"mean"`.
        view: `"overview"`, `"map"` or `"lines"`, the view that is shown
            first; by default the overview if there are `scores`, else the map.
        sentence_b: Int, position of the first token of the second sentence,
            if the tokens are of two sentences. The page then offers to show
            the weights within and between the two.
        hide_keys: List of int, places of the keys whose columns are grey at
            first, or a dict of path or pattern to one. The colours follow the
            other weights, which stay as they are, and the page says how much
            of a head's weight is hidden. Readers hide and show other keys.
        scores: List of the scores of heads, as `head_scores` returns it. The
            overview then has a box *Order*, with each kind of score. Scores of
            heads that are not shown do not count.

    Returns:
        An `AttentionView`.

    Raises:
        ValueError: If the page would be larger than 10 MB, a weight is
            negative, no layer matches, tokens do not fit, or there is no such
            `layer`, `head`, `view` or `sentence_b`, no such key to hide, or
            `scores` holds something else.
    """
    selection = Selection(
        query_tokens,
        key_tokens,
        tokens,
        layers,
        heads,
        sample,
        window,
        mask,
        hide_keys,
    )
    maps = selection.of(weights)
    _check_sentence(maps, sentence_b)
    if view is None:
        view = "map" if scores is None else "overview"
    first = _first_shown(maps, heads, layer, head, view)
    listed = _shown_scores(scores, weights, maps, heads)
    return AttentionView(maps, heads, first, sentence_b, listed)


class AttentionView(Page):
    """The page that `view_attention` returns; a notebook displays it."""

    still_folds = True

    def __init__(self, maps, heads, first, sentence_b, scores):
        shown = {path: shown_map.weights for path, shown_map in maps.items()}
        lowest, most = _extent(shown)
        if lowest < 0:
            raise ValueError(
                f"Weights must not be negative. Received: {lowest}."
            )
        blocks = _blocks(shown)
        packed = _pack_weights(shown, blocks, most)
        data = {
            "colours": viridis(),
            "most": most,
            "first": first,
            "scores": scores,
            "layers": [
                {
                    "path": path + _tell_block(blocks[path]),
                    "kind": _kind(path),
                    "heads": _head_numbers(matrices, heads),
                    "queries": _names(queries, matrices.shape[1], blocks[path]),
                    "keys": _names(keys, matrices.shape[2], blocks[path]),
                    "backward": right_to_left(keys),
                    "sentence_b": _sentence_start(
                        matrices, sentence_b, blocks[path]
                    ),
                    "sums": tell_sums(*matrices.data),
                    "block": blocks[path],
                    "hidden": sorted({s // blocks[path] for s in hidden}),
                    **packed[path],
                }
                for path, (matrices, queries, keys, hidden) in maps.items()
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
        self._tokens = maps[path].query_tokens, maps[path].key_tokens
        self._hidden_first = maps[path].hidden

    def _still(self):
        title, weights = self._shown_first
        queries, keys = self._tokens
        tokens = {"query_tokens": queries, "key_tokens": keys}
        tokens["mask"] = ~np.ma.getmaskarray(weights)
        ax = plot_attention(
            weights.data,
            **tokens,
            # Without its hidden keys, the picture has a scale of its own.
            vmax=None if self._hidden_first else self._data["most"],
            hide_keys=self._hidden_first,
            max_cells=_STILL_CELLS,
            max_ticks=_STILL_TICKS,
        )
        size = ax.figure.get_size_inches()
        ax.figure.set_size_inches(size * min(1, _STILL_INCHES / max(size)))
        alt = describe_attention(weights.data, **tokens)
        dpi = _LONG_DPI if max(weights.shape) > _STILL_CELLS else 200
        return display_figure(ax, f"{title}. {alt}", dpi=dpi)

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
    return f"{path} {title}".lstrip(), weights


def _kind(path):
    """What attends to what, as far as the path of the layer says."""
    kinds = ("cross", "decoder", "encoder")  # a decoder has cross-attention
    return next((kind for kind in kinds if kind in path.lower()), "")


def _names(tokens, size, block):
    """The tokens; those of a block are named by the first and the last."""
    tokens = range(size) if tokens is None else tokens
    names = readable_tokens(tokens)
    if block == 1:
        return names
    blocks = [names[i : i + block] for i in range(0, size, block)]
    return [" … ".join(dict.fromkeys([b[0], b[-1]])) for b in blocks]


def _extent(maps):
    """The smallest and the largest weight of all maps, 0 among them."""
    lowest = most = 0.0
    for matrices in maps.values():
        for weights in _pieces(matrices):
            values = weights.compressed()
            lowest = min(lowest, float(values.min(initial=0.0)))
            most = max(most, float(values.max(initial=0.0)))
    return lowest, most or 1.0


def _pieces(matrices, block=1):
    """Some rows of one head at a time, which saves memory."""
    some = max(256 // block, 1) * block
    for weights in matrices:
        for first in range(0, len(weights), some):
            yield weights[first : first + some]


def _blocks(maps):
    """How many queries and keys of each layer share a cell of its map."""
    cells = sum(matrices.size for matrices in maps.values())
    everywhere = math.ceil(math.sqrt(max(1, cells / _MOST_CELLS)))
    blocks = {}
    for path, matrices in maps.items():
        longest = max(matrices.shape[1:])
        few = 1 if longest <= _SMALL else everywhere
        blocks[path] = max(few, -(-longest // _LONGEST))
    return blocks


def _tell_block(block):
    return "" if block == 1 else f" (largest of {block} × {block})"


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
    readout = 215 + _pixels_of_list(queries) + _pixels_of_list(keys)
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
    numbers = _head_numbers(maps[paths[place]].weights, heads)
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
    longest = max(min(matrices.shape[1:]) for matrices, *_ in maps.values())
    whole = isinstance(sentence_b, Integral)
    if not whole or not 0 < sentence_b < longest:
        raise ValueError(
            "`sentence_b` must be the position of a token after the first, "
            f"an int from 1 to {longest - 1}. Received: {sentence_b!r}."
        )


_SCORE = ("path", "head", "kind", "score", "chance", "null")


def _shown_scores(scores, weights, maps, heads):
    """The scores of the shown heads, each with the place of layer and head."""
    if not hasattr(weights, "items"):
        weights = {"": weights}
    places = {}
    for place, (path, (matrices, *_)) in enumerate(maps.items()):
        size = np.shape(weights[path])[-3]  # -1 is the last head of a layer
        for i, number in enumerate(_head_numbers(matrices, heads)):
            places[path, number % size] = place, i
    shown = []
    for item in () if scores is None else scores:
        if not all(hasattr(item, name) for name in _SCORE):
            raise ValueError(
                "`scores` must be a list as `head_scores` returns it, whose "
                f"items have {', '.join(_SCORE)}. Received: {item!r}."
            )
        if (item.path, item.head) in places:
            layer, head = places[item.path, item.head]
            shown.append(
                {
                    "layer": layer,
                    "head": head,
                    "kind": str(item.kind),
                    "score": _number(item.score),
                    "null": _number(item.null),
                }
            )
    return shown


def _number(score):
    """A float, or None where there is none: JSON has no NaN."""
    return float(score) if score is not None and np.isfinite(score) else None


def _sentence_start(matrices, sentence_b, block):
    """The place where sentence B begins, or None if the layer is shorter."""
    if sentence_b is None or sentence_b >= min(matrices.shape[1:]):
        return None
    return -(-int(sentence_b) // block)


def _head_numbers(matrices, heads):
    """The numbers that the shown heads have in their layer."""
    return [int(n) for n in (range(len(matrices)) if heads is None else heads)]


_SMALL = 64  # most queries and keys of a layer that keeps 16 bits
# The weights of a page of 2 MB; the rest is for tokens, style and scripts.
_ROOM = 1_880_000
_FINE = 65_534  # levels of 16 bits; one more value says "no weight"
_COARSE = (254, 127, 63, 48)  # levels of 8 bits; fewer levels deflate better


def _pack_weights(maps, blocks, most):
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
        room = _LIMIT if levels == _COARSE[-1] else _ROOM
        long = _pack_long(rest, blocks, levels, room - taken)
        if long is not None:
            return {path: (packed | long)[path] for path in maps}
    raise ValueError(
        f"The page would have more than {_LIMIT / 1e6:g} MB, which is slow "
        "in every browser. Choose fewer maps with `layers=` and `heads=`, or "
        "give shorter lists of tokens; rows and columns after the last token "
        "are left out."
    )


def _is_small(matrices):
    return max(matrices.shape[1:]) <= _SMALL


def _pack_small(matrices, most):
    cells = np.rint(matrices.filled(0).astype("float64") / most * _FINE)
    cells = np.where(np.ma.getmaskarray(matrices), _FINE + 1, cells)
    pairs = cells.astype("<u2").reshape(-1, 1).view("u1")
    # All low bytes stand before all high bytes, which deflate better alone.
    packer = _Packer()
    packer.add(pairs.T.tobytes())
    return {"levels": _FINE, "weights": packer.text()}


def _pack_long(maps, blocks, levels, room):
    """The layers with 8 bits for a cell; None if they need more room."""
    packed = {}
    for path, matrices in maps.items():
        weights, peaks = _Packer(), _Packer()
        for piece in _pieces(matrices, blocks[path]):
            cells, largest = _levels(piece, blocks[path], levels)
            weights.add(cells.tobytes())
            peaks.add(largest.tobytes())
            if weights.size > room:
                return None
        packed[path] = {
            "levels": levels,
            "weights": weights.text(),
            "peaks": peaks.text(),
        }
        room -= len(packed[path]["weights"]) + len(packed[path]["peaks"])
        if room < 0:
            return None
    return packed


def _levels(weights, block, levels):
    """Weights `(T, S)` as parts of the largest of their rows, and these."""
    weights = pool_blocks(weights, block, block)
    values = weights.filled(0)
    peaks = values.max(-1).astype("<f4")
    scale = np.where(peaks > 0, peaks, 1)
    cells = np.rint(values / scale[:, None] * levels)
    cells[np.ma.getmaskarray(weights)] = 255
    return cells.astype("u1"), peaks


class _Packer:
    """Deflates bytes in the shorter of two ways: in runs, or each alone.

    Random weights have no runs, and looking for some costs a tenth.
    """

    def __init__(self):
        strategies = zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY
        self._ways = [(zlib.compressobj(strategy=s), []) for s in strategies]

    def add(self, content):
        for packer, pieces in self._ways:
            pieces.append(packer.compress(content))

    @property
    def size(self):
        """Characters of the text so far."""
        shortest = min(sum(map(len, pieces)) for _, pieces in self._ways)
        return shortest * 4 // 3

    def text(self):
        ways = [b"".join([*pieces, p.flush()]) for p, pieces in self._ways]
        return base64.b64encode(min(ways, key=len)).decode()
