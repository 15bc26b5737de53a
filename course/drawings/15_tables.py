"""Whose mask: a list is read whole, a text only up to itself."""

from course.sheet import Sheet


def draw_both(sheet, list_at, text_at, cell, size):
    """Questions that read a price list, and a text that reads itself."""
    fruits = ["apple", "pear", "plum"]
    asked = ["plum", "apple", "plum", "pear"]
    words = ["the", "black", "cow", "sleeps"]
    for (left, low), rows, columns, later in (
        (list_at, asked, fruits, False),
        (text_at, words, words, True),
    ):
        width = len(columns)
        sheet.matrix(
            left,
            low,
            [["✓"] * width] * 4,
            rows=rows,
            columns=columns,
            masked=[[later and s > t for s in range(width)] for t in range(4)],
            cell=cell,
            kind="attention",
            size=size,
        )


sheet = Sheet(300)
draw_both(sheet, (92, 72), (448, 72), (60, 36), 12)
sheet.label(182, 270, "cross-attention")
sheet.label(568, 270, "causal self-attention")
sheet.label(182, 46, "questions (T) read a price list (S)")
sheet.label(568, 46, "a text reads itself: T = S")
