"""Attention over a picture that a model cuts into a grid of patches.

Patches are tokens row by row, from the top left. The grid is N = rows ·
columns patches.
"""

import math
import warnings

from d2l_attention._checks import as_array
from d2l_attention.heatmaps.drawing import draw_scale, frame_cell, highest
from d2l_attention.heatmaps.labels import families_for, label_axis
from d2l_attention.heatmaps.palette import WEIGHTS_MAP
from d2l_attention.heatmaps.selection import Selection, to_numpy
from matplotlib.patches import PathPatch
from matplotlib.path import Path
import matplotlib.pyplot as plt
import numpy as np

_LUMINANCE = (0.299, 0.587, 0.114)  # of red, green, blue; ITU-R BT.601


def plot_attention_on_image(
    weights,
    image,
    *,
    query=0,
    first_patch=1,
    grid=None,
    head=None,
    sample=0,
    ax=None,
    cmap=None,
    vmax=None,
    alpha=0.6,
    title=None,
):
    """Where one query looks in a picture: a colour for each patch.

    The picture is drawn in grey, so that every colour is a weight. A patch
    has one weight and is one cell: nothing is smoothed. The title says which
    query and head are shown, and how much of the weight lies on the tokens
    before the patches ([CLS], registers), since it is not in the picture.
    Patches whose weight is NaN are hatched.

    Source: Dosovitskiy et al. (2021), arXiv:2010.11929, for the grid, and
    Caron et al. (2021), arXiv:2104.14294, figure 1, for the row of [CLS].

    Args:
        weights: Float array `(T, S)`, `(H, T, S)` or `(B, H, T, S)`. Keys
            after the patches, such as the words of a prompt, are cut off
            first: `weights[..., :last]`. Windows are joined first, by
            `join_windows`.
        image: The picture as the model was given it, with all that its
            patches cover: `(height, width)` or `(height, width, 3)`, uint8, or
            floats from 0 to 1.
        query: Int, which of the T queries: 0 for [CLS], or for the one
            learned query of a pooling head. A pair `(row, column)` is the
            patch at this place of the grid, and gets a frame.
        first_patch: Int, how many tokens stand before the patches.
        grid: Pair `(rows, columns)` of the patches. By default patches are
            squares of the picture, or if they cannot be, the grid is a square.
        head: Int; the mean of all heads by default.
        sample: Int, which picture of a batch `(B, H, T, S)`.
        ax: Axes to draw on; new ones by default.
        cmap: As in `plot_attention`.
        vmax: Float, the upper end of the colour scale, which begins at 0; the
            largest weight on a patch by default.
        alpha: Float from 0 to 1, how much the colours hide the picture.
        title: Str, a line above what the title says.

    Returns:
        The `matplotlib.axes.Axes`.

    Raises:
        ValueError: If the patches do not fill the grid, there is no such
            query, head or sample, `weights` or `image` are not as described,
            a weight is negative, or only some heads have weights.

    Example:
        >>> from d2l_attention.heatmaps import plot_attention_on_image
        >>> import numpy as np
        >>> weights = np.full((3, 1, 7), 1 / 7)  # 3 heads; [CLS], 6 patches
        >>> image = np.zeros((20, 30, 3), "uint8")
        >>> ax = plot_attention_on_image(weights, image, grid=(2, 3))
        >>> print(ax.get_title())
        query 0, mean of 3 heads
        14.3 % of the weight on the 1 token before the patches
    """
    maps, heads = _choose_heads(weights, head, sample)
    _, t, s = maps.shape
    picture = _to_grey(image)
    grid = _check_grid(s, first_patch, grid, picture.shape)
    token, asked = _find_query(query, t, s, first_patch, grid)
    rows = maps[:, token]  # (H, S), one head if `head` chooses it
    without = np.isnan(rows).all(axis=1)
    if without.any() and not without.all():
        raise ValueError(
            "Heads without a weight have no mean with others: choose `head`. "
            f"Received: NaN in the row of {asked} in {without.sum()} of "
            f"{len(rows)} heads."
        )
    row = rows.mean(axis=0)  # (S,)
    if np.nanmin(row, initial=0.0) < 0:
        raise ValueError(
            "Weights must not be negative, since the colours begin at 0. "
            f"Received: {np.nanmin(row):.3g} in the row of {asked}."
        )
    shown = np.ma.masked_invalid(row[first_patch:].reshape(grid))
    if ax is None:
        wide = np.clip(4 * picture.shape[1] / picture.shape[0], 2.5, 10)
        size = (wide + 1.5, 4.8)
        _, ax = plt.subplots(figsize=size, layout="constrained")
    layer = _draw_layers(ax, picture, shown, cmap, vmax, alpha)
    if np.ndim(query):
        frame_cell(ax, *query, "solid")
    lines = title, asked + heads, _tell_rest(row, first_patch)
    title = "\n".join(line for line in lines if line)
    family = families_for([title])
    ax.set_title(title, parse_math=False, fontfamily=family, fontsize="medium")
    bar = draw_scale(ax.figure, ax, layer, shown)
    bar.ax.set_facecolor("0.5")  # as over a picture of this grey
    return ax


