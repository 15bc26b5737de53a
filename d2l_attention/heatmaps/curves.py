"""The losses of a training, drawn."""

from d2l_attention.heatmaps.palette import GROUPS, PALETTE
import matplotlib.pyplot as plt
import numpy as np

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
        xlabel: Str, what the horizontal axis counts.
        ylabel: Str, what the curves show.

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
    ax.legend()
    return ax
