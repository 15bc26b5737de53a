"""A note of three sentences, whose weights find the one that decides."""

from course.sheet import Sheet

sheet = Sheet(250)
document = sheet.box(560, 104, "document:\ngood", "attention", 130, 52)
shares = (0.04, 0.93, 0.04)
notes = ("they say poor", "we say good", "ads say poor")
for i, (share, text) in enumerate(zip(shares, notes, strict=True)):
    y = 174 - 72 * i
    tokens = sheet.row_of_tokens(24, y, text.split(), width=70)
    [vector] = sheet.row_of_tokens(290, y, ["sentence"], width=90)
    sheet.arrow(tokens[2].right, vector.left)
    sheet.matrix(412, y, [[share]], weights=True, form="{:.2f}", cell=(56, 28))
    end = (560, 130 + 14 * (1 - i))
    sheet.arrow((468, y + 14), end, width=6 if i == 1 else 1)
sheet.label(440, 220, "weight")
sheet.label(141, 220, "words")
