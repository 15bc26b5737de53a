"""A ring of three workers, for a phone: two tables above two."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.26_ring")
sheet = Sheet(534, NARROW)
corners = [(40, 338), (214, 338), (40, 124), (214, 124)]
for (x, y), (title, rows, turn) in zip(corners, wide.PANELS, strict=True):
    wide.panel(sheet, x, y, title, rows, turn)
for below in (338, 124):
    for worker in range(3):
        y = below + 14 + 54 * (2 - worker)
        sheet.label(10, y, str(worker), 13, "left")
spots = [(40, 70), (200, 70), (40, 40)]
wide.key(sheet, zip(spots, (1, 11, 111), wide.NAMES, strict=True))
sheet.label(10, 20, "left of each row: the worker", 13, "left")
