"""Soft attention averages all values; hard attention draws one and reads it."""

from course.sheet import Sheet

sheet = Sheet(420)
wide, high = 78, 30
weights, numbers = [[0.09, 0.67, 0.24]], [["10", "20", "30"]]
shades = {"weights": True, "cell": (wide, high)}
left, right = 112, 418
for x, name in ((left, "soft"), (right, "hard")):
    sheet.label(x + 1.5 * wide, 402, name, size=14)

asked = sheet.matrix(left, 24, weights, form="{:.2f}", **shades)
values = sheet.matrix(left, 210, numbers, cell=(wide, high))
average = sheet.box(left, 284, "multiply and add", "attention", 234, 36)
for place in (1 / 6, 1 / 2, 5 / 6):
    sheet.arrow(asked.at(place, 1), values.at(place, 0))
    sheet.arrow(values.at(place, 1), average.at(place, 0))
sheet.arrow(average.top, (average.top[0], 356))
sheet.label(average.top[0], 370, "21.5: no house has it")

asked = sheet.matrix(right, 24, weights, form="{:.2f}", **shades)
draw = sheet.box(right, 82, "draw one place", "attention", 234, 34)
chosen = sheet.matrix(right, 144, [[0.0, 1.0, 0.0]], **shades)
values = sheet.matrix(right, 210, numbers, cell=(wide, high))
read = sheet.box(right, 284, "read this place", "attention", 234, 36)
for place in (1 / 6, 1 / 2, 5 / 6):
    sheet.arrow(asked.at(place, 1), draw.at(place, 0))
for below, above in ((draw, chosen), (chosen, values), (values, read)):
    sheet.arrow(below, above)
sheet.arrow(read.top, (read.top[0], 356))
sheet.label(read.top[0], 370, "20: one of the three")

sheet.label(16, 39, "weights (T, S)", align="left", size=11)
sheet.label(16, 225, "values (S, V)", align="left", size=11)
