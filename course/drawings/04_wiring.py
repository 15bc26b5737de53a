"""Which feature meets which: dot product, bilinear score, additive score."""

from course.sheet import Sheet

sheet = Sheet(330)
grey = "#444444"


def features(x, heights, name, kind):
    """A column of features with its name below."""
    sheet.label(x, 62, name, size=13)
    return [sheet.dot(x, y, 7, kind) for y in heights]


def join(left, right):
    sheet.line([left.centre, right.centre], colour=grey)


three, two = (95, 140, 185), (117, 162)
for x, title in ((16, "dot product"), (250, "bilinear"), (484, "additive")):
    sheet.frame(x, 14, 220, 302, title)

q, k = features(66, three, "$q$", "query"), features(186, three, "$k$", "data")
for one, other in zip(q, k, strict=True):
    join(one, other)
add = sheet.box(61, 238, "multiply, add", "attention", 130, 34)
sheet.arrow((126, 196), add)
sheet.label(126, 36, "same with same", size=11)

q, k = features(300, three, "$q$", "query"), features(420, two, "$k$", "data")
for one in q:
    for other in k:
        join(one, other)
add = sheet.box(295, 238, "weigh by $W$, add", "attention", 130, 34)
sheet.arrow((360, 196), add)
sheet.label(360, 36, "each with each", size=11)

low = 84
hidden = [sheet.box(x, 166, "tanh", "projection", 62, 32) for x in (520, 606)]
for name, kind, xs in (
    ("$q$", "query", (510, 536, 562)),
    ("$k$", "data", (632, 662)),
):
    for x in xs:
        dot = sheet.dot(x, low, 7, kind)
        for unit in hidden:
            sheet.line([dot.centre, unit.bottom], colour=grey)
    sheet.label(sum(xs) / len(xs), 62, name, size=13)
sheet.label(522, 134, "$W_q$", align="right")
sheet.label(660, 134, "$W_k$", align="left")
add = sheet.box(529, 238, "weigh by $v$, add", "attention", 130, 34)
for unit in hidden:
    sheet.arrow(unit.top, (unit.centre[0], 238))
sheet.label(594, 36, "through U hidden units", size=11)
