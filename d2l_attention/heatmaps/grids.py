"""Many maps under one colour scale: a grid of heads, or an animation."""

from dataclasses import fields

from d2l_attention._checks import as_array
from d2l_attention.heatmaps.drawing import (
    colour_scale,
    draw_cells,
    draw_scale,
    label_keys,
    name_keys,
    number_cells,
    number_format,
    pool,
    tell_blocks,
    tell_sums,
    turn,
)
from d2l_attention.heatmaps.labels import (
    families_for,
    label_axis,
    readable_tokens,
)
from d2l_attention.heatmaps.plots import plot_attention
from d2l_attention.heatmaps.selection import (
    Selection,
    choose_keys,
    hide,
    share_of_keys,
    to_numpy,
    without_keys,
)
from matplotlib.animation import FuncAnimation
import matplotlib.pyplot as plt
import numpy as np

_MOST_PANELS = 256  # of a grid; more take minutes to draw
_LONGEST_TOKEN = 16  # signs; a longer one would shrink the panels


def plot_attention_grid(
    weights,
    *,
    query_tokens=None,
    key_tokens=None,
    tokens=None,
    layers=None,
    heads=None,
    sample=0,
    window=None,
    mask=None,
    hide_keys=(),
    figsize=None,
    cmap=None,
    vmin=None,
    vmax=None,
    max_ticks=None,
    annotate=False,
    fmt=None,
    rtl="auto",
):
    """A row of heatmaps for each layer, a column for each head.

    All panels share one colour scale, and the colour bar holds for each. Below
    each panel stands how much of its weight is hidden, if keys are.

    Args:
        weights: Float array `(H, T, S)` or `(B, H, T, S)`, or a mapping of
            layer path to such an array.
        query_tokens, key_tokens: Lists of str, the tokens of the rows and of
            the columns. Those after the last token (padding) are left out.
        tokens: Dict of layer path, or of a pattern like
            `"multi_head_attention*"`, to a pair of lists (query tokens, key
            tokens), for layers with tokens of their own. Other layers take
            `query_tokens` and `key_tokens`. More than 16 signs of a token are
            cut off.
        layers: A list of paths of a mapping, or a pattern like
            `"decoder/*/cross_attention"`. All layers by default.
        heads: List of int; all heads by default.
        sample: Int, which sentence of the batch.
        window: Int, which map of a layer that has not one for each input of
            the model: it cuts them into windows, for example.
        mask: Bool array `(T, S)`, `(B, T, S)` or `(B, H, T, S)`, True = may
            attend, or a dict of path or pattern to one. Axes of length 1 stand
            for all.
        hide_keys: List of int, places of the keys whose columns are grey, as
            in `plot_attention`, or a dict of path or pattern to one.
        figsize: Size of one panel, in inches.
        cmap, vmin, vmax, fmt, rtl: As in `plot_attention`.
        max_ticks: Int, most labels on an axis; by default as many as fit.
        annotate: Whether to write the weights into the cells, or "auto", as
            in `plot_attention`.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ValueError: If no layer matches, an array does not have three or four
            axes, there are more tokens than rows or columns, a mask does not
            fit, there is no such head, sample or key to hide, `tokens`,
            `mask` or `hide_keys` name what is not there, or there are more
            than 256 maps, which take minutes to draw and show nothing.

    Warns:
        UserWarning: If a shown row has weight on a column that is left out.
    """
    selection = Selection(
        query_tokens,
        key_tokens,
        tokens,
        layers,
        heads,
        sample,
        window,
        mask,
        hide_keys,
    )
    grid = selection.of(weights)
    figure, images, _ = _draw_grid(
        grid,
        [shown.visible() for shown in grid.values()],
        heads,
        figsize=figsize,
        cmap=cmap,
        vmin=vmin,
        vmax=vmax,
        max_ticks=max_ticks,
        rtl=rtl,
    )
    _tell_hidden(images, grid)
    _number_grid(images, grid, annotate, fmt)
    told = getattr(weights, "after_softmax", {})
    lines = [f"{path}: {told[path]}" for path in grid if path in told]
    if lines:
        title = "\n".join(filter(None, (figure.get_suptitle(), *lines)))
        figure.suptitle(title, parse_math=False)
    return figure


