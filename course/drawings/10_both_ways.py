"""Two units read the sentence, one from each end. No numbers: they are asked.

`columns` draws the words and their two states for both widths.
"""

from course.sheet import Sheet


def columns(sheet, places, base, state, size):
    """Words, forward states and backward states, joined by arrows.

    Args:
        sheet: The card.
        places: Left edge of each word's column.
        base: Height of the words.
        state: Width and height of a box.
        size: Of the letters.

    Returns:
        The boxes of the states, forwards and backwards.
    """
    wide, high = state
    words = ["the", "black", "cow", "sleeps", "."]
    ahead, back = [], []
    for j, (x, word) in enumerate(zip(places, words, strict=True), 1):
        sheet.row_of_tokens(x, base, [word], 2 * wide, size=size)
        for states, way, across, up in (
            (ahead, "right", 0, 36),
            (back, "left", wide, 66 + high),
        ):
            name = rf"$\over{way}arrow{{h}}_{j}$"
            [box] = sheet.row_of_tokens(
                x + across,
                base + 28 + up,
                [name],
                wide,
                "memory",
                height=high,
                size=size,
            )
            sheet.arrow((box.bottom[0], base + 28), box)
            states.append(box)
    for one, following in zip(ahead, ahead[1:], strict=False):
        sheet.arrow(one.right, following.left)
    for one, following in zip(back, back[1:], strict=False):
        sheet.arrow(following.left, one.right)
    return ahead, back


sheet = Sheet(240)
ahead, back = columns(
    sheet, [118 + 122 * j for j in range(5)], 16, (46, 34), 13
)
sheet.label(12, ahead[0].left[1], "to the right", align="left")
sheet.label(12, back[0].left[1], "to the left", align="left")
sheet.frame(112, 74, 104, 118, kind="query")
sheet.label(112, 214, "annotation of “the”", align="left")
