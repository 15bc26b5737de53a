"""Seven mechanisms: which scores each computes, for a phone."""

from importlib import import_module

from course.sheet import NARROW, Place, Sheet

wide = import_module("course.drawings.23_map")
sheet = Sheet(590, NARROW)
SIDE = 11

sheet.frame(8, 414, 344, 168, "every pair: exact")
sheet.frame(8, 238, 344, 168, "chosen pairs: exact under their mask")
sheet.frame(8, 48, 344, 182, "no pairs: approximate")
for x, y, name, title in (
    (68, 432, "dense", "dense"),
    (204, 432, "flash", "flash"),
    (20, 256, "page-local", "page-local"),
    (136, 256, "longformer", "Longformer"),
    (252, 256, "reformer", "Reformer"),
):
    whole = wide.table(sheet, x, y, name, title, side=SIDE)
    if name == "flash":
        wide.cut(sheet, whole, SIDE)
    wide.mark(sheet, whole.x, whole.y, SIDE)
for x, name, title, what in (
    (90, "linformer", "Linformer", "mixtures"),
    (226, "performer", "Performer", "features"),
):
    whole = wide.table(sheet, x, 80, name, title, columns=4, side=SIDE)
    sheet.label(whole.bottom[0], 64, what, size=12)
wide.mark(sheet, 20 - wide.CAT * SIDE, 22, SIDE)
sheet.label(38, 28, "“hungry” with “cat”", align="left", size=12)
sheet._fill(Place(196, 22, SIDE, SIDE), "#ffffff", "#777777", "////")
sheet.label(214, 28, "left out", align="left", size=12)
for patch in sheet.axes.patches:
    patch.set(clip_on=False, joinstyle="round")  # a smaller file
