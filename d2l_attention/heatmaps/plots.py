"""Heatmaps of attention weights, as objects of matplotlib.

No function here calls `show`. Weights are NumPy arrays, or anything that
NumPy can read. Rows are queries, columns are keys.
"""

from d2l_attention._checks import as_array
from d2l_attention.heatmaps.drawing import (
    colour_scale,
    draw_cells,
    draw_scale,
    frame_cell,
    highest,
    label_keys,
    new_axes,
    number_cells,
    number_format,
    tell_sums,
    turn,
)
from d2l_attention.heatmaps.labels import families_for, label_axis
from d2l_attention.heatmaps.palette import GROUPS, PALETTE
from d2l_attention.heatmaps.selection import (
    by_path,
    choose_keys,
    hide,
    to_numpy,
    without_keys,
)
from d2l_attention.heatmaps.statistics import attention_entropy
import matplotlib.pyplot as plt
import numpy as np

_MOST_TICKS = 64  # labels on an axis


def show_heatmaps(
    matrices,
    xlabel,
    ylabel,
    titles=None,
    figsize=(2.5, 2.5),
    cmap=None,
    *,
    vmin=None,
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
        xlabel, ylabel: Str, labels below the bottom row, usually the keys, and
            left of the first column, usually the queries.
        titles: List of str, one for each column.
        figsize: Size of one panel, in inches.
        mask: Bool array that broadcasts to `matrices`, True = may attend.
        cmap, vmin, vmax, annotate, fmt: As in `plot_attention`.
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
    colours = colour_scale(cmap, vmin, vmax, shown)
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
        image, _ = draw_cells(ax, shown[i, j], colours, most, "auto")
        number_cells(image, shown[i, j], fmt, annotate)
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
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
    hide_keys=(),
    ax=None,
    cmap=None,
    vmin=None,
    vmax=None,
    max_ticks=_MOST_TICKS,
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

    A key that takes most of the weight, as the first token often does, leaves
    the other keys no colours. `hide_keys` makes its column grey; the label of
    the keys says which is hidden and how much of the weight it has. The other
    weights stay as they are: none is divided by what is left.

    Args:
        weights: Float array `(T, S)`.
        query_tokens, key_tokens: Lists of T str, from top to bottom, and of S
            str, from left to right.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend.
        hide_keys: List of int, places of the keys whose columns are grey. They
            have no numbers, and the colour scale does without them.
        ax: Axes to draw on; new ones by default.
        cmap: Name of a matplotlib colour map; the course's by default.
        vmin, vmax: Floats, ends of the colour scale; from 0 to the largest
            weight by default. If weights are negative, as those of linear
            attention may be, the scale has 0 in its middle, in white, and the
            title says what the rows sum to.
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
            fit it, there is no such key to hide, or `annotate` is something
            else.

    Warns:
        UserWarning: Once for each script that no installed font can draw.

    Example:
        >>> from d2l_attention.heatmaps import plot_attention
        >>> weights = [[0.9, 0.1, 0.0], [0.8, 0.1, 0.1]]
        >>> print(plot_attention(weights, hide_keys=[0]).get_xlabel())
        keys
        (hidden: key 0, 85% of the weight)
    """
    weights = to_numpy(weights, "weights", 2)
    rows, columns = weights.shape
    allowed = hide(weights, mask)
    hidden = choose_keys(hide_keys, columns, "weights")
    shown = without_keys(allowed, hidden)
    fmt = number_format(shown, annotate, fmt)
    if ax is None:
        ax = new_axes(weights.shape, query_tokens, key_tokens)
    colours = colour_scale(cmap, vmin, vmax, shown)
    image, note = draw_cells(ax, allowed, colours, max_cells, hidden=hidden)
    number_cells(image, shown, fmt, annotate)
    label_axis(ax.yaxis, query_tokens, rows, "query", max_ticks)
    label_axis(ax.xaxis, key_tokens, columns, "key", max_ticks)
    ax.set_ylabel("queries")
    label_keys(ax, allowed, hidden, key_tokens)
    turn(ax, query_tokens, key_tokens, rtl)
    lines = title, note, tell_sums(weights)
    title = "\n".join(line for line in lines if line)
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
            attend, or a dict of path or pattern to one. A query whose row is
            all False does not count.
        normalize: Whether 1 stands for equal weights on all keys that may be
            attended; otherwise the unit is nats.
        annotate: Whether to write the numbers into the cells.
        ax, cmap: As in `plot_attention`.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If `mask` names what is not there, or a weight is infinite.
    """
    if not hasattr(weights, "items"):
        weights = {"": weights}
    masks = by_path("mask", mask, weights)
    rows = []
    for path, layer in weights.items():
        rows.append(_entropy_of_heads(layer, masks[path], normalize))
    table = np.full((len(rows), max(map(len, rows))), np.nan)  # (layers, H)
    for row, entropies in zip(table, rows, strict=True):
        row[: len(entropies)] = entropies
    shown = np.ma.masked_invalid(table)
    layers = list(weights)
    if ax is None:
        ax = new_axes(table.shape, layers, None)
    colours = cmap, 0.0, 1.0 if normalize else highest(shown)
    image, _ = draw_cells(ax, shown, colours, max(table.shape))
    number_cells(image, shown, number_format(shown, annotate, None), annotate)
    label_axis(ax.yaxis, layers, len(layers), "layer", _MOST_TICKS)
    label_axis(ax.xaxis, None, table.shape[1], "head", _MOST_TICKS)
    ax.set(xlabel="head", ylabel="layer" if len(rows) > 1 else "")
    label = "entropy / that of an even look" if normalize else "entropy (nats)"
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=label)
    return ax


