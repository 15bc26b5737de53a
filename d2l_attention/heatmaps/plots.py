"""Heatmaps of attention weights, as objects of matplotlib.

No function here calls `show`. Weights are NumPy arrays, or anything that
NumPy can read. Rows are queries, columns are keys.
"""

from d2l_attention.heatmaps.cells import (
    draw_cells,
    draw_scale,
    frame_cell,
    highest,
    new_axes,
    number_cells,
    number_format,
    turn,
)
from d2l_attention.heatmaps.fonts import families_for
from d2l_attention.heatmaps.selection import hide, to_numpy
from d2l_attention.heatmaps.statistics import attention_entropy
from d2l_attention.heatmaps.tokens import label_axis
import matplotlib.pyplot as plt
import numpy as np


def show_heatmaps(
    matrices,
    xlabel,
    ylabel,
    titles=None,
    figsize=(2.5, 2.5),
    cmap=None,
    *,
    vmin=0.0,
    vmax=None,
    mask=None,
    annotate="auto",
    fmt=None,
    label="weight",
):
    """A grid of heatmaps under one colour scale.

    The colour bar holds for every panel: all share `vmin` and `vmax`. Cells
    that are forbidden or NaN are hatched.

    Source: document 001, attention cues, for the signature.

    Args:
        matrices: Float array `(rows, columns, T, S)`.
        xlabel: Str, label below the bottom row; usually the keys.
        ylabel: Str, label left of the first column; usually the queries.
        titles: List of str, one for each column.
        figsize: Size of one panel, in inches.
        cmap: Name of a matplotlib colour map; the course's by default.
        vmin: Float, lower end of the scale.
        vmax: Float, upper end; defaults to the largest finite entry.
        mask: Bool array that broadcasts to `matrices`, True = may attend.
        annotate: Whether to write the entries into the cells; "auto" does so
            for at most 8 by 8 cells that have room for it.
        fmt: Str, the format of these entries; two decimals by default.
        label: Str, what the colours stand for.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ValueError: If `matrices` does not have four axes, there are fewer
            titles than columns, or `annotate` is something else.
    """
    matrices = to_numpy(matrices, "matrices", 4)
    rows, columns = matrices.shape[:2]
    if titles is not None and len(titles) < columns:
        raise ValueError(
            f"There must be a title for each of {columns} columns. "
            f"Received: {list(titles)}."
        )
    shown = hide(matrices, mask)
    vmax = highest(shown) if vmax is None else vmax
    fmt = number_format(shown, annotate, fmt)
    width, height = figsize
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(width * columns + 0.5, height * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    most = max(matrices.shape)
    for i, j in np.ndindex(rows, columns):
        ax = grid[i, j]
        image, _ = draw_cells(ax, shown[i, j], cmap, vmin, vmax, most, "auto")
        number_cells(image, shown[i, j], fmt, annotate)
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_locator().set_params(integer=True)
        if i == rows - 1:
            ax.set_xlabel(xlabel)
        if j == 0:
            ax.set_ylabel(ylabel)
        if titles is not None and i == 0:
            ax.set_title(titles[j])
    draw_scale(figure, grid, image, shown, label)
    return figure


def plot_attention(
    weights,
    *,
    query_tokens=None,
    key_tokens=None,
    mask=None,
    ax=None,
    cmap=None,
    vmin=0.0,
    vmax=None,
    max_ticks=64,
    max_cells=1000,
    colorbar=True,
    title=None,
    annotate="auto",
    fmt=None,
    rtl="auto",
):
    """One heatmap, labelled with its tokens.

    Cells that may not be attended are hatched, so that they look different
    from a weight of 0. Tokens are drawn as they are, never as mathematics.
    Where there are too many cells to draw, each drawn cell shows the largest
    weight of a block of cells, and the title says so.

    Args:
        weights: Float array `(T, S)`.
        query_tokens: List of T str, from top to bottom.
        key_tokens: List of S str, from left to right.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend.
        ax: Axes to draw on; new ones by default.
        cmap: Name of a matplotlib colour map; the course's by default.
        vmin: Float, lower end of the colour scale.
        vmax: Float, upper end; defaults to the largest weight.
        max_ticks: Int, most labels on an axis; longer ones are thinned.
        max_cells: Int, most cells drawn on a side.
        colorbar: Whether to draw a colour bar. Weights that are all 0 or 1
            get two colours in its place.
        title: Str.
        annotate: Whether to write the weights into the cells; "auto" does so
            for at most 8 by 8 cells that have room for it.
        fmt: Str, the format of these weights; two decimals by default.
        rtl: Whether keys run from right to left, and queries are labelled on
            the right; "auto" decides by the script of the tokens (Arabic,
            Hebrew …). Before 3.11, matplotlib draws the letters of such words
            backwards.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If `weights` does not have two axes, the tokens do not
            fit it, or `annotate` is something else.

    Warns:
        UserWarning: Once for each script that no installed font can draw.
    """
    weights = to_numpy(weights, "weights", 2)
    rows, columns = weights.shape
    shown = hide(weights, mask)
    fmt = number_format(shown, annotate, fmt)
    if ax is None:
        ax = new_axes(weights.shape, query_tokens, key_tokens)
    vmax = highest(shown) if vmax is None else vmax
    image, note = draw_cells(ax, shown, cmap, vmin, vmax, max_cells)
    number_cells(image, shown, fmt, annotate)
    label_axis(ax.yaxis, query_tokens, rows, "query", max_ticks)
    label_axis(ax.xaxis, key_tokens, columns, "key", max_ticks)
    ax.set(xlabel="keys", ylabel="queries")
    turn(ax, query_tokens, key_tokens, rtl)
    title = "\n".join(line for line in (title, note) if line)
    if title:
        family = families_for([title])
        ax.set_title(title, parse_math=False, fontfamily=family)
    if colorbar:
        draw_scale(ax.figure, ax, image, shown)
    return ax


def plot_entropy(
    weights,
    *,
    mask=None,
    normalize=True,
    annotate=True,
    ax=None,
    cmap=None,
):
    """How widely each head attends: a row for each layer, a column a head.

    Each cell is the mean of `attention_entropy` over all queries that attend
    to any key.

    Args:
        weights: Mapping of layer path to a float array `(H, T, S)` or
            `(B, H, T, S)`, or one such array.
        mask: Bool array `(T, S)`, `(B, 1, S)` or `(B, T, S)`, True = may
            attend, or a dict of path to one. A query whose row is all False
            does not count.
        normalize: Whether 1 stands for equal weights on all keys that may be
            attended; otherwise the unit is nats.
        annotate: Whether to write the numbers into the cells.
        ax: Axes to draw on; new ones by default.
        cmap: Name of a matplotlib colour map; the course's by default.

    Returns:
        The `matplotlib.axes.Axes`.
    """
    if not hasattr(weights, "items"):
        weights = {"": weights}
    rows = []
    for path, layer in weights.items():
        allowed = mask.get(path) if isinstance(mask, dict) else mask
        rows.append(_entropy_of_heads(layer, allowed, normalize))
    table = np.full((len(rows), max(map(len, rows))), np.nan)  # (layers, H)
    for row, entropies in zip(table, rows, strict=True):
        row[: len(entropies)] = entropies
    ax = plot_attention(
        table,
        query_tokens=list(weights) if any(weights) else None,
        ax=ax,
        cmap=cmap,
        vmax=1.0 if normalize else None,
        colorbar=False,
        annotate=annotate,
        rtl=False,
    )
    ax.set(xlabel="head", ylabel="layer" if len(rows) > 1 else "")
    label = "entropy / that of an even look" if normalize else "entropy (nats)"
    ax.figure.colorbar(ax.images[0], ax=ax, shrink=0.8, label=label)
    return ax


def _entropy_of_heads(weights, mask, normalize):
    """Mean entropy of each head, `(H,)`; NaN where no query attends."""
    weights = np.asarray(weights, "float64")
    weights = weights[None] if weights.ndim == 3 else weights  # (B, H, T, S)
    if mask is not None and np.ndim(mask) == 3:
        mask = np.asarray(mask)[:, None]  # (B, 1, T, S)
    entropy = attention_entropy(weights, mask=mask, normalize=normalize)
    entropy = np.ma.masked_invalid(entropy)  # (B, H, T)
    return entropy.mean(axis=(0, 2)).filled(np.nan)


def plot_alignment(
    weights, *, query_tokens, key_tokens, sure=(), possible=(), ax=None
):
    """The weights of a translation under its gold alignment.

    Rows are the target's tokens, which query; columns are the source's, which
    are the keys. A sure link has a solid frame, a possible link a dotted one.

    Args:
        weights: Float array `(T, S)`; the rows and columns behind the last
            token (padding) are left out.
        query_tokens: List of str, the target token that each row predicts.
        key_tokens: List of str, the source tokens of the columns.
        sure: Iterable of `(source position, target position)`.
        possible: Iterable of `(source position, target position)`.
        ax: Axes to draw on; new ones by default.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If there are more tokens than weights, or a link lies
            outside the tokens.
    """
    weights = to_numpy(weights, "weights", 2)
    t, s = len(query_tokens), len(key_tokens)
    if t > weights.shape[0] or s > weights.shape[1]:
        raise ValueError(
            f"{t} target and {s} source tokens do not fit weights of shape "
            f"{weights.shape}."
        )
    ax = plot_attention(
        weights[:t, :s], query_tokens=query_tokens, key_tokens=key_tokens, ax=ax
    )
    notes = []
    for look, kind, links in (
        ("solid", "gold", sure),
        ("dotted", "possible", possible),
    ):
        for source, target in sorted(links):
            if not (0 <= target < t and 0 <= source < s):
                raise ValueError(
                    f"The link {source}-{target} lies outside {s} source and "
                    f"{t} target tokens."
                )
            frame_cell(ax, target, source, look)
        if links:
            notes.append(f"{look} frame: {kind} link")
    note = f"\n({', '.join(notes)})" if notes else ""
    ax.set(xlabel=f"source{note}", ylabel="target")
    return ax
