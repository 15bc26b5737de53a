"""What is kept of one word: eight vectors, or one that heads read out of."""

from course.sheet import Sheet

HIGH, STEP, CELL = 30, 40, 48


def draw_rows(sheet, left, lowest, kind, size):
    """A key and a value for each of four heads; the places of the rows."""
    return [
        sheet.matrix(
            left,
            lowest + (3 - h) * STEP,
            [[f"$k_{h}$", f"$v_{h}$"]],
            cell=(CELL, HIGH),
            kind=kind,
            size=size,
        )
        for h in range(4)
    ]


def draw_word(sheet, left, lowest, size):
    """The word “cow”, half as high as the four rows."""
    middle = lowest + 1.5 * STEP
    [word] = sheet.row_of_tokens(
        left, middle, ["cow"], 50, height=HIGH, size=size
    )
    return word


def draw_multi_head(sheet, left, lowest, gap=84, size=12):
    word = draw_word(sheet, left, lowest, size)
    for row in draw_rows(sheet, left + 50 + gap, lowest, "memory", size):
        sheet.arrow(word.right, row.left)


def draw_latent(sheet, left, lowest, gap=62, size=12):
    word = draw_word(sheet, left, lowest, size)
    x = left + 50 + gap
    latent = sheet.matrix(
        x, word.y, [["$c$"]], cell=(44, HIGH), kind="memory", size=size
    )
    sheet.arrow(word.right, latent.left)
    for row in draw_rows(sheet, x + 44 + gap, lowest, "data", size):
        sheet.arrow(latent.right, row.left)


TITLES = "multi-head: kept are 8 vectors", "latent: kept is 1, and a short one"

sheet = Sheet(240)
draw_multi_head(sheet, 36, 24)
draw_latent(sheet, 376, 24)
sheet.label(150, 214, TITLES[0], size=14)
sheet.label(532, 214, TITLES[1], size=14)
