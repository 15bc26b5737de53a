"""Attention as a soft lookup, for a phone."""

from course.sheet import NARROW, Sheet
import numpy as np

words = ["the", "black", "cow", "sleeps", "."]
keys = np.eye(5, 4)
query = np.array([0, 2, 0, 1])
values = np.array([[0, 0], [9, 0], [0, 8], [0, 6], [0, 0]])
scores = keys @ query
weights = np.exp(scores) / np.exp(scores).sum()

sheet = Sheet(560, NARROW)
high = 27
asked = sheet.matrix(72, 502, [query], cell=(32, high), kind="query", size=13)
sheet.label(136, 544, "query of “cow”", size=13)
kinds = ["art.", "adj.", "noun", "verb"]
key = sheet.matrix(
    72, 330, keys, rows=words, columns=kinds, cell=(32, high), size=12
)
sheet.label(136, 314, "keys (S, K)", size=13)
compare = sheet.box(214, 376, "dot\nproduct", "attention", 72, 43, size=13)
sheet.arrow(asked, compare.top, via=[(250, 515)])
sheet.arrow(key, compare)
score = sheet.matrix(302, 330, scores[:, None], cell=(44, high), size=13)
sheet.label(324, 477, "scores", size=13)
sheet.arrow(compare, score)
softmax = sheet.box(240, 266, "softmax", "attention", 84, 34, size=13)
sheet.arrow((324, 330), (306, 300), via=[(324, 316), (306, 316)])
weight = sheet.matrix(
    72,
    90,
    weights[:, None],
    rows=words,
    cell=(54, high),
    weights=True,
    form="{:.2f}",
    size=13,
)
sheet.label(99, 74, "weights", size=13)
sheet.arrow(softmax.left, weight.top, via=[(99, 283)])
value = sheet.matrix(
    206, 90, values, columns=["dark", "alive"], cell=(60, high), size=13
)
sheet.label(266, 74, "values (S, V)", size=13)
average = sheet.box(114, 18, "weighted sum", "attention", 112, 32, size=13)
answer = sheet.matrix(
    256, 20, [weights @ values], cell=(44, high), form="{:.1f}", size=13
)
sheet.arrow(average, answer)
sheet.arrow(weight.right, (146, 50), via=[(146, 157)])
sheet.arrow(value.left, (186, 50), via=[(186, 157)])
