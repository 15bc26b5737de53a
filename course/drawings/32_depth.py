"""A sum of what layers wrote, and attention over it."""

from course.sheet import Sheet

WROTE = (
    ("embedding: 2, 0", "0.04"),
    ("layer 1: 0, 4", "0.67"),
    ("layer 2: 3, 3", "0.29"),
)


def draw_reads(sheet, left, middle, right, y, step, wide, *, size=12):
    """What layers wrote in the middle, the sum left, the mean right.

    `left` and `right` are pairs of an edge and a width, `wide` the width of
    the boxes in the middle, and `y` the lower edge of the lowest one.
    """
    high = 38
    low = y + step - 6
    total = sheet.box(
        left[0], low, "sum:\n5, 7", "norm", left[1], 50, size=size
    )
    read = sheet.box(
        right[0], low, "read:\n0.95, 3.55", "attention", right[1], 50, size=size
    )
    for i, (text, weight) in enumerate(WROTE):
        place = sheet.box(
            middle, y + i * step, text, "memory", wide, high, size=size
        )
        up = (0.2, 0.5, 0.8)[i]
        sheet.arrow(place.left, total.at(1, up))
        sheet.arrow(place.right, read.at(0, up))
        beside = place.centre[1] + (-10, 12, 19)[i]
        sheet.label(place.x - 22, beside, "1", size=size)
        sheet.label(place.right[0] + 24, beside, weight, size=size)


sheet = Sheet(260)
draw_reads(sheet, (60, 110), 285, (550, 120), 40, 66, 150, size=13)
sheet.label(115, 232, "every weight is 1", size=13)
sheet.label(610, 232, "weights of a query", size=13)
