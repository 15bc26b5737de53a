"""Heatmaps of attention weights. Matplotlib objects in, matplotlib out.

Nothing here calls `show`. Weights are numpy arrays, or whatever numpy can
read; rows are queries, columns are keys.
"""

import warnings

from d2l_attention.heatmaps.paths import select_layers
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
    matrices = _to_numpy(matrices, "matrices", 4)
    rows, columns = matrices.shape[:2]
    if titles is not None and len(titles) < columns:
        raise ValueError(
            f"There must be a title for each of {columns} columns. "
            f"Received: {list(titles)}."
        )
    vmax = _highest(matrices) if vmax is None else vmax
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
    colorbar=True,
    title=None,
):
    """One heatmap, labelled with its tokens.

    Cells that may not be attended are hatched, so a weight of 0 and no weight
    at all look different. Tokens are data: none is read as mathematics.

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
        colorbar: Whether to draw one.
        title: Str.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If `weights` has not two axes, or tokens do not fit it.
    """
    weights = _to_numpy(weights, "weights", 2)
    if ax is None:
        ax = _new_axes(weights.shape)
    shown = np.ma.masked_invalid(weights)
    if mask is not None:
        mask = np.broadcast_to(np.asarray(mask, bool), weights.shape)
        shown = np.ma.masked_where(~mask, shown)
    image = ax.imshow(
        shown,
        cmap=cmap,
        vmin=vmin,
        vmax=_highest(shown) if vmax is None else vmax,
        interpolation="nearest",
        aspect="equal" if max(weights.shape) <= 64 else "auto",
    )
    if mask is not None and not mask.all():
        _hatch(ax, weights.shape)
    label_axis(ax.yaxis, query_tokens, weights.shape[0], "query", max_ticks)
    label_axis(ax.xaxis, key_tokens, weights.shape[1], "key", max_ticks)
    ax.set(xlabel="keys", ylabel="queries")
    if title is not None:
        ax.set_title(title, parse_math=False)
    if colorbar:
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="weight")
    return ax


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
    max_ticks=64,
):
    """A row of heatmaps for each layer, a column for each head.

    All panels share one colour scale, and the colour bar is true for each.

    Args:
        weights: Float array `(H, T, S)` or `(B, H, T, S)`, or a mapping of
            layer path to such an array.
        query_tokens: List of str, the tokens of the rows. Where there are
            fewer than rows, what lies behind them (padding) is left out.
        key_tokens: The same of the columns.
        tokens: Dict of layer path to a pair of lists, for layers with tokens
            of their own; the others take the two lists before.
        layers: Which layers of a mapping: a list of paths, or a pattern like
            `"decoder/*/cross_attention"`. All by default.
        heads: List of int; all by default.
        sample: Int, which sentence of the batch.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend.
        figsize: Size of one panel, in inches.
        cmap, vmin, vmax, max_ticks: See `plot_attention`.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ValueError: If no layer matches, an array has another number of axes,
            or there are more tokens than rows or columns.

    Warns:
        UserWarning: If a shown row has weight on a column that is left out.
    """
    if not hasattr(weights, "items"):
        weights = {"": weights}
    tokens = {} if tokens is None else tokens
    grid = {}
    for path in select_layers(weights, layers):
        matrices = _heads_of(weights[path], path, sample, heads)
        pair = tokens.get(path, (query_tokens, key_tokens))
        grid[path] = (_cut(matrices, *pair, path), *pair)
    shapes = [matrices.shape for matrices, _, _ in grid.values()]
    highest = [_highest(matrices) for matrices, _, _ in grid.values()]
    columns = max(shape[0] for shape in shapes)
    if figsize is None:
        cells = np.max([shape[:0:-1] for shape in shapes], axis=0)
        figsize = np.clip(0.2 * cells, 1.7, 5.0)
    figure, panels = plt.subplots(
        len(grid),
        columns,
        figsize=(figsize[0] * columns + 2, figsize[1] * len(grid) + 1),
        squeeze=False,
        layout="constrained",
    )
    heads = range(columns) if heads is None else heads
    for row, (path, (matrices, queries, keys)) in enumerate(grid.items()):
        for column, ax in enumerate(panels[row]):
            if column >= len(matrices):
                ax.set_axis_off()
                continue
            plot_attention(
                matrices[column],
                queries,
                keys,
                mask=mask,
                ax=ax,
                cmap=cmap,
                vmin=vmin,
                vmax=max(highest) if vmax is None else vmax,
                max_ticks=max_ticks,
                colorbar=False,
                title=f"head {heads[column]}" if row == 0 else None,
            )
            ax.set(xlabel="", ylabel="")
            if column:
                ax.set_yticklabels([])
        name = "\n".join(path.rsplit("/", 2))
        panels[row, 0].set_ylabel(name, parse_math=False)
    figure.supxlabel("keys")
    figure.supylabel("queries")
    image = panels[0, 0].images[0]
    figure.colorbar(image, ax=panels, shrink=0.8, label="weight")
    return figure


def _heads_of(weights, path, sample, heads):
    weights = np.asarray(weights, dtype="float64")
    if weights.ndim == 4:
        weights = weights[sample]
    weights = _to_numpy(weights, f"weights of {path}" if path else "weights", 3)
    return weights if heads is None else weights[list(heads)]


def _cut(matrices, query_tokens, key_tokens, path):
    """Without the rows and columns behind the tokens."""
    _, rows, columns = matrices.shape
    t = rows if query_tokens is None else len(query_tokens)
    s = columns if key_tokens is None else len(key_tokens)
    if t > rows or s > columns:
        raise ValueError(
            f"{t} query and {s} key tokens do not fit weights {path} of shape "
            f"{(rows, columns)}."
        )
    lost = np.nan_to_num(matrices[:, :t, s:]).sum(-1).max(initial=0.0)
    if lost > 1e-3:
        warnings.warn(
            f"Up to {lost:.0%} of a row's attention lies on the {columns - s} "
            f"columns behind the {s} key tokens, which are left out"
            + (f" ({path})." if path else "."),
            stacklevel=3,
        )
    return matrices[:, :t, :s]


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
    weights = _to_numpy(weights, "weights", 2)
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


def _to_numpy(array, name, num_axes):
    array = np.asarray(array, dtype="float64")
    if array.ndim != num_axes or not array.size:
        raise ValueError(
            f"`{name}` must have {num_axes} axes and not be empty. Received: "
            f"shape {array.shape}."
        )
    return array


def _highest(array):
    finite = np.ma.masked_invalid(array).compressed()
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def _new_axes(shape):
    height, width = (min(max(0.35 * n, 2.0), 12.0) for n in shape)
    _, ax = plt.subplots(
        figsize=(width + 2.5, height + 1), layout="constrained"
    )
    return ax


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
