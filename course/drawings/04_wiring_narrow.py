"""Which feature meets which, in three scores, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(560, NARROW)
grey = "#444444"
PANELS = {
    "dot product": "multiply,\nadd",
    "bilinear": "weigh by $W$,\nadd",
    "additive": "weigh by $v$,\nadd",
}


def join(starts, ends):
    for start, end in zip(starts, ends, strict=True):
        sheet.line([start.centre, end.centre], colour=grey)


for low, (title, last) in zip((378, 196, 14), PANELS.items(), strict=True):
    sheet.frame(10, low, 340, 170)
    sheet.label(22, low + 152, title, size=13, align="left")
    sheet.label(52, low + 128, "$q$", size=15)
    sheet.label(176, low + 128, "$k$", size=15)
    three = [low + y for y in (26, 66, 106)]
    two = [low + y for y in (46, 86)]
    q = [sheet.dot(52, y, 8, "query") for y in three]
    heights = three if title == "dot product" else two
    k = [sheet.dot(176, y, 8, "data") for y in heights]
    if title == "dot product":
        join(q, k)
    elif title == "bilinear":
        for one in q:
            join([one] * 2, k)
    else:
        units = [sheet.dot(114, y, 10, "projection") for y in two]
        for unit in units:
            join(q, [unit] * 3)
            join(k, [unit] * 2)
        sheet.label(78, low + 120, "$W_q$", size=13)
        sheet.label(150, low + 120, "$W_k$", size=13)
        sheet.label(114, low + 20, "tanh", size=13)
    add = sheet.box(236, low + 44, last, "attention", 106, 44, size=13)
    sheet.arrow((212, low + 66), add)
