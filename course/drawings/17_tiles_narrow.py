"""Flash attention of one query, block by block, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

wide = importlib.import_module("course.drawings.17_tiles")
sheet = Sheet(496, NARROW)
sheet.frame(6, 128, 348, 284, kind="attention")
sheet.label(14, 396, "fast memory, small", align="left", size=13)
sheet.frame(6, 8, 348, 104, kind="memory")
sheet.label(180, 94, "slow memory, large", size=13)
states = []
for j, words in enumerate(wide.WORDS):
    middle = 102 + 168 * j
    load = sheet.box(
        middle - 78, 18, f"block {j}: $k, v$ of\n{words}", "memory", 156, 58,
        size=13,
    )  # fmt: skip
    tile = sheet.matrix(
        middle - 56,
        166,
        [wide.SCORES[j]],
        cell=(56, 34),
        kind="attention",
        size=13,
    )
    sheet.arrow(load, tile)
    state = sheet.matrix(
        middle - 26 if j else middle - 14,
        282,
        [[x] for x in wide.KEPT[j]],
        rows=() if j else wide.ROWS,
        cell=(70, 34),
        size=13,
    )
    sheet.arrow((state.bottom[0], 200), state)
    states.append(state)
sheet.arrow(*states)
sheet.label(186, 147, "scores: used,\nthen forgotten", size=13)
asked = sheet.box(143, 230, "“rent”", "query", 74, 34, size=13)
for start, end in ((160, 142), (200, 230)):
    sheet.arrow((start, 230), (end, 200))
output = sheet.box(
    179, 440, "output $o$,\nin slow memory", "memory", 170, 48, size=13
)
sheet.arrow(states[1].top, output.bottom)
sheet.label(258, 427, "divided", align="right", size=13)
