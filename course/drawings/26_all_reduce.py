"""Two workers: a part of the batch each, one sum, the same update."""

from course.sheet import Sheet

PARTS = ("2 tokens, loss 4 each", "6 tokens, loss 1 each")
GRADIENTS = ("gradient (3, 4)", "gradient (0, −4)")


def draw(sheet, middles, width, parts, size):
    """A column for each worker, joined by the all-reduce."""
    left, right = middles[0] - width / 2, middles[1] + width / 2
    look = {"width": width, "size": size}
    add = "all-reduce: add up losses and gradients"
    joined = sheet.box(left, 240, add, "norm", right - left, 38, size=size)
    for worker, middle in enumerate(middles):
        x = middle - width / 2
        sheet.label(middle, 20, f"worker {worker}", size=size)
        part = sheet.box(x, 40, parts[worker], height=48, **look)
        copy = sheet.box(
            x, 112, f"copy {worker} of the model", "memory", **look
        )
        found = sheet.box(x, 174, GRADIENTS[worker], **look)
        update = sheet.box(
            x, 306, f"clip, update copy {worker}", "memory", **look
        )
        sheet.arrow(part, copy)
        sheet.arrow(copy, found)
        sheet.arrow(found.top, (middle, joined.bottom[1]), width=2)
        sheet.arrow((middle, joined.top[1]), update.bottom, width=2)


sheet = Sheet(360)
draw(sheet, (180, 540), 220, PARTS, 14)
