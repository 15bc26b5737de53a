"""One weight for each stop: three stops today, nine tomorrow."""

from course.sheet import Sheet

TODAY = [1, 7, 3]  # how thick the lines are
TOMORROW = [1.5, 1, 3, 1, 2, 1, 7, 1, 2]


def fan(sheet, x, y, height, widths, step, size=12):
    """A question above, stops below, and a line to each of them."""
    middle = x + step * (len(widths) - 1) / 2
    ask = sheet.box(middle - 60, y + height, "where next?", "query", 120, 34)
    for place, width in enumerate(widths):
        left = x + place * step - 17
        kind = "attention" if width == max(widths) else "data"
        stop = sheet.row_of_tokens(left, y, [f"{place}"], 34, kind, size=size)
        sheet.arrow(ask.bottom, stop[0].top, width=width, colour="#b35900")


sheet = Sheet(240)
sheet.label(120, 212, "today: three stops", size=13)
sheet.label(472, 212, "tomorrow: nine stops", size=13)
fan(sheet, 66, 40, 116, TODAY, 54)
fan(sheet, 256, 40, 116, TOMORROW, 54)
sheet.label(120, 20, "three weights", size=12)
sheet.label(472, 20, "nine weights", size=12)
