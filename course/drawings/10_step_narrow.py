"""The first step of the decoder, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(600, NARROW)
english = ["the", "black", "cow", "sleeps", "."]
words = sheet.row_of_tokens(28, 12, english, width=50, gap=4, size=13)
names = [f"$h_{j}$" for j in range(1, 6)]
states = sheet.row_of_tokens(28, 70, names, 50, "memory", gap=4, size=13)
for word, state in zip(words, states, strict=True):
    sheet.arrow(word, state)
compare = sheet.box(28, 136, "compare", "attention", 266, 34, size=13)
for state in states:
    sheet.arrow(state.top, (state.top[0], 136))
weights = sheet.matrix(
    26, 218, [["?"] * 5], kind="attention", cell=(54, 30), size=13
)
sheet.arrow(compare, weights, "softmax: weights", size=12)
average = sheet.box(36, 290, "average", "attention", 100, 38, size=13)
sheet.arrow((86, 248), average)
annotations = sheet.frame(22, 64, 278, 40, kind="memory")
sheet.arrow(annotations.left, average.left, via=[(10, 84), (10, 309)])

query = sheet.box(310, 130, "query\n$s_0$", "query", 44, 46, size=12)
sheet.arrow(query, compare)
inputs = sheet.row_of_tokens(
    86, 392, ["$c_1$", "[start]", "$s_0$"], 80, gap=7, size=13
)
sheet.arrow((126, 290), (126, 392), "context", size=12)
sheet.arrow((332, 176), (332, 392))
sheet.frame(78, 384, 270, 44)
maxout = sheet.box(92, 470, "maxout", "projection", 110, 38, size=13)
unit = sheet.box(226, 470, "gated unit", "memory", 110, 38, size=13)
for box, result in ((maxout, "la"), (unit, "$s_1$")):
    middle = box.bottom[0]
    sheet.arrow((middle, 428), box)
    [place] = sheet.row_of_tokens(middle - 30, 552, [result], 60, size=13)
    sheet.arrow(box, place)
