"""A ring of three workers: two rounds of adding, two of handing on."""

from course.sheet import Sheet

WIDE, HIGH, GAP = 38, 28, 4
PANELS = (
    ("before", [[1, 2, 3], [10, 20, 30], [100, 200, 300]], 0),
    ("after round 0", [[1, 2, 303], [11, 20, 30], [100, 220, 300]], 1),
    ("after round 1", [[1, 222, 303], [11, 20, 333], [111, 220, 300]], 2),
    ("after round 3", [[111, 222, 333]] * 3, None),
)


def kind_of(number):
    """White for one worker's number, grey for a part, violet for a sum."""
    names = {1: "data", 2: "norm", 3: "memory"}
    return names[sum(digit != "0" for digit in str(number))]


def panel(sheet, left, below, title, rows, turn):
    """What three workers hold, and arrows for what they send next."""
    cells = []
    for worker, row in enumerate(rows):
        y = below + 54 * (2 - worker)
        for piece, number in enumerate(row):
            x, look = left + piece * (WIDE + GAP), kind_of(number)
            cells += sheet.row_of_tokens(
                x, y, [str(number)], WIDE, look, height=HIGH
            )
    sheet.label(left + 61, below + 168, title, size=13)
    if turn is None:
        return
    for worker in range(2):
        piece = (worker - turn) % 3
        start, end = cells[3 * worker + piece], cells[3 * worker + 3 + piece]
        sheet.arrow(start, end, width=2)
    piece = (2 - turn) % 3
    last, first = cells[6 + piece], cells[piece]
    x = left + (-10 if piece == 0 else 132)
    if piece == 1:
        low, high = below - 14, below + 148
        via = [(last.bottom[0], low), (x, low), (x, high), (first.top[0], high)]
        sheet.arrow(last.bottom, first.top, via=via, width=2)
        return
    start, end = last.right, first.right
    if piece == 0:
        start, end = last.left, first.left
    sheet.arrow(start, end, via=[(x, start[1]), (x, end[1])], width=2)


def key(sheet, spots):
    """What the colours mean."""
    for (x, y), number, text in spots:
        look = kind_of(number)
        sheet.row_of_tokens(x, y, [""], 24, look, height=20)
        sheet.label(x + 32, y + 10, text, 13, "left")


NAMES = ("of one worker", "part of a sum", "full sum")
sheet = Sheet(262)
for number, (title, rows, turn) in enumerate(PANELS):
    panel(sheet, 78 + 160 * number, 72, title, rows, turn)
for worker in range(3):
    sheet.label(8, 194 - 54 * worker, f"worker {worker}", 12, "left")
spots = [(78, 16), (248, 16), (418, 16)]
key(sheet, zip(spots, (1, 11, 111), NAMES, strict=True))