def _choose_heads(weights, head, sample):
    """Maps `(H, T, S)`, NaN where there is no weight, and what to say."""
    if hasattr(weights, "items") or np.ndim(weights) == 2:
        weights = to_numpy(weights, "weights", 2)[None]
    if np.ndim(weights) not in (3, 4):
        raise ValueError(
            "`weights` must be (T, S), (H, T, S) or (B, H, T, S). Received: "
            f"shape {np.shape(weights)}."
        )
    number = np.shape(weights)[-3]
    if head is not None and not -number <= head < number:
        raise ValueError(
            f"`head` must be one of 0 to {number - 1}. Received: {head}."
        )
    chosen = None if head is None else [head]
    maps = Selection(heads=chosen, sample=sample).of(weights)
    matrices = maps[""].weights.filled(np.nan)
    if head is not None:
        return matrices, f", head {head}"
    heads = len(matrices)
    return matrices, f", mean of {heads} heads" if heads > 1 else ""


def _check_grid(num_keys, first_patch, grid, size):
    """The rows and columns of the patches, which must fill them."""
    if not 0 <= first_patch < num_keys:
        raise ValueError(
            "`first_patch` must be the number of tokens before the patches, 0 "
            f"to {num_keys - 1} for {num_keys} keys. Received: {first_patch}."
        )
    patches = num_keys - first_patch
    rows, columns = grid or _default_grid(patches, *size)
    if rows > 0 and columns > 0 and rows * columns == patches:
        return rows, columns
    received = f"{patches} patches after {_tokens(first_patch)}"
    received = f"{received}; {num_keys} keys"
    if grid is not None:
        raise ValueError(
            f"`grid` must have a place for each patch. Received: {grid}, which "
            f"has {rows * columns}, for {received}."
        )
    side = math.isqrt(num_keys)
    raise ValueError(
        f"The patches must fill a square, or `grid=(rows, columns)`. Received: "
        f"{received}. `first_patch={num_keys - side**2}` would leave {side} × "
        f"{side}."
    )


def _default_grid(patches, height, width):
    """Of square patches, if so many fill the picture; or a square."""
    rows = math.isqrt(patches * height // width)
    if rows and patches % rows == 0 and rows * rows * width == patches * height:
        return rows, patches // rows
    side = math.isqrt(patches)
    return side, side


def _find_query(query, num_queries, num_keys, first_patch, grid):
    """The number of the query's row, and how it is named."""
    if not np.ndim(query):
        if not 0 <= query < num_queries:
            raise ValueError(
                f"`query` must be one of 0 to {num_queries - 1}, or the place "
                f"(row, column) of a patch. Received: {query}."
            )
        return query, f"query {query}"
    row, column = query
    if num_queries != num_keys:
        raise ValueError(
            "A patch is a query only in self-attention, which has as many "
            f"keys as queries. Received: {query=} for {num_queries} queries "
            f"and {num_keys} keys; name the query by its number."
        )
    if not (0 <= row < grid[0] and 0 <= column < grid[1]):
        raise ValueError(
            f"`query` must lie in the grid of {grid[0]} × {grid[1]} patches. "
            f"Received: {query}."
        )
    token = first_patch + row * grid[1] + column
    return token, f"query: patch ({row}, {column})"


def _to_grey(image):
    """A picture `(height, width)` of floats from 0 (black) to 1."""
    image = as_array(image)
    if image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)):
        raise ValueError(
            "`image` must be one picture, (height, width) or (height, width, "
            f"3). Received: shape {image.shape}."
        )
    if image.dtype == "uint8":
        image = image / 255
    kind = image.dtype.name
    is_float = image.dtype.kind == "f"
    if is_float and not ((image >= 0) & (image <= 1)).all():
        kind += f" from {image.min():.3g} to {image.max():.3g}"
        is_float = False
    if not is_float:
        hint = "`image.astype('uint8')` makes it so from numbers from 0 to 255."
        if image.min() < 0:
            hint = "Give the picture as it was before it was normalized."
        raise ValueError(
            "`image` must be uint8, or floats from 0 to 1. Received: "
            f"{kind}. {hint}"
        )
    image = image.astype("float64")
    return image @ _LUMINANCE if image.ndim == 3 else image


