"""A head that looks one word back, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.07_previous")
sheet = Sheet(420, NARROW)
RADIUS = 21


def above(x, y):
    return [(x, y + RADIUS + 3), (x, y - RADIUS - 3)]


places = sheet.row_of_tokens(
    8, 14, wide.words, width=64, gap=6, height=30, size=13
)
sheet.label(8, 160, "keys", 13, "left")
for t, place in enumerate(places):
    wide.draw_clocks(sheet, above(place.centre[0], 98), t, RADIUS)
black, cow = places[1].centre[0], places[4].centre[0]
sheet.label(8, 388, "query", 13, "left")
sheet.row_of_tokens(cow - 32, 236, ["cow"], width=64, height=30, dark=0)
wide.draw_clocks(sheet, above(cow, 318), 2, RADIUS)
turn = sheet.box(
    150, 288, "turn back\none word:\n$R_{-1}$", "projection", 106, 62, size=13
)
sheet.arrow((cow - 26, 319), (turn.right[0] + 2, 319))
wide.draw_clocks(sheet, above(black, 318), 1, RADIUS)
sheet.arrow((turn.left[0] - 2, 319), (black + 26, 319))
sheet.arrow(
    (black, 266), (black, 150), "match", width=2.6, colour=wide.PATH, size=13
)
