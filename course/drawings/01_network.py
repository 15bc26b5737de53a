"""The network that is asked: questions make queries, things keys and values."""

from course.sheet import Sheet

sheet = Sheet(356)
question = sheet.box(40, 16, "what colour is the cup?", "query", 200, 34)
things = sheet.row_of_tokens(
    310, 18, ["blue hat", "red cup", "green book"], width=110, gap=12
)
sheet.frame(302, 10, 370, 46)
embed = sheet.box(85, 96, "embedding", "projection", 110)
key = sheet.box(330, 96, "dense", "projection", 110)
value = sheet.box(530, 96, "dense", "projection", 110)
sheet.arrow(question, embed)
sheet.arrow((385, 56), key, "each thing", side="left")
sheet.arrow((585, 56), value, "each thing", side="left")
compare = sheet.box(85, 184, "compare, softmax", "attention", 355)
sheet.arrow(embed.top, (140, 184), "query (T, K)", side="right")
sheet.arrow(key.top, (385, 184), "keys (S, K)", side="left")
average = sheet.box(500, 250, "average the values", "attention", 170)
sheet.arrow((263, 222), average.left, "weights (T, S)", via=[(263, 269)])
sheet.arrow(value, average, "values (S, V)", side="right")
answer = sheet.box(530, 306, "dense: red", "projection", 110, 34)
sheet.arrow(average, answer)
