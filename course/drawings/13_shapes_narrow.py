"""The three shapes of task, one above the other, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

shapes = importlib.import_module("course.drawings.13_shapes")
sheet = Sheet(624, NARROW)
for number, y in enumerate((458, 234, 10)):
    shapes.panel(sheet, number, 50, y, 260, 13, 15)