def animate_attention(
    frames,
    *,
    query_tokens=None,
    key_tokens=None,
    titles=None,
    interval=400,
    vmin=None,
    vmax=None,
    mask=None,
    fmt=None,
    **options,
):
    """A heatmap that changes over epochs, or over the steps of a decoder.

    All frames share one colour scale. `display_figure` shows the animation
    as a GIF that runs once. `animation.save("name.gif", writer="pillow")`
    writes one that runs for ever, and needs no other program.

    Args:
        frames: Float array `(frames, T, S)`, one heatmap for each frame; or
            `(T, S)`, shown row by row, as a decoder writes its tokens, or
            reads them, where no row sees a later column; or a
            list of mappings of layer path to an array `(H, T, S)` or
            `(B, H, T, S)`, as `AttentionRecorder.frames`, each shown as a
            grid of all layers and heads.
        query_tokens, key_tokens: Lists of T str and of S str.
        titles: List of str, one for each frame.
        interval: Float, milliseconds from one frame to the next.
        vmin, vmax: Floats, ends of the colour scale; from 0 to the largest
            weight of all frames by default.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend; for
            mappings also a dict of path to one.
        **options: Other arguments of `plot_attention`; for mappings, of
            `plot_attention_grid`. `annotate` is False by default.

    Returns:
        The `matplotlib.animation.FuncAnimation`.

    Raises:
        TypeError: If `frames` is a mapping, not a list of them.
        ValueError: If `frames` does not have two or three axes, its mappings
            differ in layers or shapes, the tokens do not fit, or the number of
            titles is not the number of frames.
    """
    if hasattr(frames, "items"):
        raise TypeError(
            "`frames` must be an array or a list of mappings. To see one map "
            "row by row, choose it: `maps[path][0, head]`. Received: a mapping "
            f"of {list(frames)}."
        )
    tokens = {"query_tokens": query_tokens, "key_tokens": key_tokens}
    start = _start_grid
    if not (len(frames) and all(hasattr(frame, "items") for frame in frames)):
        start = _start_map
        frames = np.array([as_array(x, "float64") for x in frames])
        if frames.ndim == 4:
            raise ValueError(
                "`frames` must have two or three axes: choose one map, such as "
                f"`maps[path][0, head]`. Received: shape {frames.shape}."
            )
        if frames.ndim == 2:
            names = () if query_tokens is None else query_tokens
            if titles is None and len(names) == len(frames):
                verb = "reads" if _sees_no_later_key(frames) else "writes"
                titles = [f"{verb} {name}" for name in readable_tokens(names)]
            written = np.tri(len(frames), dtype=bool)[..., None]
            frames = np.where(written, frames, np.nan)
        frames = to_numpy(frames, "frames", 3)
    if titles is None:
        titles = [f"{i + 1} of {len(frames)}" for i in range(len(frames))]
    if len(titles) != len(frames):
        raise ValueError(
            f"There must be a title for each of {len(frames)} frames. "
            f"Received: {len(titles)} titles."
        )
    heading, note, redraw = start(
        frames, mask, fmt, vmin=vmin, vmax=vmax, **tokens, **options
    )
    heading.set(parse_math=False, fontfamily=families_for(titles))

    def draw(i):
        heading.set_text("\n".join(filter(None, (titles[i], note))))
        return *redraw(i), heading

    draw(0)
    return FuncAnimation(
        heading.figure,
        draw,
        frames=len(frames),
        interval=interval,
        repeat=False,
    )


def _sees_no_later_key(weights):
    """Whether a square map has no weight above its diagonal."""
    above = np.nan_to_num(np.triu(weights, 1), neginf=0.0)
    return weights.shape[0] == weights.shape[1] and not above.any()


def _start_map(
    frames,
    mask,
    fmt,
    *,
    key_tokens,
    hide_keys=(),
    vmin,
    vmax,
    annotate=False,
    colorbar=True,
    max_cells=1000,
    **options,
):
    """Title and note of one map, and a function that shows frame `i` in it."""
    allowed = hide(frames, mask)
    hidden = choose_keys(hide_keys, allowed.shape[-1], "frames")
    shown = without_keys(allowed, hidden)
    fmt = number_format(shown, annotate, fmt)
    scale = colour_scale(options.get("cmap"), vmin, vmax, shown)
    options |= dict(zip(("cmap", "vmin", "vmax"), scale, strict=True))
    ax = plot_attention(
        allowed[-1].filled(np.nan),
        key_tokens=key_tokens,
        hide_keys=hidden,
        annotate=False,
        colorbar=False,
        max_cells=max_cells,
        **options,
    )
    image = ax.images[0]
    if colorbar:
        draw_scale(ax.figure, ax, image, shown)

    def redraw(i):
        image.set_data(pool(shown[i], max_cells)[0])
        label_keys(ax, allowed[i], hidden, key_tokens)
        return image, *number_cells(image, shown[i], fmt, annotate)

    return ax.title, tell_blocks(shown[-1], max_cells), redraw


