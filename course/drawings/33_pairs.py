"""Three pictures and three captions: every row and column is a question."""

from course.sheet import Sheet

COSINES = [[0.9, 0.1, 0.3], [0.2, 0.8, 0.0], [0.4, 0.1, 0.7]]
PICTURES = ("picture 0", "picture 1", "picture 2")
CAPTIONS = ("one red\ncircle", "two blue\nsquares", "one green\ntriangle")


def draw_table(sheet, x, y, cell, size):
    """The table of cosines, whose diagonal is right."""
    place = sheet.matrix(
        x,
        y,
        COSINES,
        rows=PICTURES,
        cell=cell,
        form="{:.1f}",
        size=size + 1,
        weights=True,
    )
    wide, high = cell
    for j, text in enumerate(CAPTIONS):
        sheet.label(x + (j + 0.5) * wide, place.top[1] + 22, text, size=size)
    return place


sheet = Sheet(270)
place = draw_table(sheet, 150, 66, (104, 46), 13)
right = sheet.box(
    530, 112, "softmax of a row:\nwhich caption?", "attention", 166, 46, size=13
)
sheet.arrow(place.right, right)
below = sheet.box(
    place.centre[0] - 170,
    8,
    "softmax of a column: which picture?",
    "attention",
    340,
    32,
    size=13,
)
sheet.arrow(place.bottom, below)
