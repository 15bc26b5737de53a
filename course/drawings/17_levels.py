"""Two memories of a graphics card, and what lies where."""

from course.sheet import Sheet

CORES = ["core 0", "core 1", "core 107"]
INSIDE = "192 KB: a tile,\nm, total, carried"
LARGE = "slow memory: 40 to 80 GB, for all cores"
ARRAYS = "queries, keys, values, output"
WITHIN, BETWEEN = "19 TB/s, all together", "1.5 to 2 TB/s"

sheet = Sheet(320)
sheet.frame(10, 10, 700, 92, LARGE, "memory")
sheet.box(230, 24, ARRAYS, "memory", 260, 38)
for core, middle in zip(CORES, (126, 344, 594), strict=True):
    fast = sheet.box(middle - 86, 156, INSIDE, "attention", 172, 52)
    sheet.arrow((middle, 102), fast)
    computes = sheet.box(middle - 86, 258, core, "norm", 172, 44)
    sheet.arrow(fast, computes)
sheet.label(352, 233, WITHIN, align="left", size=11)
sheet.label(352, 129, BETWEEN, align="left", size=11)
sheet.label(469, 182, "…", size=14)
