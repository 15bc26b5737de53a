"""Attention as a soft lookup: scores, softmax, weighted sum, in numbers."""

from course.sheet import Sheet
import numpy as np

words = ["the", "black", "cow", "sleeps", "."]
keys = np.eye(5, 4)
query = np.array([0, 2, 0, 1])
values = np.array([[0, 0], [9, 0], [0, 8], [0, 6], [0, 0]])
scores = keys @ query
weights = np.exp(scores) / np.exp(scores).sum()

sheet = Sheet(440)
x, cell = 218, (58, 22)
sheet.row_of_tokens(x + 2, 12, words, width=54, gap=4, height=24)
features = ["article", "adjective", "noun", "verb"]
key = sheet.matrix(x, 46, keys.T, rows=features, cell=cell)
asked = sheet.matrix(60, 46, query[:, None], cell=(46, 22), kind="query")
sheet.label(83, 24, "query of “cow”")
sheet.label(520, 90, "keys (S, K)", align="left")

compare = sheet.box(283, 152, "compare", "attention", 160, 26)
sheet.arrow(key, compare)
sheet.arrow(
    asked.top, compare.left, "queries (T, K)", via=[(83, 165)], side="above"
)
score = sheet.matrix(x, 196, [scores], cell=cell)
sheet.arrow(compare, score)
sheet.label(520, 207, "scores (T, S)", align="left")

softmax = sheet.box(283, 236, "softmax", "attention", 160, 26)
sheet.arrow(score, softmax)
weight = sheet.matrix(x, 280, [weights], cell=cell, weights=True, form="{:.2f}")
sheet.arrow(softmax, weight)

value = sheet.matrix(x, 342, values.T, rows=["dark", "alive"], cell=cell)
sheet.label(363, 404, "values (S, V)")
average = sheet.box(556, 316, "weighted\nsum", "attention", 82, 40)
sheet.arrow(value.right, average.top, via=[(597, 364)])
sheet.arrow(
    weight.right,
    average.bottom,
    "weights (T, S)",
    via=[(597, 291)],
    side="below",
)
answer = sheet.matrix(
    660, 314, (weights @ values)[:, None], cell=(44, 22), form="{:.1f}"
)
sheet.arrow(average, answer)
sheet.label(664, 376, "output (T, V)")
