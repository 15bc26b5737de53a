"""One row, masked in four ways, for a phone."""

from course.sheet import NARROW, Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(640, NARROW)
WAYS = {  # weights, exponentials, scores; where the mask acts; what comes out
    "score × 0": (
        [0.61, 0.22, 0.08, 0.08],
        ["7.39", "2.72", "1", "1"],
        ["2", "1", "0", "0"],
        2,
        "leaks",
    ),
    "score −∞": (
        [0.73, 0.27, 0, 0],
        ["7.39", "2.72", "0", "0"],
        ["2", "1", "−∞", "−∞"],
        2,
        "right",
    ),
    "exponential × 0": (
        [0.73, 0.27, 0, 0],
        ["7.39", "2.72", "0", "0"],
        ["2", "1", "3", "0"],
        1,
        "right",
    ),
    "weight × 0": (
        [0.24, 0.09, 0, 0],
        ["7.39", "2.72", "20.09", "1"],
        ["2", "1", "3", "0"],
        0,
        "sum only 0.32",
    ),
}
left, wide, high = 124, 54, 34

for number, (name, way) in enumerate(WAYS.items()):
    weights, exponentials, scores, masked, result = way
    low = 498 - number * 152
    sheet.matrix(
        left,
        low + 2 * high,
        [weights],
        rows=["3 weights"],
        cell=(wide, high),
        weights=True,
        form="{:.2f}",
        size=13,
    )
    sheet.matrix(
        left,
        low,
        [exponentials, scores],
        rows=["2 exponentials", "1 scores"],
        cell=(wide, high),
        size=13,
    )
    frame = Rectangle(
        (left + 2 * wide, low + (2 - masked) * high),
        2 * wide,
        high,
        fill=False,
        edgecolor="#b35900",
        linewidth=4,
        zorder=6,
    )
    sheet.axes.add_patch(frame)
    sheet.label(12, low + 120, f"{name}: {result}", size=14, align="left")
for column, word in enumerate(["the", "cow", "sleeps", "<pad>"]):
    sheet.label(left + (column + 0.5) * wide, 24, word, size=13)
