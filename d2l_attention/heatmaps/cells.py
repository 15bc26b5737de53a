"""The cells of one heatmap: their colours, numbers, hatching and size."""

from d2l_attention.heatmaps.tokens import longest_label, right_to_left
from matplotlib.patches import Rectangle
import matplotlib.pyplot as plt
import numpy as np


def highest(array):
    finite = np.ma.masked_invalid(array).compressed()
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def new_axes(shape, query_tokens, key_tokens):
    height, width = (min(max(0.35 * n, 2.0), 12.0) for n in shape)
    wide = 0.1 * max(longest_label(query_tokens) - 10, 0)
    high = 0.1 * max(longest_label(key_tokens) - 10, 0)
    _, ax = plt.subplots(
        figsize=(width + 2.5 + wide, height + 1 + high), layout="constrained"
    )
    return ax


def draw_cells(ax, weights, cmap, vmin, vmax, max_cells):
    """The image, and a note of how many weights lie in one of its cells."""
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
    """From right to left; whether queries are then labelled on the right."""
    if right_to_left(key_tokens) if rtl == "auto" else rtl:
        ax.invert_xaxis()
    turned = right_to_left(query_tokens) if rtl == "auto" else rtl
    if turned:
        ax.yaxis.tick_right()
        ax.yaxis.set_label_position("right")
    return turned


def pool(weights, most):
    """The largest of each block, so that no side has more than `most`."""
    blocks = [-(-size // most) for size in weights.shape]
    if blocks == [1, 1]:
        return weights, blocks
    missing = [-size % n for size, n in zip(weights.shape, blocks, strict=True)]
    padded = np.pad(
        np.ma.filled(weights, np.nan),
        [(0, n) for n in missing],
        constant_values=np.nan,
    )
    rows, columns = (
        size // n for size, n in zip(padded.shape, blocks, strict=True)
    )
    parts = padded.reshape(rows, blocks[0], columns, blocks[1])
    return np.ma.masked_invalid(parts).max(axis=(1, 3)), blocks


def annotate_cells(ax, image, weights, fmt):
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
    # Behind the image: it shows through where the image has no cell.
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
