"""Which feature meets which: dot product, bilinear score, additive score."""

from course.sheet import Sheet

sheet = Sheet(312)
grey = "#444444"
three, two = (100, 140, 180), (120, 160)
PANELS = {
    "dot product": ("same with same", "multiply, add"),
    "bilinear": ("each with each", "weigh by $W$, add"),
    "additive": ("through tanh units", "weigh by $v$, add"),
}


def join(starts, ends):
    for start, end in zip(starts, ends, strict=True):
        sheet.line([start.centre, end.centre], colour=grey)


for left, (title, (how, last)) in zip(
    (16, 250, 484), PANELS.items(), strict=True
):
    sheet.frame(left, 14, 220, 284, title)
    middle = left + 110
    sheet.label(middle - 66, 68, "$q$", size=14)
    sheet.label(middle + 66, 68, "$k$", size=14)
    heights = three if title == "dot product" else two
    q = [sheet.dot(middle - 66, y, 7, "query") for y in three]
    k = [sheet.dot(middle + 66, y, 7, "data") for y in heights]
    if title == "dot product":
        join(q, k)
    elif title == "bilinear":
        for one in q:
            join([one] * 2, k)
    else:
        units = [sheet.dot(middle, y, 9, "projection") for y in two]
        for unit in units:
            join(q, [unit] * 3)
            join(k, [unit] * 2)
        sheet.label(middle - 36, 192, "$W_q$")
        sheet.label(middle + 36, 192, "$W_k$")
    add = sheet.box(middle - 66, 226, last, "attention", 132, 34)
    sheet.arrow((middle, 198), add)
    sheet.label(middle, 36, how, size=12)
