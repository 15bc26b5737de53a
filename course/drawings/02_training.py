"""The smallest attention layer: one weight, learned on left-out points."""

from course.sheet import Sheet

sheet = Sheet(380)
inputs = sheet.box(110, 14, "inputs x (S, 1)", width=150, height=30)
values = sheet.box(470, 14, "values y (S, 1)", width=150, height=30)
subtract = sheet.box(110, 78, "subtract each pair", "attention", 150)
sheet.arrow(inputs.at(0.25, 1), subtract.at(0.25, 0), "queries", side="left")
sheet.arrow(inputs.at(0.75, 1), subtract.at(0.75, 0), "keys")
multiply = sheet.box(110, 158, "multiply by $w$", "projection", 150)
sheet.arrow(subtract, multiply, "distances (S, S)", side="left")
square = sheet.box(110, 238, "$-½\\,(\\ldots)^2$", "attention", 150)
sheet.arrow(multiply, square)
softmax = sheet.box(110, 318, "softmax of the others", "attention", 150)
sheet.arrow(square, softmax, "scores (S, S)", side="left")
own = [[i == j for j in range(3)] for i in range(3)]
mask = sheet.matrix(
    316, 226, [[""] * 3] * 3, masked=own, cell=(24, 24), rows=[], columns=[]
)
sheet.label(352, 214, "own key forbidden", size=11)
sheet.arrow(mask.top, softmax.at(1, 0.2), via=[(352, 326)])
average = sheet.box(470, 318, "average the values", "attention", 150)
sheet.arrow(softmax, average, "weights (S, S)")
sheet.arrow(values.at(0.8, 1), average.at(0.8, 0))
compare = sheet.box(470, 158, "squared error", "norm", 90)
sheet.arrow(values.at(0.3, 1), compare)
sheet.arrow((515, 318), compare, "predictions (S, 1)", side="left")
sheet.arrow(compare, multiply, "gradient of $w$", side="below", dashed=True)
