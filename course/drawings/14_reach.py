"""A change at one node of a path, and how far two layers carry it."""

from course.sheet import Sheet


def draw_layers(sheet, corner, steps, wide, texts, **sizes):
    """Seven nodes in three rows; texts stand at (across, what, size)."""
    (left, low), (across, up) = corner, steps
    place, told, small = texts
    rows = []
    for depth, text in enumerate(told):
        row = []
        for node in range(7):
            kind = "attention" if abs(node - 3) <= depth else "data"
            x, y = left + across * node, low + up * depth
            row += sheet.row_of_tokens(x, y, [str(node)], wide, kind, **sizes)
        sheet.label(place, row[0].centre[1], text, align="left", size=small)
        rows.append(row)
    for depth in range(2):
        for t, above in enumerate(rows[depth + 1]):
            for s, below in enumerate(rows[depth]):
                if abs(s - t) <= 1:
                    look = {"width": 0.8, "colour": "#999999"}
                    if abs(s - 3) <= depth:  # carries the change
                        look = {"width": 2, "colour": "#b35900"}
                    sheet.arrow(below.top, above.bottom, **look)


sheet = Sheet(290)
told = ("only node 3 is changed", "layer 1: one hop", "layer 2: two hops")
draw_layers(sheet, (24, 46), (68, 90), 44, (514, told, 12))
sheet.label(250, 22, "each node hears its neighbours and itself")
