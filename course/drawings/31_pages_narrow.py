"""Four pages of a contract, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.31_pages")
sheet = Sheet(420, NARROW)
sheet.label(NARROW / 2, 396, "May I keep a cat? We are at “heating”.", size=14)
for i in range(4):
    across, down = i % 2, i // 2
    wide.draw_page(sheet, 28 + 174 * across, 252 - 190 * down, i, wide=132)
