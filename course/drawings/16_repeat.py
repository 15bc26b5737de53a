"""Copies of two key heads for four query heads: repeat and tile."""

from course.sheet import Sheet

WAYS = {"repeat": [0, 0, 1, 1], "tile": [0, 1, 0, 1]}


def draw_way(sheet, left, lowest, way, *, wide=66, size=13):
    """Four query heads over the copies that they would read."""
    for h, g in enumerate(WAYS[way]):
        x = left + h * (wide + 10)
        look = {"width": wide, "height": 32, "size": size}
        [query] = sheet.row_of_tokens(
            x, lowest + 86, [f"head {h}"], kind="query", **look
        )
        kind = "memory" if g == 0 else "data"
        [copy] = sheet.row_of_tokens(
            x, lowest, [f"keys {g}"], kind=kind, **look
        )
        sheet.arrow(copy, query)


sheet = Sheet(240)
for i, way in enumerate(WAYS):
    left = 26 + 362 * i
    draw_way(sheet, left, 56, way)
    sheet.label(left + 147, 206, f"np.{way}: {WAYS[way]}", size=14)
    verdict = ("neighbours share", "every second head shares")[i]
    sheet.label(left + 147, 30, verdict, size=13)
