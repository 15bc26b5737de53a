"""A window, a global token, and one softmax over both, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet
from matplotlib.patches import Rectangle

wide = import_module("course.drawings.21_window")
sheet = Sheet(546, NARROW)

for left, below, cell, mask, values, title in (
    (26, 340, (24, 24), wide.near, wide.marks, "a window, w = 1"),
    (206, 340, (24, 24), wide.all_see, wide.marks, "token 0 is global"),
    (112, 86, (40, 32), wide.both, wide.shares, "weights: one softmax"),
):
    place = sheet.matrix(
        left,
        below,
        values,
        rows=() if left == 206 else wide.names,
        columns=wide.names,
        masked=[[not seen for seen in row] for row in mask],
        cell=cell,
        kind="attention",
        size=12,
    )
    sheet.label(place.top[0], place.top[1] + 32, title, size=14)
    row_of_3 = Rectangle(
        (left, below + 2 * cell[1]),
        place.width,
        cell[1],
        fill=False,
        linewidth=3,
        zorder=6,
    )
    sheet.axes.add_patch(row_of_3)
sheet.label(188, 400, "or", size=15)
sheet.label(52, 182, "=", size=20)
sheet.matrix(112, 42, [wide.powers], cell=(40, 30), kind="data", size=12)
sheet.label(104, 57, "$e^s$ of the keys", align="right")
sheet.label(180, 18, "rows: queries, columns: keys", size=13)
for patch in sheet.axes.patches:
    # Nothing leaves the card, and round is the file's own: a smaller file.
    patch.set(clip_on=False, joinstyle="round")
