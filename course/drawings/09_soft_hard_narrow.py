"""Soft attention and hard attention, for a phone: one above the other."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.09_soft_hard")
sheet = Sheet(608, NARROW)
LEFT, CELL = 98, (62, 30)
WIDTH = 3 * CELL[0]
shades = {"weights": True, "cell": CELL, "size": 13}


def ends(below, height, read, name, told):
    """The weights, the values above them, and what reads these."""
    asked = sheet.matrix(LEFT, below, wide.weights, form="{:.2f}", **shades)
    values = sheet.matrix(
        LEFT, below + height, wide.numbers, cell=CELL, size=13
    )
    step = sheet.box(
        LEFT, below + height + 54, read, "attention", WIDTH, 34, size=13
    )
    x, y = step.top
    sheet.arrow(step.top, (x, y + 26))
    sheet.label(x, y + 38, told, size=13)
    sheet.label(x, y + 64, name, size=15)
    sheet.label(8, asked.left[1], "weights (T, S)", align="left")
    sheet.label(8, values.left[1], "values (S, V)", align="left")
    return asked, values, step


asked, values, average = ends(
    362, 78, "multiply and add", "soft", "21.5: no house has it"
)
for place in (1 / 6, 1 / 2, 5 / 6):
    sheet.arrow(asked.at(place, 1), values.at(place, 0))
    sheet.arrow(values.at(place, 1), average.at(place, 0))

asked, values, read = ends(
    16, 166, "read this place", "hard", "20: one of the three"
)
draw = sheet.box(LEFT, 70, "draw one place", "attention", WIDTH, 34, size=13)
chosen = sheet.matrix(LEFT, 128, [[0.0, 1.0, 0.0]], **shades)
for place in (1 / 6, 1 / 2, 5 / 6):
    sheet.arrow(asked.at(place, 1), draw.at(place, 0))
for below, above in ((draw, chosen), (chosen, values), (values, read)):
    sheet.arrow(below, above)
