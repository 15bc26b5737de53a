"""Three steps of a pointer network: point, feed back, strike out."""

from course.sheet import Sheet

sheet = Sheet(372)
tokens = sheet.row_of_tokens(264, 14, ["0.7", "0.1", "0.4"], width=60)
sheet.label(252, 28, "the list, three items", align="right")
sheet.label(470, 28, "hatched: already named", align="left", size=11)
sheet.line([(362, 42), (362, 66)])
sheet.line([(165, 66), (645, 66)])
sheet.label(174, 84, "items (S, D)", align="left", size=11)

rows = [[0.04, 0.79, 0.17], [0.21, 0, 0.79], [1.0, 0, 0]]
named = [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
states, answers = ["start", "after 0.1", "after 0.4"], [1, 2, 0]
left, wide = 10, 240
for step in range(3):
    x = left + step * wide
    state = sheet.box(x, 110, states[step], "query", 72, 36, size=11)
    compare = sheet.box(x + 94, 110, "compare, softmax", "attention", 122, 36)
    sheet.arrow(state, compare)
    sheet.arrow((x + 155, 66), compare.at(0.5, 0))
    weights = sheet.matrix(
        x + 86,
        206,
        [rows[step]],
        columns=["0.7", "0.1", "0.4"],
        weights=True,
        masked=[named[step]],
        form="{:.2f}",
        cell=(46, 28),
    )
    sheet.arrow(compare, weights, "(S)")
    middle = x + 86 + 46 * (answers[step] + 0.5)
    [answer] = sheet.row_of_tokens(
        middle - 32, 320, [f"place {answers[step]}"], 64
    )
    sheet.arrow((middle, 256), answer.bottom, width=3)
    if step < 2:
        after = x + wide + 36
        sheet.arrow(answer.right, (after, 146), via=[(after, 334)])
sheet.label(10, 220, "weights", align="left")
sheet.label(10, 334, "answer", align="left")
sheet.label(296, 352, "fed back", size=11)
