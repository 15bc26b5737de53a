"""A sentence and its mirror image, as five views see it from one word."""

from course.sheet import Sheet

WORDS = ["big", "old", "water", "cold", "soon"]
SENTENCES = (["to", *WORDS, "the"], ["the", *WORDS, "to"])
ME = 3  # the place of water
SEEN = "✓"


def views(words):
    """Name → what is seen at the seven places; None is not seen."""
    near = [abs(i - ME) for i in range(7)]
    edges = [f"| {words[0]}", "?", SEEN, SEEN, SEEN, "?", f"{words[-1]} |"]
    return {
        "alone": [SEEN if away == 0 else None for away in near],
        "window": [SEEN if away <= 2 else None for away in near],
        "bag": sorted(words),
        "positions": [words[0], *[SEEN] * 5, words[-1]],
        "stacked": edges,
    }


def draw(sheet, left, cell, tops, size, names_above=False):
    """Each sentence, and below it a row of cells for each view."""
    wide, high = cell
    for words, top in zip(SENTENCES, tops, strict=True):
        sheet.row_of_tokens(
            left + 2, top, words, wide - 4, gap=4, dark=ME, size=size
        )
        y = top - 10
        for name, row in views(words).items():
            y -= high + (20 if names_above else 5)
            sheet.matrix(
                left,
                y,
                [[text or "" for text in row]],
                masked=[[text is None for text in row]],
                cell=cell,
                kind="attention",
                size=size,
            )
            if names_above:
                sheet.label(left, y + high + 9, name, size, "left")
            else:
                sheet.label(left - 10, y + high / 2, name, size, "right")


sheet = Sheet(402)
draw(sheet, 106, (86, 24), (362, 164), 12)
