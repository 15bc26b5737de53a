"""Words make sentences, and sentences make a document: pooling, twice."""

from course.sheet import Sheet

sheet = Sheet(412)
queries = sheet.box(295, 76, "query of\nwords", "query", 130, 40)
again = sheet.box(295, 246, "query of\nsentences", "query", 130, 40)
top = sheet.box(295, 312, "average", "attention", 130, 34)
for left, words, weights, vector, share in (
    (24, ["they", "say", "poor"], [0.15, 0.15, 0.70], "poor 0.70", 0.04),
    (
        488,
        ["we", "say", "good"],
        [0.28, 0.13, 0.59],
        "good 0.59, we 0.28",
        0.93,
    ),
):
    middle = left + 104
    tokens = sheet.row_of_tokens(left, 14, words)
    cells = sheet.matrix(
        left, 82, [weights], weights=True, form="{:.2f}", cell=(69.3, 28)
    )
    for token in tokens:
        sheet.arrow(token.top, (token.top[0], 82))
    sheet.arrow(queries, cells)
    average = sheet.box(middle - 60, 134, "average", "attention", 120, 34)
    sheet.arrow(cells, average)
    [made] = sheet.row_of_tokens(middle - 75, 192, [vector], 150)
    sheet.arrow(average, made)
    cell = sheet.matrix(
        middle - 35, 252, [[share]], weights=True, form="{:.2f}", cell=(70, 28)
    )
    sheet.arrow(made, cell)
    sheet.arrow(again, cell)
    side = top.left if middle < 360 else top.right
    sheet.arrow((middle, 280), side, via=[(middle, side[1])])
[whole] = sheet.row_of_tokens(250, 372, ["good 0.55, poor 0.05, we 0.26"], 220)
sheet.arrow(top, whole)
sheet.label(360, 28, "words (S, D)", size=11)
sheet.label(360, 58, "score, softmax", size=11)
sheet.label(360, 206, "sentence vectors (D)", size=11)
sheet.label(360, 228, "score, softmax", size=11)
sheet.label(482, 386, "document vector (D)", align="left", size=11)
