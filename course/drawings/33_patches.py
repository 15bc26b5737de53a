"""A picture of 4 × 4 pixels, its four patches, and their tokens."""

from course.sheet import Sheet

PIXELS = [[4 * r + c for c in range(4)] for r in range(4)]
PATCHES = [
    [4 * (2 * r + i) + 2 * c + j for i in range(2) for j in range(2)]
    for r in range(2)
    for c in range(2)
]


def draw_picture(sheet, x, y, side, size):
    """The pixels, with lines between patches; the middle of the picture."""
    picture = sheet.matrix(x, y, PIXELS, cell=(side, side), size=size)
    for across, up in ((0.5, None), (None, 0.5)):
        if up is None:
            ends = [picture.at(across, 0), picture.at(across, 1)]
        else:
            ends = [picture.at(0, up), picture.at(1, up)]
        sheet.line(ends, width=3.5, colour="#b35900")
        sheet.axes.lines[-1].set_zorder(6)
        sheet.lines.pop()
    return picture


sheet = Sheet(260)
picture = draw_picture(sheet, 24, 54, 36, 12)
sheet.label(picture.centre[0], 222, "16 pixels", size=13)
dense = sheet.box(452, 54, "W, b", "projection", 70, 4 * 36, size=13)
tokens = ("token 0", "token 1", "token 2", "token 3")
for n, row in enumerate(PATCHES):
    y = 54 + (3 - n) * 36
    place = sheet.matrix(
        262, y + 4, [row], cell=(36, 28), rows=[f"patch {n}"], size=12
    )
    sheet.arrow(place.right, (dense.x, place.right[1]))
    (token,) = sheet.row_of_tokens(590, y + 4, [tokens[n]], 96, kind="memory")
    sheet.arrow((dense.right[0], token.left[1]), token.left)
sheet.row_of_tokens(590, 206, ["[CLS]"], 96, kind="query")
sheet.label(334, 222, "four rows of four numbers", size=13)
sheet.arrow(picture.right, (208, picture.right[1]))