def _draw_layers(ax, picture, shown, cmap, vmax, alpha):
    """Draw the picture, and the weights over it; the image of the weights.

    Both have the patches' rows and columns as their axes, and pixels are
    squares.
    """
    rows, columns = shown.shape
    height, width = picture.shape
    place = {
        "extent": (-0.5, columns - 0.5, rows - 0.5, -0.5),
        "aspect": (height / rows) / (width / columns),
    }
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1, **place)
    layer = ax.imshow(
        shown,
        cmap=WEIGHTS_MAP if cmap is None else cmap,
        vmin=0,
        vmax=highest(shown) if vmax is None else vmax,
        alpha=alpha,
        interpolation="nearest",
        **place,
    )
    hidden = np.argwhere(np.ma.getmaskarray(shown))
    if len(hidden):
        _hatch_cells(ax, hidden)
    label_axis(ax.yaxis, None, rows, "row", rows)
    label_axis(ax.xaxis, None, columns, "column", columns)
    ax.set(xlabel="patch column", ylabel="patch row")
    return layer


def _hatch_cells(ax, cells):
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]) - 0.5
    squares = [Path(square + cell[::-1], closed=True) for cell in cells]
    ax.add_patch(
        PathPatch(
            Path.make_compound_path(*squares),
            fill=False,
            hatch="////",
            edgecolor="0.6",
            linewidth=0,
        )
    )


def _tell_rest(row, first_patch):
    """What the picture does not show: the weight on other tokens."""
    total = np.nansum(row)
    if not total:
        return "no weight on any key"
    notes = []
    if first_patch:
        share = 100 * np.nansum(row[:first_patch]) / total
        notes.append(
            f"{share:.1f} % of the weight on the {_tokens(first_patch)} before "
            "the patches"
        )
    if not 0.99 <= total <= 1.01:
        notes.append(f"(the row sums to {total:.2f})")
    return "\n".join(notes)


def _tokens(number):
    return f"{number} token" + "s" * (number != 1)


