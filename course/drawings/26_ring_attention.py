"""Ring attention on four workers: queries stay, keys and values travel."""

from course.sheet import Sheet

TEXT = ("once upon", "a time", "there was", "no end")


def draw(sheet, spots, sizes, size):
    """The boxes of each worker after the first hop, and the hops.

    Args:
        sheet: The `Sheet`.
        spots: For each worker the lower left corners of its queries, of
            what it keeps, and of the keys that visit it.
        sizes: The width and the height of a box.
        size: Of the letters.

    Returns:
        The places of the visiting keys.
    """
    visiting = []
    for worker, (ask, keep, visit) in enumerate(spots):
        words, from_before = TEXT[worker], TEXT[worker - 1]
        query = sheet.box(
            *ask, f"queries:\n{words}", "query", *sizes, size=size
        )
        text = "merge: $m$,\ntotal, carried"
        state = sheet.box(*keep, text, "attention", *sizes, size=size)
        text = f"keys, values:\n{from_before}"
        keys = sheet.box(*visit, text, "memory", *sizes, size=size)
        sheet.arrow(query, state)
        sheet.arrow(keys, state)
        visiting.append(keys)
    for start, end in zip(visiting, visiting[1:], strict=False):
        sheet.arrow(start, end, width=2.5, colour="#6a3fa0")
    return visiting


sheet = Sheet(312)
columns = [14 + 182 * worker for worker in range(4)]
spots = [((x, 226), (x, 142), (x, 58)) for x in columns]
keys = draw(sheet, spots, (146, 46), 13)
ends = keys[3].bottom, keys[0].bottom
via = [(ends[0][0], 24), (ends[1][0], 24)]
sheet.arrow(*ends, via=via, width=2.5, colour="#6a3fa0")
for worker, x in enumerate(columns):
    sheet.label(x + 73, 290, f"worker {worker}", size=14)
