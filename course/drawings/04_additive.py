"""Additive attention: a column of queries plus a row of keys is a table."""

from course.sheet import Sheet

sheet = Sheet(330)
french = ["la", "vache", "noire", "dort", "."]
asked = [(-1, -3), (-3, 0)]
offered = [(0, 0), (0, 2), (2, 0), (0, 0), (0, 0)]


def pair(units):
    return ", ".join(f"{u}".replace("-", "−") for u in units)


sums = [[pair((a + o, b + p)) for o, p in offered] for a, b in asked]
left, wide, high = 250, 84, 34
row = sheet.matrix(
    left,
    24,
    [[pair(units) for units in offered]],
    cell=(wide, high),
    kind="projection",
    size=12,
)
for i, word in enumerate(french):
    sheet.label(left + (i + 0.5) * wide, 70, word)
sheet.label(left - 12, 41, "keys (1, S, U)", align="right")
column = sheet.matrix(
    86,
    118,
    [[pair(units)] for units in asked],
    rows=["cow", "sleeps"],
    cell=(wide, high),
    kind="projection",
    size=12,
)
sheet.label(86 + wide / 2, 204, "queries (T, 1, U)")
table = sheet.matrix(left, 118, sums, cell=(wide, high), size=12)
sheet.arrow(column, table)
sheet.arrow((460, 80), table.bottom)
sheet.label(left - 12, 204, "sums (T, S, U)", align="left")
box = sheet.box(395, 222, "tanh, weigh by $v$", "attention", 130, 34)
sheet.arrow(table, box)
sheet.arrow(box.top, (460, 300))
sheet.label(460, 312, "scores (T, S)")
