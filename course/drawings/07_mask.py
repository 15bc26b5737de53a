"""A causal mask tells the order: the second layer reads what the first saw."""

from course.sheet import KINDS, Sheet

sheet = Sheet(300)
PATH = KINDS["attention"][1]
for text, y in (("layer 2", 222), ("layer 1", 140), ("X (T, D)", 32)):
    sheet.label(14, y, text, size=10.5, align="left")


def pieces(lines):
    """Lines between pairs of points, as one curve with gaps."""
    gap = (float("nan"), float("nan"))
    points = [point for line in lines for point in (*line, gap)]
    return zip(*points, strict=True)


def panel(left, words, told):
    """Two causal layers; what flows into the first node of cow is marked."""
    places = sheet.row_of_tokens(left, 18, words, width=54, gap=6, size=11)
    xs = [place.centre[0] for place in places]
    cow = words.index("cow")
    thin = []
    for t, x in enumerate(xs):
        if t == cow:
            for s in range(t + 1):
                sheet.arrow((xs[s], 46), (x, 136), width=2.2, colour=PATH)
            sheet.arrow((x, 140), (xs[-1] - 3, 219), width=2.2, colour=PATH)
        else:
            thin += [((xs[s], 46), (x, 140)) for s in range(t + 1)]
            thin.append(((x, 140), (xs[-1], 222)))
    sheet.axes.plot(*pieces(thin), color="#8a8a8a", linewidth=0.8, zorder=1)
    nodes = {"ms": 10, "mfc": "#ececec", "mec": "#666666", "zorder": 4}
    sheet.axes.plot(xs, [140] * 5, "o", **nodes)
    sheet.dot(xs[-1], 222, 6)
    sheet.label(xs[2], 272, told, size=12)


panel(72, ["the", "black", "cow", "sleeps", "."], "“cow” has seen “black”")
panel(400, ["the", "cow", "black", "sleeps", "."], "“cow” has not seen “black”")
