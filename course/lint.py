"""What a chapter asks of its reader: minutes, and what would not fit.

python -m course.build lint [chapter …]
"""

import re
from typing import NamedTuple

from course import build
import jupytext

STATED = re.compile(
    r"^(\d+) min · |\*\*Time:\*\* about (\d+) minutes", re.MULTILINE
)
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
WORDS_A_MINUTE, LINES_A_MINUTE = 150, 10
FORMULA, FIGURE, PREDICTION = 0.5, 0.75, 1.5  # minutes
CLOSED = {"setup", "figure", "hide-input", "claims"}  # code that is folded
WIDEST = 80  # columns of code that the book shows without scrolling
WIDE_FIGURE = re.compile(r"figsize=\((?:[89]|7\.[1-9]|\d\d)")  # of 7 inches
MOST_ASSERTS = 3  # that are shown: they are the lesson, or claims


class Counts(NamedTuple):
    """What a reader is shown before the exercises, folds left out."""

    words: int
    cells: int
    lines: int  # of code
    asserts: int
    cut: int  # lines too wide for the book
    minutes: float  # to read it
    stated: int  # minutes, by the chapter itself


def tags(cell):
    return set(cell.metadata.get("tags", []))


def _is_shown(cell):
    return cell.cell_type == "code" and not tags(cell) & CLOSED


def cells_of(source):
    return jupytext.read(source, fmt="md:myst").cells


def read_cells(source):
    """The cells that a reader works through: those before the exercises."""
    for cell in cells_of(source):
        if cell.source.startswith("## Exercises"):
            return
        yield cell


def _read(text):
    """A text without its folds, its drawings as their captions."""
    return build.DRAWING.sub(r"\3", FOLDED.sub("", text))


def count(source):
    """Return the counts of a chapter's source."""
    cells = [x for x in read_cells(source) if "claims" not in tags(x)]
    prose = [x.source for x in cells if x.cell_type == "markdown"]
    shown = [_read(text) for text in prose]
    # The answer to a prediction is read, too.
    predictions = [x.source for x in cells if "predict" in tags(x)]
    answers = "".join(FOLDED.findall("".join(predictions)))
    code = [x.source.split("\n") for x in cells if _is_shown(x)]
    lines = [line for cell in code for line in cell if line]
    words = sum(len(text.split()) for text in shown)
    figures = sum(len(build.DRAWING.findall(text)) for text in prose)
    figures += sum("figure" in tags(x) for x in cells)
    formulas = sum(text.count("$$") // 2 for text in [*shown, answers])
    minutes = (words + len(answers.split())) / WORDS_A_MINUTE
    minutes += len(lines) / LINES_A_MINUTE
    minutes += FORMULA * formulas + FIGURE * figures
    minutes += PREDICTION * len(predictions)
    stated = STATED.search("\n".join(prose))
    return Counts(
        words=words,
        cells=len(cells),
        lines=len(lines),
        asserts=sum(line.lstrip().startswith("assert ") for line in lines),
        cut=sum(len(line) > WIDEST for line in lines),
        minutes=minutes,
        stated=int(stated[1] or stated[2]),
    )


def problems(source):
    """Return a sentence for each thing that would not fit its reader."""
    number, counts, found = source.name[:2], count(source), []
    if not 0.8 <= counts.stated / counts.minutes <= 1.2:
        found.append(
            f"{number}: it states {counts.stated} minutes; reading it takes "
            f"{counts.minutes:.0f}."
        )
    if counts.asserts > MOST_ASSERTS:
        found.append(f"{number}: it shows {counts.asserts} asserts.")
    if counts.cut:
        found.append(f"{number}: {counts.cut} lines are too wide for the book.")
    every = cells_of(source)
    wide = sum(len(WIDE_FIGURE.findall(x.source)) for x in every)
    if wide:
        found.append(f"{number}: {wide} figures are wider than 7 inches.")
    return found


def main(chosen):
    """Print the counts of chapters; return what would not fit."""
    print("chapter  words  cells  lines  asserts  cut  minutes  stated")
    for source in chosen:
        x = count(source)
        print(
            f"{source.name[:2]:7}{x.words:7}{x.cells:7}{x.lines:7}"
            f"{x.asserts:9}{x.cut:5}{x.minutes:9.0f}{x.stated:8}"
        )
    return [problem for source in chosen for problem in problems(source)]
