"""From the first word to the last, for a phone: one panel above the other."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.07_paths")
sheet = Sheet(608, NARROW)
ROUND = 38


def panel(below, title, edges, path):
    """Edges and a path of (position, round); round 0 is the word itself."""
    places = sheet.row_of_tokens(
        64, below, wide.words, width=54, gap=4, height=26, size=12
    )
    sheet.label(8, below + 13, "X (T, D)", align="left")

    def point(position, number):
        return places[position].centre[0], below + 26 + ROUND * number

    rounds = len(path) - 1
    for number in range(1, rounds + 1):
        height = point(0, number)[1]
        sheet.label(48, height, str(number), align="right")
        sheet.line([(58, height), (350, height)], 0.7, "#dddddd")
    title_height = point(0, rounds)[1] + 26
    sheet.label(64, title_height, title, 13, "left")
    length = f"path length {rounds}"
    sheet.label(350, title_height, length, 13, "right", wide.PATH)
    ways = [(point(*start), point(*end)) for start, end in edges]
    lines = wide.pieces(ways)
    sheet.axes.plot(*lines, color="#8a8a8a", linewidth=0.9, zorder=1)
    for start, end in zip(path, path[1:], strict=False):
        sheet.arrow(point(*start), point(*end), width=2.6, colour=wide.PATH)
    nodes = sorted({end for _, end in edges} - {path[-1]})
    xs, ys = zip(*(point(*node) for node in nodes), strict=True)
    sheet.axes.plot(xs, ys, "o", ms=8, mfc="#ececec", mec="#666666", zorder=4)
    sheet.dot(*point(*path[-1]), 5)


stairs = [(0, 0), *((t, t + 1) for t in wide.N)]
panel(344, "recurrence", wide.up + wide.on, stairs)
panel(118, "convolution, width 3", wide.window, [(t, t) for t in wide.N])
panel(12, "self-attention", wide.every, [(0, 0), (4, 1)])
sheet.label(8, 586, "rounds", align="left")
