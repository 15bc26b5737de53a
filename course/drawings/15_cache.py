"""The causal triangle: prefill keeps keys and values, decode adds a row."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(356)
words = ["the", "black", "cow", "sleeps"]
LEFT, LOWEST, WIDE, HIGH = 168, 138, 78, 36
sheet.matrix(
    LEFT,
    LOWEST,
    [["✓"] * 4] * 4,
    rows=[*words[:3], ""],
    columns=words,
    masked=[[s > t for s in range(4)] for t in range(4)],
    cell=(WIDE, HIGH),
    kind="attention",
    size=12,
)
sheet.label(LEFT + 2 * WIDE, 322, "keys (S)")
sheet.label(116, 322, "queries (T)")
query = sheet.row_of_tokens(64, LOWEST + 3, ["sleeps"], 72, dark=0, height=30)
sheet.arrow(query[0], (LEFT, query[0].right[1]))
new_row = Rectangle(
    (LEFT, LOWEST), 4 * WIDE, HIGH, fill=False, linewidth=3, zorder=6
)
sheet.axes.add_patch(new_row)
slots = [f"$k_{s}, v_{s}$" for s in range(4)]
cache = sheet.row_of_tokens(LEFT + 6, 60, slots, WIDE - 12, "memory", gap=12)
for slot in cache:
    sheet.arrow(slot, (slot.top[0], LOWEST))
sheet.label(LEFT - 8, 74, "cache, in each\nlayer (S, K)", align="right")
sheet.label(cache[1].centre[0], 36, "kept by prefill")
sheet.label(cache[3].centre[0], 36, "added")
PROMPT = LOWEST + HIGH + 4
sheet.line([(488, PROMPT), (494, PROMPT), (494, 280), (488, 280)])
sheet.label(
    506, 228, "prefill: the prompt,\nall rows in one pass", align="left"
)
sheet.label(506, 155, "decode: one row,\none new token", align="left")
