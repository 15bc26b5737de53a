"""One weight for each stop, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

wide = importlib.import_module("course.drawings.11_stops")
sheet = Sheet(440, NARROW)
sheet.label(180, 420, "today: three stops, three weights", size=13)
wide.fan(sheet, 126, 240, 116, wide.TODAY, 54, size=13)
sheet.label(180, 206, "tomorrow: nine stops, nine weights", size=13)
wide.fan(sheet, 32, 20, 126, wide.TOMORROW, 37, size=13)
