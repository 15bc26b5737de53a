"""Six numbers in slots of their own, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.19_slots")
sheet = Sheet(330, NARROW)
for r in range(2):
    place = 12 + 176 * r, 56, (60, 206, 308), ("", 44)
    wide.draw_mixture(sheet, r, *place, size=14)
sheet.label(180, 20, "tokens, V = 3 features each", size=13)
