"""Splitting features into heads, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(440, NARROW)
black, cow = "projection", "attention"
cell = (46, 38)
sheet.label(216, 412, "features of two words", size=14)
sheet.matrix(124, 354, [[0, 1, 2, 3]], cell=cell, kind=black, size=13)
sheet.matrix(124, 316, [[4, 5, 6, 7]], cell=cell, kind=cow, size=13)
sheet.label(116, 373, "black", align="right", size=13)
sheet.label(116, 335, "cow", align="right", size=13)

for x, title, heads, kinds in (
    (82, "wrong: reshape", ([[0, 1], [2, 3]], [[4, 5], [6, 7]]), "bboo"),
    (252, "right: split first", ([[0, 1], [4, 5]], [[2, 3], [6, 7]]), "bobo"),
):
    sheet.label(x + 26, 268, title, size=13)
    for head, top in ((0, 206), (1, 100)):
        sheet.label(x - 14, top, f"head {head}", align="right", size=13)
        for line, row in enumerate(heads[head]):
            kind = {"b": black, "o": cow}[kinds[2 * head + line]]
            y = top - 38 * line
            sheet.matrix(x - 6, y, [row], cell=cell, kind=kind, size=13)
