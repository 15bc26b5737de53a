"""Hours as keys: of different lengths on a line, of one length on a clock."""

from course.sheet import KINDS, Sheet
import numpy as np

sheet = Sheet(320)
edge = KINDS["attention"][1]

sheet.label(180, 290, "on a line: lengths differ", size=13)
sheet.line([(40, 44), (40, 260)])
for hour, y in ((9, 236), (10, 180), (11, 124), (12, 68)):
    end = 40 + 22 * hour
    colour = "#2b2b2b" if hour == 11 else edge
    sheet.arrow((40, y), (end, y), width=3, colour=colour)
    sheet.row_of_tokens(
        end + 8, y - 14, [f"{hour} h"], 44, dark=0 if hour == 11 else None
    )

sheet.label(540, 290, "on a clock: one length", size=13)
x0, y0, radius = 540, 132, 100
turn = np.linspace(0, 2 * np.pi, 181)
circle = zip(
    x0 + radius * np.sin(turn), y0 + radius * np.cos(turn), strict=True
)
sheet.line([*circle], colour="#888888")
points = {}
for hour, x, y in ((9, 384, 118), (10, 396, 182), (12, 518, 242)):
    angle = 2 * np.pi * hour / 12
    points[hour] = x0 + radius * np.sin(angle), y0 + radius * np.cos(angle)
    sheet.arrow((x0, y0), points[hour], width=3, colour=edge)
    sheet.row_of_tokens(x, y, [f"{hour} h"], 44)
angle = 2 * np.pi * 11 / 12
query = x0 + radius * np.sin(angle), y0 + radius * np.cos(angle)
sheet.dot(*query, 6)
sheet.row_of_tokens(440, 230, ["11 h"], 44, dark=0)
for point in points.values():
    sheet.line([query, point], colour="#444444", dashed=True)
