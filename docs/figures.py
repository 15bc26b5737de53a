"""The chart of *Figures*: how many times as fast as other people's code.

    python docs/figures.py

It reads the table of `figures.md`, so that chart and table agree.
"""

from pathlib import Path
import re

from course.sheet import KINDS, Sheet

HERE = Path(__file__).parent
RIVAL = re.compile(r"(torch|keras-hub|`?[Kk]eras)")
LEFT, SCALE = 290, 140  # where the bars begin; pixels for "equally fast"


def read_table(text):
    """What was measured, the rival, and the ratio: one row for each rival."""
    section = text.partition("\n## Speed and memory\n")[2].partition("\n## ")[0]
    measured = ""
    for row in re.findall(r"^\|(.*)\|$", section, re.MULTILINE):
        what, _, rival, ratio = map(str.strip, row.split("|"))
        measured = what or measured
        if RIVAL.match(rival):
            yield measured, re.sub(r" [\d.,]+$|`", "", rival), float(ratio)


def draw(text):
    """The chart of a page's table."""
    rows = list(read_table(text))
    sheet = Sheet(36 * len(rows) + 60)
    top = sheet.height - 44
    one = LEFT + SCALE
    sheet.line([(one, 22), (one, top + 8)], 1, "#888888", dashed=True)
    sheet.label(one, top + 22, "equally fast", size=11)
    for number, (measured, name, ratio) in enumerate(rows):
        y = top - 24 - 36 * number
        measured = re.sub(r"[¹²³⁴]|, (tokens|sentences)?/?s$", "", measured)
        sheet.label(LEFT - 10, y, measured, align="right", size=10)
        end = LEFT + SCALE * ratio
        sheet.line([(LEFT, y), (end, y)], 12, KINDS["projection"][1])
        sheet.label(end + 8, y, f"{ratio:.2f} × {name}", align="left", size=10)
    return sheet


if __name__ == "__main__":
    text = (HERE / "figures.md").read_text(encoding="utf-8")
    (HERE / "figures.svg").write_bytes(draw(text).svg().encode())
