"""Flash attention of one query: load a block, use it, keep three things."""

from course.sheet import Sheet

sheet = Sheet(420)
sheet.frame(10, 132, 700, 278, "fast memory, small", "attention")
sheet.frame(10, 10, 700, 104, kind="memory")
sheet.label(344, 97, "slow memory, large")
asks = sheet.box(28, 22, "query $q$", "memory", 84)
loads = [
    sheet.box(x, 22, f"block {j}: $k, v$", "memory", 130)
    for j, x in enumerate((172, 386))
]
output = sheet.box(614, 22, "output $o$", "memory", 84)

left, tiles = [], []
rows = ["maximum", "total", "carried"]
kept = [["ln 2", "1.5", "(8, 4)"], ["ln 4", "2", "(10, 6)"]]
scores = [["ln 1", "ln 2"], ["ln 4", "ln 1"]]
for j, load in enumerate(loads):
    middle = load.top[0]
    tile = sheet.matrix(
        middle - 52, 196, [scores[j]], cell=(52, 30), kind="attention"
    )
    sheet.arrow(load, tile)
    state = sheet.matrix(
        middle - 40,
        282,
        [[x] for x in kept[j]],
        rows=() if j else rows,
        cell=(80, 28),
    )
    sheet.arrow(tile, state)
    left.append(state)
    tiles.append(tile)
asked = sheet.box(28, 192, "query $q$", "query", 84)
sheet.arrow(asks, asked)
sheet.arrow(asked, tiles[0])
sheet.arrow(*tiles, "same query", dashed=True)
sheet.label(462, 160, "load $k$ (2, K), $v$ (2, V)", align="left", size=11)
sheet.label(516, 211, "scores: used,\nthen forgotten", align="left", size=11)
sheet.arrow(*left, "shrink by ½")
sheet.arrow(left[1], output, via=[(656, 324)])
sheet.label(580, 340, "carried / total", size=11)
for state in left:
    sheet.label(state.top[0], 378, "left behind", size=11)
