"""Two texts that share a full block, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.18_fork")
sheet = Sheet(200, NARROW)
rows = wide.draw_blocks(sheet, 112, 46, (60, 28), (91, 51), 13)
sheet.label(74, 160, "block", size=13)
sheet.label(196, 160, "slots 0 to 3", size=13)
for name, table, x, side in ("a", [0, 1], 8, 0), ("c", [0, 2], 325, 1):
    shift = -36 if side else 36
    sheet.label(x + 14 + shift, 182, f"table of {name}", size=13)
    wide.draw_entries(sheet, rows, table, x, 28, side)
