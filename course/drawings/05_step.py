"""The second step of the decoder: it reads the states anew, and writes.

The weights are left open: the chapter asks for them.
"""

from course.sheet import Sheet

sheet = Sheet(440)
english = ["the", "black", "cow", "sleeps", "."]
words = sheet.row_of_tokens(46, 12, english, width=66, gap=20)
names = [f"$h_{j}$" for j in range(1, 6)]
states = sheet.row_of_tokens(46, 74, names, 66, "memory", gap=20)
for one, following in zip(states, states[1:], strict=False):
    sheet.arrow(one, following)
for word, state in zip(words, states, strict=True):
    sheet.arrow(word, state)
sheet.label(20, 55, "encoder", align="left", size=11)

compare = sheet.box(
    36, 144, "compare each state with the query", "attention", 430, 36
)
for state in states:
    sheet.arrow(state.top, (state.top[0], 144))
weights = sheet.matrix(
    36,
    232,
    [["?"] * 5],
    kind="attention",
    cell=(86, 28),
    size=12,
)
sheet.arrow(compare, weights, "scores, softmax: weights (B, S)")
average = sheet.box(171, 300, "average the states", "attention", 160, 36)
sheet.arrow(weights, average)
all_states = sheet.frame(37, 68, 428, 40, kind="memory")
sheet.arrow(all_states.left, average.left, via=[(18, 88), (18, 318)])
sheet.label(28, 206, "states (B, S, D)", align="left", size=11)

query = sheet.box(560, 144, "query $s_1$", "query", 120, 36)
sheet.arrow(query, compare, "(B, D)")
update = sheet.box(530, 300, "GRU", "memory", 150, 36)
sheet.arrow(average, update, "context (B, D)")
[before] = sheet.row_of_tokens(536, 232, ["la"], 52)
sheet.label(562, 218, "word before", size=11)
sheet.arrow(before.top, (562, 300))
sheet.arrow((650, 180), (650, 300), "$s_1$")
predict = sheet.box(530, 376, "score the words", "projection", 150, 36)
sheet.arrow(update, predict, "$s_2$ (B, D)")
[after] = sheet.row_of_tokens(390, 380, ["vache"], 70)
sheet.arrow(predict, after)
