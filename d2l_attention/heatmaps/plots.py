"""Heatmaps of attention weights, as objects of matplotlib.

No function here calls `show`. Weights are NumPy arrays, or anything that
NumPy can read. Rows are queries, columns are keys.
"""

from d2l_attention.heatmaps.cells import (
    annotate_cells,
    draw_cells,
    highest,
    new_axes,
    turn,
)
from d2l_attention.heatmaps.selection import hide, to_numpy
from d2l_attention.heatmaps.statistics import attention_entropy
from d2l_attention.heatmaps.tokens import label_axis
from matplotlib.patches import Rectangle
import matplotlib.pyplot as plt
import numpy as np


def show_heatmaps(
    matrices,
    xlabel,
    ylabel,
    titles=None,
    figsize=(2.5, 2.5),
    cmap="Reds",
    *,
    vmin=0.0,
    vmax=None,
):
    """A grid of heatmaps under one colour scale.

    The colour bar holds for every panel: all share `vmin` and `vmax`.

    Source: document 001, attention cues, for the signature.

    Args:
        matrices: Float array `(rows, columns, T, S)`.
        xlabel: Str, label below the bottom row; usually the keys.
        ylabel: Str, label left of the first column; usually the queries.
        titles: List of str, one for each column.
        figsize: Size of one panel, in inches.
        cmap: Name of a matplotlib colour map.
        vmin: Float, lower end of the scale.
        vmax: Float, upper end; defaults to the largest finite entry.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ValueError: If `matrices` does not have four axes, or there are fewer
            titles than columns.
    """
    matrices = to_numpy(matrices, "matrices", 4)
    rows, columns = matrices.shape[:2]
    if titles is not None and len(titles) < columns:
        raise ValueError(
            f"There must be a title for each of {columns} columns. "
            f"Received: {list(titles)}."
        )
    vmax = highest(matrices) if vmax is None else vmax
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
    for i, j in np.ndindex(rows, columns):
        axes = grid[i, j]
        image = axes.imshow(
            matrices[i, j],
            cmap=cmap,
            vmin=vmin,
            vmax=vmax,
            interpolation="nearest",
            aspect="auto",
        )
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_major_locator().set_params(integer=True)
        if i == rows - 1:
            axes.set_xlabel(xlabel)
        if j == 0:
            axes.set_ylabel(ylabel)
        if titles is not None and i == 0:
            axes.set_title(titles[j])
    figure.colorbar(image, ax=grid, shrink=0.7)
    return figure


def plot_attention(
    weights,
    query_tokens=None,
    key_tokens=None,
    *,
    mask=None,
    ax=None,
    cmap="viridis",
    vmin=0.0,
    vmax=None,
    max_ticks=64,
    max_cells=1000,
    colorbar=True,
    title=None,
    annotate=False,
    fmt="{:.2f}",
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
        cmap: Name of a matplotlib colour map.
        vmin: Float, lower end of the colour scale.
        vmax: Float, upper end; defaults to the largest weight.
        max_ticks: Int, most labels on an axis; longer ones are thinned.
        max_cells: Int, most cells drawn on a side.
        colorbar: Whether to draw a colour bar.
        title: Str.
        annotate: Whether to write the weights into the cells.
        fmt: Str, the format of these weights.
        rtl: Whether keys run from right to left, and queries are labelled on
            the right; "auto" decides by the script of the tokens (Arabic,
            Hebrew …). Before 3.11, matplotlib draws the letters of such words
            backwards.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If `weights` does not have two axes, or the tokens do not
            fit it.
    """
    weights = to_numpy(weights, "weights", 2)
    rows, columns = weights.shape
    if ax is None:
        ax = new_axes(weights.shape, query_tokens, key_tokens)
    shown = hide(weights, mask)
    vmax = highest(shown) if vmax is None else vmax
    image, note = draw_cells(ax, shown, cmap, vmin, vmax, max_cells)
    label_axis(ax.yaxis, query_tokens, rows, "query", max_ticks)
    label_axis(ax.xaxis, key_tokens, columns, "key", max_ticks)
    ax.set(xlabel="keys", ylabel="queries")
    turn(ax, query_tokens, key_tokens, rtl)
    lines = [line for line in (title, note) if line]
    if lines:
        ax.set_title("\n".join(lines), parse_math=False)
    if annotate:
        annotate_cells(ax, image, shown, fmt)
    if colorbar:
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="weight")
    return ax


def plot_entropy(
    weights,
    *,
    mask=None,
    normalize=True,
    annotate=True,
    ax=None,
    cmap="viridis",
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
        cmap: Name of a matplotlib colour map.

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
        list(weights) if any(weights) else None,
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
    weights, source_tokens, target_tokens, *, sure=(), possible=(), ax=None
):
    """The weights of a translation under its gold alignment.

    Rows are target tokens, columns are source tokens. A sure link has a solid
    frame, a possible link a dotted one.

    Args:
        weights: Float array `(T, S)`; the rows and columns behind the last
            token (padding) are left out.
        source_tokens: List of str, the tokens of the columns.
        target_tokens: List of str, the token that each row predicts.
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
    t, s = len(target_tokens), len(source_tokens)
    if t > weights.shape[0] or s > weights.shape[1]:
        raise ValueError(
            f"{t} target and {s} source tokens do not fit weights of shape "
            f"{weights.shape}."
        )
    ax = plot_attention(weights[:t, :s], target_tokens, source_tokens, ax=ax)
    kinds = (("red", "gold", sure, "-"), ("dotted", "possible", possible, ":"))
    notes = []
    for look, kind, links, style in kinds:
        for source, target in sorted(links):
            if not (0 <= target < t and 0 <= source < s):
                raise ValueError(
                    f"The link {source}-{target} lies outside {s} source and "
                    f"{t} target tokens."
                )
            frame = {"fill": False, "ec": "tab:red", "lw": 1.8, "ls": style}
            ax.add_patch(Rectangle((source - 0.5, target - 0.5), 1, 1, **frame))
        if links:
            notes.append(f"{look} frame: {kind} link")
    note = f"\n({', '.join(notes)})" if notes else ""
    ax.set(xlabel=f"source{note}", ylabel="target")
    return ax
