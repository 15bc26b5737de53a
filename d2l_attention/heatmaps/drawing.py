"""How a map is drawn on axes: cells, colours, numbers, frames, a colour bar."""

from d2l_attention.heatmaps.labels import (
    families_for,
    longest_label,
    readable_tokens,
    right_to_left,
)
from d2l_attention.heatmaps.palette import SIGNED_MAP, WEIGHTS_MAP, contrast
from d2l_attention.heatmaps.selection import (
    is_signed,
    share_of_keys,
    without_keys,
)
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal, Stroke
import matplotlib.pyplot as plt
from matplotlib.text import Text
import numpy as np

_MOST_NUMBERED = 8  # cells on a side of a map that carries its numbers
_MOST_NAMED = 3  # hidden keys that a line has room for
_READABLE = 5  # points; a smaller number is only written where asked for
_LARGEST = 9
# The black line of a frame has no gaps, also where the white one is dotted.
_BLACK = Stroke(
    linewidth=4.2,
    foreground="black",
    dashes={"dash_offset": 0, "dash_list": None},
)


def highest(array):
    """The largest finite entry, the top of a colour scale; 1 if none is > 0."""
    finite = np.ma.masked_invalid(array).compressed()
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def colour_scale(cmap, vmin, vmax, *maps):
    """The map of colours and its two ends, for all these weights.

    A scale that begins at 0 would show negative weights as none.
    """
    signed = vmin is None and any(map(is_signed, maps))
    if vmax is None:
        vmax = max(map(highest, maps))
        if signed:
            vmax = max(vmax, *(highest(-weights) for weights in maps))
    if signed:
        return SIGNED_MAP if cmap is None else cmap, -vmax, vmax
    return cmap, 0.0 if vmin is None else vmin, vmax


def new_axes(shape, query_tokens, key_tokens):
    """Axes of a new figure, with room for the cells and the labels."""
    height = min(max(0.35 * shape[0], 2.0), 12.0)
    width = min(max(0.35 * shape[1], 2.0), 12.0)
    wide = 0.1 * max(longest_label(query_tokens) - 10, 0)
    high = 0.1 * max(longest_label(key_tokens) - 10, 0)
    _, ax = plt.subplots(
        figsize=(width + 2.5 + wide, height + 1 + high), layout="constrained"
    )
    return ax


def draw_cells(ax, weights, colours, max_cells, aspect=None, hidden=()):
    """Draw the weights; the image, and a note if its cells are blocks.

    `colours` are those of `colour_scale`. The columns of `hidden` keys are
    grey, also where they are forbidden.
    """
    rows, columns = weights.shape
    cmap, vmin, vmax = colours
    pooled, (high, wide) = pool(without_keys(weights, hidden), max_cells)
    if aspect is None:
        aspect = "equal" if max(rows, columns) <= 64 else "auto"
    image = ax.imshow(
        pooled,
        cmap=WEIGHTS_MAP if cmap is None else cmap,
        vmin=vmin,
        vmax=vmax,
        interpolation="nearest",
        aspect=aspect,
        extent=(
            -0.5,
            pooled.shape[1] * wide - 0.5,
            pooled.shape[0] * high - 0.5,
            -0.5,
        ),
    )
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    ax.spines[:].set_visible(True)  # a frame, whatever the figure's style
    if np.ma.is_masked(weights):
        _hatch(ax, weights.shape)
    for key in hidden:
        _grey(ax, key, rows)
    return image, tell_blocks(weights, max_cells)


def label_keys(ax, weights, hidden, key_tokens):
    """Label the axis of the keys; it says what is hidden, and its weight."""
    label = "keys"
    if hidden:
        share = share_of_keys(weights, hidden)
        names = name_keys(hidden, key_tokens)
        label += f"\n(hidden: {names}, {share:.0%} of the weight)"
    ax.set_xlabel(label, parse_math=False, fontfamily=families_for([label]))


def name_keys(keys, tokens):
    """Some keys in words, by place and token; many only by their number."""
    if len(keys) > _MOST_NAMED:
        return f"{len(keys)} keys"
    if tokens is not None:
        tokens = readable_tokens(tokens)
    names = [f"{key} “{tokens[key]}”" if tokens else f"{key}" for key in keys]
    return f"key{'s' * (len(keys) > 1)} {' and '.join(names)}"


def tell_sums(*maps):
    """A note, if weights that may be shares of a whole do not add up to it."""
    signed = any(map(is_signed, maps))
    if not signed and any((weights < 0).any() for weights in maps):
        return ""
    sums = [np.sum(w, axis=-1, where=~np.isnan(w)).ravel() for w in maps]
    sums = np.concatenate(sums)
    if signed:
        return f"(signed; rows sum to {sums.min():.2f} – {sums.max():.2f})"
    sums = sums[sums > 1e-3]  # a row of zeros attends to nothing
    if not sums.size or sums.max() > 1.01 or sums.min() > 0.99:
        return ""
    return f"(rows sum to {sums.min():.2f} – {sums.max():.2f})"


def draw_scale(figure, axes, image, weights, label="weight", aspect=20):
    """A colour bar; where all weights are 0 or 1, two colours with names."""
    if not _is_binary(weights):
        return figure.colorbar(
            image, ax=axes, shrink=0.8, label=label, aspect=aspect
        )
    colours = ListedColormap(
        [image.cmap(image.norm(level)) for level in (0, 1)]
    )
    steps = ScalarMappable(BoundaryNorm([-0.5, 0.5, 1.5], 2), colours)
    bar = figure.colorbar(steps, ax=axes, shrink=0.3, aspect=5, label=label)
    bar.set_ticks([0, 1], labels=["0", "1"])
    bar.minorticks_off()
    return bar


