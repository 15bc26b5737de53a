"""Figures in a notebook, with a text for those who cannot see them."""

import base64
import html
import io

import matplotlib.pyplot as plt


def display_figure(figure, alt):
    """Show a figure with a text for those who cannot see it.

    A notebook keeps the description wherever it is read: it is the `alt` of
    an `<img>` that holds the picture itself. The figure is closed.

    Args:
        figure: A `matplotlib.figure.Figure`, or `Axes` of one.
        alt: Str, what the figure shows.

    Returns:
        An object that IPython displays; its `data` is the HTML.

    Raises:
        ValueError: If `alt` is empty.
    """
    if not alt.strip():
        raise ValueError(f"`alt` must describe the figure. Received: {alt!r}.")
    figure = getattr(figure, "figure", figure)
    buffer = io.BytesIO()
    # Without a date and a version the same figure is the same bytes.
    figure.savefig(
        buffer, dpi=100, bbox_inches="tight", metadata={"Software": None}
    )
    plt.close(figure)
    picture = base64.b64encode(buffer.getvalue()).decode()
    return _Picture(
        f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{picture}">'
    )


class _Picture:
    """HTML that shows itself in a notebook."""

    def __init__(self, data):
        self.data = data

    def _repr_html_(self):
        return self.data

    def __repr__(self):
        return "<picture>"
