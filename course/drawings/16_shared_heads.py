"""Four query heads over four, two and one heads of keys and values."""

from course.sheet import Sheet

sheet = Sheet(300)
panels = (
    (16, 4, "multi-head: G = 4"),
    (261, 2, "grouped-query: G = 2"),
    (506, 1, "multi-query: G = 1"),
)
for left, groups, name in panels:
    sheet.label(left + 99, 278, name, size=13)
    size = 4 // groups  # of a group
    wide = 45 * size + 6 * (size - 1)
    asks = [f"$q_{h}$" for h in range(4)]
    queries = sheet.row_of_tokens(left, 208, asks, 45, "query", gap=6)
    kept = [f"$k_{g}, v_{g}$" for g in range(groups)]
    stored = sheet.row_of_tokens(left, 104, kept, wide, "memory", gap=6)
    for h, query in enumerate(queries):
        slot = stored[h // size]
        sheet.arrow((query.bottom[0], slot.top[1]), query)
    sheet.label(left + 99, 84, f"2 · {groups} · K numbers a token", size=12)
sheet.label(360, 46, "dark: queries of the new token (H, K)", size=12)
sheet.label(360, 22, "violet: cached keys and values, each (S, G, K)", size=12)
