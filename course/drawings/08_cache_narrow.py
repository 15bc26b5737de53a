"""Decoding one word, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(520, NARROW)
written = ["[start]", "la", "vache", "noire"]
tokens = sheet.row_of_tokens(12, 14, written, 64, gap=8, dark=3, size=13)
slots = [f"$k_{n}, v_{n}$" for n in range(5)]
cache = sheet.row_of_tokens(12, 104, slots[:4], 64, "memory", gap=8, size=12)
sheet.arrow(tokens[3], cache[3])
sheet.label(250, 76, "append", align="right", size=12)
sheet.label(12, 90, "cache (T, H, K)", align="left", size=12)
reads = sheet.box(12, 178, "self-attention", "attention", 280, size=13)
for slot in cache:
    sheet.arrow(slot, (slot.top[0], 178))
beside = [(324, 60), (324, reads.right[1])]
sheet.arrow((260, 60), reads.right, via=beside)
sheet.label(302, 74, "query", size=12)
memory = sheet.row_of_tokens(12, 280, slots, 50, "memory", gap=7, size=12)
sheet.label(12, 266, "memory of the source", align="left", size=12)
crosses = sheet.box(12, 346, "cross-attention", "attention", 280, size=13)
for slot in memory:
    sheet.arrow(slot, (slot.top[0], 346))
up = [(324, 236), (324, crosses.right[1])]
sheet.arrow((152, 216), crosses.right, via=[(152, 236), *up])
sheet.label(250, 248, "query", size=12)
rest = sheet.box(12, 420, "feed-forward, dense", "feed_forward", 280, size=13)
sheet.arrow(crosses, rest)
sheet.arrow(rest.top, (152, 490))
sheet.label(152, 504, "dort", size=13)
