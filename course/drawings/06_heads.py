"""Two heads for one word: two rows of weights, which meet in W_o."""

from course.sheet import Sheet

sheet = Sheet(372)
words = ["the", "black", "cow", "sleeps", "."]
tokens = sheet.row_of_tokens(136, 14, words, width=80, gap=12, dark=2)
sheet.frame(128, 8, 464, 40)
for x in (190, 530):
    sheet.arrow((x, 48), (x, 84), dashed=True)
mix = sheet.box(295, 300, "mix: $W_o$", "projection", 130)
for left, name, row, answer in (
    (40, "head 0: adjective?", [0.05, 0.81, 0.05, 0.05, 0.05], "adjective"),
    (440, "head 1: verb?", [0.05, 0.05, 0.05, 0.81, 0.05], "verb"),
):
    middle = left + 120
    ask = sheet.box(left + 20, 84, name, "projection", 200)
    sheet.arrow(tokens[2].top, ask.bottom, via=[(360, 62), (middle, 62)])
    weights = sheet.matrix(
        left,
        152,
        [row],
        columns=words,
        weights=True,
        form="{:.2f}",
        cell=(48, 30),
    )
    sheet.arrow(ask, weights)
    average = sheet.box(left + 40, 228, f"{answer} 0.81, noun 0.05", width=160)
    sheet.arrow((middle, 203), average)
    sheet.arrow(
        average.top, mix.left if left < 360 else mix.right, via=[(middle, 319)]
    )
sheet.arrow(mix.top, (360, 362))
sheet.label(372, 354, "cow: adjective 0.81, noun 0.10, verb 0.81", align="left")
