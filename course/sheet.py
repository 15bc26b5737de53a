"""Drawings on a white card, and what is wrong with one.

A script of `drawings` makes one `sheet = Sheet(height)` and puts boxes,
arrows, matrices, tokens and labels on it. `python -m course.build draw`
writes what they draw. Lengths are pixels of a card 720 wide; the origin is
the lower left corner, and depth grows upwards. `NN_what_narrow.py` draws the
same for a phone, on a card 360 wide; the book shows it there.

The kinds of a box have one meaning in the whole course: a projection is blue,
attention orange, feed-forward green, normalization and residuals grey, caches
and memories violet, the query of the moment dark, and data white.
"""

from dataclasses import dataclass
import io
import re

from d2l_attention.heatmaps.palette import WEIGHTS_MAP, contrast
import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import (
    Circle,
    FancyArrowPatch,
    FancyBboxPatch,
    Rectangle,
)
from matplotlib.path import Path as Curve
from matplotlib.transforms import Bbox

WIDTH, NARROW = 720, 360
INK = "#1a1a1a"
KINDS = {  # the colours of a kind: its area, its edge and its words
    "data": ("#ffffff", "#555555", INK),
    "projection": ("#dce9fb", "#2b5fa8", INK),
    "attention": ("#fde5cc", "#b35900", INK),
    "feed_forward": ("#dcf0dc", "#2e7d32", INK),
    "norm": ("#ececec", "#666666", INK),
    "memory": ("#ebe0f7", "#6a3fa0", INK),
    "query": ("#2b2b2b", "#2b2b2b", "#ffffff"),
}
AXES = set("BTSHGDKVUFLRPWC")  # the letters of the axes legend
STYLE = {
    "svg.hashsalt": "d2l_attention",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "hatch.linewidth": 0.8,
    "path.simplify": False,
}
CONTRAST, MOST_BOXES, MOST_WORDS = 4.5, 12, 40
SMALLEST = {WIDTH: 8.5, NARROW: 12}  # points of a letter
HEIGHTS = {WIDTH: (240, 440), NARROW: (200, 640)}


@dataclass(frozen=True)
class Place:
    """A rectangle on the card, and the points where arrows meet it."""

    x: float
    y: float
    width: float
    height: float

    def at(self, across, up):
        """The point at these shares of the width and the height."""
        return self.x + across * self.width, self.y + up * self.height

    @property
    def left(self):
        return self.at(0, 0.5)

    @property
    def right(self):
        return self.at(1, 0.5)

    @property
    def top(self):
        return self.at(0.5, 1)

    @property
    def bottom(self):
        return self.at(0.5, 0)

    @property
    def centre(self):
        return self.at(0.5, 0.5)

    @property
    def extent(self):
        return Bbox.from_bounds(self.x, self.y, self.width, self.height)


