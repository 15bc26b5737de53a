"""Repeat and tile, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.16_repeat")
sheet = Sheet(370, NARROW)
for i, way in enumerate(wide.WAYS):
    lowest = 206 - 186 * i
    wide.draw_way(sheet, 24, lowest, way, wide=70)
    sheet.label(180, lowest + 142, f"np.{way}: {wide.WAYS[way]}", size=14)
