"""What three caches hold after eight words, and how it is numbered."""

from course.sheet import Sheet

WORDS = ["the", "black", "cow", "sleeps", "in", "the", "barn", "tonight"]
KEPT = {  # name: place of a word → its number
    "all": {i: i for i in range(8)},
    "window": {5: 5, 6: 6, 7: 7},
    "stream": {0: 0, 5: 1, 6: 2, 7: 3},
}
HIGH = 30


def draw_cache(sheet, left, lowest, name, *, wide, size):
    """A row of slots above their numbers; dropped words leave a gap."""
    for i, number in KEPT[name].items():
        x = left + i * wide
        cell = {"height": HIGH, "size": size}
        sheet.row_of_tokens(x, lowest, [WORDS[i]], wide - 4, "memory", **cell)
        sheet.label(x + wide / 2 - 2, lowest - 13, str(number), size=size)


sheet = Sheet(260)
for row, name in enumerate(KEPT):
    lowest = 196 - 78 * row
    sheet.label(48, lowest + 15, name, size=14)
    draw_cache(sheet, 100, lowest, name, wide=75, size=13)
