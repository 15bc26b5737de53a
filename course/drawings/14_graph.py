"""A graph of four people, and its matrix: a graph is a mask."""

from math import hypot

from course.sheet import Sheet

EDGES = [(1, 0), (0, 1), (2, 0), (0, 2), (2, 1)]  # from s to t
LIKES = {
    0: ("(1, 0)", -29),
    1: ("(1, 1)", 28),
    2: ("(0, 2)", -29),
    3: ("(2, 1)", 28),
}


def draw_graph(sheet, middles, size):
    """People with what they like above or below, and arrows."""
    for name, (x, y) in middles.items():
        sheet.row_of_tokens(
            x - 21, y - 16, [str(name)], 42, height=32, size=size + 1
        )
        features, above = LIKES[name]
        sheet.label(x, y + above, features, size=size)
    for s, t in EDGES:
        (x0, y0), (x1, y1) = middles[s], middles[t]
        length = hypot(x1 - x0, y1 - y0)
        right, up = (x1 - x0) / length, (y1 - y0) / length
        aside = 0 if (s, t) == (2, 1) else 6  # two that meet go side by side
        x0, x1 = x0 - aside * up, x1 - aside * up
        y0, y1 = y0 + aside * right, y1 + aside * right
        sheet.arrow(
            (x0 + 27 * right, y0 + 27 * up),
            (x1 - 29 * right, y1 - 29 * up),
            width=2,
            colour="#b35900",
        )


def draw_matrix(sheet, left, low, cell, size):
    """Row t says whom t hears."""
    numbers = ["0", "1", "2", "3"]
    absent = [[(s, t) not in EDGES for s in range(4)] for t in range(4)]
    sheet.matrix(
        left,
        low,
        [["" if no else "hears" for no in row] for row in absent],
        rows=numbers,
        columns=numbers,
        cell=cell,
        kind="attention",
        masked=absent,
        size=size,
    )


sheet = Sheet(300)
middles = {0: (90, 80), 1: (195, 215), 2: (310, 80), 3: (345, 215)}
draw_graph(sheet, middles, size=12)
sheet.label(210, 272, "an arrow ends at the one who hears", size=12)
draw_matrix(sheet, 478, 58, (54, 40), size=12)
sheet.label(586, 40, "source: is heard", size=12)
sheet.label(452, 138, "target:\nhears", size=12, align="right")
sheet.label(586, 272, "hatched: no edge", size=12)
