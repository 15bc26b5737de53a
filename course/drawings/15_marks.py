"""Where an induction head must look: after the earlier occurrence."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(330)
letters = ["c", "a", "t", "c", "a"]
LEFT, LOW, WIDE, HIGH = 210, 44, 62, 38
sheet.matrix(
    LEFT,
    LOW,
    [[""] * 5] * 5,
    rows=[*letters[:4], ""],
    columns=letters,
    masked=[[s > t for s in range(5)] for t in range(5)],
    cell=(WIDE, HIGH),
    kind="attention",
    size=12,
)
for t, s in ((3, 1), (4, 2)):
    corner = LEFT + s * WIDE, LOW + (4 - t) * HIGH
    cell = Rectangle(corner, WIDE, HIGH, fill=False, linewidth=3, zorder=6)
    sheet.axes.add_patch(cell)
[query] = sheet.row_of_tokens(120, LOW + 5, ["a"], 54, dark=0)
sheet.arrow(query, (LEFT, query.right[1]))
earlier, after = LEFT + 1.5 * WIDE, LEFT + 2.5 * WIDE
over = [(earlier, 284), (after, 284)]
sheet.arrow((earlier, 256), (after, 256), via=over, width=2.2)
sheet.label(earlier - 8, 302, "earlier a", align="right")
sheet.label(after + 8, 302, "what came after it: t", align="left")
sheet.label(24, 170, "queries (T)", align="left")
sheet.label(LEFT + 2.5 * WIDE, 22, "keys (S)")
sheet.label(540, LOW + 19, "look here: t", align="left")
sheet.label(540, LOW + 57, "look here: a", align="left")
