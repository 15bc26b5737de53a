"""Three ways to read a text of sixteen tokens, with their gates."""

from course.sheet import Sheet

WAYS = ["compressed", "selected", "window"]
GATES = ["0.7", "0.9", "0.4"]


def draw_way(sheet, left, y, way, *, wide=28, name=90, size=13):
    """A row of sixteen tokens, and what one attention reads of them."""
    sheet.label(left + name - 10, y + 14, way, size=size, align="right")
    x = left + name
    for block in range(4):
        start = x + block * (4 * wide + 8)
        if way == "compressed":
            if block < 3:
                sheet.row_of_tokens(
                    *(start, y, ["mean"], 4 * wide, "attention"), size=size
                )
            continue
        for token in range(4):
            place = 4 * block + token
            read = block in (1, 3) if way == "selected" else place > 12
            kind = "attention" if read else "norm"
            if place == 15:
                kind = "query"
            sheet.row_of_tokens(
                *(start + token * wide, y, [str(place)], wide - 3, kind),
                size=size - 2,
            )
    gate = GATES[WAYS.index(way)]
    end = x + 16 * wide + 24
    sign = "" if way == WAYS[0] else "+ "
    words = f"{sign}{gate} × output"
    sheet.label(end + 4, y + 14, words, size=size, align="left")


sheet = Sheet(240)
for row, way in enumerate(WAYS):
    draw_way(sheet, 20, 174 - 66 * row, way)
