"""Six words are hashed, sorted by bucket, cut into chunks, and attend."""

from course.sheet import Sheet

sheet = Sheet(412)
words = ["dog", "bread", "mouse", "cake", "pizza", "horse"]
buckets = [1, 0, 1, 0, 0, 1]
order = [1, 3, 4, 0, 2, 5]
left, wide, gap = 128, 78, 18

tokens = sheet.row_of_tokens(left, 16, words, wide, gap=gap, size=13)
numbers = sheet.row_of_tokens(
    left, 86, [f"{b}" for b in buckets], wide, "projection", gap=gap, size=13
)
ordered = sheet.row_of_tokens(
    left,
    202,
    [f"{words[i]}\nbucket {buckets[i]}" for i in order],
    wide,
    height=44,
    gap=gap,
    size=13,
)
for token, number in zip(tokens, numbers, strict=True):
    sheet.arrow(token, number)
for place, i in zip(ordered, order, strict=True):
    sheet.arrow(numbers[i].top, place.bottom)
for chunk in range(3):
    x = left + 2 * chunk * (wide + gap)
    sheet.frame(x - 7, 194, 2 * wide + gap + 14, 80)
    sheet.label(x + wide + gap / 2, 260, f"chunk {chunk}", size=12)
    attend = sheet.box(
        x + 7, 346, "compare, average", "attention", 160, 46, size=13
    )
    sheet.arrow((x + wide + gap / 2, 274), attend)
    if chunk < 2:
        after = x + 2 * (wide + gap)
        sheet.arrow((x + 2 * wide, 274), (after + 30, 346), dashed=True)
for y, text in (
    (30, "1. words"),
    (100, "2. hash"),
    (224, "3. sort, cut"),
    (310, "4. look back"),
    (369, "5. attend in\nthe bucket"),
):
    sheet.label(10, y, text, align="left", size=13)
