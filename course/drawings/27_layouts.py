"""Which two features are a pair: neighbours, or halves."""

from course.sheet import KINDS, Sheet

COLOURS = [
    KINDS[kind][1] for kind in ("projection", "attention", "memory", "query")
]
LAYOUTS = {
    "neighbours": [(0, 1), (2, 3), (4, 5), (6, 7)],
    "halves": [(0, 4), (1, 5), (2, 6), (3, 7)],
}


def draw_layout(sheet, left, y, name, *, width=52, gap=8, size=13):
    """Eight features in a row, and a bracket over each pair."""
    places = sheet.row_of_tokens(
        left, y, [str(i) for i in range(8)], width, gap=gap, size=size
    )
    for j, (one, other) in enumerate(LAYOUTS[name]):
        rise = 16 if other - one == 1 else 16 + 15 * j
        (x0, top), (x1, _) = places[one].top, places[other].top
        sheet.line(
            [(x0, top), (x0, top + rise), (x1, top + rise), (x1, top)],
            width=2.0,
            colour=COLOURS[j],
        )
    return places


sheet = Sheet(260)
for name, y in (("neighbours", 172), ("halves", 34)):
    draw_layout(sheet, 190, y, name)
    sheet.label(172, y + 14, name, size=14, align="right")
