"""Three directions make three features each, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.20_features")
sheet = Sheet(560, NARROW)
wide.draw_arrows(sheet, 160, 458, 70, 14)
for x, name in ((20, "q"), (200, "k")):
    wide.draw_bars(sheet, x, 160, name, 52, 72, 13)
text = "dot product\n0.91 + 0.12 + 0.03 = 1.06"
product = sheet.box(60, 54, text, "attention", 240, 54, size=13)
sheet.label(180, 28, "wanted: $e^{q \\cdot k} = 1.65$", size=13)
