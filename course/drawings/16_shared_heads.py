"""Four query heads, and what is kept for three words: G = 4, 2 and 1."""

from course.sheet import Sheet

PANELS = {4: "multi-head", 2: "grouped-query", 1: "multi-query"}
HIGH, STEP = 30, 38


def draw_panel(sheet, left, lowest, groups, *, wide=50, gap=30, size=12):
    """One way to share: query heads at the left, kept rows at the right."""
    queries = []
    for h in range(4):
        y = lowest + (3 - h) * STEP
        queries += sheet.row_of_tokens(
            left, y, [f"$q_{h}$"], 36, "query", height=HIGH, size=size
        )
    kept = left + 36 + gap
    for g in range(groups):
        members = queries[g * 4 // groups : (g + 1) * 4 // groups]
        middle = (members[0].centre[1] + members[-1].centre[1]) / 2
        row = [[f"$k_{g}, v_{g}$"] * 3]
        low = middle - HIGH / 2
        sheet.matrix(
            kept, low, row, cell=(wide, HIGH), kind="memory", size=size
        )
        for query in members:
            sheet.arrow((kept, middle), query.right)
    for j, word in enumerate(["the", "black", "cow"]):
        x = kept + (j + 0.5) * wide
        sheet.label(x, lowest + 4 * STEP + 6, word, size=size)
    sheet.label(left + 18, lowest + 4 * STEP + 6, "sleeps", size=size)


sheet = Sheet(240)
for i, (groups, name) in enumerate(PANELS.items()):
    draw_panel(sheet, 14 + 238 * i, 20, groups)
    sheet.label(122 + 238 * i, 214, f"{name}: G = {groups}", size=14)
