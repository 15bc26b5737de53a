"""One draw trains two things: what follows the look, and the look."""

from course.sheet import Sheet

sheet = Sheet(290)
y, high = 104, 44
look = sheet.box(76, y, "score,\nsoftmax", "attention", 92, high)
draw = sheet.box(234, y, "draw $z$", "attention", 84, high)
read = sheet.box(360, y, "read $v_z$", "attention", 88, high)
readout = sheet.box(492, y, "readout", "projection", 84, high)
reward = sheet.box(618, y, "reward $r_z$", "data", 90, high)
middle = y + high / 2
sheet.arrow((14, middle), look, "$q$, $k$")
for one, other, text in (
    (look, draw, "$p$ (S)"),
    (draw, read, "$z$"),
    (read, readout, "(V)"),
    (readout, reward, None),
):
    sheet.arrow(one, other, text)
sheet.label(276, 84, "no gradient\npasses here", size=11)

blue = "#2b5fa8"
back = {"dashed": True, "colour": blue, "width": 2}
judge = sheet.box(505, 228, "baseline $b$:\nearlier rewards", "memory", 140, 46)
over = [(663, 190), (122, 190)]
sheet.arrow(reward.top, look.top, via=over, **back)
sheet.arrow(judge.bottom, (575, 190))
name = "trains the look: $(r_z - b)\\,\\nabla \\log p_z$"
sheet.label(320, 208, name, colour=blue)
under = [(663, 56), (534, 56)]
sheet.arrow(reward.bottom, readout.bottom, via=under, **back)
sheet.label(598, 36, "trains the readout: $\\nabla r_z$", colour=blue)
