"""Chunks: all pairs inside, one state to the next, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.30_chunks")
sheet = Sheet(400, NARROW)
last = before = None
for i in range(3):
    y = 334 - 136 * i
    words = wide.WORDS[3 * i : 3 * i + 3]
    sheet.row_of_tokens(16, y + 4, words, 60, gap=6, size=12)
    place = sheet.box(250, y, "pairs\ninside", "attention", 88, 44, size=12)
    sheet.arrow((208, y + 22), place)
    if last is not None:
        state = sheet.box(259, y + 75, "state", "memory", 70, 30, size=12)
        sheet.arrow(last.bottom, state.top)
        sheet.arrow(state.bottom, place.top)
        if before is not None:
            x = 340  # right of the pairs
            sheet.arrow(
                before.right,
                state.right,
                via=[(x + 6, before.centre[1]), (x + 6, state.centre[1])],
            )
        before = state
    last = place
