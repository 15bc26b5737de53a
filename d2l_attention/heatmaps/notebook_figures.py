"""Figures in a notebook, with a text for readers who cannot see them."""

import base64
import contextlib
import html
import io
from pathlib import Path
import tempfile
import warnings

from d2l_attention.heatmaps.labels import provide_fonts, readable_tokens
from d2l_attention.heatmaps.selection import hide, to_numpy
import matplotlib
from matplotlib.animation import Animation
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageSequence

_SHOWN_DPI = 100  # dots that a screen shows for an inch of the figure
# The picture for exporters that know no HTML is small: notebooks hold up to
# fifteen figures, each twice, and must stay below 500 KB.
_BESIDE_DPI, _BESIDE_COLOURS = 64, 16
_ANIMATION_DPI, _ANIMATION_COLOURS = 160, 64
_MOST_COLOURS = 8192  # of a drawing; a photograph has more


def display_figure(figure, alt, caption=None, *, dpi=200):
    """Show a figure with a text for readers who cannot see it.

    The text is the `alt` of an `<img>` that contains the picture itself, so
    the notebook keeps it wherever it is read. Exporters that know no HTML
    find a smaller picture beside it. The figure is closed.

    Args:
        figure: A `matplotlib.figure.Figure`, `Axes` of one, or an animation,
            shown as a GIF that runs once.
        alt: Str, a description of what the figure shows.
        caption: Str, a line below the figure that everybody reads.
        dpi: Int, dots for an inch of the figure. The size on a screen stays
            the same; fewer dots make a smaller file.

    Returns:
        An object that IPython displays; its `data` is the HTML.

    Raises:
        ValueError: If `alt` is empty.

    Warns:
        UserWarning: Once for each script that no installed font can draw.
    """
    if not alt.strip():
        raise ValueError(f"`alt` must describe the figure. Received: {alt!r}.")
    if isinstance(figure, Animation):
        animation, figure = figure, _figure_of(figure)
        kind, picture, size = "image/gif", _to_gif(animation), ""
    else:
        figure = getattr(figure, "figure", figure)
        image = _draw(figure, dpi)
        figure.set_layout_engine("none")  # it is laid out now
        kind, picture = "image/png", pack(image)
        size = f' width="{round(image.width * _SHOWN_DPI / dpi)}"'
        with _known_fonts():
            size += _panels(figure)
    beside = pack(_draw(figure, _BESIDE_DPI), _BESIDE_COLOURS)
    plt.close(figure)
    return _Picture(alt, caption, kind, picture, size, beside)


def _panels(figure):
    """An attribute of the `<img>`, by which a narrow page stacks the panels.

    It has the shares of the picture's width at which each panel begins and
    ends. A panel without labels of its rows has a strip first: the labels of
    the panel at its left.
    """
    if figure.legends or figure.get_suptitle() or figure.get_supxlabel():
        return ""  # these stand over several panels
    drawn = figure.get_tightbbox()  # in inches
    pad = matplotlib.rcParams["savefig.pad_inches"]
    left, width = drawn.x0 - pad, drawn.width + 2 * pad

    def shares(box):
        return [(x / figure.dpi - left) / width for x in (box.x0, box.x1)]

    panels, labels = [], ""
    for axes in sorted(figure.axes, key=lambda axes: axes.get_position().x0):
        start, end = shares(axes.get_tightbbox())
        cells, _ = shares(axes.get_window_extent())
        is_bar = axes.get_label() == "<colorbar>"
        if panels and (is_bar or start < panels[-1][2]):
            panels[-1][2] = max(end, panels[-1][2])
            continue
        has_labels = bool(axes.get_ylabel()) or start + 0.03 < cells
        if has_labels:
            labels = f"{start:.3f}-{cells:.3f}+"
        panels.append(["" if has_labels else labels, start, end])
    if len(panels) < 2:
        return ""
    text = " ".join(f"{strip}{a:.3f}-{b:.3f}" for strip, a, b in panels)
    return f' data-panels="{text}"'


def to_png(figure, dpi=100):
    """A figure as the bytes of a small PNG.

    The same figure gives the same bytes: the file holds no date and no
    version. The figure is closed.
    """
    image = _draw(figure, dpi)
    plt.close(figure)
    return pack(image)


def _draw(figure, dpi):
    """The pixels of a figure, as an RGB image of PIL."""
    provide_fonts(figure)
    drawn = io.BytesIO()
    with _known_fonts():
        figure.savefig(drawn, dpi=dpi, bbox_inches="tight")
    return Image.open(drawn).convert("RGB")


