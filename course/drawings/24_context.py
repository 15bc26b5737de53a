"""The word "drink" in frost and in heat: its weight moves with the context."""

from course.sheet import Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(300)
weather = {  # the average of the words; the weights of "drink"; the largest
    "frost": ("warm 1, cool 2", [0.29, 0.04, 0.60, 0.07], 2),
    "heat": ("warm 2, cool 1", [0.29, 0.04, 0.07, 0.60], 3),
}
wide = 70

for left, (word, (context, weights, largest)) in zip(
    (40, 400), weather.items(), strict=True
):
    words = [word, "drink", "tea", "juice"]
    middle = left + 2 * wide
    tokens = sheet.row_of_tokens(
        left + 2, 28, words, width=wide - 4, gap=4, dark=1, size=13
    )
    frame = sheet.frame(left - 6, 20, 4 * wide + 12, 44)
    average = sheet.box(
        middle - 100, 110, f"context: {context}", "memory", 200, 40, size=13
    )
    row = sheet.matrix(
        left,
        206,
        [weights],
        weights=True,
        form="{:.2f}",
        cell=(wide, 40),
        size=13,
    )
    sheet.arrow(frame, average)
    sheet.arrow(average, row)
    sheet.axes.add_patch(
        Rectangle(
            (left + largest * wide, 206),
            wide,
            40,
            fill=False,
            edgecolor="#b35900",
            linewidth=3.5,
            zorder=6,
        )
    )
    sheet.label(middle, 270, f"weights of “drink” in {word}", size=13)
