"""One draw trains two things, for a phone: from bottom to top."""

from course.sheet import NARROW, Sheet

sheet = Sheet(500, NARROW)
x, wide, high = 110, 140, 40
steps = []
for n, (text, kind) in enumerate(
    (
        ("score, softmax", "attention"),
        ("draw $z$", "attention"),
        ("read $v_z$", "attention"),
        ("readout", "projection"),
        ("reward $r_z$", "data"),
    )
):
    steps.append(sheet.box(x, 40 + 92 * n, text, kind, wide, high, size=13))
middle = x + wide / 2
sheet.arrow((middle, 10), steps[0].bottom)
for below, above in zip(steps[:-1], steps[1:], strict=True):
    sheet.arrow(below, above)
for n, text in enumerate(("$q$, $k$", "$p$ (S)", "$z$", "(V)")):
    up = (22, 106, 198, 290)[n]
    sheet.label(middle + 10, up, text, size=13, align="left")

look, draw, read, readout, reward = steps
blue = "#2b5fa8"
back = {"dashed": True, "colour": blue, "width": 2}
sheet.arrow(reward.left, look.left, via=[(84, 428), (84, 60)], **back)
sheet.label(
    6, 244, "trains the\nlook:\n$(r_z - b)$\n$\\nabla \\log p_z$", align="left",
    size=13, colour=blue,
)  # fmt: skip
sheet.arrow(reward.right, readout.right, via=[(276, 428), (276, 336)], **back)
sheet.label(
    284, 382, "trains the\nreadout:\n$\\nabla r_z$", align="left", size=13,
    colour=blue,
)  # fmt: skip
sheet.label(284, 152, "no\ngradient\npasses", align="left", size=13)
