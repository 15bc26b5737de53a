"""The word "drink" in frost and in heat, for a phone."""

from course.sheet import NARROW, Sheet
from matplotlib.patches import Rectangle

sheet = Sheet(540, NARROW)
weather = {  # the average of the words; the weights of "drink"; the largest
    "frost": ("warm 1, cool 2", [0.29, 0.04, 0.60, 0.07], 2),
    "heat": ("warm 2, cool 1", [0.29, 0.04, 0.07, 0.60], 3),
}
wide, left = 80, 20

for low, (word, (context, weights, largest)) in zip(
    (280, 10), weather.items(), strict=True
):
    words = [word, "drink", "tea", "juice"]
    sheet.row_of_tokens(
        left + 2, low + 8, words, width=wide - 4, gap=4, dark=1, size=14
    )
    frame = sheet.frame(left - 6, low, 4 * wide + 12, 44)
    average = sheet.box(
        70, low + 84, f"context: {context}", "memory", 220, 38, size=14
    )
    row = sheet.matrix(
        left,
        low + 162,
        [weights],
        weights=True,
        form="{:.2f}",
        cell=(wide, 40),
        size=14,
    )
    sheet.arrow(frame, average)
    sheet.arrow(average, row)
    sheet.axes.add_patch(
        Rectangle(
            (left + largest * wide, low + 162),
            wide,
            40,
            fill=False,
            edgecolor="#b35900",
            linewidth=3.5,
            zorder=6,
        )
    )
    sheet.label(180, low + 222, f"weights of “drink” in {word}", size=14)
