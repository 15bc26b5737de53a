"""From the first word to the last: recurrence, convolution, attention."""

from course.sheet import KINDS, Sheet

sheet = Sheet(372)
words = ["the", "black", "cow", "sleeps", "."]
PATH = KINDS["attention"][1]
sheet.label(36, 30, "X (T, D)", size=9.5)
sheet.label(36, 318, "rounds", size=10)
for number in range(1, 6):
    sheet.label(52, 44 + 50 * number, str(number), size=10, align="right")
    sheet.line(
        [(62, 44 + 50 * number), (708, 44 + 50 * number)], 0.7, "#dddddd"
    )


def pieces(lines):
    """Lines between pairs of points, as one curve with gaps."""
    gap = (float("nan"), float("nan"))
    points = [point for line in lines for point in (*line, gap)]
    return zip(*points, strict=True)


def panel(left, title, edges, path):
    """Edges and a path of (position, round); round 0 is the word itself."""
    places = sheet.row_of_tokens(left, 16, words, width=38, gap=2, size=9)
    middle = places[2].centre[0]
    sheet.label(middle, 350, title, size=12)
    sheet.label(middle, 331, f"path length {len(path) - 1}", 11, colour=PATH)

    def point(position, number):
        return places[position].centre[0], 44 + 50 * number

    ways = [(point(*start), point(*end)) for start, end in edges]
    sheet.axes.plot(*pieces(ways), color="#8a8a8a", linewidth=0.9, zorder=1)
    for start, end in zip(path, path[1:], strict=False):
        sheet.arrow(point(*start), point(*end), width=2.6, colour=PATH)
    nodes = sorted({end for _, end in edges} - {path[-1]})
    xs, ys = zip(*(point(*node) for node in nodes), strict=True)
    sheet.axes.plot(xs, ys, "o", ms=8, mfc="#ececec", mec="#666666", zorder=4)
    sheet.dot(*point(*path[-1]), 5)


N = range(5)
up = [((t, 0), (t, t + 1)) for t in N]  # each word waits for its state
on = [((t, t + 1), (t + 1, t + 2)) for t in range(4)]
panel(66, "recurrence", up + on, [(0, 0), *((t, t + 1) for t in N)])
window = [
    ((s, r - 1), (t, r))
    for r in range(1, 5)
    for t in N
    for s in N
    if abs(s - t) <= 1
]
panel(286, "convolution, width 3", window, [(t, t) for t in N])
every = [((s, 0), (t, 1)) for t in N for s in N]
panel(506, "self-attention", every, [(0, 0), (4, 1)])
