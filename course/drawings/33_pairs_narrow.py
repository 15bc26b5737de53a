"""Three pictures and three captions, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.33_pairs")
sheet = Sheet(280, NARROW)
wide.draw_table(sheet, 94, 88, (84, 44), 12)
for x, text in (
    (12, "softmax of a row:\nwhich caption?"),
    (186, "softmax of a column:\nwhich picture?"),
):
    sheet.box(x, 20, text, "attention", 162, 46, size=12)
