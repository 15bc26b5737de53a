"""Eight vectors of a word or one, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.29_latent")
sheet = Sheet(460, NARROW)
wide.draw_multi_head(sheet, 60, 252, size=13)
wide.draw_latent(sheet, 28, 24, size=13)
sheet.label(180, 440, wide.TITLES[0], size=14)
sheet.label(180, 212, wide.TITLES[1], size=14)
