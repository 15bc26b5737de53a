"""Prefill and decode, for a phone."""

from course.sheet import NARROW, Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(380, NARROW)
words = ["the", "black", "cow", "sleeps"]
LEFT, LOWEST, WIDE, HIGH = 74, 148, 66, 36
sheet.matrix(
    LEFT,
    LOWEST,
    [["✓"] * 4] * 4,
    rows=[*words[:3], ""],
    columns=words,
    masked=[[s > t for s in range(4)] for t in range(4)],
    cell=(WIDE, HIGH),
    kind="attention",
    size=13,
)
[query] = sheet.row_of_tokens(
    6, LOWEST + 3, ["sleeps"], 56, dark=0, height=30, size=13
)
sheet.arrow(query, (LEFT, query.right[1]))
new_row = Rectangle(
    (LEFT, LOWEST), 4 * WIDE, HIGH, fill=False, linewidth=3, zorder=6
)
sheet.axes.add_patch(new_row)
slots = [f"$k_{s}, v_{s}$" for s in range(4)]
cache = sheet.row_of_tokens(
    LEFT + 4, 74, slots, WIDE - 8, "memory", gap=8, size=13
)
for slot in cache:
    sheet.arrow(slot, (slot.top[0], LOWEST))
sheet.label(40, 88, "cache", size=13)
sheet.label(cache[1].centre[0], 52, "kept by prefill", size=13)
sheet.label(cache[3].centre[0], 52, "added", size=13)
sheet.label(206, 356, "rows 0 to 2: prefill, one pass", size=13)
sheet.label(206, 334, "row 3, framed: decode", size=13)
sheet.label(206, 22, "in each layer, for each token", size=13)