def _entropy_of_heads(weights, mask, normalize):
    """Mean entropy of each head, `(H,)`; NaN where no query attends."""
    weights = as_array(weights, "float64")
    weights = weights[None] if weights.ndim == 3 else weights  # (B, H, T, S)
    if mask is not None and np.ndim(mask) == 3:
        mask = as_array(mask)[:, None]  # (B, 1, T, S)
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
        weights: Float array `(T, S)`; the rows and columns after the last
            token (padding) are left out.
        query_tokens: List of str, the target token that each row predicts.
        key_tokens: List of str, the source tokens of the columns.
        sure, possible: Iterables of `(source position, target position)`.
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


# A colour, a dash and a marker of its own for each; the colours of a group can
# be told apart.
_LINES = [
    {"color": colour, "linestyle": dash, "marker": marker}
    for colour, dash, marker in zip(
        GROUPS["scores"].values(),
        ("-", "--", ":", "-."),
        ("", "o", "s", "^"),
        strict=False,
    )
]


def plot_learning_curves(curves, rate=None, *, xlabel="step", ylabel="loss"):
    """Losses over the steps of a training; below them the learning rate.

    The lowest value of each curve but the first is written beside it: it is
    what a choice of the best epoch goes by.

    Args:
        curves: Dict of name to `(steps, values)`, two sequences of N numbers;
            up to four curves, the loss of the training first.
        rate: `(steps, values)` of the learning rate; None draws no panel.
        xlabel, ylabel: Str, what the axes count and show.

    Returns:
        The `matplotlib.axes.Axes` of the losses.

    Raises:
        ValueError: If there is no curve, or more than four, or if steps and
            values differ in number.

    Example:
        >>> from d2l_attention.heatmaps import plot_learning_curves
        >>> curves = {"training": ([1, 2, 3], [3.0, 2.0, 1.5])}
        >>> curves["validation"] = [2, 3], [2.4, 2.2]
        >>> plot_learning_curves(curves).get_ylabel()
        'loss'
    """
    if not 0 < len(curves) <= len(_LINES):
        raise ValueError(
            f"There must be 1 to {len(_LINES)} curves. Received: {len(curves)}."
        )
    for name, (steps, values) in curves.items():
        if len(steps) != len(values):
            raise ValueError(
                f"Each step needs a value. Received for {name!r}: "
                f"{len(steps)} steps, {len(values)} values."
            )
    if rate is None:
        figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
        lowest = ax
    else:
        figure, (ax, lowest) = plt.subplots(
            2,
            sharex=True,
            height_ratios=(3, 1),
            figsize=(6, 4),
            layout="constrained",
        )
        lowest.plot(*rate, color=PALETTE["flash"])
        lowest.set_ylabel("learning rate")
        lowest.ticklabel_format(axis="y", scilimits=(-3, 4))
        lowest.set_ylim(bottom=0)
    for (name, points), look in zip(curves.items(), _LINES, strict=False):
        steps, values = map(np.asarray, points)
        ax.plot(steps, values, markersize=4, label=name, **look)
        if look["marker"] and np.isfinite(values).any():
            best = np.nanargmin(values)
            ax.annotate(
                f"{values[best]:.2f}",
                (steps[best], values[best]),
                textcoords="offset points",
                xytext=(0, 7),
                ha="center",
                color=look["color"],
            )
    ax.set_ylabel(ylabel)
    lowest.set_xlabel(xlabel)
    for axes in {ax, lowest}:
        axes.grid(alpha=0.3)
    ax.legend(loc="upper right")  # losses fall
    return ax
