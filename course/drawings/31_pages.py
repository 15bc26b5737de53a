"""Four pages of a contract, their means, and the two that are opened."""

from course.sheet import Sheet

PAGES = [  # lines with their scores for the question about cats, and the mean
    (("rent 0", "deposit 0", "fees 0"), "0"),
    (("cats 6", "noise 0", "bins 0"), "2"),
    (("lawn 3", "hedge 3", "shed 3"), "3"),
    (("keys 0", "heating 1", "(later)"), ""),
]
OPEN = {2: "best mean: opened", 3: "in hand: opened"}


def draw_page(sheet, x, y, number, *, wide=130, size=13):
    """A page whose lowest line is at y, its heading above and mean below."""
    lines, mean = PAGES[number]
    kind = "memory" if number in OPEN else "data"
    rows = [[line] for line in lines]
    cell = (wide, 30)
    sheet.matrix(x, y, rows, cell=cell, kind=kind, size=size)
    middle = x + wide / 2
    sheet.label(middle, y + 104, f"page {number}", size=size + 1)
    words = f"mean {mean}" if mean else "mean not asked"
    sheet.label(middle, y - 16, words, size=size)
    sheet.label(middle, y - 36, OPEN.get(number, "closed"), size=size)


sheet = Sheet(240)
sheet.label(360, 214, "May I keep a cat? We are at “heating”.", size=15)
for i in range(4):
    draw_page(sheet, 40 + 170 * i, 68, i)
