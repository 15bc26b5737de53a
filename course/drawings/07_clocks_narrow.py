"""The sinusoidal encoding as clocks, for a phone."""

from importlib import import_module
from math import cos, pi, sin

from course.sheet import INK, NARROW, Sheet

wide = import_module("course.drawings.07_clocks")
sheet = Sheet(548, NARROW)
RADIUS = 24
dials, hands, tips = [], [], []
places = sheet.row_of_tokens(
    8, 36, wide.words, width=64, gap=6, dark=2, size=13
)
sheet.label(180, 18, "position t of a word", size=13)
sheet.label(10, 526, "hand j, speed $\\omega_j$", 14, "left")
sheet.label(350, 526, "one turn in", 13, "right")
for t, place in enumerate(places):
    sheet.label(place.centre[0], 80, f"$t = {t}$", size=13)
for pair in range(4):
    speed = 10000 ** (-2 * pair / wide.DIM)
    height = 460 - 106 * pair
    formula = f"$\\omega_{pair} = {speed:.3f}$"
    sheet.label(10, height + 41, formula, 15, "left")
    sheet.label(350, height + 40, f"{2 * pi / speed:.1f} words", 13, "right")
    for t, place in enumerate(places):
        x = place.centre[0]
        across, upwards = sin(speed * t), cos(speed * t)
        tip = x + RADIUS * across, height + RADIUS * upwards
        dials.append((x, height))
        hands += [(x, height), tip, (float("nan"), float("nan"))]
        tips.append(tip)
        if t == 2:
            numbers = f"({across:.2f}, {upwards:.2f})".replace("-", "−")
            sheet.label(x, height - 38, numbers, size=12)
sheet.axes.plot(
    *zip(*dials, strict=True), "o", **{**wide.dial, "ms": 2 * RADIUS}
)
sheet.axes.plot(*zip(*tips, strict=True), "o", ms=6, color=INK)
sheet.axes.plot(*zip(*hands, strict=True), lw=2.2, color=INK)
