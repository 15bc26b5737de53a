"""How a mask acts on one row: scores, masked scores, weights."""

from course.sheet import Sheet

sheet = Sheet(430)
words = ["the", "cow", "sleeps", "<pad>"]
left, cell, high = 215, 62, 32
middle = left + 2 * cell


def row(height, name, values, **more):
    return sheet.matrix(
        left, height, [values], rows=[name], cell=(cell, high), **more
    )


scores = row(70, "scores", [2, 1, 3, 0])
masked = row(168, "masked scores", [2, 1, "−∞", "−∞"])
powers = row(266, "exponentials", [7.39, 2.72, 0, 0])
hidden = [[False, False, True, True]]
shades = {"weights": True, "form": "{:.2f}"}
weights = row(364, "weights", [0.73, 0.27, 0, 0], masked=hidden, **shades)
for below, step, above in (
    (scores, "put −∞ where the mask forbids", masked),
    (masked, "raise $e$ to it", powers),
    (powers, "divide by the sum, 10.11", weights),
):
    box = sheet.box(middle - 115, below.top[1] + 17, step, "attention", 230, 32)
    sheet.arrow(below, box)
    sheet.arrow(box, above)
sheet.row_of_tokens(left + 3, 22, words, width=cell - 6, gap=6, size=11)
sheet.row_of_tokens(80, 22, ["cow"], width=cell - 6, dark=0, size=11)
sheet.label(72, 36, "query", size=11, align="right")
sheet.label(208, 36, "keys", size=11, align="right")
sheet.matrix(514, 364, [[0.24, 0.09, 0.64, 0.03]], cell=(46, high), **shades)
sheet.label(606, 348, "without the mask", size=11)
