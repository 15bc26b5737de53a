"""Two texts in the blocks of one pool, and their tables, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(220, NARROW)
BLOCKS = ("once upon a time", "all good things", "there was", "")
numbers = []
for block, text in enumerate(BLOCKS):
    y = 134 - 40 * block
    words = text.split()
    numbers += sheet.row_of_tokens(100, y, [str(block)], 28, "norm", size=13)
    look = {"width": 52, "gap": 2, "size": 13}
    sheet.row_of_tokens(132, y, words, kind="memory", **look)
    left = 132 + 54 * len(words)
    sheet.row_of_tokens(left, y, [""] * (4 - len(words)), **look)
sheet.label(40, 200, "tables", size=13)
sheet.label(114, 178, "block", size=13)
sheet.label(239, 178, "slots 0 to 3", size=13)
for name, table, x in ("a", [0, 2], 10), ("b", [1], 46):
    sheet.label(x + 14, 178, name, size=13)
    for block in table:
        y = 134 - 40 * block
        entry = sheet.row_of_tokens(x, y, [str(block)], 28, size=13)[0]
        sheet.arrow(entry.right, numbers[block].left)
