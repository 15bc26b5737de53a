"""The smallest attention layer, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(630, NARROW)
inputs = sheet.box(14, 14, "inputs x (S, 1)", width=140, size=13)
values = sheet.box(206, 14, "values y (S, 1)", width=140, size=13)
subtract = sheet.box(14, 108, "subtract pairs", "attention", 140, size=13)
sheet.arrow(inputs.at(0.2, 1), subtract.at(0.2, 0), "queries", size=13)
sheet.arrow(inputs.at(0.85, 1), subtract.at(0.85, 0), "keys", size=13)
multiply = sheet.box(14, 202, "multiply by $w$", "projection", 140, size=13)
sheet.arrow(subtract, multiply, "distances", size=13)
square = sheet.box(14, 296, "$-½\\,(\\ldots)^2$", "attention", 140, size=13)
sheet.arrow(multiply, square)
softmax = sheet.box(14, 390, "softmax", "attention", 140, size=13)
sheet.arrow(square, softmax, "scores (S, S)", size=13)
own = [[i == j for j in range(3)] for i in range(3)]
mask = sheet.matrix(48, 494, [[""] * 3] * 3, masked=own, cell=(24, 24), size=13)
sheet.label(84, 588, "own key forbidden", size=13)
sheet.arrow(mask.bottom, softmax.top)
average = sheet.box(206, 390, "average", "attention", 140, size=13)
sheet.arrow(softmax, average)
sheet.label(196, 448, "weights (S, S)", size=13, align="left")
sheet.arrow(values.at(0.93, 1), average.at(0.93, 0))
compare = sheet.box(206, 202, "squared error", "norm", 112, size=13)
sheet.arrow(values.at(0.3, 1), compare.at(0.375, 0))
sheet.arrow((262, 390), compare, "predictions", side="left", size=13)
sheet.arrow(compare, multiply, dashed=True)
sheet.label(180, 258, "gradient", size=13)
