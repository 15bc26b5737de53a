"""A query among its neighbours, for a phone."""

from course.sheet import KINDS, NARROW, Sheet
import numpy as np

sheet = Sheet(400, NARROW)
area, edge, _ = KINDS["attention"]


def across(hour):
    return 52 + 84 * (hour - 9)


# Below, the bell around the query: its height at a key.
ground, top = 62, 100
times = np.linspace(8.5, 12.6, 95)
bell = ground + top * np.exp(-0.5 * (11 - times) ** 2)
sheet.axes.fill_between(
    across(times), ground, bell, facecolor=area, edgecolor=edge, zorder=0.5
)
for hour in (9, 10, 12):
    x = across(hour)
    height = np.exp(-0.5 * (11 - hour) ** 2)
    sheet.row_of_tokens(x - 26, 20, [f"{hour} h"], width=52, size=13)
    sheet.line([(x, ground), (x, ground + top * height)], 2.5, edge)
    align, side = ("right", -8) if hour < 11 else ("left", 8)
    y = ground + top * height + 9
    sheet.label(x + side, y, f"{height:.2f}", align=align, size=13)
sheet.row_of_tokens(across(11) - 26, 20, ["11 h"], width=52, dark=0, size=13)

# Above, the readings; nobody looked at 11.
for hour, degree in ((9, 10), (10, 16), (12, 20)):
    y = 220 + 13 * (degree - 10)
    sheet.dot(across(hour), y, 7, "attention")
    sheet.label(across(hour), y + 20, f"{degree}°", size=13)
sheet.label(across(11), 322, "?", size=24)
