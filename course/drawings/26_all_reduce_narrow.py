"""Two workers: a part of the batch each, one sum, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.26_all_reduce")
sheet = Sheet(360, NARROW)
parts = [part.replace(", ", ",\n") for part in wide.PARTS]
wide.draw(sheet, (92, 268), 164, parts, 13)
