"""A query and a key become features apart; they meet in one dot product."""

from course.sheet import Sheet

sheet = Sheet(250)
steps = {}
for y, name, letter in ((170, "query", "q"), (40, "key", "k")):
    kind = "query" if letter == "q" else "data"
    start = sheet.box(20, y, f"{name} ${letter}$", kind, 78, 40)
    ask = sheet.box(184, y, f"$w_f \\cdot {letter}$", "projection", 84, 40)
    sheet.arrow(start, ask, "K numbers")
    size = sheet.box(
        364, y, f"$-\\|{letter}\\|^2/2$, exp, $/\\sqrt{{F}}$", "norm", 150, 40
    )
    sheet.arrow(ask, size, "F numbers")
    steps[letter] = size
sheet.box(126, 105, "directions $w_1, …, w_F$", "memory", 200, 38)
for letter, y in (("q", 170), ("k", 80)):
    end = (226, y)
    sheet.arrow((226, 143 if letter == "q" else 105), end)
product = "dot product\n$\\approx e^{q \\cdot k}$"
sheet.box(560, 98, product, "attention", 120, 54)
sheet.arrow(
    steps["q"].right, (620, 152), "$\\phi(q)$", via=[(620, 190)], side="above"
)
sheet.arrow(
    steps["k"].right, (620, 98), "$\\phi(k)$", via=[(620, 60)], side="below"
)
