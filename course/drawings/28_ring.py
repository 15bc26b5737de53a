"""Six words written into a ring of four slots."""

from course.sheet import Sheet

WORDS = ["the", "black", "cow", "sleeps", "in", "the"]
SLOTS = [4, 5, 2, 3]  # the position that each slot holds


def draw_ring(sheet, top, *, left, wide, slots_left, size):
    """The text above, the slots below, an arrow for each that is held."""
    words = []
    for p, word in enumerate(WORDS):
        kind = "data" if p in SLOTS else "norm"
        x = left + p * (wide + 8)
        look = {"height": 34, "size": size}
        words += sheet.row_of_tokens(x, top, [word], wide, kind, **look)
        sheet.label(x + wide / 2, top + 48, str(p), size=size)
    for slot, p in enumerate(SLOTS):
        x = slots_left + slot * (wide + 8)
        look = {"height": 34, "size": size}
        [held] = sheet.row_of_tokens(
            x, top - 130, [WORDS[p]], wide, "memory", **look
        )
        sheet.arrow(words[p].bottom, held.top)
        sheet.label(x + wide / 2, top - 145, f"slot {slot}", size=size)


sheet = Sheet(250)
draw_ring(sheet, 170, left=70, wide=90, slots_left=168, size=14)
sheet.label(36, 218, "position", size=12)
