"""Prefill and decode, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.15_cache")
sheet = Sheet(380, NARROW)
LEFT, LOWEST, WIDE = 74, 148, 66
wide.draw_table(sheet, LEFT, LOWEST, WIDE, 13)
[query] = sheet.row_of_tokens(
    6, LOWEST + 3, ["sleeps"], 56, dark=0, height=30, size=13
)
wide.frame_row(sheet, query, LEFT, LOWEST, WIDE)
cache = sheet.row_of_tokens(
    LEFT + 4, 74, wide.SLOTS, WIDE - 8, "memory", gap=8, size=13
)
for slot in cache:
    sheet.arrow(slot, (slot.top[0], LOWEST))
sheet.label(40, 88, "cache", size=13)
sheet.label(cache[1].centre[0], 52, "kept by prefill", size=13)
sheet.label(cache[3].centre[0], 52, "added", size=13)
sheet.label(206, 356, "rows 0 to 2: prefill, one pass", size=13)
sheet.label(206, 334, "row 3, framed: decode", size=13)
sheet.label(206, 22, "in each layer, for each token", size=13)
