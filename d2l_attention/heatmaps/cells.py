"""The cells of one heatmap: their colours, numbers, hatching and size."""

from d2l_attention.heatmaps.tokens import longest_label, right_to_left
from matplotlib.patches import Rectangle
import matplotlib.pyplot as plt
import numpy as np


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


def draw_cells(ax, weights, cmap, vmin, vmax, max_cells):
    """Draw the weights; the image, and a note if its cells are blocks."""
    rows, columns = weights.shape
    pooled, (high, wide) = pool(weights, max_cells)
    image = ax.imshow(
        pooled,
        cmap=cmap,
        vmin=vmin,
        vmax=vmax,
        interpolation="nearest",
        aspect="equal" if max(rows, columns) <= 64 else "auto",
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


def annotate_cells(ax, image, weights, fmt):
    """Write each weight into its cell, black on light and white on dark."""
    for (t, s), weight in np.ndenumerate(weights):
        if weights[t, s] is not np.ma.masked:
            red, green, blue, _ = image.cmap(image.norm(weight))
            light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5
            ax.text(
                s,
                t,
                fmt.format(weight),
                ha="center",
                va="center",
                fontsize="small",
                color="black" if light else "white",
            )


def _hatch(ax, shape):
    # The hatching lies behind the image and shows where a cell has no colour.
    ax.add_patch(
        Rectangle(
            (-0.5, -0.5),
            shape[1],
            shape[0],
            fill=False,
            hatch="////",
            edgecolor="0.7",
            linewidth=0,
            zorder=-1,
        )
    )
