"""How far two layers carry a change along a path, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(330, NARROW)
told = ("only node 3\nis changed", "layer 1:\none hop", "layer 2:\ntwo hops")
rows = []
for depth, text in enumerate(told):
    row = []
    for node in range(7):
        kind = "attention" if abs(node - 3) <= depth else "data"
        x, y = 10 + 36 * node, 54 + 106 * depth
        row += sheet.row_of_tokens(x, y, [str(node)], 31, kind, size=14)
    sheet.label(268, row[0].centre[1], text, align="left", size=13)
    rows.append(row)
for depth in range(2):
    for t, above in enumerate(rows[depth + 1]):
        for s, below in enumerate(rows[depth]):
            if abs(s - t) <= 1:
                carries = abs(s - 3) <= depth
                width, colour = (2, "#b35900") if carries else (0.8, "#999999")
                sheet.arrow(below.top, above.bottom, width=width, colour=colour)
sheet.label(180, 24, "each node hears its neighbours and itself", size=14)
