"""One row, masked in four ways: from scores to weights."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(300)
WAYS = {  # scores, exponentials, weights; where the mask acts; what comes out
    "score × 0": (
        [2, 1, 0, 0],
        [7.39, 2.72, 1, 1],
        [0.61, 0.22, 0.08, 0.08],
        0,
        "leaks",
    ),
    "score −∞": (
        [2, 1, "−∞", "−∞"],
        [7.39, 2.72, 0, 0],
        [0.73, 0.27, 0, 0],
        0,
        "right",
    ),
    "exponential × 0": (
        [2, 1, 3, 0],
        [7.39, 2.72, 0, 0],
        [0.73, 0.27, 0, 0],
        1,
        "right",
    ),
    "weight × 0": (
        [2, 1, 3, 0],
        [7.39, 2.72, 20.09, 1],
        [0.24, 0.09, 0, 0],
        2,
        "too small: sum 0.32",
    ),
}
wide, high, levels = 37, 32, (42, 122, 202)

for number, (name, way) in enumerate(WAYS.items()):
    *rows, masked, result = way
    left = 96 + number * 155
    places = []
    for level, (height, row) in enumerate(zip(levels, rows, strict=True)):
        shades = {"weights": True, "form": "{:.2f}"} if level == 2 else {}
        place = sheet.matrix(
            left, height, [row], cell=(wide, high), size=10, **shades
        )
        places.append(place)
    for below, above in zip(places, places[1:], strict=False):
        sheet.arrow(below, above)
    frame = Rectangle(
        (left + 2 * wide, levels[masked]),
        2 * wide,
        high,
        fill=False,
        edgecolor="#b35900",
        linewidth=3.5,
        zorder=6,
    )
    sheet.axes.add_patch(frame)
    sheet.label(left + 2 * wide, 275, name, size=12.5)
    sheet.label(left + 2 * wide, 250, result, size=11)
    for column, word in enumerate(["the", "cow", "sleeps", "<pad>"]):
        middle = left + (column + 0.5) * wide
        sheet.label(middle, 26, word, size=9)

for height, name in zip(
    levels, ["scores", "exponentials", "weights"], strict=True
):
    sheet.label(88, height + high / 2, name, size=11, align="right")
sheet.label(88, 26, "keys", size=11, align="right")
