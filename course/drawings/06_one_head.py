"""One head: a sentence becomes queries, keys and values, and their average."""

from course.sheet import Sheet

sheet = Sheet(430)
words = ["the", "black", "cow", "sleeps", "."]
sheet.row_of_tokens(140, 18, words, width=80, gap=12, dark=2)
sheet.frame(132, 10, 464, 44)
sheet.label(120, 32, "X (T, D)", align="right")

query = sheet.box(150, 88, "ask: $X\\,W_q$", "projection", 120)
key = sheet.box(300, 88, "offer: $X\\,W_k$", "projection", 120)
value = sheet.box(450, 88, "hand over: $X\\,W_v$", "projection", 150)
for box in (query, key, value):
    sheet.arrow((box.bottom[0], 54), box, "each word")

compare = sheet.box(225, 180, "compare", "attention", 120)
sheet.arrow(query.top, compare.at(0.15, 0), "queries (T, K)", side="left")
sheet.arrow(key.top, compare.at(0.85, 0), "keys (S, K)")
softmax = sheet.box(225, 262, "softmax", "attention", 120)
sheet.arrow(compare, softmax, "scores (T, S)")
average = sheet.box(445, 335, "average the values", "attention", 160)
sheet.arrow(softmax.top, average.left, "weights (T, S)", via=[(285, 354)])
sheet.arrow(value, average, "values (S, V)")
sheet.arrow(average.top, (525, 415), "output (T, V)")
