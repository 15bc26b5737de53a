"""One score in two ways: a key from the latent, or a query that is moved."""

from course.sheet import Sheet

CELL = (40, 32)


def draw_way(sheet, left, low, absorb, *, room=116, size=13):
    """The query above, the latent below, their product at the right."""
    high = low + 100
    latent = sheet.matrix(
        left, low, [["1", "2"]], cell=CELL, kind="memory", size=size
    )
    sheet.label(left + 40, low - 14, "latent of cow", size=size - 1)
    query = sheet.matrix(
        left + 40, high, [["2"]], cell=CELL, kind="query", size=size
    )
    sheet.label(left + 60, high + 46, "query", size=size - 1)
    x, words = left + 80 + room, ("key", "moved query")[absorb]
    cells = [["6", "2"]] if absorb else [["5"]]
    made = sheet.matrix(
        x,
        high if absorb else low,
        cells,
        cell=CELL,
        kind="projection",
        size=size,
    )
    y = high + 46 if absorb else low - 14
    sheet.label(made.centre[0], y, words, size=size - 1)
    old = query if absorb else latent
    sheet.arrow(old.right, made.left, "times (3, 1)", side="above", size=12)
    score = sheet.matrix(
        x + 84, low + 50, [["10"]], cell=CELL, kind="attention", size=size
    )
    other = latent if absorb else query
    bend = (score.centre[0], other.centre[1])
    sheet.arrow(other.right, score.bottom if absorb else score.top, via=[bend])
    bend = (score.centre[0], made.centre[1])
    sheet.arrow(made.right, score.top if absorb else score.bottom, via=[bend])
    return score


TITLES = "expanded: a key of every word", "absorbed: one query is moved"

sheet = Sheet(250)
draw_way(sheet, 24, 44, absorb=False)
draw_way(sheet, 384, 44, absorb=True)
sheet.label(180, 226, TITLES[0], size=14)
sheet.label(540, 226, TITLES[1], size=14)
