"""Pictures of circles, squares and triangles, drawn here, with captions."""

import math
from numbers import Integral, Real
from typing import NamedTuple

from d2l_attention._checks import check_positive
import numpy as np

KINDS = ("circle", "square", "triangle")
COLOURS = {
    "red": (0.9, 0.2, 0.2),
    "green": (0.2, 0.8, 0.3),
    "blue": (0.3, 0.4, 1.0),
    "yellow": (0.9, 0.9, 0.2),
}
NUMBERS = ("one", "two", "three")
RADIUS = 3  # pixels around the middle one of 7 × 7
CELL = 8  # so there is room between two shapes
STEP = 4


class Shapes(NamedTuple):
    """Drawn pictures: all arrays have N rows, one for each."""

    images: np.ndarray  # (N, size, size, 3), float32 from 0 to 1
    captions: list  # of N str, such as "two red circles"
    kinds: np.ndarray  # (N,), index in KINDS
    colours: np.ndarray  # (N,), index in the colours
    counts: np.ndarray  # (N,), 1 to 3
    covered: np.ndarray  # (N, size, size), True where a shape is


def draw_shapes(num_examples, seed=0, size=24, noise=0.1):
    """Draw pictures of one to three equal shapes, and say what they show.

    All shapes of a picture have one kind (circle, square or triangle) and one
    colour (red, green, blue or yellow). They lie apart on a grey ground with
    noise; ground, brightness and places differ from picture to picture. A
    shape lies in a square of 8 × 8 pixels whose corner is at multiples of 4.

    Args:
        num_examples: Positive int, number N of pictures.
        seed: Int, seed of the draws.
        size: Int, pixels on a side, a multiple of 8 of at least 24.
        noise: Float of at least 0, standard deviation of the noise in a
            pixel's brightness.

    Returns:
        A `Shapes`: images, captions, kinds, colours, counts, and where the
        shapes are.

    Example:
        >>> from d2l_attention.datasets import draw_shapes
        >>> drawn = draw_shapes(2)
        >>> drawn.captions, drawn.images.shape
        (['one blue triangle', 'one green square'], (2, 24, 24, 3))
    """
    check_positive("num_examples", num_examples)
    if not isinstance(size, Integral) or size < 3 * CELL or size % CELL:
        raise ValueError(
            f"`size` must be an int, a multiple of {CELL}, at least {3 * CELL}."
            f" Received: size={size!r}."
        )
    if not isinstance(noise, Real) or not 0 <= noise < math.inf:
        raise ValueError(
            "`noise` must be a finite number of at least 0. Received: "
            f"noise={noise!r}."
        )
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(KINDS), size=num_examples)
    colours = rng.integers(len(COLOURS), size=num_examples)
    counts = rng.integers(1, 1 + len(NUMBERS), size=num_examples)
    covered = np.zeros((num_examples, size, size), bool)
    for picture, kind, count in zip(covered, kinds, counts, strict=True):
        for x, y in _centres(rng, count, size):
            picture |= _inside(kind, x, y, size)
    ground = rng.uniform(0.1, 0.4, (num_examples, 1, 1, 1))
    bright = rng.uniform(0.7, 1.0, (num_examples, 1, 1, 1))
    paint = np.array([*COLOURS.values()])[colours][
        :, None, None
    ]  # (N, 1, 1, 3)
    images = np.where(covered[..., None], bright * paint, ground)
    images += noise * rng.standard_normal((*covered.shape, 1))  # of brightness
    return Shapes(
        np.clip(images, 0, 1).astype("float32"),
        [*map(describe, kinds, colours, counts)],
        kinds,
        colours,
        counts,
        covered,
    )


def describe(kind, colour, count):
    """The caption, such as "two red circles", of three indices and a count."""
    plural = "s" if count > 1 else ""
    return f"{NUMBERS[count - 1]} {[*COLOURS][colour]} {KINDS[kind]}{plural}"


def _centres(rng, count, size):
    """Points x, y of shapes that do not touch: each in a cell of its own.

    The grid of cells is shifted as a whole, by 0, 4 or 8 pixels each way.
    """
    cells = size // CELL - 1  # one row and one column less, to shift them
    chosen = rng.choice(cells * cells, count, replace=False)
    shift = rng.integers(0, 3, 2) * STEP
    corners = np.stack(np.divmod(chosen, cells), axis=1)
    return corners * CELL + shift + RADIUS


def _inside(kind, x, y, size):
    """The pixels `(size, size)` of a shape around column x and row y."""
    rows, columns = np.mgrid[:size, :size]
    across, down = np.abs(columns - x), rows - y
    if KINDS[kind] == "circle":
        return across**2 + down**2 <= (RADIUS + 0.3) ** 2
    inside = np.maximum(across, np.abs(down)) <= RADIUS
    if KINDS[kind] == "square":
        return inside
    return inside & (across <= (down + RADIUS) / 2)  # a point on top
