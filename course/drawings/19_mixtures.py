"""Linformer: E and F shorten keys and values, then queries attend."""

from course.sheet import Sheet

sheet = Sheet(320)
mixing = [["1", "0", "0"], ["0", "0.5", "0.5"]]
rows = (
    (186, "E", "keys", ["0", "ln 2", "ln 8"], ["0", "ln 4"], "K"),
    (48, "F", "values", ["1", "3", "7"], ["1", "5"], "V"),
)
made = []
for low, name, what, column, mixed, letter in rows:
    middle = low + 42
    sheet.matrix(24, low + 14, mixing, kind="projection", cell=(40, 28))
    sheet.label(84, low + 54 + 28, f"{name}: R $\\times$ S")
    sheet.label(160, middle, "$\\times$", size=15)
    sheet.matrix(178, low, [[x] for x in column], cell=(56, 28))
    sheet.label(206, low + 96, f"{what}: S $\\times$ {letter}")
    sheet.label(252, middle, "=", size=15)
    cells = [[x] for x in mixed]
    made.append(sheet.matrix(270, low + 14, cells, cell=(56, 28)))
    sheet.label(298, low + 82, f"R $\\times$ {letter}")
    sheet.label(298, low + 1, f"mixed {what}")
keys, values = made
attend = sheet.box(400, 205, "compare,\nsoftmax", "attention", 96, 46)
sheet.arrow(keys, attend)
query = sheet.box(400, 278, "query 1", "query", 96, 28)
sheet.arrow(query, attend)
weights = sheet.matrix(560, 214, [[0.2, 0.8]], cell=(48, 28), weights=True)
sheet.arrow(attend, weights)
sheet.label(608, 258, "weights: T $\\times$ R")
average = sheet.box(560, 67, "average", "attention", 96, 46)
sheet.arrow(weights, average)
sheet.arrow(values, average)
sheet.arrow(average.bottom, (608, 36))
sheet.label(608, 20, "output 4.2", size=13)
sheet.label(178, 20, "T = 1, S = 3, R = 2, K = V = 1")
