"""Encoder block and decoder block, for a phone: the decoder above."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.08_blocks")
sheet = Sheet(634, NARROW)
LEFT, WIDE, STEP = 100, 140, 96
MIDDLE = LEFT + WIDE / 2


def stack(y, steps):
    """Sublayers one above the other, each with its sum and norm."""
    built, before = [], (MIDDLE, y - 42)
    for number, (name, kind) in enumerate(steps):
        low = y + STEP * number
        step = sheet.box(LEFT, low, name, kind, WIDE, 32, size=13)
        add = sheet.box(LEFT, low + 46, "add, norm", "norm", WIDE, 26, size=13)
        sheet.arrow(before, step)
        sheet.arrow(step, add)
        beside, fork = LEFT + WIDE + 14, low - 15  # the residual
        sheet.arrow(
            (MIDDLE, fork),
            add.right,
            via=[(beside, fork), (beside, add.right[1])],
            colour=wide.GREY,
        )
        built.append(step)
        before = add
    return built, add


def mask(step, name, cells):
    y = step.left[1] + 2
    empty = [[""] * 4] * 4
    sheet.matrix(272, y, empty, masked=cells, cell=(15, 12), size=12)
    sheet.label(302, y - 10 - 7 * name.count("\n"), name)


left, end = stack(50, [wide.reads, wide.net])
mask(left[0], "padding", wide.PAD)
sheet.frame(22, 26, 328, 204)
sheet.label(30, 200, "encoder\nblock $\\times$ L", align="left")
sheet.label(MIDDLE + 10, 14, "embedded source (S, D)", align="left")

right, last = stack(304, [wide.reads, wide.crosses, wide.net])
mask(right[0], "future,\npadding", wide.BOTH)
mask(right[1], "padding", wide.PAD)
sheet.frame(22, 280, 328, 302)
sheet.label(30, 552, "decoder\nblock $\\times$ L", align="left")
sheet.label(MIDDLE + 10, 266, "embedded target (T, D)", align="left")
sheet.label(MIDDLE - 8, 385, "queries", align="right")
sheet.label(LEFT + WIDE + 22, 532, "residual", align="left")
sheet.arrow(last.top, (MIDDLE, 624))
sheet.label(MIDDLE + 10, 606, "output (T, D)", align="left")

corner = [(MIDDLE, 250), (12, 250), (12, right[1].left[1])]
sheet.arrow(end.top, right[1].left, via=corner)
sheet.label(MIDDLE + 10, 243, "encoder’s output (S, D)", align="left")
sheet.label(62, right[1].left[1] + 24, "keys,\nvalues")
