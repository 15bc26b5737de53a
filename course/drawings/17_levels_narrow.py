"""Two memories of a graphics card, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

wide = importlib.import_module("course.drawings.17_levels")
sheet = Sheet(330, NARROW)
sheet.frame(6, 8, 348, 96, kind="memory")
sheet.label(180, 88, wide.LARGE, size=13)
sheet.box(50, 22, wide.ARRAYS, "memory", 260, 40, size=13)
for core, middle in zip(wide.CORES[::2], (90, 270), strict=True):
    fast = sheet.box(
        middle - 76, 160, wide.INSIDE, "attention", 152, 54, size=13
    )
    sheet.arrow((middle, 104), fast)
    computes = sheet.box(middle - 76, 270, core, "norm", 152, 44, size=13)
    sheet.arrow(fast, computes)
sheet.label(180, 242, wide.WITHIN, size=13)
sheet.label(180, 132, wide.BETWEEN, size=13)
sheet.label(180, 187, "…", size=14)
