"""Six numbers in slots of their own, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(330, NARROW)
numbers = [3, 5, 1, 2, 7, 4]
colours = ["projection", "memory"]
for r in range(2):
    own = numbers[3 * r : 3 * r + 3]
    left = 12 + 176 * r
    tokens = []
    for j, number in enumerate(own):
        cells = [[str(number) if i == j else "0"] for i in range(3)]
        x = left + 56 * j
        tokens.append(
            sheet.matrix(x, 60, cells, kind=colours[r], cell=(48, 28), size=14)
        )
        sheet.label(x + 24, 44, f"{3 * r + j}", size=13)
    middle = left + 80
    mixture = sheet.matrix(
        middle - 24,
        206,
        [[str(x)] for x in own],
        kind=colours[r],
        cell=(48, 28),
        size=14,
    )
    for token, across in zip(tokens, (0.15, 0.5, 0.85), strict=True):
        sheet.arrow(token.top, mixture.at(across, 0))
    sheet.label(middle, 308, f"mixture {r}", size=13)
sheet.label(180, 20, "tokens, V = 3 features each", size=13)
