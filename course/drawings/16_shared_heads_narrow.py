"""Four query heads over four, two and one rows, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.16_shared_heads")
sheet = Sheet(640, NARROW)
for i, (groups, name) in enumerate(wide.PANELS.items()):
    lowest = 432 - 211 * i
    wide.draw_panel(sheet, 50, lowest, groups, wide=62, gap=40, size=13)
    sheet.label(180, lowest + 184, f"{name}: G = {groups}", size=14)
