"""Three reviews become two mixtures, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(400, NARROW)
reviews = []
for x, text, kind in (
    (10, "“dirty”\nkey 0\nmark 1", "projection"),
    (128, "“clean”\nkey ln 2\nmark 3", "feed_forward"),
    (246, "“lovely”\nkey ln 8\nmark 7", "memory"),
):
    reviews.append(sheet.box(x, 36, text, kind, 104, 62, size=13))
first = sheet.box(18, 174, "1 × “dirty”", "projection", 88, 40, size=13)
half = sheet.box(144, 174, "½ × “clean”", "feed_forward", 96, 40, size=13)
other = sheet.box(240, 174, "½ × “lovely”", "memory", 102, 40, size=13)
sheet.frame(136, 166, 214, 56)
sheet.frame(10, 166, 104, 56)
sheet.arrow(reviews[0].top, (62, 166), width=3)
sheet.arrow(reviews[1].top, (192, 166))
sheet.arrow(reviews[2].top, (298, 166))
sheet.label(180, 18, "S = 3 reviews, old to new", size=13)
sheet.label(10, 132, "E, F", align="left", size=13)
sheet.label(180, 240, "R = 2 mixtures", size=13)
attend = sheet.box(124, 318, "compare,\naverage", "attention", 112, 50, size=13)
sheet.arrow((62, 222), attend.at(0.25, 0), via=[(62, 278), (152, 278)])
sheet.arrow((280, 222), attend.at(0.75, 0), via=[(280, 278), (208, 278)])
query = sheet.box(10, 323, "newest?", "query", 82, 40, size=13)
sheet.arrow(query, attend)
sheet.arrow(attend, (278, 343))
sheet.label(284, 343, "a mark", align="left", size=13)
