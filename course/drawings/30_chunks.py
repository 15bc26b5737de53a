"""Chunks: all pairs inside, and one state from each to the next."""

from course.sheet import Sheet

WORDS = ["two", "cats", "sleep", "and", "a", "dog", "eats", "its", "food"]


def draw_chunks(sheet, left, y, wide, gap, between, *, size=12):
    """Three chunks of three tokens, and the state between them."""
    chunk = 3 * wide + 2 * gap
    last = before = None
    for i in range(3):
        x = left + i * (chunk + between)
        tokens = sheet.row_of_tokens(
            x, y, WORDS[3 * i : 3 * i + 3], wide, gap=gap, size=size
        )
        pairs = sheet.box(
            x, y + 74, "pairs inside", "attention", chunk, 40, size=size
        )
        for token in tokens:
            sheet.arrow(token, (token.centre[0], pairs.y))
        if last is not None:
            middle = y + 174
            state = sheet.box(
                x - between / 2 - 31,
                middle,
                "state",
                "memory",
                62,
                34,
                size=size,
            )
            sheet.arrow((last.right[0] - 30, last.top[1]), state)
            sheet.arrow(state, (x + 30, pairs.top[1]))
            if before is not None:
                sheet.arrow(before, state)
            before = state
        last = pairs


sheet = Sheet(260)
draw_chunks(sheet, 14, 24, 62, 6, 50, size=12)
