"""Two requests whose blocks form a tree, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(330, NARROW)
look = {"kind": "memory", "height": 48, "size": 14}
first = sheet.box(96, 268, "you are a kind", width=168, **look)
second = sheet.box(96, 170, "guide who\nanswers briefly", width=168, **look)
left = sheet.box(10, 50, "where is\nthe louvre", width=160, **look)
right = sheet.box(190, 50, "when is\nit open", width=160, **look)
sheet.arrow(first.bottom, second.top)
for last in left, right:
    sheet.arrow(second.bottom, last.top)
sheet.label(272, 292, "block 0,\nboth", size=13, align="left")
sheet.label(272, 194, "block 1,\nboth", size=13, align="left")
sheet.label(90, 32, "block 2, request 1", size=13)
sheet.label(270, 32, "block 3, request 2", size=13)
