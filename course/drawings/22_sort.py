"""Six words are hashed, sorted by bucket, cut into chunks, and attend."""

from course.sheet import Sheet

WORDS = ["dog", "bread", "mouse", "cake", "pizza", "horse"]
BUCKETS = [1, 0, 1, 0, 0, 1]
ORDER = [1, 3, 4, 0, 2, 5]


def draw_steps(sheet, left, wide, gap, rows, heading, steps, size):
    """Five steps from below to above.

    Args:
        sheet: The `Sheet`.
        left: Left edge of the first word.
        wide: Width of a word.
        gap: Between two words.
        rows: Lower edges of the words, the buckets, the sorted words, the
            boxes.
        heading: Str before the bucket of a sorted word.
        steps: The middle height and the words of each step.
        size: Of the words.
    """
    words, hashed, sorted_, boxes = rows
    look = {"gap": gap, "size": size}
    tokens = sheet.row_of_tokens(left, words, WORDS, wide, **look)
    numbers = sheet.row_of_tokens(
        left, hashed, [str(b) for b in BUCKETS], wide, "projection", **look
    )
    ordered = sheet.row_of_tokens(
        left,
        sorted_,
        [f"{WORDS[i]}\n{heading}{BUCKETS[i]}" for i in ORDER],
        wide,
        height=44,
        **look,
    )
    for token, number in zip(tokens, numbers, strict=True):
        sheet.arrow(token, number)
    for place, i in zip(ordered, ORDER, strict=True):
        sheet.arrow(numbers[i].top, place.bottom)
    pair = 2 * wide + gap
    for chunk in range(3):
        x = left + chunk * (pair + gap)
        margin = 7 * gap / 18
        sheet.frame(x - margin, sorted_ - 8, pair + 2 * margin, 80)
        sheet.label(x + pair / 2, sorted_ + 58, f"chunk {chunk}", size=size)
        attend = sheet.box(
            x + 4,
            boxes,
            "compare,\naverage",
            "attention",
            pair - 8,
            46,
            size=size,
        )
        sheet.arrow((x + pair / 2, sorted_ + 72), attend)
        if chunk < 2:
            after = x + pair + gap + 20
            sheet.arrow(
                (x + 0.75 * pair, sorted_ + 72), (after, boxes), dashed=True
            )
    for number, (y, step) in enumerate(steps, start=1):
        text = f"{number}. {step}"
        sheet.label(8, y, text, align="left", size=size)


sheet = Sheet(412)
names = ("words", "hash", "sort, cut", "look back", "attend")
middles = (30, 100, 224, 310, 369)
steps = zip(middles, names, strict=True)
draw_steps(sheet, 128, 78, 18, (16, 86, 202, 346), "bucket ", steps, 13)
