"""Three ways to read a text, for a phone: the names above the rows."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.31_three")
sheet = Sheet(250, NARROW)
for row, way in enumerate(wide.WAYS):
    y = 172 - 76 * row
    sheet.label(16, y + 46, way, size=13, align="left")
    gate = f"{'+ ' if row else ''}{wide.GATES[row]} × output"
    sheet.label(NARROW - 16, y + 46, gate, size=13, align="right")
    for block in range(4):
        start = 14 + block * 84
        if way == "compressed":
            if block < 3:
                sheet.row_of_tokens(
                    *(start, y, ["mean"], 78, "attention"), size=12
                )
            continue
        for token in range(4):
            place = 4 * block + token
            read = block in (1, 3) if way == "selected" else place > 12
            kind = "attention" if read else "norm"
            if place == 15:
                kind = "query"
            sheet.row_of_tokens(
                *(start + token * 20, y, [str(place)], 19, kind), size=12
            )
