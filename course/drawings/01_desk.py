"""Two cues on one desk: what stands out, and what is wished for."""

from course.sheet import Sheet

sheet = Sheet(240)
things = ["newspaper", "paper", "red cup", "notebook", "book"]


def desk(left):
    """Five things on a desk; the cup is red."""
    places = sheet.row_of_tokens(left, 30, things, width=64, gap=4, size=10)
    cup = places[2]
    low, high = cup.at(0, 0)[1] - 4, cup.at(0, 1)[1] + 4
    frame = [(cup.x, low), (cup.x, high), (cup.right[0], high)]
    frame += [(cup.right[0], low), (cup.x, low)]
    sheet.line(frame, 4, "#c62828")
    return places


places = desk(14)
sheet.label(182, 208, "bottom-up: the red cup draws the eye", size=13)
eye = sheet.dot(182, 140, 12, "query")
sheet.label(206, 140, "eye", align="left")
sheet.arrow((182, 128), (182, 64), width=2)

places = desk(370)
sheet.label(538, 208, "top-down: a wish finds the book", size=13)
wish = sheet.box(428, 124, "a bound, printed thing", "query", 220, 36)
sheet.arrow(wish.bottom, places[4].top, via=[(538, 92), (674, 92)], width=2)
