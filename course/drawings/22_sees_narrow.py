"""One bucket, two words of it, and whom each of them sees, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

wide_one = importlib.import_module("course.drawings.22_sees")

sheet = Sheet(316, NARROW)
wide_one.draw_views(sheet, 12, 50, 4, (166, 14), over=True)
