"""A head that looks one word back: clocks, turned back by one word."""

from math import cos, sin

from course.sheet import INK, KINDS, Sheet

sheet = Sheet(310)
words = ["the", "black", "cow", "sleeps", "."]
RADIUS, SPEEDS = 21, (1, 0.316)  # of the two fastest hands, D = 16
PATH = KINDS["attention"][1]
GAP = (float("nan"), float("nan"))


def draw_clocks(sheet, centres, position, radius):
    """One dial for each hand, as it stands at a position."""
    dials, hands, tips = [], [], []
    for (x, y), speed in zip(centres, SPEEDS, strict=True):
        angle = speed * position
        tip = x + radius * sin(angle), y + radius * cos(angle)
        dials.append((x, y))
        tips.append(tip)
        hands += [(x, y), tip, GAP]
    dial = {"ms": 2 * radius, "mfc": "none", "mec": KINDS["data"][1]}
    sheet.axes.plot(*zip(*dials, strict=True), "o", **dial)
    sheet.axes.plot(*zip(*tips, strict=True), "o", ms=6, color=INK)
    sheet.axes.plot(*zip(*hands, strict=True), lw=2.2, color=INK)


def beside(x, y, radius=RADIUS):
    return [(x - radius - 3, y), (x + radius + 3, y)]


places = sheet.row_of_tokens(110, 16, words, width=112, gap=8)
sheet.label(96, 30, "word", size=12, align="right")
sheet.label(96, 92, "keys", size=12, align="right")
for t, place in enumerate(places):
    draw_clocks(sheet, beside(place.centre[0], 92), t, RADIUS)
black = places[1].centre[0]
sheet.label(96, 263, "query", size=12, align="right")
[cow] = sheet.row_of_tokens(560, 200, ["cow"], width=112, dark=0)
draw_clocks(sheet, beside(cow.centre[0], 263), 2, RADIUS)
turn = sheet.box(
    378, 241, "turn back\none word: $R_{-1}$", "projection", 136, 44
)
sheet.arrow((562, 263), (turn.right[0] + 2, 263))
draw_clocks(sheet, beside(black, 263), 1, RADIUS)
sheet.arrow((turn.left[0] - 2, 263), (black + 54, 263))
sheet.arrow((black, 236), (black, 122), "match", width=2.6, colour=PATH)
