"""Six numbers in slots of their own, added up in two mixtures."""

from course.sheet import Sheet

sheet = Sheet(300)
numbers = [3, 5, 1, 2, 7, 4]
colours = ["projection", "memory"]
sums = []
for r in range(2):
    own = numbers[3 * r : 3 * r + 3]
    left = 150 + 270 * r
    tokens = []
    for j, number in enumerate(own):
        cells = [[str(number) if i == j else "0"] for i in range(3)]
        x = left + 84 * j
        tokens.append(
            sheet.matrix(x, 40, cells, kind=colours[r], cell=(48, 28), size=13)
        )
        sheet.label(x + 24, 20, f"token {3 * r + j}", size=12)
    middle = left + 84 + 24
    mixture = sheet.matrix(
        middle - 24,
        186,
        [[str(x)] for x in own],
        kind=colours[r],
        cell=(48, 28),
        size=13,
    )
    for token, across in zip(tokens, (0.15, 0.5, 0.85), strict=True):
        sheet.arrow(token.top, mixture.at(across, 0))
    sheet.label(middle, 284, f"mixture {r}", size=12)
sheet.label(14, 82, "values:\nV = 3 features", align="left", size=13)
sheet.label(14, 155, "add up", align="left", size=13)
sheet.label(14, 228, "R = 2 mixtures", align="left", size=13)
