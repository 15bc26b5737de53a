"""Two steps that copy, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(400, NARROW)
letters = ["c", "a", "t", "c", "a"]
LEFT, WIDE, GAP = 24, 40, 24
tokens = sheet.row_of_tokens(LEFT, 66, letters, WIDE, gap=GAP, dark=4, size=14)
fetched = sheet.row_of_tokens(
    LEFT, 172, ["–", *letters[:4]], WIDE, "attention", gap=GAP, size=14
)
for before, after in zip(tokens, fetched[1:], strict=False):
    sheet.arrow(before.at(0.75, 1), after.at(0.1, 0), width=1.8)
found = sheet.frame(tokens[2].x - 8, 58, WIDE + 16, 150)
for place, token in enumerate(tokens):
    sheet.label(token.centre[0], 44, str(place), size=13)
sheet.label(24, 20, "step 1: fetch the token before", align="left", size=13)
into = found.at(0.75, 1)
around = [(346, 80), (346, 262), (into[0], 262)]
sheet.arrow(tokens[4], into, via=around, width=1.8)
sheet.label(24, 370, "step 2: who fetched “a”?", align="left", size=13)
answer = sheet.box(found.x - 26, 304, "next: “t”", width=90, size=14)
out = found.at(0.25, 1)
sheet.arrow(out, (out[0], 304), width=1.8)
