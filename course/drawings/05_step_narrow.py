"""The second step of the decoder, which reads the states anew, for a phone."""

from course.sheet import NARROW, Sheet


def draw_search(sheet, asks):
    """The states of the source, searched with a query: their average."""
    english = ["the", "black", "cow", "sleeps", "."]
    words = sheet.row_of_tokens(28, 12, english, width=50, gap=4, size=13)
    names = [f"$h_{j}$" for j in range(1, 6)]
    states = sheet.row_of_tokens(28, 70, names, 50, "memory", gap=4, size=13)
    for word, state in zip(words, states, strict=True):
        sheet.arrow(word, state)

    compare = sheet.box(28, 136, "compare", "attention", 266, 34, size=13)
    for state in states:
        sheet.arrow(state.top, (state.top[0], 136))
    query = sheet.box(310, 130, f"query\n{asks}", "query", 44, 46, size=12)
    sheet.arrow(query, compare)
    weights = sheet.matrix(
        26, 218, [["?"] * 5], kind="attention", cell=(54, 30), size=13
    )
    sheet.arrow(compare, weights, "scores, softmax: weights", size=12)
    average = sheet.box(36, 300, "average", "attention", 100, 38, size=13)
    sheet.arrow((86, 248), average)
    all_states = sheet.frame(22, 64, 278, 40, kind="memory")
    sheet.arrow(all_states.left, average.left, via=[(10, 84), (10, 319)])
    return average


sheet = Sheet(500, NARROW)
average = draw_search(sheet, "$s_1$")
update = sheet.box(226, 300, "GRU", "memory", 124, 38, size=13)
sheet.arrow(average, update, "context", size=12)
[before] = sheet.row_of_tokens(244, 258, ["la"], 44, size=13, height=24)
sheet.arrow(before.top, (266, 300))
sheet.arrow((332, 176), (332, 300), "$s_1$", side="left", size=12)
predict = sheet.box(226, 390, "score the words", "projection", 124, 38, size=13)
sheet.arrow(update, predict, "$s_2$", size=12)
[after] = sheet.row_of_tokens(253, 460, ["vache"], 70, size=13)
sheet.arrow(predict, after)
