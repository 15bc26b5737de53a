"""A note whose sentence weights find the one that decides, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(300, NARROW)
document = sheet.box(196, 14, "document: good", "attention", 140, 36, size=13)
shares = (0.04, 0.93, 0.04)
notes = ("they say poor", "we say good", "ads say poor")
for i, (share, text) in enumerate(zip(shares, notes, strict=True)):
    y = 226 - 66 * i
    tokens = sheet.row_of_tokens(12, y, text.split(), width=56, gap=5, size=13)
    cell = sheet.matrix(
        220, y, [[share]], weights=True, form="{:.2f}", cell=(60, 28), size=13
    )
    sheet.arrow(tokens[2].right, cell.left)
    x = 326 - 16 * i
    sheet.arrow(
        cell.right, (x, 50), via=[(x, y + 14)], width=6 if i == 1 else 1
    )
sheet.label(250, 272, "weight", size=13)
sheet.label(95, 272, "words", size=13)
