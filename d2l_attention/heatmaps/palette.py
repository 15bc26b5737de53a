"""The colours of the course: one for each model and mechanism.

    axes.plot(lengths, seconds, color=PALETTE["performer"])

Each colour has at least 3 : 1 against white paper, the contrast that WCAG 2.2
asks of graphics (success criterion 1.4.11). Most are those of Paul Tol (2021,
"muted") and of Okabe and Ito (2008) that have this contrast.

Names that are drawn together stand in one group of `GROUPS`. Readers with any
kind of colour blindness can tell the colours of a group apart; so can readers
of a print in shades of grey if the lines also have markers or dashes of their
own. Two groups share some colours, and are not drawn together. A variant has
the colour of its mechanism and other dashes.
"""

import base64

import matplotlib
from matplotlib.colors import to_rgb
import numpy as np

# The colours of attention weights: dark is low. Lightness grows evenly, so
# that the map also works in grey and for every kind of colour blindness.
WEIGHTS_MAP = "viridis"
# Of weights below and above 0, which is white in the middle.
SIGNED_MAP = "PuOr_r"

GROUPS = {
    "mechanisms": {
        "dense": "#000000",
        "flash": "#888888",
        "linformer": "#332288",
        "performer": "#d55e00",
        "longformer": "#117733",
        "reformer": "#882255",
        "page-local": "#bb66cc",
    },
    "models": {
        "FixedContextSeq2Seq": "#888888",
        "BahdanauSeq2Seq": "#332288",
        "RNNSearch": "#d55e00",
        "Transformer": "#882255",
    },
    "scores": {
        "dot product": "#000000",
        "scaled": "#332288",
        "bilinear": "#d55e00",
        "additive": "#117733",
        "concat": "#882255",
        "Gaussian": "#bb66cc",
    },
    "heads": {
        "multi-head": "#000000",
        "grouped-query": "#332288",
        "multi-query": "#d55e00",
    },
    "choices": {
        "soft": "#332288",
        "hard": "#d55e00",
    },
    "caches": {
        "contiguous": "#888888",
        "paged": "#332288",
    },
}
PALETTE = {
    name: colour for group in GROUPS.values() for name, colour in group.items()
}


def contrast(colour, other):
    """The contrast of two colours, from 1 to 21, by WCAG 2.2."""
    dark, light = sorted((_luminance(colour), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    """The relative luminance of a colour, from 0 to 1; WCAG 2.2."""
    red, green, blue = (
        level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4
        for level in to_rgb(colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def viridis():
    """The colours of attention weights for a page: 256 × RGB, in base64."""
    table = matplotlib.colormaps[WEIGHTS_MAP](np.arange(256), bytes=True)
    return base64.b64encode(table[:, :3].tobytes()).decode()
