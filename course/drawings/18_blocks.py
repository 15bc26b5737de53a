"""Two texts in the blocks of one pool, and their tables."""

from course.sheet import Sheet

sheet = Sheet(240)
BLOCKS = ("once upon a time", "all good things", "there was", "")
rows = []
tall = {"height": 32, "size": 13}
for block, text in enumerate(BLOCKS):
    y = 150 - 42 * block
    words = text.split()
    number = sheet.row_of_tokens(164, y, [str(block)], 34, "norm", **tall)
    look = {"width": 78, "gap": 2, "size": 14, "height": 32}
    filled = sheet.row_of_tokens(206, y, words, kind="memory", **look)
    left = 206 + 80 * len(words)
    empty = sheet.row_of_tokens(left, y, [""] * (4 - len(words)), **look)
    rows.append((number[0], (filled + empty)[-1]))
sheet.label(181, 206, "block", size=13)
sheet.label(366, 206, "slots 0 to 3", size=13)
for name, table, x, side in ("a", [0, 2], 46, 0), ("b", [1], 632, 1):
    sheet.label(x + 20, 206, f"table of {name}", size=13)
    for place, block in enumerate(table):
        y = (150, 66)[place] if name == "a" else 108
        entry = sheet.row_of_tokens(x, y, [str(block)], 40, **tall)[0]
        if side:
            sheet.arrow(entry.left, rows[block][1].right)
        else:
            sheet.arrow(entry.right, rows[block][0].left)
