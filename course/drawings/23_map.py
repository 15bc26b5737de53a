"""Seven mechanisms: which scores each computes, and who is exact."""

from course.sheet import Place, Sheet
from d2l_attention.heatmaps import PALETTE
from matplotlib.patches import Rectangle
import numpy as np

sheet = Sheet(400)
SIDE, N = 13, 8  # a cell, and the tokens
HUNGRY, CAT = 7, 1
page = [token // 2 for token in range(N)]
alike = [{1, 7}, {0, 2}, {3, 4, 0, 2}, {5, 6, 3, 4}]  # sorted by bucket
own = [0, 1, 1, 2, 2, 3, 3]
chunk = dict(zip([1, 0, 2, 3, 4, 5, 6, 7], [*own, 0], strict=True))
seen = {
    "dense": lambda t, s: True,
    "flash": lambda t, s: True,
    "page-local": lambda t, s: abs(page[t] - page[s]) <= 1,
    "longformer": lambda t, s: abs(t - s) <= 1 or 0 in (t, s),
    "reformer": lambda t, s: s in alike[chunk[t]],
}


def table(sheet, x, y, name, title, columns=N, side=SIDE):
    """The computed scores in the mechanism's colour, the others hatched."""
    whole = Place(x, y, side * columns, side * N)
    sheet._fill(whole, "#ffffff", "#777777", "////")
    computed = seen.get(name, lambda t, s: True)
    for t in range(N):
        row = [computed(t, s) for s in range(columns)]
        edges = [0, *np.flatnonzero(np.diff(row)) + 1, columns]
        for first, last in zip(edges, edges[1:], strict=False):
            if row[first]:
                low = y + (N - 1 - t) * side
                wide = (last - first) * side
                run = Place(x + first * side, low, wide, side)
                sheet._fill(run, PALETTE[name], PALETTE[name])
    grid = [
        (x + s * side, y, x + s * side, y + 8 * side)
        for s in range(columns + 1)
    ]
    grid += [
        (x, y + t * side, x + side * columns, y + t * side)
        for t in range(N + 1)
    ]
    xs = [z for a, _, b, _ in grid for z in (a, b, np.nan)]
    ys = [z for _, a, _, b in grid for z in (a, b, np.nan)]
    sheet.axes.plot(xs, ys, color="#ffffff", linewidth=0.9, zorder=4)
    sheet.boxes.append(whole)
    sheet.label(whole.top[0], whole.top[1] + 13, title)
    return whole


def cut(sheet, whole, side=SIDE):
    """Flash computes key block by key block."""
    for s in (2, 4, 6):
        middle = whole.x + s * side
        ends = [whole.y, whole.top[1]]
        sheet.axes.plot([middle] * 2, ends, color="#ffffff", lw=4, zorder=5)


def mark(sheet, x, y, side=SIDE):
    """The score of hungry with cat, in the table with this corner."""
    corner = x + CAT * side, y + (N - 1 - HUNGRY) * side
    look = {"facecolor": "none", "edgecolor": "#ffffff", "zorder": 6}
    sheet.axes.add_patch(Rectangle(corner, side, side, linewidth=5, **look))
    look["edgecolor"] = "#1a1a1a"
    sheet.axes.add_patch(Rectangle(corner, side, side, linewidth=2.5, **look))


sheet.frame(12, 212, 268, 176, "every pair: exact")
sheet.frame(292, 212, 416, 176, "chosen pairs: exact under their mask")
sheet.frame(12, 12, 330, 188, "no pairs: approximate")
for x, name, title in (
    (34, "dense", "dense"),
    (154, "flash", "flash"),
    (320, "page-local", "page-local"),
    (448, "longformer", "Longformer"),
    (576, "reformer", "Reformer"),
):
    whole = table(sheet, x, 226, name, title)
    if name == "flash":
        cut(sheet, whole)
    mark(sheet, whole.x, whole.y)
for x, name, title, what in (
    (80, "linformer", "Linformer", "mixtures"),
    (220, "performer", "Performer", "features"),
):
    whole = table(sheet, x, 42, name, title, columns=4)
    sheet.label(whole.bottom[0], 28, what, size=11)
mark(sheet, 372, 126)
sheet.label(414, 132, "“hungry” with “cat”", align="left")
for y, name in ((92, None), (62, "dense")):
    hatch = None if name else "////"
    sheet._fill(
        Place(385, y, SIDE, SIDE), PALETTE.get(name, "#fff"), "#777777", hatch
    )
sheet.label(414, 98, "left out", align="left")
sheet.label(414, 68, "kept", align="left")
sheet.label(372, 178, "rows: 8 queries, columns: 8 keys", align="left")
