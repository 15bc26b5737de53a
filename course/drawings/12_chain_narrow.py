"""Three places, no or yes at each, for a phone."""

from course.sheet import NARROW, Sheet

sheet = Sheet(330, NARROW)
wide, high = 72, 36
columns = [10, 144, 278]
no = [sheet.box(x, 78, "no: 0", "data", wide, high, size=13) for x in columns]
yes = [
    sheet.box(x, 188, f"yes: {score}", "attention", wide, high, size=13)
    for x, score in zip(columns, ("1", "−1", "1"), strict=True)
]
for j in (0, 1):
    for row, up in ((yes, 14), (no, -14)):
        sheet.arrow(row[j].right, row[j + 1].left, width=3)
        middle = (row[j].right[0] + row[j + 1].left[0]) / 2
        sheet.label(middle, row[j].right[1] + up, "1.5", size=13)
    sheet.arrow(yes[j].right, no[j + 1].left)
    sheet.arrow(no[j].right, yes[j + 1].left)
for x, word, share in zip(
    columns, ("far", "too", "small"), (0.68, 0.55, 0.68), strict=True
):
    sheet.label(x + wide / 2, 58, f"“{word}”", size=13)
    sheet.matrix(
        x + 6,
        258,
        [[share]],
        weights=True,
        form="{:.2f}",
        cell=(60, 28),
        size=13,
    )
    sheet.arrow((x + wide / 2, 224), (x + wide / 2, 258))
sheet.label(180, 308, "weight", size=13)
sheet.arrow((34, 24), (158, 24))
sheet.label(24, 24, "$f$", align="right", size=13)
sheet.arrow((326, 24), (202, 24))
sheet.label(334, 24, "$g$", align="left", size=13)