class Sheet:
    """A white card with a thin border, `WIDTH` or `NARROW` pixels wide."""

    def __init__(self, height, width=WIDTH):
        self.height, self.width = height, width
        self.boxes = []  # Places that no arrow and no other label may touch
        self.frames = []  # Places around others: only their edges count
        self.labels = []  # (text artist, its box or None, colour behind it)
        self.lines = []  # Curves
        self.num_boxes = 0
        with mpl.rc_context(STYLE):
            self.figure = Figure((width / 72, height / 72), dpi=72)
            self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(0, height))
        self.axes.axis("off")
        self.figure.patch.set_alpha(0)
        card = Place(1, 1, width - 2, height - 2)
        self._round(card, "#ffffff", "#bbbbbb", zorder=0)

    def box(
        self,
        x,
        y,
        text,
        kind="data",
        width=110,
        height=38,
        *,
        size=12,
        stack=0,
    ):
        """A step: a box of a kind with words in it.

        Args:
            x: Left edge.
            y: Lower edge.
            text: Str; `$…$` is a formula.
            kind: One of `KINDS`.
            width: Of the box.
            height: Of the box.
            size: Of the words.
            stack: How many cards stand behind it, for heads and layers.

        Returns:
            The `Place` of the box.
        """
        area, edge, ink = KINDS[kind]
        for card in range(stack, 0, -1):
            behind = Place(x + 5 * card, y + 5 * card, width, height)
            self._round(behind, area, edge)
        place = Place(x, y, width, height)
        self._round(place, area, edge)
        self.boxes.append(place)
        self.num_boxes += 1
        self._write(place.centre, text, size, ink, place, area)
        return place

    def frame(self, x, y, width, height, text=None, kind="norm"):
        """A dashed frame around other things, with words in its corner."""
        place = Place(x, y, width, height)
        edge = KINDS[kind][1]
        self._round(place, "none", edge, linestyle=(0, (4, 3)), zorder=0.5)
        self.frames.append(place)
        if text:
            self.label(x + 8, y + height - 13, text, align="left")
        return place

    def row_of_tokens(
        self,
        x,
        y,
        tokens,
        width=64,
        kind="data",
        *,
        height=28,
        gap=8,
        dark=None,
        size=12,
    ):
        """Tokens from left to right; the token `dark` is the query."""
        places = []
        for index, token in enumerate(tokens):
            now = "query" if index == dark else kind
            area, edge, ink = KINDS[now]
            place = Place(x + index * (width + gap), y, width, height)
            self._round(place, area, edge)
            self.boxes.append(place)
            self._write(place.centre, token, size, ink, place, area)
            places.append(place)
        return places

    def matrix(
        self,
        x,
        y,
        values,
        *,
        rows=(),
        columns=(),
        cell=(42, 28),
        weights=False,
        masked=None,
        form="{:g}",
        kind="data",
        size=11,
    ):
        """Cells with numbers, the first row on top.

        Args:
            x: Left edge of the cells.
            y: Lower edge of the cells.
            values: Rows of numbers or str.
            rows: Str for each row, written to the left.
            columns: Str for each column, written above.
            cell: The width and height of one.
            weights: Whether the cells are shaded as in the heatmaps, dark =
                low.
            masked: Rows of bool, True for a cell that is hatched.
            form: The format of the numbers.
            kind: That of cells that are not shaded.
            size: Of the words.

        Returns:
            The `Place` of all cells.
        """
        wide, high = cell
        count = len(values)
        place = Place(x, y, wide * len(values[0]), high * count)
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                one = Place(
                    x + j * wide, y + (count - 1 - i) * high, wide, high
                )
                if masked is not None and masked[i][j]:
                    self._fill(one, "#ffffff", "#777777", "////")
                    continue
                area, edge, ink = KINDS[kind]
                if weights:
                    area = mpl.colors.to_hex(mpl.colormaps[WEIGHTS_MAP](value))
                    ink = max(INK, "#ffffff", key=lambda c: contrast(c, area))
                self._fill(one, area, edge)
                text = value if isinstance(value, str) else form.format(value)
                self._write(one.centre, text, size, ink, one, area)
        self.boxes.append(place)
        for i, text in enumerate(rows):
            middle = y + (count - i - 0.5) * high
            self.label(x - 7, middle, text, size=size, align="right")
        for j, text in enumerate(columns):
            middle = x + (j + 0.5) * wide
            self.label(middle, place.top[1] + 10, text, size=size)
        return place

    def _fill(self, cell, area, edge, hatch=None):
        self.axes.add_patch(
            Rectangle(
                (cell.x, cell.y),
                cell.width,
                cell.height,
                facecolor=area,
                edgecolor=edge,
                linewidth=0.8,
                hatch=hatch,
                zorder=3,
            )
        )

    def label(self, x, y, text, size=12, align="center", colour=INK):
        """Words on the card; `align` says what of them lies at `x`."""
        self._write((x, y), text, size, colour, None, "#ffffff", align)

    def dot(self, x, y, radius=6, kind="query"):
        """A point of a picture."""
        area, edge, _ = KINDS[kind]
        self.axes.add_patch(
            Circle((x, y), radius, facecolor=area, edgecolor=edge, zorder=4)
        )
        return Place(x - radius, y - radius, 2 * radius, 2 * radius)

    def line(self, points, width=1.4, colour="#444444", dashed=False):
        """A line through points, without a head."""
        style = (0, (4, 3)) if dashed else "-"
        self.axes.plot(
            *zip(*points, strict=True),
            color=colour,
            linewidth=width,
            linestyle=style,
            solid_capstyle="butt",
            zorder=1,
        )
        self.lines.append(Curve(points))

    def arrow(
        self,
        start,
        end,
        text=None,
        *,
        side=None,
        via=(),
        width=1.4,
        colour="#444444",
        dashed=False,
        size=11,
    ):
        """What flows from one place to the next.

        Args:
            start: A `Place`, left at the side that faces `end`, or a point.
            end: A `Place` or a point.
            text: Str beside the longest piece: a letter and its shape.
            side: Of the words, "left", "right", "above" or "below".
            via: Points in between.
            width: Of the line.
            colour: Of the line.
            dashed: Whether the line is.
            size: Of the words.
        """
        first, last = _points(start, end, via)
        points = [first, *via, last]
        curve = Curve(points)
        self.axes.add_patch(
            FancyArrowPatch(
                path=curve,
                arrowstyle="-|>",
                mutation_scale=9 + 1.5 * width,
                linewidth=width,
                linestyle=(0, (4, 3)) if dashed else "-",
                color=colour,
                zorder=1,
                joinstyle="miter",
            )
        )
        self.lines.append(curve)
        if text:
            self._write_beside(points, text, side, size)

    def _write_beside(self, points, text, side, size):
        pieces = list(zip(points, points[1:], strict=False))
        (x0, y0), (x1, y1) = max(pieces, key=_length)
        flat = abs(x1 - x0) > abs(y1 - y0)
        side = side or ("above" if flat else "right")
        right, up = {
            "left": (-8, 0),
            "right": (8, 0),
            "above": (0, 11),
            "below": (0, -11),
        }[side]
        align = {"left": "right", "right": "left"}.get(side, "center")
        self.label(
            (x0 + x1) / 2 + right,
            (y0 + y1) / 2 + up,
            text,
            size,
            align,
        )

    def _round(self, place, area, edge, **style):
        self.axes.add_patch(
            FancyBboxPatch(
                (place.x, place.y),
                place.width,
                place.height,
                boxstyle="round,pad=0,rounding_size=5",
                facecolor=area,
                edgecolor=edge,
                linewidth=1.1,
                **{"zorder": 2, **style},
            )
        )

    def _write(self, point, text, size, ink, box, area, align="center"):
        artist = self.axes.text(
            *point,
            text,
            fontsize=size,
            color=ink,
            ha=align,
            va="center_baseline",
            linespacing=1.15,
            zorder=5,
            fontfamily=STYLE["font.family"],
        )
        artist.set_math_fontfamily(STYLE["mathtext.fontset"])
        self.labels.append((artist, box, area))

    def svg(self):
        """The drawing as the text of an SVG: the same each time."""
        written = io.StringIO()
        with mpl.rc_context(STYLE):
            self.figure.savefig(
                written, format="svg", dpi=72, metadata={"Date": None}
            )
        return re.sub(r"[ \t]+$", "", written.getvalue(), flags=re.MULTILINE)

    def problems(self):
        """What a reader would stumble over, as sentences."""
        with mpl.rc_context(STYLE):
            FigureCanvasAgg(self.figure).draw()
        found = []
        low, high = HEIGHTS[self.width]
        if not low <= self.height <= high:
            found.append(f"the card is {self.height} high, not {low} to {high}")
        if self.num_boxes > MOST_BOXES:
            found.append(f"{self.num_boxes} boxes, more than {MOST_BOXES}")
        words = [w for artist, *_ in self.labels for w in _words(artist)]
        if len(words) > MOST_WORDS:
            found.append(f"{len(words)} words, more than {MOST_WORDS}")
        extents = [_extent(artist) for artist, *_ in self.labels]
        for number, (artist, box, area) in enumerate(self.labels):
            text = repr(artist.get_text())
            extent = extents[number]
            found += _unreadable(artist, area, SMALLEST[self.width])
            found += self._misplaced(text, extent, box)
            found += [
                f"{text} overlaps {other.get_text()!r}"
                for (other, *_), theirs in zip(
                    self.labels[:number], extents, strict=False
                )
                if _overlap(extent, theirs)
            ]
        return [*found, *self._crossed()]

    def _misplaced(self, text, extent, own):
        """Where a label leaves its box or the card, or touches another."""
        room = own or Place(3, 3, self.width - 6, self.height - 6)
        if not _within(extent, room.extent):
            where = "its box" if own else "the card"
            yield f"{text} leaves {where}"
        for box in self.boxes:
            inside = own and _within(own.extent, box.extent)
            if not inside and _overlap(extent, box.extent):
                yield f"{text} touches a box that is not its own"
        for frame in self.frames:
            if _overlap(extent, frame.extent) and not _within(
                extent, frame.extent
            ):
                yield f"{text} lies on the edge of a frame"

    def _crossed(self):
        """The labels and boxes that an arrow runs through."""
        for line in self.lines:
            for artist, *_ in self.labels:
                if line.intersects_bbox(_extent(artist), filled=False):
                    yield f"a line runs through {artist.get_text()!r}"
            for box in self.boxes:
                inner = box.extent.padded(-1.5)
                ends = [line.vertices[0], line.vertices[-1]]
                if not any(box.extent.padded(2).contains(*p) for p in ends):
                    if line.intersects_bbox(inner, filled=False):
                        yield f"a line runs through the box at {box.x, box.y}"


