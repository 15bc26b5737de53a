"""The first step of the decoder, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

sheet = Sheet(600, NARROW)
import_module("course.drawings.05_step_narrow").draw_search(sheet, "$s_0$")
inputs = sheet.row_of_tokens(
    86, 392, ["$c_1$", "[start]", "$s_0$"], 80, gap=7, size=13
)
sheet.arrow((126, 338), (126, 392), "context", size=12)
sheet.arrow((332, 176), (332, 392))
sheet.frame(78, 384, 270, 44)
maxout = sheet.box(92, 470, "maxout", "projection", 110, 38, size=13)
unit = sheet.box(226, 470, "gated unit", "memory", 110, 38, size=13)
for box, result in ((maxout, "la"), (unit, "$s_1$")):
    middle = box.bottom[0]
    sheet.arrow((middle, 428), box)
    [place] = sheet.row_of_tokens(middle - 30, 552, [result], 60, size=13)
    sheet.arrow(box, place)
