"""Where an induction head must look, for a phone."""

from course.sheet import NARROW, Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(330, NARROW)
letters = ["c", "a", "t", "c", "a"]
LEFT, LOW, WIDE, HIGH = 78, 48, 54, 38
sheet.matrix(
    LEFT,
    LOW,
    [[""] * 5] * 5,
    rows=[*letters[:4], ""],
    columns=letters,
    masked=[[s > t for s in range(5)] for t in range(5)],
    cell=(WIDE, HIGH),
    kind="attention",
    size=14,
)
for t, s in ((3, 1), (4, 2)):
    corner = LEFT + s * WIDE, LOW + (4 - t) * HIGH
    cell = Rectangle(corner, WIDE, HIGH, fill=False, linewidth=3, zorder=6)
    sheet.axes.add_patch(cell)
[query] = sheet.row_of_tokens(12, LOW + 5, ["a"], 42, dark=0, size=14)
sheet.arrow(query, (LEFT, query.right[1]))
earlier, after = LEFT + 1.5 * WIDE, LEFT + 2.5 * WIDE
over = [(earlier, 286), (after, 286)]
sheet.arrow((earlier, 262), (after, 262), via=over, width=2.2)
sheet.label(earlier - 4, 306, "earlier a", align="right", size=13)
sheet.label(after + 4, 306, "after it: t", align="left", size=13)
sheet.label(LEFT + 2.5 * WIDE, 24, "rows: queries, columns: keys", size=13)
