"""Two units read the sentence, one from each end, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

wide = importlib.import_module("course.drawings.10_both_ways")
sheet = Sheet(240, NARROW)
places = [8 + 70 * j for j in range(5)]
wide.columns(sheet, places, 16, (32, 34), 13)
sheet.frame(4, 74, 72, 118, kind="query")
sheet.label(6, 214, "annotation of “the”", 13, "left")
