"""One write of the delta rule: what is missing, and nothing else."""

from course.sheet import Sheet

ROWS = ("apples", "pears")


def draw_write(sheet, x, y, gap, high, *, wide=96, size=13, down=False):
    """From the old table over what it says and what is missing to the new.

    With `down`, the four steps stand below each other.
    """
    look = {"rows": ROWS, "cell": (44, 28), "kind": "memory", "size": size}
    old = sheet.matrix(x, y, [[8], [4]], **look)
    steps = [
        ("read apples:\n8", "attention"),
        ("note less read:\n1 − 8 = −7", "data"),
    ]
    places, last = [], old
    for i, (text, kind) in enumerate(steps):
        if down:
            left, low = x + 22 - wide / 2, y - (i + 1) * (high + gap) + 4
        else:
            left, low = old.right[0] + gap + i * (wide + gap), y + 28 - high / 2
        place = sheet.box(left, low, text, kind, wide, high, size=size)
        start, end = (last.bottom, place.top) if down else (last, place)
        sheet.arrow(start, end)
        last = place
        places.append(place)
    if down:
        new_x, new_y = x, places[-1].y - gap - 60
    else:
        new_x, new_y = places[-1].right[0] + gap + 62, y
    new = sheet.matrix(new_x, new_y, [[1], [4]], **look)
    if down:
        sheet.arrow(places[-1].bottom, (new.top[0], new.top[1]))
    else:
        sheet.arrow(places[-1], (new.x - 60, new.left[1]))
    return old, new


sheet = Sheet(240)
old, new = draw_write(sheet, 86, 110, 44, 56, wide=128)
sheet.label(old.centre[0] - 10, 200, "the table before", size=13)
sheet.label(new.centre[0] - 10, 200, "and after", size=13)
sheet.label(360, 60, "the note says: apples 1", size=14)
sheet.label(360, 34, "what it says of pears stays as it is", size=13)
