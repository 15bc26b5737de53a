"""Two heads for one word, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(560, NARROW)
words = ["the", "black", "cow", "sleeps", "."]
sheet.row_of_tokens(14, 14, words, width=60, gap=8, dark=2, size=13)
sheet.frame(6, 8, 348, 40)
for x in (70, 318):
    sheet.arrow((x, 48), (x, 96), dashed=True)
mix = sheet.box(130, 470, "mix: $W_o$", "projection", 100, size=13)
for left, name, row, answer in (
    (72, "head 0:\nadjective?", [0.05, 0.81, 0.05, 0.05, 0.05], "adjective"),
    (252, "head 1:\nverb?", [0.05, 0.05, 0.05, 0.81, 0.05], "verb"),
):
    middle = left + 26
    ask = sheet.box(middle - 60, 96, name, "projection", 120, 46, size=13)
    sheet.arrow((180, 42), ask.bottom, via=[(180, 72), (middle, 72)])
    weights = sheet.matrix(
        left,
        180,
        [[x] for x in row],
        rows=words,
        weights=True,
        form="{:.2f}",
        cell=(56, 32),
        size=13,
    )
    sheet.arrow(ask.top, (middle, 180))
    text = f"{answer} 0.81\nnoun 0.05"
    average = sheet.box(middle - 64, 382, text, width=128, height=50, size=13)
    sheet.arrow((middle, 340), (middle, 382))
    side = mix.left if middle < 180 else mix.right
    sheet.arrow((middle, 432), side, via=[(middle, 489)])
sheet.arrow(mix.top, (180, 548))
sheet.label(190, 532, "0.81 twice, noun 0.10", align="left", size=13)
