"""The same product in two orders, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.20_order")
sheet = Sheet(440, NARROW)
for y, text in (
    (420, "table first: T · S = 6 numbers"),
    (280, "sum first: F = 2 numbers"),
):
    sheet.label(12, y, text, align="left", size=13)
wide.draw_line(sheet, 12, 345, wide.PAIRS, 25, 19, 13)
wide.draw_line(sheet, 12, 205, wide.SUMS, 25, 19, 13)
wide.draw_line(sheet, 12, 95, wide.AFTER, 25, 19, 13)
sheet.label(12, 22, "again 12 and 15: the sums of stars", align="left", size=13)
