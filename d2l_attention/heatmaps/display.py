"""Figures in a notebook, with a text for those who cannot see them."""

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
    """Show a figure with a text for those who cannot see it.

    A notebook keeps the description wherever it is read: it is the `alt` of
    an `<img>` that holds the picture itself. The figure is closed.

    Args:
        figure: A `matplotlib.figure.Figure`, `Axes` of one, or an animation,
            shown as a GIF.
        alt: Str, what the figure shows.

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
    """The bytes of a picture, as few as there can be without loss.

    The same figure is the same bytes: there is no date and no version. The
    figure is closed.
    """
    drawn, packed = io.BytesIO(), io.BytesIO()
    with warnings.catch_warnings():
        # The plot has named the missing font, once; this is once a character.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(drawn, dpi=dpi, bbox_inches="tight")
    plt.close(figure)
    Image.open(drawn).convert("RGB").save(packed, "png", optimize=True)
    return packed.getvalue()


def _to_gif(animation):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "animation.gif")
        animation.save(path, writer="pillow", dpi=80)
        plt.close(animation._fig)
        return path.read_bytes()


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
