"""A picture, its patches and their tokens, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.33_patches")
sheet = Sheet(400, NARROW)
picture = wide.draw_picture(sheet, 108, 246, 36, 13)
sheet.arrow(picture.bottom, (180, 200), "cut", size=12)
for n, row in enumerate(wide.PATCHES):
    y = 160 - 44 * n
    place = sheet.matrix(
        78, y, [row], cell=(34, 30), rows=[f"patch {n}"], size=13
    )
    (token,) = sheet.row_of_tokens(
        266, y, [f"token {n}"], 82, kind="memory", height=30, size=13
    )
    sheet.arrow(place, token, "W, b", side="above", size=12)
sheet.row_of_tokens(266, 204, ["[CLS]"], 82, kind="query", height=30, size=13)
