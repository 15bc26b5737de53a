"""The cells of one heatmap: their colours, numbers, hatching and size."""

from d2l_attention.heatmaps.palette import WEIGHTS_MAP, contrast
from d2l_attention.heatmaps.tokens import longest_label, right_to_left
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal, Stroke
import matplotlib.pyplot as plt
from matplotlib.text import Text
import numpy as np

_MOST_NUMBERED = 8  # cells on a side of a map that carries its numbers
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


def draw_cells(ax, weights, cmap, vmin, vmax, max_cells, aspect=None):
    """Draw the weights; the image, and a note if its cells are blocks."""
    rows, columns = weights.shape
    pooled, (high, wide) = pool(weights, max_cells)
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
    if np.ma.is_masked(weights):
        _hatch(ax, weights.shape)
    if high * wide == 1:
        return image, ""
    return image, f"(each cell is the largest of {high} × {wide})"


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
    """The largest weight of each block, at most `most` blocks on a side.

    Also returns the rows and columns of a block.
    """
    rows, columns = weights.shape
    high, wide = -(-rows // most), -(-columns // most)
    if high == wide == 1:
        return weights, (high, wide)
    padded = np.pad(
        np.ma.filled(weights, np.nan),
        [(0, -rows % high), (0, -columns % wide)],
        constant_values=np.nan,
    )
    blocks = padded.reshape(
        padded.shape[0] // high, high, padded.shape[1] // wide, wide
    )
    return np.ma.masked_invalid(blocks).max(axis=(1, 3)), (high, wide)


def number_format(weights, annotate, fmt):
    """The format of the numbers in the cells; None if they have none.

    Raises:
        ValueError: If `annotate` is not True, False or "auto".
    """
    if annotate not in (True, False, "auto"):
        raise ValueError(
            f'`annotate` must be True, False or "auto". Received: {annotate!r}.'
        )
    small = max(weights.shape[-2:]) <= _MOST_NUMBERED
    if not (small if annotate == "auto" else annotate):
        return None
    return fmt or ("{:.0f}" if _is_binary(weights) else "{:.2f}")


def number_cells(image, weights, fmt, annotate):
    """Write each weight into its cell, in place of earlier numbers.

    Returns:
        List of the texts; empty if `fmt` is None.
    """
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

    The white line lies inside a broader black one, and each colour has 3 : 1
    against one of the two. The white line is "solid" or "dotted".
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
    return bool(np.isin(np.ma.compressed(weights), (0, 1)).all())


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
