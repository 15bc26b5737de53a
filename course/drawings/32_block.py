"""The block of 2017 and that of today, side by side."""

from course.sheet import Sheet

TRUNK, GREY = "#444444", "#777777"


def branch(sheet, x, low, high, boxes):
    """From the trunk through boxes beside it, and back."""
    sheet.arrow((x, low), boxes[0].bottom, via=[(boxes[0].centre[0], low)])
    for below, above in zip(boxes, boxes[1:], strict=False):
        sheet.arrow(below, above)
    last = boxes[-1].top
    sheet.arrow(last, (x + 5, high), via=[(last[0], high)])
    sheet.dot(x, high, 4, "norm")


def draw_old(sheet, x, beside, wide, top, norm_wide, size):
    """Post-norm; the norm stands on the sum."""
    below = (x, 30)
    parts = (("attention", "attention"), ("2 matrices", "feed_forward"))
    places = []
    for (name, kind), y in zip(parts, (44, 212), strict=True):
        part = sheet.box(beside, y + 20, name, kind, wide, 34, size=size)
        branch(sheet, x, y, y + 78, [part])
        place = (x - norm_wide / 2, y + 100)
        norm = sheet.box(*place, "norm", "norm", norm_wide, 30, size=size)
        sheet.line([below, (x, y + 100)], 3, TRUNK)
        below = norm.top
        places.append(norm)
    sheet.arrow(below, (x, top), width=3, colour=TRUNK)
    return places


def draw_new(sheet, x, beside, wide, top, norm_wide, size):
    """Pre-norm, with what is new in attention in words."""
    sheet.line([(x, 30), (x, top - 40)], 3, TRUNK)
    sheet.arrow((x, top - 40), (x, top), width=3, colour=TRUNK)
    middle = beside + wide / 2 - norm_wide / 2
    inside = "attention:\nnorm q and k,\nrotate, gate"
    places = []
    for name, kind, y, high in (
        (inside, "attention", 44, 62),
        ("SwiGLU:\n3 matrices", "feed_forward", 212, 46),
    ):
        norm = sheet.box(
            middle, y + 14, "norm", "norm", norm_wide, 28, size=size
        )
        part = sheet.box(beside, y + 62, name, kind, wide, high, size=size)
        branch(sheet, x, y, y + 80 + high, [norm, part])
        places.append(norm)
    return places


sheet = Sheet(424)
sheet.label(150, 404, "2017", size=14)
old = draw_old(sheet, 70, 140, 120, 384, 84, 12)
sheet.label(old[0].right[0] + 12, 159, "(1, 7) → (−1, 1)", align="left")
sheet.label(520, 404, "today", size=14)
new = draw_new(sheet, 390, 440, 150, 388, 84, 12)
sheet.label(new[0].right[0] + 10, 72, "(1, 7) → (0.2, 1.4)", align="left")
