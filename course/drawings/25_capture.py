"""Capture: a stand-in notes the weights; and how to read a head."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(352)
sheet.frame(14, 58, 130, 236)
sheet.label(14, 310, "somebody's layer", align="left")
steps = ["compare", "softmax", "average"]
boxes = [
    sheet.box(30, 72 + 72 * i, text, "attention", 98, 36)
    for i, text in enumerate(steps)
]
sheet.arrow((79, 14), boxes[0], "$X$ (T, D)")
sheet.arrow(boxes[0], boxes[1])
sheet.arrow(boxes[1], boxes[2])
sheet.arrow(boxes[2].top, (200, 278), via=[(79, 278)])
sheet.label(206, 278, "output,\nunchanged", align="left")
note = sheet.box(196, 142, "note", "memory", 70, 40)
sheet.arrow(boxes[1], note)
sheet.label(231, 200, "stand-in")

words = ["the", "black", "cow", "sleeps", "."]
low, top = 0.05, 0.81
rows = [[0.2] * 5 for _ in words]
rows[2] = [low, top, low, low, low]
rows[3] = [low, low, top, low, low]
WIDE, HIGH, LEFT, LOWEST = 52, 32, 424, 128
sheet.matrix(
    LEFT,
    LOWEST,
    rows,
    rows=["the", "black", "", "sleeps", "."],
    columns=words,
    cell=(WIDE, HIGH),
    weights=True,
    form="{:.2f}",
)
cow = sheet.row_of_tokens(360, LOWEST + 2 * HIGH + 2, ["cow"], 54, dark=0)
sheet.arrow(note, (352, 162), "(H, T, S)")
sheet.label(LEFT + 2.5 * WIDE, 326, "keys (S), in head 0")
sheet.label(388, 326, "queries (T)")
for x, y, wide, high in (
    (LEFT, LOWEST + 2 * HIGH, 5 * WIDE, HIGH),
    (LEFT + WIDE, LOWEST, WIDE, 5 * HIGH),
):
    sheet.axes.add_patch(
        Rectangle((x, y), wide, high, fill=False, linewidth=3, zorder=6)
    )
sheet.arrow((LEFT + 1.5 * WIDE, 98), (LEFT + 1.5 * WIDE, LOWEST))
sheet.label(LEFT + 1.5 * WIDE, 84, "a column: who looks at “black”?")
sheet.label(530, 50, "a row: where does “cow” look? It sums to 1.")
