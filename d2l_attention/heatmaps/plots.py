"""Heatmaps of attention weights. Matplotlib objects in, matplotlib out.

Nothing here calls `show`. Weights are numpy arrays, or whatever numpy can
read; rows are queries, columns are keys.
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
from d2l_attention.heatmaps.tokens import label_axis, readable
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

    The colour bar is true for every panel: all share `vmin` and `vmax`.

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
        ValueError: If `matrices` has not four axes, or there are fewer
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

    Cells that may not be attended are hatched, so a weight of 0 and no weight
    at all look different. Tokens are data: none is read as mathematics.
    Where there are too many cells to draw, each drawn one is the largest of
    its neighbours, so that none is lost, and the title says so.

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
        colorbar: Whether to draw one.
        title: Str.
        annotate: Whether to write the weights into the cells.
        fmt: Str, how to write them.
        rtl: Whether keys run from right to left, and queries are labelled on
            the right; "auto" asks the tokens (Arabic, Hebrew …). Before
            matplotlib 3.11 such words are themselves drawn backwards.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If `weights` has not two axes, or tokens do not fit it.
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
    title = "\n".join(filter(None, (title, note)))
    if title:
        ax.set_title(title, parse_math=False)
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
    """How widely each head looks: a row for each layer, a column a head.

    Each cell is the mean of `attention_entropy` over all queries that attend
    to anything.

    Args:
        weights: Mapping of layer path to a float array `(H, T, S)` or
            `(B, H, T, S)`, or one such array.
        mask: Bool array `(T, S)`, `(B, 1, S)` or `(B, T, S)`, True = may
            attend, or a dict of path to one. A query whose row is all False
            does not count.
        normalize: Whether 1 means an even look at all keys that may be
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
        layer = np.asarray(layer, "float64")
        layer = layer[None] if layer.ndim == 3 else layer
        allowed = mask.get(path) if isinstance(mask, dict) else mask
        if allowed is not None and np.ndim(allowed) == 3:
            allowed = np.asarray(allowed)[:, None]
        entropy = attention_entropy(layer, mask=allowed, normalize=normalize)
        entropy = np.ma.masked_invalid(entropy)
        rows.append(entropy.mean(axis=(0, 2)).filled(np.nan))
    table = np.full((len(rows), max(map(len, rows))), np.nan)
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


def describe_attention(
    weights, query_tokens=None, key_tokens=None, *, mask=None, top=3
):
    """What a heatmap shows, in words, for those who cannot see it.

    Args:
        weights: Float array `(T, S)`.
        query_tokens: List of T str.
        key_tokens: List of S str.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend.
        top: Int, how many of the largest weights are named.

    Returns:
        Str, one sentence or two.

    Raises:
        ValueError: If `weights` has not two axes, or tokens do not fit it.
    """
    weights = to_numpy(weights, "weights", 2)
    names = []
    for tokens, size in zip(
        (query_tokens, key_tokens), weights.shape, strict=True
    ):
        tokens = range(size) if tokens is None else tokens
        if len(tokens) != size:
            raise ValueError(
                f"{len(tokens)} tokens do not fit weights of shape "
                f"{weights.shape}."
            )
        names.append([readable(token) for token in tokens])
    shown = hide(weights, mask)
    order = np.argsort(-shown.filled(-np.inf), axis=None, kind="stable")
    largest = [
        f"“{names[0][t]}” to “{names[1][s]}” {shown[t, s]:.2f}"
        for t, s in zip(*np.unravel_index(order, shown.shape), strict=True)
        if shown[t, s] is not np.ma.masked
    ][:top]
    text = f"Heatmap of {shown.shape[0]} queries by {shown.shape[1]} keys"
    if largest:
        text += (
            f", weights from {shown.min():.2f} to {shown.max():.2f}. "
            f"Largest: {', '.join(largest)}"
        )
    hidden = np.ma.count_masked(shown)
    return text + (f". {hidden} cells have no weight." if hidden else ".")


def plot_alignment(
    weights, source_tokens, target_tokens, *, sure=(), possible=(), ax=None
):
    """The weights of a translation under its gold alignment.

    Rows are target tokens, columns source tokens. A sure link is a full
    frame, a possible one a dashed frame.

    Args:
        weights: Float array `(T, S)`; rows and columns behind the tokens
            (padding) are left out.
        source_tokens: List of str.
        target_tokens: List of str, each the token that its row predicts.
        sure: Iterable of `(source position, target position)`.
        possible: Iterable of the same.
        ax: Axes to draw on; new ones by default.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If there are more tokens than weights, or a link lies
            outside the tokens.
    """
    weights = to_numpy(weights, "weights", 2)
    size = (len(target_tokens), len(source_tokens))
    if size[0] > weights.shape[0] or size[1] > weights.shape[1]:
        raise ValueError(
            f"{size[0]} target and {size[1]} source tokens do not fit weights "
            f"of shape {weights.shape}."
        )
    ax = plot_attention(
        weights[: size[0], : size[1]], target_tokens, source_tokens, ax=ax
    )
    kinds = (("red", "gold", sure, "-"), ("dotted", "possible", possible, ":"))
    notes = []
    for look, kind, links, style in kinds:
        for source, target in sorted(links):
            if not (0 <= target < size[0] and 0 <= source < size[1]):
                raise ValueError(
                    f"The link {source}-{target} lies outside {size[1]} "
                    f"source and {size[0]} target tokens."
                )
            frame = {"fill": False, "ec": "tab:red", "lw": 1.8, "ls": style}
            ax.add_patch(Rectangle((source - 0.5, target - 0.5), 1, 1, **frame))
        if links:
            notes.append(f"{look} frame: {kind} link")
    note = f"\n({', '.join(notes)})" if notes else ""
    ax.set(xlabel=f"source{note}", ylabel="target")
    return ax
