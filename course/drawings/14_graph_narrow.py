"""A graph of four people, and its matrix, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.14_graph")
sheet = Sheet(530, NARROW)
middles = {0: (70, 330), 1: (165, 455), 2: (270, 330), 3: (300, 455)}
wide.draw_graph(sheet, middles, size=13)
sheet.label(180, 509, "an arrow ends at the one who hears", size=13)
wide.draw_matrix(sheet, 92, 42, (58, 42), size=13)
sheet.label(208, 24, "source: is heard", size=13)
sheet.label(68, 126, "target:\nhears", size=13, align="right")
sheet.label(208, 255, "hatched: no edge", size=13)
