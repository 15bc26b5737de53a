"""Attention as a soft lookup: scores, softmax, weighted sum, in numbers."""

from course.sheet import Sheet
import numpy as np

words = ["the", "black", "cow", "sleeps", "."]
keys = np.eye(5, 4)
query = np.array([0, 2, 0, 1])
values = np.array([[0, 0], [9, 0], [0, 8], [0, 6], [0, 0]])
scores = keys @ query
weights = np.exp(scores) / np.exp(scores).sum()

sheet = Sheet(324)
low, high = 44, 28
asked = sheet.matrix(72, 260, [query], cell=(40, high), kind="query")
sheet.label(152, 302, "query of “cow”")
kinds = ["art.", "adj.", "noun", "verb"]
key = sheet.matrix(
    72, low, keys, rows=words, columns=kinds, cell=(40, high), size=12
)
sheet.label(152, 26, "keys (S, K)")
score = sheet.matrix(346, low, scores[:, None], cell=(42, high), size=12)
sheet.label(367, 26, "scores")
weight = sheet.matrix(
    494,
    low,
    weights[:, None],
    cell=(56, high),
    weights=True,
    form="{:.2f}",
    size=12,
)
sheet.label(522, 26, "weights")
value = sheet.matrix(
    602, low, values, columns=["dark", "alive"], cell=(48, high), size=12
)
sheet.label(650, 26, "values (S, V)")
compare = sheet.box(256, 95, "dot\nproduct", "attention", 66, 38, size=11)
sheet.arrow(asked, compare.top, via=[(289, 274)])
sheet.arrow(key, compare)
sheet.arrow(compare, score)
softmax = sheet.box(408, 95, "softmax", "attention", 66, 38, size=11)
sheet.arrow(score, softmax)
sheet.arrow(softmax, weight)
average = sheet.box(488, 218, "weighted sum", "attention", 100, 30, size=11)
sheet.arrow(weight.top, (522, 218))
sheet.arrow(value.left, (576, 218), via=[(576, 114)])
answer = sheet.matrix(
    602, 260, [weights @ values], cell=(48, high), form="{:.1f}", size=12
)
sheet.arrow(average.top, answer.left, via=[(538, 274)])
sheet.label(650, 302, "what “cow” gets")
