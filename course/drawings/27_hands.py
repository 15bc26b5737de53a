"""A query's hand and a key's, at two places: the angle between them stays."""

from math import atan2, cos, degrees, pi, sin

from course.sheet import INK, KINDS, Sheet

QUERY, KEY = (2.0, 0.5), (1.0, 1.0)  # cow and black, in the chapter
BLUE = KINDS["projection"][1]


def angle_of(hand, position):
    """Where a hand points at a position, at one radian a word."""
    return atan2(hand[1], hand[0]) + position


def draw_clock(sheet, x, y, radius, t, s, size=12):
    """A clock with the hands of cow at position t and black at s."""
    ring = [
        (x + radius * cos(i * pi / 60), y + radius * sin(i * pi / 60))
        for i in range(121)
    ]
    sheet.line(ring, width=1.0, colour="#bbbbbb")
    ends = {}
    for hand, position, colour in ((KEY, s, BLUE), (QUERY, t, INK)):
        long = radius * (hand[0] ** 2 + hand[1] ** 2) ** 0.5 / 2.25
        turned = angle_of(hand, position)
        tip = x + long * cos(turned), y + long * sin(turned)
        sheet.arrow((x, y), tip, width=2.6, colour=colour)
        ends[colour] = turned
    first, last = ends[BLUE], ends[INK]
    arc = [first + (last - first) * i / 20 for i in range(21)]
    near = 0.34 * radius
    sheet.line(
        [(x + near * cos(a), y + near * sin(a)) for a in arc],
        width=1.8,
        colour=KINDS["attention"][1],
    )
    middle = (first + last) / 2
    far = 1.24 * radius
    between = round(degrees(last - first))
    spot = x + far * cos(middle), y + far * sin(middle)
    sheet.label(*spot, f"{between}°", size + 2, colour=KINDS["attention"][1])


def draw_words(sheet, x, y, t, s, width=96, size=12):
    """The two words below a clock, each with its position."""
    left = x - width - 4
    sheet.row_of_tokens(
        left,
        y,
        ["black", "cow"],
        width,
        "projection",
        height=30,
        dark=1,
        size=size,
    )
    sheet.label(left + width / 2, y - 16, f"$s = {s}$", size)
    sheet.label(left + 1.5 * width + 8, y - 16, f"$t = {t}$", size)


sheet = Sheet(330)
for x, t, s in ((190, 2, 1), (530, 7, 6)):
    draw_clock(sheet, x, 200, 92, t, s)
    draw_words(sheet, x, 46, t, s)
sheet.arrow((320, 200), (400, 200))
sheet.label(360, 216, "five words on", size=12)
