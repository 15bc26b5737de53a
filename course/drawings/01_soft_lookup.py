"""A wish looks things up: scores, weights, and the average of the values."""

from course.sheet import Sheet

sheet = Sheet(420)
things = ["newspaper", "paper", "cup", "notebook", "book"]
features = ["0 1 0 0", "0 1 0 0", "1 0 0 1", "0 0 1 0", "0 1 1 0"]
texts = [f"{a}\n{b}" for a, b in zip(things, features, strict=True)]
keys = sheet.row_of_tokens(190, 18, texts, width=92, gap=8, height=46)
sheet.label(20, 41, "keys (S, D)", align="left")
wish = sheet.box(20, 74, "wish: 0 3 3 0", "query", width=140, height=34)

cell = (100, 30)
scores = sheet.matrix(186, 136, [[3, 3, 0, 3, 6]], cell=cell)
sheet.label(20, 151, "scores (T, S):\ndot products", align="left")
for key in keys:
    sheet.arrow(key.top, (key.top[0], 136))
sheet.arrow(wish.right, scores.left, via=[(173, 91), (173, 151)])

softmax = sheet.box(186, 188, "softmax", "attention", 500, 30)
sheet.arrow(scores, softmax)
weights = sheet.matrix(
    186,
    240,
    [[0.04, 0.04, 0.00, 0.04, 0.87]],
    weights=True,
    form="{:.2f}",
    cell=cell,
)
sheet.label(20, 255, "weights (T, S)", align="left")
sheet.arrow(softmax, weights)

values = sheet.matrix(186, 286, [[40, 10, 0, 100, 300]], cell=cell)
sheet.label(20, 301, "values (S, V): pages", align="left")
sheet.arrow(weights, values)
average = sheet.box(186, 340, "multiply and add", "attention", 340, 34)
sheet.arrow((356, 316), (356, 340))
sheet.arrow(average.right, (560, 357))
sheet.label(568, 357, "output (T, V): 267", align="left")
