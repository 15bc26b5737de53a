"""One score in two ways, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.29_absorbed")
sheet = Sheet(490, NARROW)
wide.draw_way(sheet, 18, 290, absorb=False)
wide.draw_way(sheet, 18, 44, absorb=True)
sheet.label(180, 470, wide.TITLES[0], size=14)
sheet.label(180, 222, wide.TITLES[1], size=14)
