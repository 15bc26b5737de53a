"""The same product in two orders: with a table of pairs, and without."""

from course.sheet import Sheet

LONG, FEW, VALUES = 104, 34, 26  # T and S, F, V

sheet = Sheet(400)


def factor(x, middle, name, shape, kind, wide, high):
    box = sheet.box(x, middle - high / 2, name, kind, wide, high)
    sheet.label(x + wide / 2, middle - high / 2 - 13, shape, size=11)
    return box


def sign(x, middle, text):
    sheet.label(x, middle, text, size=18)


upper, lower = 292, 104
sheet.label(20, 380, "a table of pairs first", align="left", size=13)
factor(30, upper, "$\\phi(Q)$", "(T, F)", "projection", FEW + 12, LONG)
sign(95, upper, "·")
factor(114, upper, "$\\phi(K)^\\top$", "(F, S)", "projection", LONG, FEW)
sign(240, upper, "=")
table = factor(262, upper, "weights", "(T, S)", "attention", LONG, LONG)
sign(385, upper, "·")
factor(404, upper, "$V$", "(S, V)", "data", VALUES, LONG)
sign(460, upper, "=")
factor(484, upper, "", "(T, V)", "data", VALUES, LONG)
sheet.label(530, upper + 10, "T · S numbers", align="left", size=12)
sheet.label(530, upper - 10, "in between", align="left", size=12)

sheet.label(20, 196, "a sum over the keys first", align="left", size=13)
factor(30, lower, "$\\phi(K)^\\top$", "(F, S)", "projection", LONG, FEW)
sign(153, lower, "·")
factor(172, lower, "$V$", "(S, V)", "data", VALUES, LONG)
sign(220, lower, "=")
first = factor(242, lower, "sum", "(F, V)", "memory", FEW + 10, FEW)
factor(316, lower, "$\\phi(Q)$", "(T, F)", "projection", FEW + 12, LONG)
sign(380, lower, "·")
again = factor(398, lower, "sum", "(F, V)", "memory", FEW + 10, FEW)
sheet.arrow(first.top, again.top, via=[(264, 172), (420, 172)], dashed=True)
sign(463, lower, "=")
factor(484, lower, "", "(T, V)", "data", VALUES, LONG)
sheet.label(530, lower + 10, "F · V numbers", align="left", size=12)
sheet.label(530, lower - 10, "for all queries", align="left", size=12)
