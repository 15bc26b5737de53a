"""A ring of three workers: two rounds of adding, two of handing on."""

from course.sheet import Sheet

sheet = Sheet(262)
WIDE, HIGH, GAP, PITCH = 38, 28, 4, 160
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


for panel, (title, rows, turn) in enumerate(PANELS):
    left = 78 + panel * PITCH
    cells = [
        [
            sheet.row_of_tokens(
                left + piece * (WIDE + GAP),
                180 - 54 * worker,
                [str(number)],
                WIDE,
                kind_of(number),
                height=HIGH,
            )[0]
            for piece, number in enumerate(row)
        ]
        for worker, row in enumerate(rows)
    ]
    sheet.label(left + 61, 240, title, size=13)
    if turn is None:
        continue
    for worker in range(3):
        piece = (worker - turn) % 3
        sent = cells[worker][piece]
        if worker < 2:
            sheet.arrow(sent, cells[worker + 1][piece], width=2)
            continue
        first = cells[0][piece]
        side = -10 if piece == 0 else 132
        x = left + side
        if piece == 1:
            via = [(sent.bottom[0], 58), (x, 58), (x, 220), (first.top[0], 220)]
            sheet.arrow(sent.bottom, first.top, via=via, width=2)
        else:
            ends = (
                (sent.left, first.left)
                if side < 0
                else (sent.right, first.right)
            )
            via = [(x, ends[0][1]), (x, ends[1][1])]
            sheet.arrow(*ends, via=via, width=2)
for worker in range(3):
    sheet.label(8, 194 - 54 * worker, f"worker {worker}", 12, "left")
x = 78
for number, text, room in (
    (1, "of one worker", 150),
    (11, "part of a sum", 150),
    (111, "full sum", 100),
):
    token = sheet.row_of_tokens(x, 16, [""], 24, kind_of(number), height=20)[0]
    sheet.label(x + 32, 26, text, 12, "left")
    x += room + 20
