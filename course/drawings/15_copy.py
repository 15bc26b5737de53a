"""Two steps that copy: fetch the token before, then match and read."""

from course.sheet import Sheet

sheet = Sheet(330)
letters = ["c", "a", "t", "c", "a"]
LEFT, WIDE, GAP = 226, 54, 36
tokens = sheet.row_of_tokens(LEFT, 50, letters, WIDE, gap=GAP, dark=4)
fetched = sheet.row_of_tokens(
    LEFT, 140, ["–", *letters[:4]], WIDE, "attention", gap=GAP
)
for before, after in zip(tokens, fetched[1:], strict=False):
    sheet.arrow(before.at(0.75, 1), after.at(0.1, 0), width=1.8)
found = sheet.frame(tokens[2].x - 9, 41, WIDE + 18, 136)
for place, token in enumerate(tokens):
    sheet.label(token.centre[0], 26, str(place), size=11)
sheet.label(24, 64, "token at position", align="left")
sheet.label(24, 109, "step 1: fetch the\ntoken before", align="left")
sheet.label(24, 154, "fetched token", align="left")
sheet.label(
    24, 222, "step 2: match what was\nfetched, read the token", align="left"
)
into = found.at(0.75, 1)
around = [(690, 64), (690, 232), (into[0], 232)]
sheet.arrow(tokens[4], into, via=around, width=1.8)
sheet.label(570, 246, "query: who fetched “a”?")
answer = sheet.box(found.x - 15, 276, "next: “t”", width=102)
out = found.at(0.25, 1)
sheet.arrow(out, (out[0], 276), width=1.8)
