"""A window, a question that is global, and the union of both."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

words = ["who?", "the", "tenant", "pays", "the", "rent"]
size, w, shown = len(words), 1, 3
near = [[abs(t - s) <= w for s in range(size)] for t in range(size)]
all_see = [[0 in (t, s) for s in range(size)] for t in range(size)]
both = [[0 in (t, s) or near[t][s] for s in range(size)] for t in range(size)]
numbers = [str(token) for token in range(size)]
names = [f"{word}  {token}" for token, word in enumerate(words)]


def draw(sheet, left, below, cell, mask, title, rows=(), size=13):
    """One table: allowed pairs are orange, the others hatched."""
    place = sheet.matrix(
        left,
        below,
        [[""] * len(mask)] * len(mask),
        rows=rows,
        columns=numbers,
        masked=[[not seen for seen in row] for row in mask],
        cell=(cell, cell),
        kind="attention",
        size=12,
    )
    row = Rectangle(
        (left, below + (len(mask) - 1 - shown) * cell),
        place.width,
        cell,
        fill=False,
        linewidth=3,
        zorder=6,
    )
    sheet.axes.add_patch(row)
    sheet.label(place.top[0], place.top[1] + 34, title, size=size)
    return place


def finish(sheet):
    """Nothing leaves the card, and round is the file's own: a small file."""
    for patch in sheet.axes.patches:
        patch.set(clip_on=False, joinstyle="round")


sheet = Sheet(268)
draw(sheet, 84, 20, 30, near, "neighbours: a window", names)
draw(sheet, 306, 20, 30, all_see, "the question is global")
draw(sheet, 528, 20, 30, both, "both together")
sheet.label(285, 110, "or", size=15)
sheet.label(507, 110, "=", size=18)
finish(sheet)
