"""The causal triangle: prefill keeps keys and values, decode adds a row."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

HIGH = 36
SLOTS = [f"$k_{s}, v_{s}$" for s in range(4)]


def draw_table(sheet, left, lowest, wide, size):
    """The causal table of four words; the last row has no name yet."""
    words = ["the", "black", "cow", "sleeps"]
    sheet.matrix(
        left,
        lowest,
        [["✓"] * 4] * 4,
        rows=[*words[:3], ""],
        columns=words,
        masked=[[s > t for s in range(4)] for t in range(4)],
        cell=(wide, HIGH),
        kind="attention",
        size=size,
    )


def frame_row(sheet, query, left, lowest, wide):
    """The row that decoding adds."""
    sheet.arrow(query, (left, query.right[1]))
    new_row = Rectangle(
        (left, lowest), 4 * wide, HIGH, fill=False, linewidth=3, zorder=6
    )
    sheet.axes.add_patch(new_row)


sheet = Sheet(356)
LEFT, LOWEST, WIDE = 168, 138, 78
draw_table(sheet, LEFT, LOWEST, WIDE, 12)
sheet.label(LEFT + 2 * WIDE, 322, "keys (S)")
sheet.label(116, 322, "queries (T)")
[query] = sheet.row_of_tokens(64, LOWEST + 3, ["sleeps"], 72, dark=0, height=30)
frame_row(sheet, query, LEFT, LOWEST, WIDE)
cache = sheet.row_of_tokens(LEFT + 6, 60, SLOTS, WIDE - 12, "memory", gap=12)
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
