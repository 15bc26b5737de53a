"""A wish looks things up: scores, weights, and the average of the values."""

from course.sheet import Sheet

sheet = Sheet(400)
things = ["newspaper", "paper", "cup", "notebook", "book"]
keys = sheet.row_of_tokens(190, 20, things, width=92, gap=8)
sheet.label(20, 34, "keys (S, D)", align="left")
wish = sheet.box(
    20, 62, "a bound, printed thing", "query", width=160, height=32
)

cell = (100, 30)
scores = sheet.matrix(186, 116, [[3, 3, 0, 3, 6]], cell=cell)
sheet.label(20, 131, "scores (T, S)", align="left")
for key in keys:
    sheet.arrow(key.top, (key.top[0], 116))
sheet.arrow(wish.top, scores.left, via=[(100, 105), (175, 105), (175, 131)])

softmax = sheet.box(386, 168, "softmax", "attention", 100, 30)
sheet.arrow(scores, softmax)
weights = sheet.matrix(
    186,
    220,
    [[0.04, 0.04, 0.00, 0.04, 0.87]],
    weights=True,
    form="{:.2f}",
    cell=cell,
)
sheet.label(20, 235, "weights (T, S)", align="left")
sheet.arrow(softmax, weights)

values = sheet.matrix(186, 266, [[40, 10, 0, 100, 300]], cell=cell)
sheet.label(20, 281, "values (S, V): pages", align="left")
sheet.arrow(weights, values)
average = sheet.box(361, 320, "multiply and add", "attention", 150, 34)
sheet.arrow(values, average)
sheet.arrow(average.right, (560, 337))
sheet.label(568, 337, "output (T, V): 267", align="left")
