"""Two layouts of pairs, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.27_layouts")
sheet = Sheet(280, NARROW)
for name, y in (("neighbours", 168), ("halves", 20)):
    wide.draw_layout(sheet, 10, y, name, width=36, gap=7, size=14)
    sheet.label(180, y + (70 if name == "neighbours" else 104), name, 14)
