"""A query among its neighbours: a bell of weights, and the average."""

from course.sheet import KINDS, Sheet
import numpy as np

sheet = Sheet(440)
area, edge, _ = KINDS["attention"]
hours, degrees = np.array([9, 10, 12]), np.array([10, 16, 20])
kernel = np.exp(-0.5 * (11 - hours) ** 2)
weights = kernel / kernel.sum()


def across(hour):
    return 165 + 130 * (hour - 9)


# Below, the bell around the query; its height at a key is the key's share.
ground, top = 62, 104
times = np.linspace(8.2, 13.1, 95)
bell = ground + top * np.exp(-0.5 * (11 - times) ** 2)
sheet.axes.fill_between(
    across(times), ground, bell, facecolor=area, edgecolor=edge, zorder=0.5
)
for hour, height in zip(hours, kernel, strict=True):
    x = across(hour)
    sheet.row_of_tokens(x - 30, 20, [f"{hour} h"], width=60)
    sheet.line([(x, ground), (x, ground + top * height)], 2.5, edge)
    side = -8 if hour < 11 else 8
    align = "right" if hour < 11 else "left"
    y = ground + top * height + 9
    sheet.label(x + side, y, f"{height:.2f}", align=align)
sheet.row_of_tokens(across(11) - 30, 20, ["11 h"], width=60, dark=0)
sheet.label(20, 34, "keys and query", align="left", size=11)
sheet.label(20, 130, "kernel", align="left", size=11)


def up(temperature):
    return 218 + 18 * (temperature - 10)


# Above, the readings; a thicker line is a larger weight.
average = sheet.dot(across(11), up(weights @ degrees), 8)
for hour, degree, weight in zip(hours, degrees, weights, strict=True):
    reading = sheet.dot(across(hour), up(degree), 7, "attention")
    sheet.label(across(hour), up(degree) + 20, f"{degree}°")
    sheet.arrow(reading, average, width=1 + 7 * weight, colour=edge)
    (x0, y0), (x1, y1) = reading.centre, average.centre
    below = -26 if hour == 9 else 14
    sheet.label((x0 + x1) / 2, (y0 + y1) / 2 + below, f"{weight:.2f}", 11)
sheet.label(
    average.right[0] - 4, average.y - 10, "average: 17.2°", align="left"
)
sheet.label(20, 290, "values and\nweights", align="left", size=11)
