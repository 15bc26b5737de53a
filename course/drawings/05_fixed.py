"""A fixed context: every step of the decoder reads the same last state."""

from course.sheet import Sheet

sheet = Sheet(270)
english = ["the", "black", "cow", "sleeps", "."]
french = ["la", "vache", "noire", "dort", "."]
read = sheet.row_of_tokens(24, 20, english, width=58, gap=9)
written = sheet.row_of_tokens(362, 222, french, width=58, gap=9)
states = sheet.row_of_tokens(
    24, 88, [f"$h_{j}$" for j in range(1, 6)], 58, "memory", gap=9
)
steps = sheet.row_of_tokens(
    362, 154, [f"$s_{t}$" for t in range(1, 6)], 58, "memory", gap=9
)
for row in (states, steps):
    for one, following in zip(row, row[1:], strict=False):
        sheet.arrow(one, following)
for below, above in zip([*read, *steps], [*states, *written], strict=True):
    sheet.arrow(below, above)
sheet.label(24, 132, "encoder: states (B, S, D)", align="left")
sheet.label(356, 168, "decoder", align="right")

last = states[-1]
for step in steps:
    middle = step.bottom[0]
    sheet.arrow(last.right, step, via=[(middle, last.centre[1])])
sheet.label(530, 84, "the same context $h_5$ (B, D) in each step", size=11)
