"""Words make sentences, and sentences make a document, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(560, NARROW)
queries = sheet.box(115, 78, "query of words", "query", 130, 32, size=13)
again = sheet.box(95, 320, "query of sentences", "query", 170, 32, size=13)
for x in (140, 220):
    sheet.arrow((x, 110), (x, 138))
for x in (108, 252):
    sheet.arrow((x, 352), (x, 380))
top = sheet.box(125, 440, "average", "attention", 110, 34, size=13)
for left, words, weights, vector, share in (
    (10, ["they", "say", "poor"], [0.15, 0.15, 0.70], "poor 0.70", 0.04),
    (
        194,
        ["we", "say", "good"],
        [0.28, 0.13, 0.59],
        "good 0.59\nwe 0.28",
        0.93,
    ),
):
    middle = left + 78
    tokens = sheet.row_of_tokens(left, 14, words, width=48, gap=6, size=13)
    cells = sheet.matrix(
        left,
        138,
        [weights],
        weights=True,
        form="{:.2f}",
        cell=(52, 28),
        size=13,
    )
    sheet.arrow((middle, 42), (middle, 138))
    average = sheet.box(middle - 45, 192, "average", "attention", 90, 34)
    sheet.arrow(cells, average)
    [made] = sheet.row_of_tokens(
        middle - 50, 252, [vector], 100, height=42, size=13
    )
    sheet.arrow(average, made)
    cell = sheet.matrix(
        middle - 30,
        380,
        [[share]],
        weights=True,
        form="{:.2f}",
        cell=(60, 28),
        size=13,
    )
    sheet.arrow(made, cell)
    side = top.left if middle < 180 else top.right
    sheet.arrow((middle, 408), side, via=[(middle, side[1])])
[whole] = sheet.row_of_tokens(
    50, 514, ["good 0.55, poor 0.05, we 0.26"], 260, height=32, size=13
)
sheet.arrow(top, whole)
