"""How far two layers carry a change along a path, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Sheet

wide = import_module("course.drawings.14_reach")
sheet = Sheet(330, NARROW)
told = ("only node 3\nis changed", "layer 1:\none hop", "layer 2:\ntwo hops")
texts = 268, told, 13
wide.draw_layers(sheet, (10, 54), (36, 106), 31, texts, size=14)
sheet.label(180, 24, "each node hears its neighbours and itself", size=14)
