"""A fixed context for all steps of the decoder, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(366, NARROW)
english = ["the", "black", "cow", "sleeps", "."]
french = ["la", "vache", "noire", "dort", "."]
read = sheet.row_of_tokens(14, 14, english, width=60, size=13)
states = sheet.row_of_tokens(
    14, 76, [f"$h_{j}$" for j in range(1, 6)], 60, "memory", size=13
)
steps = sheet.row_of_tokens(
    14, 222, [f"$s_{t}$" for t in range(1, 6)], 60, "memory", size=13
)
written = sheet.row_of_tokens(14, 288, french, width=60, size=13)
for row in (states, steps):
    for one, following in zip(row, row[1:], strict=False):
        sheet.arrow(one, following)
for below, above in zip([*read, *steps], [*states, *written], strict=True):
    sheet.arrow(below, above)
sheet.label(14, 124, "encoder: states (B, S, D)", align="left", size=13)
sheet.label(14, 344, "decoder", align="left", size=13)

x, y = states[-1].top
for step in steps:
    middle = step.bottom[0]
    sheet.arrow((x, y), step, via=[(x, 184), (middle, 184)])
sheet.label(
    14, 164, "the same $h_5$ (B, D) in each step", align="left", size=13
)