def turn(ax, query_tokens, key_tokens, rtl):
    """Turn the axes for right-to-left tokens; True if queries are at right."""
    if right_to_left(key_tokens) if rtl == "auto" else rtl:
        ax.invert_xaxis()
    turned = right_to_left(query_tokens) if rtl == "auto" else rtl
    if turned:
        ax.yaxis.tick_right()
        ax.yaxis.set_label_position("right")
    return turned


def pool(weights, most):
    """The largest weight of each of `most` blocks a side, and their size."""
    high, wide = _block(weights.shape, most)
    return pool_blocks(weights, high, wide), (high, wide)


def tell_blocks(weights, max_cells):
    """A note, if the cells of a map are blocks."""
    high, wide = _block(weights.shape, max_cells)
    if high == wide == 1:
        return ""
    return f"(each cell is the largest of {high} × {wide})"


def _block(shape, most):
    return tuple(-(-size // most) for size in shape)


def pool_blocks(weights, high, wide):
    """The largest weight of each block of `high` rows and `wide` columns.

    Masked cells count for nothing; a block of nothing else is masked.
    """
    if high == wide == 1:
        return weights
    lowest = np.finfo(weights.dtype).min
    pooled = np.ma.filled(weights, lowest)
    for axis, size in enumerate((high, wide)):
        starts = np.arange(0, pooled.shape[axis], size)
        pooled = np.maximum.reduceat(pooled, starts, axis=axis)
    is_empty = pooled == lowest
    return np.ma.masked_array(np.where(is_empty, 0, pooled), is_empty)


def number_format(weights, annotate, fmt):
    """The format of the numbers in the cells; None if they have none."""
    if annotate not in (True, False, "auto"):
        raise ValueError(
            f'`annotate` must be True, False or "auto". Received: {annotate!r}.'
        )
    small = max(weights.shape[-2:]) <= _MOST_NUMBERED
    if not (small if annotate == "auto" else annotate):
        return None
    return fmt or ("{:.0f}" if _is_binary(weights) else "{:.2f}")


def number_cells(image, weights, fmt, annotate):
    """Write each weight into its cell, in place of earlier numbers."""
    ax = image.axes
    for text in [text for text in ax.texts if isinstance(text, _Number)]:
        text.remove()
    if fmt is None:
        return []
    numbers = {
        cell: fmt.format(weight)
        for cell, weight in np.ndenumerate(weights)
        if weights[cell] is not np.ma.masked
    }
    widest = max(numbers.values(), key=len, default="")
    smallest = _READABLE if annotate == "auto" else 0
    texts = []
    for (t, s), number in numbers.items():
        colour = image.cmap(image.norm(weights[t, s]))
        ink = max("black", "white", key=lambda ink: contrast(ink, colour))
        text = _Number(s, t, number, ink, widest, smallest)
        texts.append(ax.add_artist(text))
    return texts


class _Number(Text):
    """A number as large as its cell lets it be, if that can be read.

    The size of a cell is known when the figure is drawn, not before.
    """

    def __init__(self, x, y, number, ink, widest, smallest):
        super().__init__(x, y, number, color=ink, ha="center", va="center")
        self._widest, self._smallest = widest, smallest
        self.set_in_layout(False)

    def draw(self, renderer):
        size = self._size_in_cell(renderer)
        if size < self._smallest:
            return
        if size != self.get_fontsize():
            self.set_fontsize(size)
        super().draw(renderer)

    def _size_in_cell(self, renderer):
        corners = self.axes.transData.transform([(0, 0), (1, 1)])
        wide, high = abs(corners[1] - corners[0])
        font = self.get_fontproperties().copy()
        font.set_size(_LARGEST)
        width, height, _ = renderer.get_text_width_height_descent(
            self._widest, font, ismath=False
        )
        return _LARGEST * min(1.0, 0.85 * wide / width, 0.7 * high / height)


def frame_cell(ax, t, s, look):
    """A frame that stands out from every colour of the map.

    A "solid" or "dotted" white line lies inside a broader black one, and each
    colour has 3 : 1 against one of the two.
    """
    ax.add_patch(
        Rectangle(
            (s - 0.5, t - 0.5),
            1,
            1,
            fill=False,
            edgecolor="white",
            linewidth=1.8,
            linestyle=look,
            path_effects=[_BLACK, Normal()],
            clip_on=False,
        )
    )


def _is_binary(weights):
    values = np.ma.getdata(weights)
    fits = np.ma.getmaskarray(weights) | (values == 0) | (values == 1)
    return bool(fits.all())


def _hatch(ax, shape):
    # The hatching lies behind the image and shows where a cell has no colour.
    ax.add_patch(
        Rectangle(
            (-0.5, -0.5),
            shape[1],
            shape[0],
            fill=False,
            hatch="////",
            edgecolor="0.6",
            linewidth=0,
            zorder=-1,
        )
    )


def _grey(ax, key, rows):
    # It covers the hatching, for a hidden column is not a forbidden one.
    ax.add_patch(
        Rectangle(
            (key - 0.5, -0.5), 1, rows, color="0.75", linewidth=0, zorder=-0.5
        )
    )
