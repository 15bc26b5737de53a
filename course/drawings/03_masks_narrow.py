"""Three masks over one sentence, for a phone."""

from course.sheet import NARROW, Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(620, NARROW)
words = ["the", "cow", "sleeps", "<pad>"]
padding = [[column < 3 for column in range(4)] for row in range(4)]
causal = [[column <= row for column in range(4)] for row in range(4)]
both = [
    [one and other for one, other in zip(*rows, strict=True)]
    for rows in zip(padding, causal, strict=True)
]

for low, mask, title, more in (
    (440, padding, "padding (B, 1, S)", {"columns": words}),
    (240, causal, "& causal (T, S)", {}),
    (42, both, "= joined (B, T, S)", {}),
):
    sheet.matrix(
        92,
        low,
        [["✓"] * 4] * 4,
        rows=words,
        masked=[[not allowed for allowed in row] for row in mask],
        cell=(60, 32),
        kind="attention",
        size=14,
        **more,
    )
    sheet.label(212, low + (166 if more else 144), title, size=14)
sheet.label(212, 24, "columns: keys, rows: queries", size=13)
row_of_cow = Rectangle((92, 106), 240, 32, fill=False, linewidth=3, zorder=6)
sheet.axes.add_patch(row_of_cow)
