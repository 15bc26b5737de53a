"""A window, a global token, and one softmax over both."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(320)
size, w, cell = 6, 1, 31
powers = [4, 3, 1, 1, 2, 1]
names = [str(token) for token in range(size)]
near = [[abs(t - s) <= w for s in range(size)] for t in range(size)]
all_see = [[0 in (t, s) for s in range(size)] for t in range(size)]
both = [
    [one or other for one, other in zip(*rows, strict=True)]
    for rows in zip(near, all_see, strict=True)
]
sums = [
    sum(power for power, seen in zip(powers, row, strict=True) if seen)
    for row in both
]
shares = [[f"{power}/{total}" for power in powers] for total in sums]
marks = [[""] * size] * size

for left, mask, values, title in (
    (44, near, marks, "a window, w = 1"),
    (286, all_see, marks, "token 0 is global"),
    (522, both, shares, "weights: one softmax"),
):
    place = sheet.matrix(
        left,
        76,
        values,
        rows=names if left == 44 else (),
        columns=names,
        masked=[[not seen for seen in row] for row in mask],
        cell=(cell, cell),
        kind="attention",
    )
    middle = left + size * cell / 2
    sheet.label(middle, 302, title, size=13)
    row_of_3 = Rectangle(
        (left, 76 + 2 * cell),
        size * cell,
        cell,
        fill=False,
        linewidth=3,
        zorder=6,
    )
    sheet.axes.add_patch(row_of_3)
sheet.label(250, 169, "or", size=15)
sheet.label(490, 169, "=", size=18)
sheet.matrix(522, 24, [powers], cell=(cell, 28), kind="data")
sheet.label(510, 38, "$e^s$ of the keys", align="right")
sheet.label(44, 38, "rows: queries, columns: keys", align="left")
for patch in sheet.axes.patches:
    patch.set_clip_on(False)  # nothing leaves the card: a smaller file
