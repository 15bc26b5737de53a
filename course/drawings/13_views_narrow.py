"""A sentence and its mirror image in five views, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

views = importlib.import_module("course.drawings.13_views")
sheet = Sheet(562, NARROW)
views.draw(sheet, 5, (50, 24), (522, 240), 12, names_above=True)
