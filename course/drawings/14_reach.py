"""A change at one node of a path, and how far two layers carry it."""

from course.sheet import Sheet

sheet = Sheet(290)
told = (
    "only node 3 is changed",
    "layer 1: one hop",
    "layer 2: two hops",
)
rows = []
for depth, text in enumerate(told):
    row = []
    for node in range(7):
        kind = "attention" if abs(node - 3) <= depth else "data"
        x, y = 24 + 68 * node, 46 + 90 * depth
        row += sheet.row_of_tokens(x, y, [str(node)], 44, kind)
    sheet.label(514, row[0].centre[1], text, align="left", size=12)
    rows.append(row)
for depth in range(2):
    for t, above in enumerate(rows[depth + 1]):
        for s, below in enumerate(rows[depth]):
            if abs(s - t) <= 1:
                carries = abs(s - 3) <= depth
                width, colour = (2, "#b35900") if carries else (0.8, "#999999")
                sheet.arrow(below.top, above.bottom, width=width, colour=colour)
sheet.label(250, 22, "each node hears its neighbours and itself")
