"""Two texts that share a full block, after both have written."""

from course.sheet import Sheet

TALL = {"height": 32, "size": 13}


def draw_blocks(sheet, top, step, number_at, words_at, size):
    """Three blocks of four words; returns the ends of each row."""
    (left, narrow), (right, wide) = number_at, words_at
    texts = "once upon a time", "there was no end", "there was a fox"
    rows = []
    for block, text in enumerate(texts):
        y = top - step * block
        number = sheet.row_of_tokens(
            left, y, [str(block)], narrow, "norm", **TALL
        )
        words = sheet.row_of_tokens(
            right, y, text.split(), wide, "memory", gap=2, size=size, height=32
        )
        rows.append((number[0].left, words[-1].right))
    return rows


def draw_entries(sheet, rows, table, x, wide, side):
    """The entries of a table, at the left (0) or the right (1)."""
    for block in table:
        end = rows[block][side]
        [entry] = sheet.row_of_tokens(
            x, end[1] - 16, [str(block)], wide, **TALL
        )
        sheet.arrow(entry.left if side else entry.right, end)


sheet = Sheet(240)
rows = draw_blocks(sheet, 146, 56, (164, 34), (206, 78), 14)
sheet.label(181, 206, "block", size=13)
sheet.label(366, 206, "slots 0 to 3", size=13)
for name, table, x, side in ("a", [0, 1], 46, 0), ("c", [0, 2], 632, 1):
    sheet.label(x + 20, 206, f"table of {name}", size=13)
    draw_entries(sheet, rows, table, x, 40, side)
