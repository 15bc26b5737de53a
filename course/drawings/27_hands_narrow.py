"""Two hands at two places, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.27_hands")
sheet = Sheet(600, NARROW)
for y, t, s in ((460, 2, 1), (166, 7, 6)):
    wide.draw_clock(sheet, 180, y, 84, t, s, size=14)
    wide.draw_words(sheet, 180, y - 134, t, s, width=110, size=14)
