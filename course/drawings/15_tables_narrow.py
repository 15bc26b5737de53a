"""Whose mask, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.15_tables")
sheet = Sheet(490, NARROW)
wide.draw_both(sheet, (90, 274), (90, 34), (62, 34), 13)
sheet.label(183, 462, "cross-attention: a price list", size=13)
sheet.label(183, 250, "questions (T), list (S)", size=13)
sheet.label(214, 214, "causal self-attention", size=13)
sheet.label(214, 16, "a text reads itself: T = S", size=13)
