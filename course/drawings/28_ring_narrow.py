"""A ring of four slots, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.28_ring")
sheet = Sheet(260, NARROW)
wide.draw_ring(sheet, 180, left=10, wide=49, slots_left=67, size=12)
