"""Three directions turn a query and a key into three features each."""

from course.sheet import KINDS, Place, Sheet

DIRECTIONS = [(1, 0.5), (-0.5, 1), (-0.5, -2)]
FEATURES = {"q": [0.95, 0.21, 0.21], "k": [0.95, 0.58, 0.13]}
INKS = {"q": "#2b2b2b", "k": KINDS["projection"][1]}


def draw_arrows(sheet, x, y, unit, size):
    """The directions, dashed, the query and the key, from (x, y)."""
    ends = ((84, 44), (-52, 78), (-42, -155))
    for f, (right, up) in enumerate(DIRECTIONS, 1):
        tip = (x + unit * right, y + unit * up)
        sheet.arrow((x, y), tip, colour="#666666", dashed=True)
        across, above = ends[f - 1]
        place = x + across * unit / 70, y + above * unit / 70
        sheet.label(*place, f"$w_{f}$", size=size)
    for name, right, up, shift in (
        ("q", 1, 0, (14, 0)),
        ("k", 0.5, 0.5, (2, 16)),
    ):
        tip = (x + unit * right, y + unit * up)
        sheet.arrow((x, y), tip, width=3, colour=INKS[name])
        place = tip[0] + shift[0], tip[1] + shift[1]
        sheet.label(*place, f"${name}$", size=size + 2)


def draw_bars(sheet, x, y, name, step, high, size):
    """The features as bars with their numbers."""
    kind = "query" if name == "q" else "projection"
    area, edge, _ = KINDS[kind]
    for f, value in enumerate(FEATURES[name], 1):
        left = x + step * (f - 1)
        sheet._fill(Place(left, y, 0.6 * step, high * value), area, edge)
        middle = left + 0.3 * step
        sheet.label(middle, y + high * value + 10, f"{value}", size=size)
        sheet.label(middle, y - 12, f"$w_{f}$", size=size)
    sheet.label(
        x + 1.3 * step, y + high + 30, f"features of ${name}$", size=size
    )


sheet = Sheet(310)
draw_arrows(sheet, 92, 192, 76, 13)
for y, name in ((190, "q"), (44, "k")):
    draw_bars(sheet, 262, y, name, 60, 72, 13)
product = sheet.box(
    500,
    122,
    "dot product\n0.91 + 0.12 + 0.03\n= 1.06",
    "attention",
    196,
    66,
    size=13,
)
sheet.arrow((442, 218), product.at(0.2, 1), via=[(539, 218)])
sheet.arrow((442, 72), product.at(0.2, 0), via=[(539, 72)])
sheet.label(630, 98, "wanted: $e^{q \\cdot k} = 1.65$", size=13)
