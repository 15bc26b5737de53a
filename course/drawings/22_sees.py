"""One bucket, two words of it, and whom each of them sees."""

from course.sheet import Sheet

WORDS = ["bread", "cake", "pizza", "dog", "mouse", "horse"]
ANIMALS = {"dog", "mouse", "horse"}
SEES = {"dog": {"dog"}, "horse": ANIMALS}


def draw_views(sheet, left, wide, gap, bottoms, over):
    """The sorted words twice for each view, its marks in colour.

    Args:
        sheet: The `Sheet`.
        left: Left edge of the first word.
        wide: Width of a word.
        gap: Between two words; between chunks it is three times as wide.
        bottoms: The lower edges of the rows that dog and horse see.
        over: Whether the name of a row stands over it, not beside it.
    """
    height, step = 30, 66 if over else 42
    for (word, sees), y in zip(SEES.items(), bottoms, strict=True):
        for text, kind, marked, low in (
            (f"bucket of {word}", "memory", ANIMALS, y + step),
            (f"{word} sees", "attention", sees, y),
        ):
            for place, other in enumerate(WORDS):
                x = left + place * (wide + gap) + place // 2 * 2 * gap
                colour = kind if other in marked else "data"
                sheet.row_of_tokens(
                    x, low, [other], wide, colour, height=height, size=13
                )
            if over:
                sheet.label(left, low + height + 12, text, 13, "left")
            else:
                sheet.label(left - 16, low + height / 2, text, 13, "right")
    top = bottoms[0] + step + height + (26 if over else 8)
    for chunk in range(3):
        x = left + chunk * (2 * wide + 4 * gap)
        middle = x + wide + gap / 2
        sheet.label(middle, top + 12, f"chunk {chunk}", size=13)


sheet = Sheet(240)
draw_views(sheet, 150, 80, 8, (124, 16), over=False)