def _points(start, end, via):
    """Where an arrow leaves and enters."""
    if isinstance(start, Place):
        start = _side(start, via[0] if via else end)
    if isinstance(end, Place):
        end = _side(end, via[-1] if via else start)
    return start, end


def _side(place, towards):
    """The middle of the side of a place that faces another, or a point."""
    x, y = towards.centre if isinstance(towards, Place) else towards
    across = (x - place.centre[0]) / place.width
    up = (y - place.centre[1]) / place.height
    if abs(across) > abs(up):
        return place.right if across > 0 else place.left
    return place.top if up > 0 else place.bottom


def _length(piece):
    (x0, y0), (x1, y1) = piece
    return abs(x1 - x0) + abs(y1 - y0)


def _extent(artist):
    return artist.get_window_extent()


def _overlap(one, other):
    shared = Bbox.intersection(one, other)
    return shared is not None and min(shared.width, shared.height) > 0.5


def _within(inner, outer):
    return (
        inner.x0 >= outer.x0 - 0.5
        and inner.x1 <= outer.x1 + 0.5
        and inner.y0 >= outer.y0 - 0.5
        and inner.y1 <= outer.y1 + 0.5
    )


def _words(artist):
    plain = re.sub(r"\$[^$]*\$", " ", artist.get_text())
    return re.findall(r"[^\W\d_]{3,}", plain)


def _unreadable(artist, area, smallest):
    """Small or pale letters, and axes that the legend does not know."""
    text = artist.get_text()
    if artist.get_fontsize() < smallest:
        yield f"{text!r} is smaller than {smallest} pt"
    if contrast(artist.get_color(), area) < CONTRAST:
        yield f"{text!r} has too little contrast"
    for shape in re.findall(r"\(([^()]*,[^()]*)\)", text):
        for letter in set(re.findall(r"\b[A-Z]+\b", shape)):
            if not set(letter) <= AXES:
                yield f"{text!r} has an axis that the legend lacks"
