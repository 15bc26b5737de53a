"""The first step of RNNsearch: annotations from both ways, s_0 asks them."""

from course.sheet import Sheet

sheet = Sheet(430)
english = ["the", "black", "cow", "sleeps", "."]
ahead = ["0", "0", ".96", ".96", ".96"]
back = [".96", ".96", ".96", "0", "0"]
left, pitch = 60, 82
columns = [left + pitch * j for j in range(5)]
state = {"cell": (36, 24), "kind": "memory"}
for j, x in enumerate(columns):
    sheet.matrix(x, 10, [[english[j]]], cell=(70, 24))
    forth = sheet.matrix(x - 3, 58, [[ahead[j]]], **state)
    home = sheet.matrix(x + 37, 104, [[back[j]]], **state)
    for across, low, high in ((15, 58, 82), (55, 104, 128)):
        sheet.arrow((x + across, 34), (x + across, low))
        sheet.line([(x + across, high), (x + across, 152)])
    if j < 4:
        sheet.arrow(forth.right, (x + pitch - 3, 70))
        sheet.arrow((x + pitch + 37, 116), home.right)
sheet.label(6, 70, r"$\overrightarrow{h}_j$", align="left")
sheet.label(6, 116, r"$\overleftarrow{h}_j$", align="left")
sheet.label(46, 254, "(B, S, 2D)", align="left", size=11)

names = [[f"$h_{j}$" for j in range(1, 6)]]
both = sheet.matrix(54, 152, names, cell=(pitch, 24), kind="memory")
compare = sheet.box(54, 200, "compare", "attention", 5 * pitch, 30)
sheet.arrow(both, compare)
weights = sheet.matrix(
    54,
    270,
    [[0.82, 0.05, 0.05, 0.05, 0.05]],
    weights=True,
    form="{:.2f}",
    cell=(pitch, 26),
)
sheet.arrow(compare, weights, "weights (B, S)")
average = sheet.box(160, 332, "average $h_j$", "attention", 198, 30)
sheet.arrow(weights, average)
sheet.arrow(both.left, average.left, via=[(38, 164), (38, 347)])

names = ["$c_1$", "[start]", "$s_0$"]
inputs = sheet.row_of_tokens(524, 268, names, 54, height=26, dark=2)
frame = sheet.frame(516, 261, 194, 40)
sheet.arrow(inputs[2].bottom, compare.right, "query (B, D)", via=[(675, 215)])
sheet.arrow(
    average.right,
    inputs[0].left,
    via=[(490, 347), (490, 281)],
)
sheet.label(424, 358, "context (B, 2D)", size=11)
maxout = sheet.box(516, 334, "maxout", "projection", 86, 30)
unit = sheet.box(616, 334, "gated unit", "memory", 94, 30)
sheet.arrow((559, 301), maxout.bottom)
sheet.arrow((663, 301), unit.bottom)
[word] = sheet.row_of_tokens(534, 392, ["la"], 50, height=26)
[after] = sheet.row_of_tokens(638, 392, ["$s_1$"], 50, height=26)
sheet.arrow(maxout, word)
sheet.arrow(unit, after)
