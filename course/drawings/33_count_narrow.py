"""One circle or two, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.33_count")
sheet = Sheet(450, NARROW)
for i, number in enumerate(wide.SETS):
    wide.draw_set(sheet, 180, 384 - 218 * i, number, 154, 13)
