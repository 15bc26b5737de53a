"""Hours as keys on a line and on a clock, for a phone."""

from course.sheet import KINDS, NARROW, Sheet
import numpy as np

sheet = Sheet(560, NARROW)
edge = KINDS["attention"][1]

sheet.label(180, 536, "on a line: lengths differ", size=14)
sheet.line([(30, 322), (30, 512)])
for hour, y in ((9, 490), (10, 441), (11, 392), (12, 343)):
    end = 30 + 21 * hour
    colour = "#2b2b2b" if hour == 11 else edge
    sheet.arrow((30, y), (end, y), width=3, colour=colour)
    dark = 0 if hour == 11 else None
    sheet.row_of_tokens(end + 8, y - 14, [f"{hour} h"], 48, dark=dark, size=13)

sheet.label(180, 272, "on a clock: one length", size=14)
x0, y0, radius = 190, 118, 98
turn = np.linspace(0, 2 * np.pi, 181)
circle = zip(
    x0 + radius * np.sin(turn), y0 + radius * np.cos(turn), strict=True
)
sheet.line([*circle], colour="#888888")
points = {}
for hour, x, y in ((9, 34, 104), (10, 44, 166), (12, 166, 224)):
    angle = 2 * np.pi * hour / 12
    points[hour] = x0 + radius * np.sin(angle), y0 + radius * np.cos(angle)
    sheet.arrow((x0, y0), points[hour], width=3, colour=edge)
    sheet.row_of_tokens(x, y, [f"{hour} h"], 48, size=13)
angle = 2 * np.pi * 11 / 12
query = x0 + radius * np.sin(angle), y0 + radius * np.cos(angle)
sheet.dot(*query, 6)
sheet.row_of_tokens(84, 212, ["11 h"], 48, dark=0, size=13)
for point in points.values():
    sheet.line([query, point], colour="#444444", dashed=True)
