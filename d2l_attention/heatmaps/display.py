"""Figures in a notebook, with a text for readers who cannot see them."""

import base64
import html
import io
from pathlib import Path
import tempfile
import warnings

from matplotlib.animation import Animation
import matplotlib.pyplot as plt
from PIL import Image


def display_figure(figure, alt):
    """Show a figure with a text for readers who cannot see it.

    The text is the `alt` of an `<img>` that contains the picture itself, so
    the notebook keeps it wherever it is read. The figure is closed.

    Args:
        figure: A `matplotlib.figure.Figure`, `Axes` of one, or an animation,
            shown as a GIF.
        alt: Str, a description of what the figure shows.

    Returns:
        An object that IPython displays; its `data` is the HTML.

    Raises:
        ValueError: If `alt` is empty.
    """
    if not alt.strip():
        raise ValueError(f"`alt` must describe the figure. Received: {alt!r}.")
    if isinstance(figure, Animation):
        return _Picture(alt, "image/gif", _to_gif(figure))
    figure = getattr(figure, "figure", figure)
    picture = to_png(figure)
    return _Picture(alt, "image/png", picture)


def to_png(figure, dpi=100):
    """A figure as the bytes of a small PNG, without loss.

    The same figure gives the same bytes: the file holds no date and no
    version. The figure is closed.
    """
    drawn, packed = io.BytesIO(), io.BytesIO()
    with warnings.catch_warnings():
        # Drawing has warned of the missing font; this warns for each letter.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(drawn, dpi=dpi, bbox_inches="tight")
    plt.close(figure)
    Image.open(drawn).convert("RGB").save(packed, "png", optimize=True)
    return packed.getvalue()


def _to_gif(animation):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "animation.gif")
        animation.save(path, writer="pillow", dpi=80)
        plt.close(_figure_of(animation))
        return path.read_bytes()


def _figure_of(animation):
    """The figure of an animation; matplotlib has no public name for it."""
    return animation._fig


class _Picture:
    """HTML that shows itself in a notebook."""

    def __init__(self, alt, kind, picture):
        picture = base64.b64encode(picture).decode()
        alt = html.escape(alt)
        self.data = f'<img alt="{alt}" src="data:{kind};base64,{picture}">'

    def _repr_html_(self):
        return self.data

    def __repr__(self):
        return "<picture>"
