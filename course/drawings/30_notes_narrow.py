"""Three notes about a stock, and four ways to keep them, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.30_notes")
sheet = Sheet(380, NARROW)
sheet.row_of_tokens(18, 336, wide.NOTES, 100, gap=12, size=13)
for i in range(4):
    across, down = i % 2, i // 2
    wide.draw_way(
        sheet, 84 + 176 * across, 284 - 164 * down, i, deepest=3 - down
    )
