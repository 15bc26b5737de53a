"""A query among its neighbours: three readings, and a bell over the query."""

from course.sheet import KINDS, Sheet
import numpy as np

sheet = Sheet(400)
area, edge, _ = KINDS["attention"]


def across(hour):
    return 190 + 130 * (hour - 9)


# Below, the bell around the query: its height at a key.
ground, top = 62, 100
times = np.linspace(8.3, 12.95, 95)
bell = ground + top * np.exp(-0.5 * (11 - times) ** 2)
sheet.axes.fill_between(
    across(times), ground, bell, facecolor=area, edgecolor=edge, zorder=0.5
)
for hour in (9, 10, 12):
    x = across(hour)
    height = np.exp(-0.5 * (11 - hour) ** 2)
    sheet.row_of_tokens(x - 30, 20, [f"{hour} h"], width=60)
    sheet.line([(x, ground), (x, ground + top * height)], 2.5, edge)
    align, side = ("right", -8) if hour < 11 else ("left", 8)
    y = ground + top * height + 9
    sheet.label(x + side, y, f"{height:.2f}", align=align)
sheet.row_of_tokens(across(11) - 30, 20, ["11 h"], width=60, dark=0)
sheet.label(20, 34, "keys and query", align="left")
sheet.label(20, 130, "height of the bell", align="left")


# Above, the readings; nobody looked at 11.
for hour, degree in ((9, 10), (10, 16), (12, 20)):
    y = 220 + 13 * (degree - 10)
    sheet.dot(across(hour), y, 7, "attention")
    sheet.label(across(hour), y + 20, f"{degree}°")
sheet.label(across(11), 322, "?", size=24)
sheet.label(20, 290, "values", align="left")
