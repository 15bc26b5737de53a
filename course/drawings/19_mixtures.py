"""Three reviews become two mixtures, and the query meets the mixtures only."""

from course.sheet import Sheet

sheet = Sheet(330)
reviews = []
for x, word, numbers, kind in (
    (150, "dirty", "key 0, mark 1", "projection"),
    (320, "clean", "key ln 2, mark 3", "feed_forward"),
    (490, "lovely", "key ln 8, mark 7", "memory"),
):
    reviews.append(
        sheet.box(x, 18, f"“{word}”\n{numbers}", kind, 140, 50, size=13)
    )
first = sheet.box(150, 142, "1 × “dirty”", "projection", 140, 42, size=13)
half = sheet.box(367, 142, "½ × “clean”", "feed_forward", 108, 42, size=13)
other = sheet.box(475, 142, "½ × “lovely”", "memory", 108, 42, size=13)
sheet.frame(359, 134, 232, 58)
sheet.frame(142, 134, 156, 58)
sheet.arrow(reviews[0].top, (220, 134), width=3)
sheet.arrow(reviews[1].top, (421, 134))
sheet.arrow(reviews[2].top, (529, 134))
attend = sheet.box(296, 262, "compare, average", "attention", 150, 42, size=13)
sheet.arrow((220, 192), attend.at(0.25, 0), via=[(220, 228), (333.5, 228)])
sheet.arrow((475, 192), attend.at(0.75, 0), via=[(475, 228), (408.5, 228)])
query = sheet.box(150, 262, "newest?", "query", 100, 42, size=13)
sheet.arrow(query, attend)
sheet.arrow(attend, (540, 283))
sheet.label(548, 283, "a mark", align="left", size=13)
for y, text in (
    (43, "S = 3 reviews,\nold to new"),
    (98, "E, F: R × S"),
    (163, "R = 2 mixtures"),
    (283, "T = 1 query"),
):
    sheet.label(14, y, text, align="left", size=13)
