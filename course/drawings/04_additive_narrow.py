"""Additive attention: a column plus a row is a table, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(330, NARROW)
french = ["la", "vache", "noire", "dort", "."]
asked = [(-1, -3), (-3, 0)]
offered = [(0, 0), (0, 2), (2, 0), (0, 0), (0, 0)]


def pair(units):
    return ",".join(f"{u}".replace("-", "−") for u in units)


sums = [[pair((a + o, b + p)) for o, p in offered] for a, b in asked]
left, wide, high = 122, 46, 34
row = sheet.matrix(
    left,
    40,
    [[pair(units) for units in offered]],
    cell=(wide, high),
    kind="projection",
    size=12,
)
for i, word in enumerate(french):
    sheet.label(left + (i + 0.5) * wide, 86, word)
sheet.label(237, 22, "keys (1, S, U)", size=13)
column = sheet.matrix(
    56,
    132,
    [[pair(units)] for units in asked],
    rows=["cow", "sleeps"],
    cell=(wide, high),
    kind="projection",
    size=12,
)
sheet.label(72, 218, "queries (T, 1, U)", size=13)
table = sheet.matrix(left, 132, sums, cell=(wide, high), size=12)
sheet.arrow(column, table)
sheet.arrow((237, 98), table.bottom)
sheet.label(160, 218, "sums (T, S, U)", size=13, align="left")
box = sheet.box(212, 240, "tanh, weigh by $v$", "attention", 140, 34, size=13)
sheet.arrow((300, 200), (300, 240))
sheet.arrow(box, (282, 304))
sheet.label(282, 314, "scores (T, S)", size=13)
