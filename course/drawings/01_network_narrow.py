"""The network that is asked, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(500, NARROW)
question = sheet.box(
    8, 16, "what colour is\nthe cup?", "query", 112, 50, size=12
)
things = sheet.row_of_tokens(
    138,
    20,
    ["blue\nhat", "red\ncup", "green\nbook"],
    width=62,
    gap=8,
    height=44,
    size=13,
)
sheet.frame(132, 13, 220, 58)
embed = sheet.box(8, 116, "embedding", "projection", 96, size=13)
key = sheet.box(136, 116, "dense", "projection", 86, size=13)
value = sheet.box(262, 116, "dense", "projection", 86, size=13)
sheet.arrow((56, 66), embed)
sheet.arrow((179, 71), key)
sheet.arrow((305, 71), value)
compare = sheet.box(8, 226, "compare, softmax", "attention", 214, size=13)
sheet.arrow(embed.top, (56, 226), "query", side="right", size=12)
sheet.arrow(key.top, (179, 226), "keys", side="right", size=12)
average = sheet.box(
    236, 330, "average\nthe values", "attention", 112, 50, size=13
)
sheet.arrow((115, 264), average.left, "weights", via=[(115, 355)], size=12)
sheet.arrow(value.top, (305, 330), "values", side="left", size=12)
answer = sheet.box(236, 436, "dense: red", "projection", 112, 36, size=13)
sheet.arrow(average, answer)
