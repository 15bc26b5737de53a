"""A cache grows with every word; the sums keep their size: for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.20_state")
sheet = Sheet(350, NARROW)
sheet.label(122, 330, "a cache: keys, values", size=13)
sheet.label(304, 330, "a running sum", size=13)
for number, low, text in (
    (1, 254, "after 1 word"),
    (3, 166, "after 3 words"),
    (6, 44, "after 6 words"),
):
    wide.draw_step(sheet, number, low, 12, 78, 262, 13)
    sheet.label(12, low - 14, text, align="left", size=13)
