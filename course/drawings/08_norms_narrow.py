"""Post-norm and pre-norm, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(440, NARROW)
TRUNK, GREY = "#444444", "#777777"
PARTS = (("attention", "attention"), ("network", "feed_forward"))


def branch(x, low, high, boxes):
    """From the trunk through boxes beside it, and back."""
    before = (x, low)
    for box in boxes:
        via = [(box.centre[0], low)] if before == (x, low) else ()
        sheet.arrow(before, box.bottom, via=via, colour=GREY)
        before = box.top
    sheet.arrow(before, (x + 5, high), via=[(before[0], high)], colour=GREY)
    sheet.dot(x, high, 4, "norm")


x = 40  # post-norm: the norm stands on the trunk
sheet.label(92, 412, "post-norm:\nLN($x$ + $f$($x$))", size=13)
sheet.label(x, 16, "$x$", size=14)
below = (x, 30)
for (name, kind), y in zip(PARTS, (46, 210), strict=True):
    part = sheet.box(80, y + 20, name, kind, 88, 34, size=13)
    branch(x, y, y + 78, [part])
    norm = sheet.box(x - 30, y + 100, "norm", "norm", 60, 30, size=13)
    sheet.line([below, (x, y + 100)], 3, TRUNK)
    below = norm.top
sheet.arrow(below, (x, 376), width=3, colour=TRUNK)
sheet.label(x + 12, 140, "add", align="left", size=13)

x = 216  # pre-norm: nothing stands on the trunk
sheet.label(274, 412, "pre-norm:\n$x$ + $f$(LN($x$))", size=13)
sheet.label(x, 16, "$x$", size=14)
for (name, kind), y in zip(PARTS, (42, 186), strict=True):
    norm = sheet.box(270, y + 16, "norm", "norm", 60, 28, size=13)
    part = sheet.box(256, y + 66, name, kind, 88, 34, size=13)
    branch(x, y, y + 120, [norm, part])
last = sheet.box(x - 30, 332, "norm", "norm", 60, 28, size=13)
sheet.line([(x, 30), (x, 332)], 5, TRUNK)
sheet.arrow(last.top, (x, 382), width=3, colour=TRUNK)
sheet.label(x + 38, 346, "at the end", align="left", size=13)
