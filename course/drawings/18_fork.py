"""Two texts that share a full block, after both have written."""

from course.sheet import Sheet

sheet = Sheet(240)
BLOCKS = ("once upon a time", "there was no end", "there was a fox")
rows = []
tall = {"height": 32, "size": 13}
for block, text in enumerate(BLOCKS):
    y = 146 - 56 * block
    number = sheet.row_of_tokens(164, y, [str(block)], 34, "norm", **tall)
    words = sheet.row_of_tokens(
        206, y, text.split(), 78, "memory", gap=2, size=14, height=32
    )
    rows.append((number[0], words[-1]))
sheet.label(181, 206, "block", size=13)
sheet.label(366, 206, "slots 0 to 3", size=13)
for name, table, x, side in ("a", [0, 1], 46, 0), ("c", [0, 2], 632, 1):
    sheet.label(x + 20, 206, f"table of {name}", size=13)
    for block in table:
        y = 146 - 56 * block
        entry = sheet.row_of_tokens(x, y, [str(block)], 40, **tall)[0]
        if side:
            sheet.arrow(entry.left, rows[block][1].right)
        else:
            sheet.arrow(entry.right, rows[block][0].left)
