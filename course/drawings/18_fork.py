"""Two tables and one pool, before a fork and after it."""

from course.sheet import Sheet

sheet = Sheet(420)
WORDS = ("once upon a time", "all good things", "there was")
PANELS = (
    (236, "Two texts, a and b", "b", [1], WORDS),
    (
        26,
        "c, a fork of a, has written two words",
        "c",
        [0, 3],
        (*WORDS, "there was a fox"),
    ),
)
for base, title, other, table, blocks in PANELS:
    sheet.label(360, base + 164, title, size=14)
    rows = []
    for block in range(4):
        y = base + 108 - 36 * block
        words = blocks[block].split() if block < len(blocks) else []
        number = sheet.row_of_tokens(164, y, [str(block)], 34, "norm")
        look = {"width": 78, "gap": 2, "size": 13}
        filled = sheet.row_of_tokens(202, y, words, kind="memory", **look)
        left = 202 + 80 * len(words)
        empty = [""] * (4 - len(words))
        free = sheet.row_of_tokens(left, y, empty, **look)
        rows.append((number[0], (filled + free)[-1]))
    sheet.label(160, base + 144, "block", align="left")
    sheet.label(208, base + 144, "slots 0 to 3", align="left")
    sides = ("a", [0, 2], 52, 0), (other, table, 632, 1)
    for name, entries, x, side in sides:
        sheet.label(x + 18, base + 144, f"table of {name}", size=13)
        for place, block in enumerate(entries):
            y = base + 108 - 36 * place
            entry = sheet.row_of_tokens(x, y, [str(block)], 36)[0]
            ends = (entry.right, rows[block][0].left)
            if side:
                ends = (entry.left, rows[block][1].right)
            sheet.arrow(*ends)
