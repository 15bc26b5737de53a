"""The figure of many maps: a row for each layer, a column for each head."""

from d2l_attention.heatmaps.cells import draw_cells, draw_scale, highest, turn
from d2l_attention.heatmaps.fonts import families_for
from d2l_attention.heatmaps.selection import hide
from d2l_attention.heatmaps.tokens import label_axis
import matplotlib.pyplot as plt
import numpy as np


def hide_all(grid, mask):
    """Dict of path to the masked array `(H, T, S)` of a grid's weights."""
    return {path: hide(maps, mask, path) for path, (maps, _, _) in grid.items()}


def draw_grid(
    grid,
    shown,
    every,
    *,
    heads=None,
    figsize=None,
    cmap=None,
    vmin=0.0,
    vmax=None,
    max_ticks=None,
    rtl="auto",
):
    """Draw all maps under one colour scale.

    Args:
        grid: What `select_maps` returns.
        shown: Dict of path to the masked array `(H, T, S)` to draw.
        every: List of the masked arrays that the colour scale is for.
        **: The arguments of `plot_attention_grid`.

    Returns:
        Three: a figure; a dict of path and column to an image; the most cells
        on a side of an image.
    """
    columns = max(map(len, shown.values()))
    if figsize is None:
        cells = np.max([maps.shape[:0:-1] for maps in shown.values()], axis=0)
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
    vmax = max(map(highest, every)) if vmax is None else vmax
    max_cells = min(1000, int(figure.dpi * max(figsize)))
    images, notes = {}, {}
    for (path, maps), row in zip(shown.items(), panels, strict=True):
        for column, ax in enumerate(row):
            if column >= len(maps):
                ax.set_axis_off()
                continue
            weights = maps[column]
            image, note = draw_cells(ax, weights, cmap, vmin, vmax, max_cells)
            images[path, column], notes[note] = image, True
    _label(grid, panels, heads, max_ticks, rtl)
    figure.suptitle("\n".join(filter(None, notes)))
    figure.supxlabel("keys")
    figure.supylabel("queries")
    values = np.concatenate([maps.compressed() for maps in every])
    aspect = max(20, 5 * figure.get_figheight())
    draw_scale(figure, panels, image, values, aspect=aspect)
    return figure, images, max_cells


def _label(grid, panels, heads, max_ticks, rtl):
    """Labels stand at the edges, and where the next layer has others."""
    rows = list(grid.items())
    heads = range(panels.shape[1]) if heads is None else heads
    for row, (path, (maps, queries, keys)) in enumerate(rows):
        follows = rows[row + 1][1] if row + 1 < len(rows) else None
        ends = follows is None or not (
            follows[0].shape == maps.shape and _same(follows[2], keys)
        )
        _, t, s = maps.shape
        for column, ax in enumerate(panels[row, : len(maps)]):
            on_right = turn(ax, queries, keys, rtl)
            if column == (len(maps) - 1 if on_right else 0):
                label_axis(ax.yaxis, queries, t, "query", max_ticks)
            else:
                ax.set_yticks([])
            if ends:
                label_axis(ax.xaxis, keys, s, "key", max_ticks)
            else:
                ax.set_xticks([])
            if row == 0:
                ax.set_title(f"head {heads[column]}")
        name = "\n".join(path.rsplit("/", 2))
        family = families_for([name])
        panels[row, 0].yaxis.set_label_position("left")
        panels[row, 0].set_ylabel(name, parse_math=False, fontfamily=family)


def _same(tokens, others):
    if tokens is None or others is None:
        return tokens is others
    return list(tokens) == list(others)
