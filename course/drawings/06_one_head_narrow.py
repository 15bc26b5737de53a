"""One head, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(520, NARROW)
words = ["the", "black", "cow", "sleeps", "."]
sheet.row_of_tokens(14, 18, words, width=60, gap=8, dark=2, size=13)
sheet.frame(6, 10, 348, 44)

query = sheet.box(8, 104, "ask: $X\\,W_q$", "projection", 108, size=13)
key = sheet.box(126, 104, "offer: $X\\,W_k$", "projection", 108, size=13)
value = sheet.box(
    244, 98, "hand over:\n$X\\,W_v$", "projection", 108, 50, size=13
)
for box in (query, key, value):
    sheet.arrow((box.bottom[0], 54), box)

compare = sheet.box(8, 214, "compare", "attention", 226, size=13)
sheet.arrow(query.top, (62, 214), "queries", side="right", size=12)
sheet.arrow(key.top, (180, 214), "keys", side="right", size=12)
softmax = sheet.box(61, 310, "softmax", "attention", 120, size=13)
sheet.arrow(compare.top, softmax.bottom, "scores (T, S)", size=12)
average = sheet.box(
    244, 400, "average\nthe values", "attention", 108, 50, size=13
)
sheet.arrow(
    softmax.top, average.left, "weights (T, S)", via=[(121, 425)], size=12
)
sheet.arrow(value.top, (298, 400), "values", side="left", size=12)
sheet.arrow(average.top, (298, 506), "output", side="left", size=12)
