"""A cache grows with every word; the sums keep their size."""

from course.sheet import Sheet

WORDS = ["call", "me", "Ishmael", "some", "years", "ago"]


def draw_step(sheet, number, low, left, step, sums, size):
    """The first words in a cache, three in a line, and the sums."""
    lines = -(-number // 3)
    for line in range(lines):
        words = WORDS[3 * line : min(3 * line + 3, number)]
        y = low + 34 * (lines - 1 - line)
        sheet.row_of_tokens(
            left, y, words, step - 6, "memory", gap=6, size=size
        )
    middle = low + 34 * lines / 2 - 3
    sheet.box(sums, middle - 20, "sums", "memory", 84, 40, size=size)
    return middle


sheet = Sheet(270)
sheet.label(292, 248, "a cache: the key and value of each word", size=13)
sheet.label(610, 248, "a running sum", size=13)
for number, low, text in (
    (1, 188, "after 1 word"),
    (3, 120, "after 3 words"),
    (6, 22, "after 6 words"),
):
    middle = draw_step(sheet, number, low, 160, 90, 568, 13)
    sheet.label(20, middle, text, align="left", size=13)
