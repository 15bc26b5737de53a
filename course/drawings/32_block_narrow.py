"""The block of 2017 and that of today, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.32_block")
sheet = Sheet(424, NARROW)
sheet.label(80, 404, "2017", size=14)
old = wide.draw_old(sheet, 30, 62, 90, 384, 52, 12)
sheet.label(old[0].right[0] + 4, 159, "(1, 7) → (−1, 1)", align="left")
sheet.label(270, 404, "today", size=14)
new = wide.draw_new(sheet, 200, 226, 120, 388, 52, 12)
sheet.label(286, 30, "(1, 7) → (0.2, 1.4)", size=12)
