"""A graph of four people, and its matrix, for a phone."""

from math import hypot

from course.sheet import NARROW, Sheet

sheet = Sheet(530, NARROW)
middles = {0: (70, 330), 1: (165, 455), 2: (270, 330), 3: (300, 455)}
likes = {0: ("(1, 0)", -29), 1: ("(1, 1)", 28), 2: ("(0, 2)", -29)}
likes[3] = ("(2, 1)", 28)
for name, (x, y) in middles.items():
    sheet.row_of_tokens(x - 21, y - 16, [str(name)], 42, height=32, size=14)
    features, above = likes[name]
    sheet.label(x, y + above, features, size=13)
edges = [(1, 0), (0, 1), (2, 0), (0, 2), (2, 1)]  # from s to t
for s, t in edges:
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
sheet.label(180, 509, "an arrow ends at the one who hears", size=13)

sheet.matrix(
    92,
    42,
    [["hears" if (s, t) in edges else "" for s in range(4)] for t in range(4)],
    rows=["0", "1", "2", "3"],
    columns=["0", "1", "2", "3"],
    cell=(58, 42),
    kind="attention",
    masked=[[(s, t) not in edges for s in range(4)] for t in range(4)],
    size=13,
)
sheet.label(208, 24, "source: is heard", size=13)
sheet.label(68, 126, "target:\nhears", size=13, align="right")
sheet.label(208, 255, "hatched: no edge", size=13)
