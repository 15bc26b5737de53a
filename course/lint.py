"""What is counted in a chapter: words, cells, lines, asserts, minutes.

python -m course.build lint [chapter …]
"""

import re
from typing import NamedTuple

from course import build
import jupytext

DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)
WORDS_A_MINUTE, LINES_A_MINUTE = 150, 10
FORMULA, FIGURE = 0.5, 0.75  # minutes
MOST_WORDS = 90  # of a paragraph
MOST_LINES = 30  # of a cell


class Counts(NamedTuple):
    """What a reader is shown before the exercises, folds left out."""

    words: int
    cells: int
    lines: int  # of code
    asserts: int
    minutes: float  # to read it
    stated: int  # minutes, by the chapter itself


def _tags(cell):
    return set(cell.metadata.get("tags", []))


def _is_shown(cell):
    return not _tags(cell) & {"hide-input", "setup"}


def _read_cells(source):
    """The cells that a reader works through: those before the exercises."""
    for cell in jupytext.read(source, fmt="md:myst").cells:
        if cell.source.startswith("## Exercises"):
            return
        yield cell


def count(source):
    """Return the counts of a chapter's source."""
    cells = list(_read_cells(source))
    prose = [x.source for x in cells if x.cell_type == "markdown"]
    shown = [DETAILS.sub("", text) for text in prose]
    code = [x for x in cells if x.cell_type == "code"]
    lines = [y for x in code if _is_shown(x) for y in x.source.split("\n") if y]
    words = sum(len(text.split()) for text in shown)
    figures = sum(len(build.DRAWING.findall(text)) for text in shown)
    figures += sum(x.source.count("display_figure(") for x in code)
    formulas = sum(text.count("$$") // 2 for text in shown)
    minutes = words / WORDS_A_MINUTE + len(lines) / LINES_A_MINUTE
    minutes += FORMULA * formulas + FIGURE * figures
    stated = re.search(r"\*\*Time:\*\* about (\d+) minutes", "\n".join(prose))
    return Counts(
        words=words,
        cells=len(cells),
        lines=len(lines),
        asserts=sum(line.lstrip().startswith("assert ") for line in lines),
        minutes=minutes,
        stated=int(stated[1]),
    )


def problems(source):
    """Return a sentence for each thing that is too long for its reader."""
    number, counts, found = source.name[:2], count(source), []
    if not 0.8 <= counts.stated / counts.minutes <= 1.2:
        found.append(
            f"{number}: it states {counts.stated} minutes; reading it takes "
            f"{counts.minutes:.0f}."
        )
    _, *cells = _read_cells(source)
    for cell in cells:
        first = cell.source.split("\n")[0]
        if cell.cell_type == "code":
            if _is_shown(cell) and cell.source.count("\n") >= MOST_LINES:
                found.append(f"{number}: a cell is long: {first}")
            continue
        text = DETAILS.sub("", build.DRAWING.sub("", cell.source))
        for paragraph in text.split("## In short")[0].split("\n\n"):
            if len(paragraph.split()) > MOST_WORDS:
                start = " ".join(paragraph.split()[:7])
                found.append(f"{number}: a paragraph is long: {start} …")
    return found


def main(chosen):
    """Print the counts of chapters; return what is too long."""
    print("chapter  words  cells  lines  asserts  minutes  stated")
    for source in chosen:
        x = count(source)
        print(
            f"{source.name[:2]:7}{x.words:7}{x.cells:7}{x.lines:7}"
            f"{x.asserts:9}{x.minutes:9.0f}{x.stated:8}"
        )
    return [problem for source in chosen for problem in problems(source)]