@contextlib.contextmanager
def _known_fonts():
    """`provide_fonts` warns of missing fonts; matplotlib of each letter."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def pack(image, most=256):
    """An RGB image as the bytes of a small PNG, with a palette.

    The half of the palette holds the colours of most pixels: paper, ink and
    cells stay as they are. The other half serves the rare colours, of the
    edges of lines and letters. A photograph has too many and keeps them all.
    """
    red, green, blue = np.asarray(image).reshape(-1, 3).astype("int32").T
    codes = red << 16 | green << 8 | blue
    found, counts = np.unique(codes, return_counts=True)
    colours = np.stack([found >> 16, found >> 8, found], axis=-1)
    colours = (colours & 255).astype("uint8")
    if len(colours) <= _MOST_COLOURS:
        nearest = np.arange(len(colours))
        if len(colours) > most:
            colours, nearest = _reduce(colours, counts, most)
        places = nearest.astype("uint8")[np.searchsorted(found, codes)]
        image = Image.fromarray(places.reshape(image.height, image.width))
        image.putpalette(colours.tobytes())
    packed = io.BytesIO()
    image.save(packed, "png", optimize=True)
    return packed.getvalue()


def _reduce(colours, counts, most):
    """A palette of `most` colours, and the place in it of each colour."""
    order = np.argsort(-counts, kind="stable")
    frequent, rare = np.split(colours[order], [most // 2])
    mixed = Image.fromarray(rare[None]).quantize(
        most - len(frequent), method=Image.Quantize.MAXCOVERAGE, kmeans=3
    )
    mixed = np.array(mixed.getpalette(), "uint8").reshape(-1, 3)
    palette = np.concatenate([frequent, mixed])[:most]
    apart = colours[:, None].astype(int) - palette.astype(int)
    return palette, np.square(apart).sum(axis=-1).argmin(axis=1)


def _to_gif(animation):
    """A GIF that runs once, with one palette for all frames, and no dots."""
    provide_fonts(_figure_of(animation))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "animation.gif")
        animation.save(path, writer="pillow", dpi=_ANIMATION_DPI)
        drawn = Image.open(path)
        duration = drawn.info["duration"]
        frames = [f.convert("RGB") for f in ImageSequence.Iterator(drawn)]
    strip = Image.fromarray(np.concatenate([np.asarray(f) for f in frames]))
    palette = strip.quantize(
        _ANIMATION_COLOURS, method=Image.Quantize.MAXCOVERAGE
    )
    first, *others = (
        frame.quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in frames
    )
    first.info.pop("loop", None)  # matplotlib's files run for ever
    packed = io.BytesIO()
    first.save(
        packed,
        "gif",
        save_all=True,
        append_images=others,
        duration=duration,
        optimize=True,
    )
    return packed.getvalue()


def _figure_of(animation):
    """The figure of an animation; matplotlib has no public name for it."""
    return animation._fig


class _Picture:
    """A picture that shows itself in a notebook."""

    def __init__(self, alt, caption, kind, picture, size, beside):
        source = base64.b64encode(picture).decode()
        below = ""
        if caption:
            below = f"<figcaption>{html.escape(caption)}</figcaption>"
        self.data = (
            '<figure style="margin:0">'
            f'<img alt="{html.escape(alt)}"{size} '
            f'style="max-width:100%;height:auto" '
            f'src="data:{kind};base64,{source}">{below}</figure>'
        )
        self._beside = base64.b64encode(beside).decode()

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {
            "text/html": self.data,
            "image/png": self._beside,
            "text/plain": repr(self),
        }

    def __repr__(self):
        return "<picture>"


def describe_attention(
    weights, *, query_tokens=None, key_tokens=None, mask=None, top=3
):
    """A heatmap in words, for readers who cannot see it.

    Args:
        weights: Float array `(T, S)`.
        query_tokens, key_tokens: Lists of T str and of S str.
        mask: Bool array that broadcasts to `(T, S)`, True = may attend.
        top: Int, number of the largest weights to name.

    Returns:
        Str of one or two sentences.

    Raises:
        ValueError: If `weights` does not have two axes, or the tokens do not
            fit it.
    """
    weights = to_numpy(weights, "weights", 2)
    queries = _names(query_tokens, 0, weights.shape)
    keys = _names(key_tokens, 1, weights.shape)
    shown = hide(weights, mask)
    text = f"Heatmap of {len(queries)} queries by {len(keys)} keys"
    largest = [
        f"“{queries[t]}” to “{keys[s]}” {shown[t, s]:.2f}"
        for t, s in _largest_cells(shown, top)
    ]
    if largest:
        text += (
            f", weights from {shown.min():.2f} to {shown.max():.2f}. "
            f"Largest: {', '.join(largest)}"
        )
    hidden = np.ma.count_masked(shown)
    masked = "1 cell is masked" if hidden == 1 else f"{hidden} cells are masked"
    return f"{text}. {masked}." if hidden else f"{text}."


def _names(tokens, axis, shape):
    """Readable tokens of an axis; its positions if there are no tokens."""
    tokens = range(shape[axis]) if tokens is None else tokens
    if len(tokens) != shape[axis]:
        raise ValueError(
            "There must be a token for each row and column. Received: "
            f"{len(tokens)} tokens for weights of shape {shape}."
        )
    return readable_tokens(tokens)


def _largest_cells(weights, number):
    """Row and column of the largest weights that are not masked."""
    number = min(number, weights.count())
    # They lie in the rows whose own largest weights are the largest.
    tops = weights.max(axis=1).filled(-np.inf)
    rows = np.sort(np.argsort(-tops, kind="stable")[:number])
    values = weights[rows].filled(-np.inf)
    places = np.argsort(-values, axis=None, kind="stable")[:number]
    found, columns = np.unravel_index(places, values.shape)
    return list(zip(rows[found], columns, strict=True))
