"""Two texts that share a full block, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(200, NARROW)
BLOCKS = ("once upon a time", "there was no end", "there was a fox")
rows = []
tall = {"height": 32, "size": 13}
for block, text in enumerate(BLOCKS):
    y = 112 - 46 * block
    number = sheet.row_of_tokens(60, y, [str(block)], 28, "norm", **tall)
    words = sheet.row_of_tokens(
        91, y, text.split(), 51, "memory", gap=2, size=13, height=32
    )
    rows.append((number[0], words[-1]))
sheet.label(74, 160, "block", size=13)
sheet.label(196, 160, "slots 0 to 3", size=13)
for name, table, x, side in ("a", [0, 1], 8, 0), ("c", [0, 2], 325, 1):
    shift = -36 if side else 36
    sheet.label(x + 14 + shift, 182, f"table of {name}", size=13)
    for block in table:
        y = 112 - 46 * block
        entry = sheet.row_of_tokens(x, y, [str(block)], 28, **tall)[0]
        if side:
            sheet.arrow(entry.left, rows[block][1].right)
        else:
            sheet.arrow(entry.right, rows[block][0].left)
