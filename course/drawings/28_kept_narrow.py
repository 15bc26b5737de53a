"""What three caches hold, for a phone: a column each."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.28_kept")
sheet = Sheet(430, NARROW)
for column, (name, kept) in enumerate(wide.KEPT.items()):
    x = 22 + 113 * column
    sheet.label(x + 40, 408, name, size=14)
    for i, number in kept.items():
        y = 356 - 47 * i
        look = {"height": 34, "size": 13}
        sheet.row_of_tokens(x, y, [wide.WORDS[i]], 74, "memory", **look)
        sheet.label(x + 88, y + 17, str(number), size=13)
