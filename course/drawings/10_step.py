"""The first step of the decoder. The weights are left open: they are asked."""

from course.sheet import Sheet

sheet = Sheet(420)
english = ["the", "black", "cow", "sleeps", "."]
words = sheet.row_of_tokens(46, 12, english, width=66, gap=16)
names = [f"$h_{j}$" for j in range(1, 6)]
states = sheet.row_of_tokens(46, 66, names, 66, "memory", gap=16)
for word, state in zip(words, states, strict=True):
    sheet.arrow(word, state)
compare = sheet.box(36, 134, "compare with the query", "attention", 410, 36)
for state in states:
    sheet.arrow(state.top, (state.top[0], 134))
weights = sheet.matrix(
    36, 222, [["?"] * 5], kind="attention", cell=(82, 28), size=12
)
sheet.arrow(compare, weights, "scores, softmax: weights (B, S)")
average = sheet.box(151, 300, "average", "attention", 180, 36)
sheet.arrow(weights, average)
annotations = sheet.frame(37, 60, 408, 40, kind="memory")
sheet.arrow(annotations.left, average.left, via=[(18, 80), (18, 318)])
sheet.label(28, 196, "(B, S, 2D)", align="left", size=11)

[state] = sheet.row_of_tokens(642, 138, ["$s_0$"], 60, height=28, dark=0)
sheet.arrow(state.left, compare.right, "query (B, D)")
inputs = sheet.row_of_tokens(506, 222, ["$c_1$", "[start]", "$s_0$"], 60)
sheet.arrow(state, inputs[2])
sheet.arrow(average.right, inputs[0].left, via=[(470, 318), (470, 236)])
sheet.label(340, 304, "context (B, 2D)", align="left", size=11)
sheet.frame(498, 214, 212, 44)
maxout = sheet.box(506, 300, "maxout", "projection", 90, 36)
unit = sheet.box(612, 300, "gated unit", "memory", 90, 36)
for box, result in ((maxout, "la"), (unit, "$s_1$")):
    middle = box.bottom[0]
    sheet.arrow((middle, 258), box)
    [place] = sheet.row_of_tokens(middle - 30, 376, [result], 60)
    sheet.arrow(box, place)
