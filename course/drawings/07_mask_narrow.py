"""A causal mask tells the order, for a phone: one order above the other."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.07_mask")
sheet = Sheet(476, NARROW)


def panel(below, words, told):
    """Two causal layers; what flows into the first node of cow is marked."""
    places = sheet.row_of_tokens(64, below, words, width=54, gap=4, size=12)
    xs = [place.centre[0] for place in places]
    word, first, second = below + 28, below + 96, below + 164
    heights = ((below + 14, "X (T, D)"), (first, "layer 1"))
    for y, text in (*heights, (second, "layer 2")):
        sheet.label(8, y, text, align="left")
    sheet.label(180, below + 196, told, size=14)
    cow, thin = words.index("cow"), []
    for t, x in enumerate(xs):
        ways = [((xs[s], word), (x, first)) for s in range(t + 1)]
        ways.append(((x, first), (xs[-1], second)))
        if t != cow:
            thin += ways
            continue
        for start, end in ways:
            sheet.arrow(start, end, width=2.4, colour=wide.PATH)
    lines = wide.pieces(thin)
    sheet.axes.plot(*lines, color="#8a8a8a", linewidth=0.8, zorder=1)
    nodes = {"ms": 10, "mfc": "#ececec", "mec": "#666666", "zorder": 4}
    sheet.axes.plot(xs, [first] * 5, "o", **nodes)
    sheet.dot(xs[-1], second, 6)


panel(252, ["the", "black", "cow", "sleeps", "."], "“cow” has seen “black”")
panel(16, ["the", "cow", "black", "sleeps", "."], "“cow” has not seen “black”")
