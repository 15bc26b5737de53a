"""Splitting features into heads: a plain reshape deals out the positions."""

from course.sheet import Sheet

sheet = Sheet(274)
cell = (54, 40)


def rows(x, y, values, kinds):
    """Rows of two cells, each row of one position: blue or orange."""
    for line, (row, kind) in enumerate(zip(values, kinds, strict=True)):
        below = y + (len(values) - 1 - line) * cell[1]
        sheet.matrix(x, below, [row], cell=cell, kind=kind)


black, cow = "projection", "attention"
sheet.label(112, 236, "features of two words", size=13)
sheet.matrix(4 + 64, 164, [[0, 1, 2, 3]], cell=(34, 40), kind=black)
sheet.matrix(4 + 64, 124, [[4, 5, 6, 7]], cell=(34, 40), kind=cow)
sheet.label(60, 184, "black", align="right")
sheet.label(60, 144, "cow", align="right")
sheet.label(136, 102, "head 0 | head 1")

for x, title, heads, kinds in (
    (
        260,
        "wrong: reshape only",
        ([[0, 1], [2, 3]], [[4, 5], [6, 7]]),
        ((black, black), (cow, cow)),
    ),
    (
        500,
        "right: split, then exchange",
        ([[0, 1], [4, 5]], [[2, 3], [6, 7]]),
        ((black, cow), (black, cow)),
    ),
):
    sheet.label(x + 90, 236, title, size=13)
    for head, y in ((0, 124), (1, 20)):
        sheet.label(x + 30, y + 40, f"head {head}", align="right")
        rows(x + 40, y, heads[head], kinds[head])
