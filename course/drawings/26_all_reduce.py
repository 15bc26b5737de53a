"""Two workers: a part each, one sum for both, the same update."""

from course.sheet import Sheet

sheet = Sheet(438)
look = {"width": 220, "height": 34, "size": 13}
COLUMNS = (
    (160, "2 tokens, loss 4 each", "loss 8 / 8 = 1", "gradient (3, 4)"),
    (560, "6 tokens, loss 1 each", "loss 6 / 8 = 0.75", "gradient (0, −4)"),
)
sheet.box(50, 246, "all-reduce: add up", "norm", 620, 38, size=14)
sheet.label(360, 226, "loss 1 + 0.75", size=13)
sheet.label(360, 302, "loss 1.75", size=13)
sheet.label(360, 54, "one batch, 8 tokens", size=13)
for worker, (middle, part, loss, gradient) in enumerate(COLUMNS):
    left = middle - 110
    sheet.label(middle, 18, f"worker {worker}", size=13)
    tokens = sheet.box(left, 37, part, **look)
    copy = sheet.box(left, 100, f"copy {worker} of the model", "memory", **look)
    found = sheet.box(left, 174, gradient, **look)
    total = sheet.box(left, 322, "sum (3, 0)", **look)
    update = sheet.box(
        left, 390, f"clip to (1, 0), update copy {worker}", "memory", **look
    )
    sheet.arrow(tokens, copy)
    sheet.arrow(copy, found, loss, side="right", size=12)
    sheet.arrow(found.top, (middle, 246), width=2)
    sheet.arrow((middle, 284), total.bottom, width=2)
    sheet.arrow(total, update)
