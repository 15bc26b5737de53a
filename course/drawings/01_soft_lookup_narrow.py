"""A soft lookup, for a phone: a thing in each row."""

from course.sheet import NARROW, Sheet

sheet = Sheet(440, NARROW)
things = ["newspaper", "paper", "cup", "notebook", "book"]
features = ["0 1 0 0", "0 1 0 0", "1 0 0 1", "0 0 1 0", "0 1 1 0"]
scores, weights = [3, 3, 0, 3, 6], [0.04, 0.04, 0.00, 0.04, 0.87]
values = [40, 10, 0, 100, 300]

sheet.box(50, 388, "wish: 0 3 3 0", "query", 120, 34, size=13)
for x, name in ((50, "key"), (164, "score"), (232, "weight"), (310, "value")):
    sheet.label(x, 348, name, size=13)
cell = (64, 46)
for number, thing in enumerate(things):
    y = 286 - 52 * number
    sheet.box(8, y, f"{thing}\n{features[number]}", "data", 112, 46, size=12)
    sheet.matrix(132, y, [[scores[number]]], cell=cell, size=13)
    sheet.matrix(
        200,
        y,
        [[weights[number]]],
        weights=True,
        form="{:.2f}",
        cell=cell,
        size=13,
    )
    sheet.matrix(278, y, [[values[number]]], cell=cell, size=13)
sheet.label(180, 40, "weights times values, added: 267 pages", size=13)
