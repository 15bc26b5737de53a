"""Six words are hashed, sorted and cut, and attend, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

wide_one = importlib.import_module("course.drawings.22_sort")

sheet = Sheet(400, NARROW)
names = ("words", "hash", "sort,\ncut", "look\nback", "attend")
middles = (28, 98, 228, 308, 363)
steps = zip(middles, names, strict=True)
wide_one.draw_steps(sheet, 64, 45, 4, (14, 84, 206, 340), "", steps, 12)
