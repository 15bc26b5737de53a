"""Two cues on one desk, for a phone: one above the other."""

from course.sheet import NARROW, Sheet

sheet = Sheet(440, NARROW)


def desk(below):
    """Five things on a desk, in two rows; the cup is red."""
    upper = sheet.row_of_tokens(
        16, below + 40, ["newspaper", "red cup", "book"], width=104, height=30
    )
    sheet.row_of_tokens(72, below, ["paper", "notebook"], width=104, height=30)
    cup = upper[1]
    low, high = cup.at(0, 0)[1] - 4, cup.at(0, 1)[1] + 4
    frame = [(cup.x, low), (cup.x, high), (cup.right[0], high)]
    frame += [(cup.right[0], low), (cup.x, low)]
    sheet.line(frame, 4, "#c62828")
    return upper


places = desk(240)
sheet.label(180, 420, "bottom-up: the cup draws the eye", size=14)
sheet.dot(180, 376, 11, "query")
sheet.label(200, 376, "eye", align="left", size=13)
sheet.arrow((180, 364), (180, 316), width=2)

places = desk(20)
sheet.label(180, 196, "top-down: a wish finds the book", size=14)
wish = sheet.box(24, 130, "a bound, printed thing", "query", 190, 36, size=13)
sheet.arrow(wish.right, places[2].top, via=[(292, 148)], width=2)
