"""Three shapes of task: n labels, one label, or as many words as it takes."""

from course.sheet import Sheet

PANELS = (
    ("$n \\to n$: tagging", ["like", "to", "drink"], None),
    ("$n \\to 1$: classifying", ["good", "sad", "calm"], "pool"),
    ("$n \\to m$: translating", ["loves", "water"], "write, word by word"),
)
GIVEN = (["VERB", "PART", "VERB"], ["friendly"], ["adore", "l'", "eau", "END"])


def row(sheet, x, y, words, span, size):
    wide = (span - 6 * (len(words) - 1)) / len(words)
    return sheet.row_of_tokens(x, y, words, wide, gap=6, size=size)


def panel(sheet, number, x, y, span, size, gap):
    """One shape of task, from below to above, its words at y."""
    name, words, step = PANELS[number]
    tokens = row(sheet, x, y, words, span, size)
    levels = [y + 28 + gap, y + 66 + 2 * gap]  # the boxes
    up = y + 104 + 3 * gap if step else y + 66 + 2 * gap
    sheet.box(x, levels[0], "read", "attention", span, size=size)
    for token in tokens:
        sheet.arrow(token, (token.top[0], levels[0]))
    above = levels[0] + 38
    if step:
        sheet.box(x, levels[1], step, "attention", span, size=size)
        for token in tokens:
            sheet.arrow((token.top[0], above), (token.top[0], levels[1]))
        above = levels[1] + 38
    for label in row(sheet, x, up, GIVEN[number], span, size):
        sheet.arrow((label.bottom[0], above), label)
    sheet.label(x + span / 2, up + 46, name, size=size + 1)


sheet = Sheet(262)
for number, x in enumerate((14, 257, 500)):
    panel(sheet, number, x, 14, 206, 12, 22)
