"""Encoder block and decoder block: sublayers, residuals, norms and masks."""

from course.sheet import Sheet

sheet = Sheet(440)
WIDE, STEP, GREY = 150, 112, "#777777"
PAD = [[0, 0, 0, 1]] * 4  # the last of four tokens is padding
BOTH = [[j > i or j == 3 for j in range(4)] for i in range(4)]


def stack(x, y, steps):
    """Sublayers one above the other, each with its sum and norm."""
    built, before = [], (x + WIDE / 2, y - 40)
    for number, (name, kind) in enumerate(steps):
        low = y + STEP * number
        step = sheet.box(x, low, name, kind, WIDE, 34)
        add = sheet.box(x, low + 48, "add, norm", "norm", WIDE, 26)
        sheet.arrow(before, step)
        sheet.arrow(step, add)
        beside, fork = x + WIDE + 18, low - 20  # the residual
        via = [(beside, fork), (beside, add.right[1])]
        sheet.arrow((x + WIDE / 2, fork), add.right, via=via, colour=GREY)
        built.append(step)
        before = add
    return built, add


def mask(x, step, name, cells):
    y = step.left[1] - 12
    sheet.matrix(x, y, [[""] * 4] * 4, masked=cells, cell=(14, 11))
    sheet.label(x + 28, y - 11, name, size=10.5)


reads, net = ("self-attention", "attention"), ("feed-forward", "feed_forward")
left, end = stack(108, 62, [reads, net])
mask(32, left[0], "padding", PAD)
sheet.frame(14, 32, 282, 244)
sheet.label(26, 262, "encoder block $\\times$ L", align="left", size=11)
sheet.label(192, 16, "embedded source (S, D)", align="left", size=11)

crosses = ("cross-attention", "attention")
right, last = stack(430, 62, [reads, crosses, net])
mask(628, right[0], "future, padding", BOTH)
mask(628, right[1], "padding", PAD)
sheet.frame(392, 32, 314, 356)
sheet.label(696, 374, "decoder block $\\times$ L", align="right", size=11)
sheet.label(514, 16, "embedded target (T, D)", align="left", size=11)
sheet.label(497, 153, "queries", align="right", size=10.5)
sheet.label(606, 300, "residual", align="left", size=10.5)
sheet.arrow(last.top, (505, 418))
sheet.label(514, 408, "output (T, D)", align="left", size=11)

corner = [(183, 300), (358, 300), (358, right[1].left[1])]
sheet.arrow(end.top, right[1].left, via=corner)
sheet.label(250, 314, "encoder’s output (S, D)", size=11)
sheet.label(350, 240, "keys,\nvalues", align="right", size=10.5)
