"""One write of the delta rule, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.30_write")
sheet = Sheet(360, NARROW)
old, new = wide.draw_write(
    sheet, 158, 268, 28, 48, wide=140, size=13, down=True
)
sheet.label(292, old.centre[1], "the table\nbefore", size=13)
sheet.label(292, new.centre[1], "the table\nafter", size=13)
sheet.label(180, 342, "the note says: apples 1", size=13)
