"""Many heatmaps under one colour scale: side by side, or one after another."""

from d2l_attention.heatmaps.cells import draw_cells, highest, pool, turn
from d2l_attention.heatmaps.plots import plot_attention
from d2l_attention.heatmaps.selection import hide, select_maps, to_numpy
from d2l_attention.heatmaps.tokens import label_axis, readable
from matplotlib.animation import FuncAnimation
import matplotlib.pyplot as plt
import numpy as np


def plot_attention_grid(
    weights,
    query_tokens=None,
    key_tokens=None,
    *,
    tokens=None,
    layers=None,
    heads=None,
    sample=0,
    mask=None,
    figsize=None,
    cmap="viridis",
    vmin=0.0,
    vmax=None,
    max_ticks=None,
    rtl="auto",
):
    """A row of heatmaps for each layer, a column for each head.

    All panels share one colour scale, and the colour bar holds for each.

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
        figsize: Size of one panel, in inches.
        cmap: Name of a matplotlib colour map.
        vmin: Float, lower end of the colour scale.
        vmax: Float, upper end; defaults to the largest weight shown.
        max_ticks: Int, most labels on an axis; by default as many as fit.
        rtl: Whether keys run from right to left, and queries are labelled on
            the right; "auto" decides by the script of the tokens.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ValueError: If no layer matches, an array does not have three or four
            axes, or there are more tokens than rows or columns.

    Warns:
        UserWarning: If a shown row has weight on a column that is left out.
    """
    grid = select_maps(
        weights, query_tokens, key_tokens, tokens, layers, heads, sample
    )
    shapes = [matrices.shape for matrices, _, _ in grid.values()]
    tops = [highest(matrices) for matrices, _, _ in grid.values()]
    columns = max(shape[0] for shape in shapes)
    if figsize is None:
        cells = np.max([shape[:0:-1] for shape in shapes], axis=0)
        figsize = np.clip(0.2 * cells, 1.7, np.clip(24 / columns, 1.7, 5.0))
    if max_ticks is None:
        max_ticks = max(int(6 * min(figsize)), 2)
    figure, panels = plt.subplots(
        len(grid),
        columns,
        figsize=(figsize[0] * columns + 2, figsize[1] * len(grid) + 1),
        squeeze=False,
        layout="constrained",
    )
    heads = range(columns) if heads is None else heads
    vmax = max(tops) if vmax is None else vmax
    max_cells = min(1000, int(figure.dpi * max(figsize)))
    rows = list(grid.items())
    for row, (path, (matrices, queries, keys)) in enumerate(rows):
        # Labels stand at the edges, and where the next layer has others.
        follows = rows[row + 1][1] if row + 1 < len(rows) else None
        ends = follows is None or not (
            follows[0].shape == matrices.shape and _same(follows[2], keys)
        )
        for column, ax in enumerate(panels[row]):
            if column >= len(matrices):
                ax.set_axis_off()
                continue
            shown = hide(matrices[column], mask, path)
            image, note = draw_cells(ax, shown, cmap, vmin, vmax, max_cells)
            on_right = turn(ax, queries, keys, rtl)
            t, s = shown.shape
            if column == (len(matrices) - 1 if on_right else 0):
                label_axis(ax.yaxis, queries, t, "query", max_ticks)
            else:
                ax.set_yticks([])
            if ends:
                label_axis(ax.xaxis, keys, s, "key", max_ticks)
            else:
                ax.set_xticks([])
            if row == 0:
                ax.set_title(f"head {heads[column]}")
        panels[row, 0].yaxis.set_label_position("left")
        name = "\n".join(path.rsplit("/", 2))
        panels[row, 0].set_ylabel(name, parse_math=False)
    if note:
        figure.suptitle(note)
    figure.supxlabel("keys")
    figure.supylabel("queries")
    aspect = max(20, 5 * figure.get_figheight())
    figure.colorbar(image, ax=panels, shrink=0.8, aspect=aspect, label="weight")
    return figure


def animate_attention(
    frames,
    query_tokens=None,
    key_tokens=None,
    *,
    titles=None,
    interval=400,
    vmin=0.0,
    vmax=None,
    **options,
):
    """A heatmap that changes over epochs, or over the steps of a decoder.

    All frames share one colour scale. Save the animation with
    `animation.save("name.gif", writer="pillow")`, which needs no other
    program.

    Args:
        frames: Float array `(frames, T, S)`, one heatmap for each frame; or
            `(T, S)`, shown row by row, as a decoder writes its tokens.
        query_tokens: List of T str, from top to bottom.
        key_tokens: List of S str, from left to right.
        titles: List of str, one for each frame.
        interval: Float, milliseconds from one frame to the next.
        vmin: Float, lower end of the colour scale.
        vmax: Float, upper end; defaults to the largest weight of all frames.
        **options: Other arguments of `plot_attention`.

    Returns:
        The `matplotlib.animation.FuncAnimation`.

    Raises:
        ValueError: If `frames` does not have two or three axes, or the number
            of titles is not the number of frames.
    """
    frames = np.asarray(frames, "float64")
    if frames.ndim == 2:
        written = np.tri(len(frames), dtype=bool)[..., None]
        frames = np.where(written, frames, np.nan)
        if titles is None and query_tokens is not None:
            titles = [f"writes {readable(token)}" for token in query_tokens]
    frames = to_numpy(frames, "frames", 3)
    if titles is None:
        titles = [f"{i + 1} of {len(frames)}" for i in range(len(frames))]
    if len(titles) != len(frames):
        raise ValueError(
            f"There must be a title for each of {len(frames)} frames. "
            f"Received: {len(titles)} titles."
        )
    vmax = highest(frames) if vmax is None else vmax
    ax = plot_attention(
        frames[-1], query_tokens, key_tokens, vmin=vmin, vmax=vmax, **options
    )
    image = ax.images[0]
    most = options.get("max_cells", 1000)
    title = ax.set_title("", parse_math=False)

    def draw(i):
        image.set_data(pool(np.ma.masked_invalid(frames[i]), most)[0])
        title.set_text(titles[i])
        return image, title

    draw(0)
    return FuncAnimation(ax.figure, draw, frames=len(frames), interval=interval)


def _same(tokens, others):
    if tokens is None or others is None:
        return tokens is others
    return list(tokens) == list(others)
