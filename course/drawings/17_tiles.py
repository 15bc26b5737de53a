"""Flash attention of one query: load a block, use it, keep three things.

Block 0 has passed by, block 1 has not: its marks are for the reader.
"""

from course.sheet import Sheet

WORDS = ["“the tenant”", "“pays monthly”"]
SCORES = [["ln 1", "ln 2"], ["ln 4", "ln 1"]]
KEPT = [["ln 2", "1.5", "(8, 4)"], ["?", "?", "?"]]
ROWS = ["maximum", "total", "carried"]

sheet = Sheet(400)
sheet.frame(10, 132, 700, 258, "fast memory, small", "attention")
sheet.frame(10, 10, 700, 104, kind="memory")
sheet.label(360, 97, "slow memory, large")
asks = sheet.box(28, 24, "query “rent”", "memory", 104, 46)
loads = [
    sheet.box(x, 24, f"block {j}: $k, v$ of\n{words}", "memory", 150, 46)
    for j, (x, words) in enumerate(zip((172, 396), WORDS, strict=True))
]
output = sheet.box(604, 24, "output $o$", "memory", 96, 46)

states, tiles = [], []
for j, load in enumerate(loads):
    middle = load.top[0]
    tile = sheet.matrix(
        middle - 52, 178, [SCORES[j]], cell=(52, 30), kind="attention"
    )
    sheet.arrow(load, tile)
    state = sheet.matrix(
        middle - 40,
        260,
        [[x] for x in KEPT[j]],
        rows=() if j else ROWS,
        cell=(80, 30),
    )
    sheet.arrow(tile, state)
    states.append(state)
    tiles.append(tile)
asked = sheet.box(28, 174, "“rent”", "query", 104)
sheet.arrow(asks, asked)
sheet.arrow(asked, tiles[0])
sheet.arrow(*tiles, dashed=True)
sheet.label(532, 193, "scores: used,\nthen forgotten", align="left", size=11)
sheet.arrow(*states, "what changes?")
sheet.arrow(states[1], output, via=[(652, 305)])
sheet.label(582, 321, "divided", size=11)