def _start_grid(frames, mask, fmt, *, annotate=False, **options):
    """Title and note of a grid, and a function that shows frame `i` in it."""
    chosen = {x.name for x in fields(Selection)} & options.keys()
    chosen = {name: options.pop(name) for name in chosen}
    selection = Selection(**chosen, mask=mask)
    grids = [selection.of(frame) for frame in frames]
    shapes = [{path: m.weights.shape for path, m in g.items()} for g in grids]
    for i, shape in enumerate(shapes):
        if shape != shapes[-1]:
            raise ValueError(
                f"All frames must have the layers and shapes of the last: "
                f"{shapes[-1]}. Received in frame {i}: {shape}."
            )
    every = [shown.visible() for grid in grids for shown in grid.values()]
    figure, images, max_cells = _draw_grid(
        grids[-1], every, selection.heads, **options
    )

    def redraw(i):
        for (path, column), image in images.items():
            visible = grids[i][path].visible(column)
            image.set_data(pool(visible, max_cells)[0])
        _tell_hidden(images, grids[i])
        numbers = _number_grid(images, grids[i], annotate, fmt)
        return *images.values(), *numbers

    notes = {tell_blocks(maps[0], max_cells): True for maps in every}
    return figure.suptitle(" "), "\n".join(filter(None, notes)), redraw


def _tell_hidden(images, grid):
    """Write below each panel how much of its weight is hidden."""
    for (path, column), image in images.items():
        weights, _, _, hidden = grid[path]
        if hidden:
            share = share_of_keys(weights[column], hidden)
            image.axes.set_xlabel(f"{share:.0%} hidden")


def _number_grid(images, grid, annotate, fmt):
    """Write the weights into the cells of a grid; the list of the numbers."""
    numbers = []
    for (path, column), image in images.items():
        weights = grid[path].visible(column)
        form = number_format(weights, annotate, fmt)
        numbers += number_cells(image, weights, form, annotate)
    return numbers


def _draw_grid(
    grid,
    every,
    heads,
    *,
    figsize=None,
    cmap=None,
    vmin=None,
    vmax=None,
    max_ticks=None,
    rtl="auto",
):
    """Draw the maps of a grid under one colour scale, that of `every`.

    What comes back are the figure, a dict of path and column to an image, and
    the most cells on a side of an image.
    """
    shown = {path: shown_map.weights for path, shown_map in grid.items()}
    columns = max(map(len, shown.values()))
    number = sum(map(len, shown.values()))
    if number > _MOST_PANELS:
        raise ValueError(
            f"A grid has at most {_MOST_PANELS} maps. Received: {number}. "
            'Look at all by `view_attention(maps, view="overview")`, or choose '
            "some with `layers=` and `heads=`."
        )
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
    colours = colour_scale(cmap, vmin, vmax, *every)
    max_cells = min(1000, int(figure.dpi * max(figsize)))
    images, notes = {}, {}
    for (path, maps), row in zip(shown.items(), panels, strict=True):
        for column, ax in enumerate(row):
            if column >= len(maps):
                ax.set_axis_off()
                continue
            weights = maps[column]
            image, note = draw_cells(
                ax, weights, colours, max_cells, hidden=grid[path].hidden
            )
            images[path, column], notes[note] = image, True
    _label(grid, panels, heads, max_ticks, rtl)
    notes[tell_sums(*(maps.data for maps in shown.values()))] = True
    figure.suptitle("\n".join(filter(None, notes)))
    label = "\n".join(["keys", *_name_hidden(grid)])
    figure.supxlabel(label, parse_math=False, fontfamily=families_for([label]))
    figure.supylabel("queries")
    values = np.concatenate([maps.compressed() for maps in every])
    aspect = max(20, 5 * figure.get_figheight())
    draw_scale(figure, panels, image, values, aspect=aspect)
    return figure, images, max_cells


def _name_hidden(grid):
    """A line that names the hidden keys of all layers, if there are any."""
    names = {
        name_keys(shown.hidden, shown.key_tokens): True
        for shown in grid.values()
        if shown.hidden
    }
    return [f"(grey: hidden {', '.join(names)})"] if names else []


def _label(grid, panels, heads, max_ticks, rtl):
    """Labels stand at the edges, and where the next layer has others."""
    rows = list(grid.items())
    heads = range(panels.shape[1]) if heads is None else heads
    for row, (path, (maps, queries, keys, _)) in enumerate(rows):
        follows = rows[row + 1][1] if row + 1 < len(rows) else None
        ends = follows is None or not (
            follows.weights.shape == maps.shape
            and _same(follows.key_tokens, keys)
        )
        _, t, s = maps.shape
        for column, ax in enumerate(panels[row, : len(maps)]):
            on_right = turn(ax, queries, keys, rtl)
            if column == (len(maps) - 1 if on_right else 0):
                label_axis(
                    ax.yaxis, queries, t, "query", max_ticks, _LONGEST_TOKEN
                )
            else:
                ax.set_yticks([])
            if ends:
                label_axis(ax.xaxis, keys, s, "key", max_ticks, _LONGEST_TOKEN)
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
