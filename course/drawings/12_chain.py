"""Three places, no or yes at each: eight ways from left to right."""

from course.sheet import Sheet

sheet = Sheet(300)
wide, high = 96, 36
columns = [146, 346, 546]
no = [sheet.box(x, 66, "no: 0", "data", wide, high) for x in columns]
yes = [
    sheet.box(x, 176, f"yes: {score}", "attention", wide, high)
    for x, score in zip(columns, ("1", "−1", "1"), strict=True)
]
for j in (0, 1):
    for row, up in ((yes, 13), (no, -13)):
        sheet.arrow(row[j].right, row[j + 1].left, width=3)
        middle = (row[j].right[0] + row[j + 1].left[0]) / 2
        sheet.label(middle, row[j].right[1] + up, "1.5")
    sheet.arrow(yes[j].right, no[j + 1].left)
    sheet.arrow(no[j].right, yes[j + 1].left)
for x, word, share in zip(
    columns, ("far", "too", "small"), (0.68, 0.55, 0.68), strict=True
):
    sheet.label(x + wide / 2, 48, f"“{word}”")
    sheet.matrix(
        x + 22, 240, [[share]], weights=True, form="{:.2f}", cell=(52, 28)
    )
    sheet.arrow((x + wide / 2, 212), (x + wide / 2, 240))
sheet.label(134, 254, "weight", align="right")
sheet.label(134, 194, "chosen", align="right")
sheet.label(134, 84, "left out", align="right")
sheet.arrow((164, 20), (364, 20))
sheet.label(154, 20, "$f$", align="right")
sheet.arrow((624, 20), (424, 20))
sheet.label(634, 20, "$g$", align="left")
