"""A graph of four nodes, and its matrix: who hears whom, with which weight."""

from math import hypot

from course.sheet import Sheet

sheet = Sheet(300)
middles = {0: (70, 75), 1: (195, 215), 2: (320, 75), 3: (345, 215)}
likes = {0: ("(1, 0)", -29), 1: ("(1, 1)", 28), 2: ("(0, 2)", -29)}
likes[3] = ("(2, 1)", 28)
for name, (x, y) in middles.items():
    sheet.row_of_tokens(x - 21, y - 16, [str(name)], 42, height=32, size=13)
    features, above = likes[name]
    sheet.label(x, y + above, features, size=12)
# From s to t, the weight, and where its number stands.
for s, t, weight, beside in (
    (0, 1, 0.33, (-26, 10)),
    (1, 0, 0.67, (26, -10)),
    (0, 2, 1.0, (0, 14)),
    (2, 0, 0.33, (0, -14)),
    (2, 1, 0.67, (30, 14)),
):
    (x0, y0), (x1, y1) = middles[s], middles[t]
    length = hypot(x1 - x0, y1 - y0)
    right, up = (x1 - x0) / length, (y1 - y0) / length
    aside = 0 if (s, t) == (2, 1) else 6  # two that meet go side by side
    x0, x1 = x0 - aside * up, x1 - aside * up
    y0, y1 = y0 + aside * right, y1 + aside * right
    sheet.arrow(
        (x0 + 27 * right, y0 + 27 * up),
        (x1 - 29 * right, y1 - 29 * up),
        width=0.8 + 3 * weight,
        colour="#b35900",
    )
    across, high = beside
    x, y = (x0 + x1) / 2 + across, (y0 + y1) / 2 + high
    sheet.label(x, y, f"{weight:.2f}", size=11)
sheet.label(210, 276, "an arrow ends at the one who hears", size=12)

weights = [[0, 0.67, 0.33, 0], [0.33, 0, 0.67, 0], [1.0, 0, 0, 0], [0] * 4]
sheet.matrix(
    478,
    42,
    weights,
    rows=["0", "1", "2", "3"],
    columns=["0", "1", "2", "3"],
    cell=(54, 40),
    weights=True,
    masked=[[weight == 0 for weight in row] for row in weights],
    form="{:.2f}",
    size=12,
)
sheet.label(586, 238, "source: is heard", size=12)
sheet.label(450, 122, "target:\nhears", size=12, align="right")
sheet.label(586, 22, "weights (T, S), hatched: no edge", size=12)
