"""Two requests whose blocks form a tree, by the names of the blocks."""

from course.sheet import Sheet

sheet = Sheet(250)
look = {"kind": "memory", "width": 176, "height": 52, "size": 14}
first = sheet.box(24, 94, "you are a kind", **look)
second = sheet.box(272, 94, "guide who\nanswers briefly", **look)
above = sheet.box(520, 156, "where is\nthe louvre", **look)
below = sheet.box(520, 32, "when is\nit open", **look)
sheet.arrow(first, second)
for last in above, below:
    sheet.arrow(second.right, last.left)
for place, text in (
    (first, "block 0, both"),
    (second, "block 1, both"),
    (above, "block 2, request 1"),
    (below, "block 3, request 2"),
):
    x, y = place.top
    sheet.label(x, y + 16, text, size=13)
