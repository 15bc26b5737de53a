"""Ring attention on four workers, for a phone: a row for each worker."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.26_ring_attention")
sheet = Sheet(430, NARROW)
rows = [320 - 100 * worker for worker in range(4)]
spots = [((8, y), (118, y), (230, y)) for y in rows]
keys = wide.draw(sheet, spots, (96, 50), 13)
ends = keys[3].right, keys[0].right
via = [(346, ends[0][1]), (346, ends[1][1])]
sheet.arrow(*ends, via=via, width=2.5, colour="#6a3fa0")
for worker, y in enumerate(rows):
    sheet.label(8, y + 66, f"worker {worker}", 14, "left")
