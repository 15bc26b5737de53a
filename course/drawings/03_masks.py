"""Three masks over one sentence: padding, causal, and both joined."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(280)
words = ["the", "cow", "sleeps", "<pad>"]
padding = [[column < 3 for column in range(4)] for row in range(4)]
causal = [[column <= row for column in range(4)] for row in range(4)]
both = [
    [one and other for one, other in zip(*rows, strict=True)]
    for rows in zip(padding, causal, strict=True)
]

for left, mask, title, more in (
    (76, padding, "padding (B, 1, S)", {"rows": words}),
    (297, causal, "causal (T, S)", {}),
    (518, both, "joined (B, T, S)", {}),
):
    sheet.matrix(
        left,
        58,
        [["✓"] * 4] * 4,
        columns=words,
        masked=[[not allowed for allowed in row] for row in mask],
        cell=(45, 38),
        kind="attention",
        size=11,
        **more,
    )
    sheet.label(left + 90, 34, title)
    sheet.label(left + 90, 243, "keys", size=11)
sheet.label(35, 243, "queries", size=11)
sheet.label(276, 134, "&", size=18)
sheet.label(497, 134, "=", size=18)
row_of_cow = Rectangle((518, 134), 180, 38, fill=False, linewidth=3, zorder=6)
sheet.axes.add_patch(row_of_cow)
