"""Where an induction head must look: after the earlier occurrence."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

HIGH = 38


def draw_table(sheet, left, low, wide, size):
    """The causal table of c, a, t, c, a, with the two cells framed."""
    letters = ["c", "a", "t", "c", "a"]
    sheet.matrix(
        left,
        low,
        [[""] * 5] * 5,
        rows=[*letters[:4], ""],
        columns=letters,
        masked=[[s > t for s in range(5)] for t in range(5)],
        cell=(wide, HIGH),
        kind="attention",
        size=size,
    )
    for t, s in ((3, 1), (4, 2)):
        corner = left + s * wide, low + (4 - t) * HIGH
        cell = Rectangle(corner, wide, HIGH, fill=False, linewidth=3, zorder=6)
        sheet.axes.add_patch(cell)


sheet = Sheet(330)
LEFT, LOW, WIDE = 210, 44, 62
draw_table(sheet, LEFT, LOW, WIDE, 12)
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
