"""A sum of what layers wrote, and attention over it, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.32_depth")
sheet = Sheet(290, NARROW)
wide.draw_reads(sheet, (10, 46), 106, (274, 78), 40, 74, 118, size=12)
sheet.label(64, 262, "weights of 1", size=12)
sheet.label(268, 262, "weights of a query", size=12)
