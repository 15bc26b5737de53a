"""Decoding one word: the new word asks, cache and memory answer."""

from course.sheet import Sheet

sheet = Sheet(430)
source = ["the", "black", "cow", "sleeps", "."]
written = ["[start]", "la", "vache", "noire"]
below = sheet.row_of_tokens(20, 16, source, width=56, gap=6)
encoder = sheet.box(20, 92, "encoder runs once", "attention", 304)
for token in below:
    sheet.arrow(token, (token.top[0], 92))
slots = [f"$k_{n}, v_{n}$" for n in range(5)]
memory = sheet.row_of_tokens(20, 259, slots, 56, "memory", gap=6)
for slot in memory:
    sheet.arrow((slot.bottom[0], 130), slot)
sheet.label(20, 302, "memory of the source", align="left", size=11)

tokens = sheet.row_of_tokens(380, 16, written, 62, dark=3)
cache = sheet.row_of_tokens(380, 112, slots[:4], 62, "memory")
sheet.arrow(tokens[3], cache[3])
sheet.label(611, 80, "append", align="right", size=11)
sheet.label(380, 98, "cache (T, H, K)", align="left", size=11)
reads = sheet.box(380, 186, "self-attention", "attention", 272)
for slot in cache:
    sheet.arrow(slot, (slot.top[0], 186))
beside = [(690, 62), (690, reads.right[1])]
sheet.arrow((621, 62), reads.right, via=beside)
sheet.label(656, 84, "query\n(1, D)", size=11)
crosses = sheet.box(380, 254, "cross-attention", "attention", 272)
sheet.arrow(reads, crosses, "query (1, D)")
sheet.arrow((324, 273), crosses)
rest = sheet.box(380, 322, "feed-forward, dense", "feed_forward", 272)
sheet.arrow(crosses, rest, "(1, D)")
sheet.arrow(rest.top, (516, 392))
sheet.label(516, 406, "dort")
