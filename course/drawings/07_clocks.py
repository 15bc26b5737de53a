"""The sinusoidal encoding as clocks: each pair of columns is a hand."""

from math import cos, pi, sin

from course.sheet import INK, KINDS, Sheet

sheet = Sheet(412)
words = ["the", "black", "cow", "sleeps", "."]
DIM, RADIUS = 16, 27
dials, hands, tips = [], [], []
GREY = KINDS["data"][1]
places = sheet.row_of_tokens(170, 16, words, width=84, gap=8, dark=2)
sheet.label(158, 30, "position t of a word", size=11, align="right")
for t, place in enumerate(places):
    sheet.label(place.centre[0], 394, f"$t = {t}$", size=11)
sheet.label(640, 394, "one turn in", size=11, align="left")
sheet.label(158, 394, "hand j, speed $\\omega_j$", size=11, align="right")
for pair in range(4):
    speed = 10000 ** (-2 * pair / DIM)
    height = 346 - 82 * pair
    formula = f"$\\omega_{pair} = {speed:.3f}$"
    sheet.label(158, height, formula, size=12, align="right")
    turn = f"{2 * pi / speed:.1f} words"
    sheet.label(640, height, turn, size=11, align="left")
    for t, place in enumerate(places):
        x = place.centre[0]
        dials.append((x, height))
        across, upwards = sin(speed * t), cos(speed * t)
        tip = x + RADIUS * across, height + RADIUS * upwards
        hands += [(x, height), tip, (float("nan"), float("nan"))]
        tips.append(tip)
        if t == 2:
            numbers = f"({across:.2f}, {upwards:.2f})".replace("-", "−")
            sheet.label(x, height - RADIUS - 11, numbers, size=9.5)
dial = {"ms": 2 * RADIUS, "mfc": "none", "mec": GREY}
sheet.axes.plot(*zip(*dials, strict=True), "o", **dial)
sheet.axes.plot(*zip(*tips, strict=True), "o", ms=6, color=INK)
sheet.axes.plot(*zip(*hands, strict=True), lw=2.2, color=INK)
