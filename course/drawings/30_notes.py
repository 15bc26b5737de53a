"""Three notes about a stock, and four ways to keep them."""

from course.sheet import Sheet

NOTES = ["apples 8", "pears 4", "apples 1"]
TWO, THREE = ("apples", "pears"), ("apples", "pears", "apples")
WAYS = (  # heading, what is done, rows, numbers
    ("cache", "keep each", THREE, [[8], [4], [1]]),
    ("sum", "add", TWO, [[9], [4]]),
    ("decay", "halve, then add", TWO, [[3], [2]]),
    ("delta rule", "correct", TWO, [[1], [4]]),
)


def draw_way(sheet, x, y, number, *, deepest=3, size=13, cell=(44, 28)):
    """One way: the table with its top at y, and words around it.

    `deepest` is the most rows of tables side by side, above the words.
    """
    heading, does, rows, values = WAYS[number]
    low = y - cell[1] * len(rows)
    sheet.matrix(x, low, values, rows=rows, cell=cell, kind="memory", size=size)
    middle = x - 8
    sheet.label(middle, y + 20, heading, size=size + 1)
    sheet.label(middle, y - deepest * cell[1] - 20, does, size=size)


sheet = Sheet(250)
sheet.label(40, 216, "three notes", size=13, align="left")
sheet.row_of_tokens(150, 202, NOTES, 100, gap=14, size=13)
for i in range(4):
    draw_way(sheet, 92 + 176 * i, 140, i)
