"""Three steps of a pointer network, for a phone."""

import importlib

from course.sheet import NARROW, Sheet

wide = importlib.import_module("course.drawings.11_steps")
sheet = Sheet(540, NARROW)
sheet.label(180, 518, "hatched: already named", size=13)
for step, answer in enumerate(wide.answers):
    y = 420 - 174 * step
    state = sheet.box(10, y, wide.states[step], "query", 88, 36, size=13)
    weights = sheet.matrix(
        150,
        y + 2,
        [wide.rows[step]],
        columns=["0.7", "0.1", "0.4"],
        weights=True,
        masked=[wide.named[step]],
        form="{:.2f}",
        cell=(66, 32),
        size=13,
    )
    sheet.arrow(state, weights)
    middle = 150 + 66 * (answer + 0.5)
    [place] = sheet.row_of_tokens(
        middle - 33, y - 56, [f"place {answer}"], 66, size=13
    )
    sheet.arrow((middle, y + 2), place.top, width=3)
    if step < 2:
        sheet.arrow(place.left, (54, y - 138), via=[(54, y - 42)])
sheet.label(62, 364, "fed back", align="left", size=13)
