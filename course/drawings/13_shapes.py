"""Three shapes of task: n labels, one label, or as many words as it takes."""

from course.sheet import Sheet

sheet = Sheet(356)
wide, gap = 62, 6
span = 3 * wide + 2 * gap
panels = (
    (14, "$n \\to n$: tagging", ["like", "to", "drink"]),
    (257, "$n \\to 1$: classifying", ["good", "SAD", "calm"]),
    (500, "$n \\to m$: translating", ["loves", "water"]),
)
tops = []
for left, name, words in panels:
    sheet.label(left + span / 2, 336, name, size=13)
    size = (span - gap * (len(words) - 1)) / len(words)
    tokens = sheet.row_of_tokens(left, 14, words, size, gap=gap)
    read = sheet.box(left, 82, "read: attend to all", "attention", span)
    for token in tokens:
        sheet.arrow(token, (token.top[0], 82))
    tops.append([(token.top[0], 120) for token in tokens])

tags = sheet.row_of_tokens(14, 276, ["VERB", "PART", "VERB"], wide, gap=gap)
for (x, y), tag in zip(tops[0], tags, strict=True):
    sheet.arrow((x, y), tag)
sheet.label(tops[0][1][0] + 8, 198, "(T, D)", size=11, align="left")

pool = sheet.box(257, 180, "pool", "attention", span)
for x, y in tops[1]:
    sheet.arrow((x, y), (x, 180))
sheet.label(tops[1][1][0] + 8, 150, "(S, D)", size=11, align="left")
said = sheet.row_of_tokens(257, 276, ["unfriendly"], 118)
sheet.arrow((said[0].bottom[0], 218), said[0], "(1, D)")
asks = sheet.row_of_tokens(411, 276, ["$q$"], 44, "query")
sheet.arrow(asks[0], (asks[0].bottom[0], 218))

write = sheet.box(500, 180, "write, word by word", "attention", span)
for x, y in tops[2]:
    sheet.arrow((x, y), (x, 180))
sheet.label(tops[2][0][0] + 10, 150, "(S, D)", size=11, align="left")
spoken = ["adore", "l'", "eau", "END"]
small = (span - 3 * gap) / 4
written = sheet.row_of_tokens(500, 276, spoken, small, gap=gap, size=11)
for word in written:
    sheet.arrow((word.bottom[0], 218), word)
sheet.label(written[1].bottom[0] + 6, 248, "(T, D)", size=11, align="left")