def join_windows(weights, grid, window, *, shift=0):
    """Maps between all patches of a picture from Swin's maps of windows.

    Swin attends within windows of W × W patches, and its batch holds the
    windows of all pictures. Pairs of patches that share no window are NaN,
    which plots hatch.

    Windows stand in the order of Swin's `window_partition`: picture by
    picture, in each row by row from the top left, and so do the patches of a
    window. A shifted layer first rolls the grid by `shift` up and to the left
    (`roll(x, (-shift, -shift))`); its last windows hold patches of opposite
    edges, whose pairs Swin masks: these weights are 0, as the layer has them.

    Source: Liu et al. (2021), arXiv:2103.14030, section 3.2.

    Args:
        weights: Float array `(B · num_windows, H, W², W²)`.
        grid: Pair `(rows, columns)` of the layer's patches, both multiples of
            W. The grid of a layer that pads it includes the padding, if it
            pads before it shifts, as Swin does for detection; the shifted
            layers of keras-hub roll first, and then cannot be joined.
        window: Int, W.
        shift: Int, 0 for a layer that does not shift, W // 2 for one of Swin
            that does.

    Returns:
        Float array `(B, H, N, N)`, N = rows · columns, the patches row by
        row. It has N² numbers for each head: 67 MB in float32 for a grid of
        64 × 64.

    Raises:
        ValueError: If windows do not fill the grid, the weights are not those
            of such windows, or `shift` is not from 0 to W − 1.

    Warns:
        UserWarning: If pairs that Swin masks with this shift have weight, or
            if `shift` is 0 and the pairs that it masks with a shift of W // 2
            have none: the layer may shift by another number.

    Example:
        >>> from d2l_attention.heatmaps import join_windows
        >>> import numpy as np
        >>> weights = np.full((2, 1, 4, 4), 1 / 4)  # two windows of 2 × 2
        >>> join_windows(weights, grid=(2, 4), window=2)[0, 0, 0]
        array([0.25, 0.25,  nan,  nan, 0.25, 0.25,  nan,  nan])
    """
    weights = as_array(weights)
    rows, columns = grid
    _check_windows(weights.shape, rows, columns, window, shift)
    order = np.arange(rows * columns).reshape(rows, columns)
    order = np.roll(order, (-shift, -shift), axis=(0, 1))
    patches = _partition(order, window)  # (nW, W²)
    num_windows, heads = len(patches), weights.shape[1]
    weights = weights.reshape(-1, num_windows, *weights.shape[1:])
    _check_shift(weights, grid, window, shift)
    joined = np.full(
        (len(weights), heads, rows * columns, rows * columns),
        np.nan,
        np.result_type(weights, "float32"),
    )
    queries, keys = patches[:, :, None], patches[:, None, :]
    joined[:, :, queries, keys] = weights.transpose(0, 2, 1, 3, 4)
    return joined


def _check_windows(shape, rows, columns, window, shift):
    """Refuse weights that are not those of all windows of a grid."""
    if (
        window < 1
        or rows < 1
        or columns < 1
        or rows % window + columns % window
    ):
        raise ValueError(
            f"Windows of {window} × {window} patches must fill the grid. "
            f"Received: a grid of {rows} × {columns}."
        )
    if not 0 <= shift < window:
        raise ValueError(
            f"`shift` must be from 0 to {window - 1} for windows of {window} × "
            f"{window}. Received: {shift}."
        )
    num_windows = rows * columns // window**2
    if (
        len(shape) != 4
        or shape[2:] != (window**2, window**2)
        or not shape[0]
        or shape[0] % num_windows
    ):
        raise ValueError(
            f"A grid of {rows} × {columns} has {num_windows} windows of "
            f"{window} × {window}, so weights must be (B · {num_windows}, H, "
            f"{window**2}, {window**2}). Received: shape {shape}."
        )


def _partition(patches, window):
    """`(rows, columns)` → `(num_windows, W²)`, as Swin's `window_partition`."""
    rows, columns = patches.shape
    split = rows // window, window, columns // window, window
    return patches.reshape(split).swapaxes(1, 2).reshape(-1, window**2)


def _check_shift(weights, grid, window, shift):
    """Warn if the weights look like those of a layer with another shift.

    Swin gives no weight to pairs that only its shift brings into one window.
    """
    if shift:
        most = _most_over_edges(weights, grid, window, shift)
        if most > 1e-3:
            warnings.warn(
                f"Patches at opposite edges, which only {shift=} brings into "
                f"one window, have weights up to {most:.2g}, and Swin masks "
                "them. If the layer does not attend over the edges, it shifts "
                "by another number, or not at all.",
                stacklevel=3,
            )
    elif window > 1:
        most = _most_over_edges(weights, grid, window, window // 2)
        if most < 1e-30:
            warnings.warn(
                "The last windows have no weight between the patches that Swin "
                f"masks where it shifts. If the layer shifts, give its shift, "
                f"which is {window // 2} in Swin. Received: {shift=}.",
                stacklevel=3,
            )


def _most_over_edges(weights, grid, window, shift):
    """The largest weight of `(B, nW, H, W², W²)` that Swin would mask."""
    last = [np.arange(size) >= size - shift for size in grid]
    sides = _partition(np.add.outer(2 * last[0], last[1]), window)  # (nW, W²)
    apart = sides[:, None, :, None] != sides[:, None, None, :]
    return np.where(apart, weights, 0.0).max()
