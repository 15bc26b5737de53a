"""A window, a question that is global, and the union of both, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.21_window")
sheet = Sheet(500, NARROW)
wide.draw(sheet, 24, 280, 23, wide.near, "a window", wide.numbers, 14)
wide.draw(sheet, 208, 280, 23, wide.all_see, "who? is global", size=14)
wide.draw(sheet, 106, 20, 31, wide.both, "both", wide.names, 14)
sheet.label(185, 349, "or", size=15)
sheet.label(22, 113, "=", size=20)
wide.finish(sheet)
