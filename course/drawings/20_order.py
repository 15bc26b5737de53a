"""The same product in two orders: with a table of pairs, and without."""

from course.sheet import Sheet

QUERIES = [[1, 1], [1, 2]]  # features, a row for each query
KEYS = [[1, 1, 1], [0, 1, 2]]  # features, a column for each key
TABLE = [[1, 2, 3], [1, 3, 5]]
STARS, SUM, RESULT = [[6], [3], [0]], [[9], [3]], [[12], [15]]


def draw_line(sheet, left, middle, parts, cell, gap, size):
    """Matrices side by side, with signs between them; their places."""
    places = []
    for name, values, kind, sign in parts:
        low = middle - cell * len(values) / 2
        place = sheet.matrix(
            left, low, values, cell=(cell, cell), kind=kind, size=size
        )
        sheet.label(place.top[0], middle + 1.5 * cell + 12, name, size=size)
        left = place.right[0] + gap
        if sign:
            sheet.label(left - gap / 2, middle, sign, size=16)
        places.append(place)
    return places


queries = ("queries", QUERIES, "projection")
keys = ("keys", KEYS, "projection")
stars = ("stars", STARS, "data")
result = ("", RESULT, "data", "")
PAIRS = [(*queries, "·"), (*keys, "="), ("table", TABLE, "attention", "·")]
PAIRS += [(*stars, "="), result]
SUMS = [(*keys, "·"), (*stars, "="), ("sum", SUM, "memory", "")]
AFTER = [(*queries, "·"), ("sum", SUM, "memory", "="), result]

sheet = Sheet(330)
sheet.label(20, 310, "the table of pairs first", align="left", size=13)
draw_line(sheet, 24, 228, PAIRS, 32, 28, 13)
sheet.label(548, 228, "T · S = 6 numbers", align="left", size=13)
sheet.label(20, 146, "the sum over the keys first", align="left", size=13)
draw_line(sheet, 24, 64, SUMS, 32, 28, 13)
draw_line(sheet, 312, 64, AFTER, 32, 28, 13)
sheet.label(548, 64, "F = 2 numbers", align="left", size=13)
