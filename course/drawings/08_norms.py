"""Post-norm and pre-norm: where the norm stands, and the residual line."""

from course.sheet import Sheet

sheet = Sheet(424)
TRUNK, GREY = "#444444", "#777777"


def dot(x, y):
    sheet.dot(x, y, 4, "norm")


def branch(x, low, high, boxes):
    """From the trunk through boxes beside it, and back."""
    before = (x, low)
    for box in boxes:
        via = [(box.centre[0], low)] if before == (x, low) else ()
        sheet.arrow(before, box.bottom, via=via, colour=GREY)
        before = box.top
    sheet.arrow(before, (x + 5, high), via=[(before[0], high)], colour=GREY)
    dot(x, high)


PARTS = (("attention", "attention"), ("feed-forward", "feed_forward"))

x = 96  # post-norm: the norm stands on the trunk
sheet.label(170, 404, "post-norm: LN($x$ + $f$($x$))", size=14)
sheet.label(x, 18, "$x$")
below = (x, 30)
for (name, kind), y in zip(PARTS, (50, 214), strict=True):
    part = sheet.box(170, y + 18, name, kind, 130, 34)
    branch(x, y, y + 76, [part])
    norm = sheet.box(x - 46, y + 98, "norm", "norm", 92, 30)
    sheet.line([below, (x, y + 98)], 3, TRUNK)
    below = norm.top
sheet.arrow(below, (x, 384), width=3, colour=TRUNK)
sheet.label(x - 12, 126, "add", align="right")

x = 436  # pre-norm: nothing stands on the trunk
sheet.label(530, 404, "pre-norm: $x$ + $f$(LN($x$))", size=14)
sheet.label(x, 18, "$x$")
for (name, kind), y in zip(PARTS, (46, 190), strict=True):
    norm = sheet.box(529, y + 14, "norm", "norm", 92, 28)
    part = sheet.box(510, y + 64, name, kind, 130, 34)
    branch(x, y, y + 122, [norm, part])
last = sheet.box(x - 46, 340, "norm", "norm", 92, 28)
sheet.line([(x, 30), (x, 340)], 5, TRUNK)
sheet.arrow(last.top, (x, 388), width=3, colour=TRUNK)
sheet.label(x + 56, 354, "once, at the end", align="left")
