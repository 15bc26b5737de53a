"""One circle or two: a mean is the same, a sum is not."""

from course.sheet import Sheet

SETS = (1, 2)


def draw_set(sheet, x, y, number, wide, size):
    """A set of circles, its mean and its sum, in a column around x."""
    gap = 70
    for i in range(number):
        sheet.dot(x + (i - (number - 1) / 2) * gap, y, 22, "projection")
    name = "one circle" if number == 1 else "two circles"
    sheet.label(x, y + 42, name, size=size)
    text = "mean: 1 × circle"
    mean = sheet.box(
        x - wide - 6, y - 122, text, "attention", wide, 40, size=size
    )
    text = f"sum: {number} × circle"
    total = sheet.box(x + 6, y - 122, text, "feed_forward", wide, 40, size=size)
    for place in (mean, total):
        sheet.arrow(
            (x, y - 32), place, via=[(x, y - 56), (place.top[0], y - 56)]
        )
    return mean, total


sheet = Sheet(240)
for i, number in enumerate(SETS):
    draw_set(sheet, 185 + 350 * i, 168, number, 154, 13)
