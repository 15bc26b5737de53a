"""Whose mask, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(490, NARROW)
fruits = ["apple", "pear", "plum"]
asked = ["plum", "apple", "plum", "pear"]
words = ["the", "black", "cow", "sleeps"]
for low, rows, columns, later in (
    (274, asked, fruits, False),
    (34, words, words, True),
):
    wide = len(columns)
    hidden = [[later and s > t for s in range(wide)] for t in range(4)]
    sheet.matrix(
        90,
        low,
        [["✓"] * len(columns)] * 4,
        rows=rows,
        columns=columns,
        masked=[
            [later and s > t for s in range(len(columns))] for t in range(4)
        ],
        cell=(62, 34),
        kind="attention",
        size=13,
    )
sheet.label(183, 462, "cross-attention: a price list", size=13)
sheet.label(183, 250, "questions (T), list (S)", size=13)
sheet.label(214, 214, "causal self-attention", size=13)
sheet.label(214, 16, "a text reads itself: T = S", size=13)
