"""Six numbers in slots of their own, added up in two mixtures."""

from course.sheet import Sheet


def draw_mixture(sheet, r, left, step, lows, names, size):
    """Three tokens, and their sum above the middle one."""
    own = [[3, 5, 1], [2, 7, 4]][r]
    look = {"kind": ["projection", "memory"][r], "cell": (48, 28), "size": size}
    tokens = []
    for j, number in enumerate(own):
        cells = [[str(number) if i == j else "0"] for i in range(3)]
        x = left + step * j
        tokens.append(sheet.matrix(x, lows[0], cells, **look))
        name, at = names
        sheet.label(x + 24, at, f"{name}{3 * r + j}", size=size - 1)
    cells = [[str(number)] for number in own]
    mixture = sheet.matrix(left + step, lows[1], cells, **look)
    for token, across in zip(tokens, (0.15, 0.5, 0.85), strict=True):
        sheet.arrow(token.top, mixture.at(across, 0))
    sheet.label(mixture.top[0], lows[2], f"mixture {r}", size=size - 1)


sheet = Sheet(300)
for r in range(2):
    place = 150 + 270 * r, 84, (40, 186, 284), ("token ", 20)
    draw_mixture(sheet, r, *place, size=13)
sheet.label(14, 82, "values:\nV = 3 features", align="left", size=13)
sheet.label(14, 155, "add up", align="left", size=13)
sheet.label(14, 228, "R = 2 mixtures", align="left", size=13)
