"""Whose mask: a list is read whole, a text only up to itself."""

from course.sheet import Sheet

sheet = Sheet(300)
fruits = ["apple", "pear", "plum"]
asked = ["plum", "apple", "plum", "pear"]
words = ["the", "black", "cow", "sleeps"]
for left, rows, columns, later in (
    (92, asked, fruits, False),
    (448, words, words, True),
):
    wide = len(columns)
    hidden = [[later and s > t for s in range(wide)] for t in range(4)]
    sheet.matrix(
        left,
        72,
        [["✓"] * len(columns)] * 4,
        rows=rows,
        columns=columns,
        masked=[
            [later and s > t for s in range(len(columns))] for t in range(4)
        ],
        cell=(60, 36),
        kind="attention",
        size=12,
    )
sheet.label(182, 270, "cross-attention")
sheet.label(568, 270, "causal self-attention")
sheet.label(182, 46, "questions (T) read a price list (S)")
sheet.label(568, 46, "a text reads itself: T = S")
