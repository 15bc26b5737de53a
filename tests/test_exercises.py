"""Each exercise needs only the setup, has a solution, and checks itself.

`wrong_answers/NN_name.py` holds plausible wrong answers to the exercises of a
chapter: cells that begin with a line `# %% exercise 2 | words of the message`,
which the check must say, and a comment that names the slip.
"""

import ast
from pathlib import Path
import re

import build
import jupytext
import matplotlib
import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CHAPTERS = sorted((NOTEBOOKS / "source").glob("*.md"))
WRONG = Path(__file__).parent / "wrong_answers"
TITLE = re.compile(r"^# %% exercise (\d+) \| (.+)$", re.MULTILINE)

matplotlib.use("agg")


def cells(path, tag):
    return [
        cell
        for cell in jupytext.read(path, fmt="md:myst").cells
        if tag in cell.metadata.get("tags", [])
    ]


def coded_exercises(path):
    """The exercises of a chapter that ask for code.

    A dict of number to the cell that asks and the check, which may stand in
    several cells.
    """
    found, number = {}, None
    for cell in jupytext.read(path, fmt="md:myst").cells:
        heading = re.search(r"^### Exercise (\d+)", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and heading:
            number = int(heading[1])
        tags = cell.metadata.get("tags", [])
        if "exercise" in tags:
            assert number not in found
            found[number] = cell.source, ""
        elif "check" in tags:
            exercise, check = found[number]
            found[number] = exercise, f"{check}\n\n{cell.source}"
    assert all(check for _, check in found.values())
    return found


def exercises():
    for path in CHAPTERS:
        for number, (exercise, check) in coded_exercises(path).items():
            yield pytest.param(
                path, exercise, check, id=f"{path.stem}-{number}"
            )


def setup(path):
    names = {"__name__": "__main__"}
    for cell in cells(path, "setup"):
        exec(compile(cell.source, path.name, "exec"), names)
    return names


@pytest.mark.parametrize(("path", "exercise", "check"), exercises())
def test_the_solution_passes_its_check_and_the_stub_does_not(
    path, exercise, check, monkeypatch
):
    monkeypatch.chdir(NOTEBOOKS)
    solution = build.SOLUTION.sub(r"\2", exercise)
    stub = build.SOLUTION.sub(r"\1...  # your code\n", exercise)
    assert solution != exercise != stub
    names = setup(path)
    exec(solution, names)
    exec(check, names)
    names = setup(path)
    with pytest.raises(Exception):  # noqa: B017, PT011
        exec(stub, names)
        exec(check, names)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_exercises_that_check_themselves(path):
    assert len(cells(path, "exercise")) >= 2


def wrong_answers():
    for path in CHAPTERS:
        answers = WRONG / f"{path.stem}.py"
        if answers.exists():
            _, *parts = TITLE.split(answers.read_text(encoding="utf-8"))
            cases = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
            for order, (number, message, code) in enumerate(cases, 1):
                yield pytest.param(
                    path, int(number), message, code, id=f"{path.stem}-{order}"
                )


@pytest.mark.parametrize(("path", "number", "message", "code"), wrong_answers())
def test_a_wrong_answer_is_refused_with_words_that_help(
    path, number, message, code, monkeypatch
):
    monkeypatch.chdir(NOTEBOOKS)
    exercise, check = coded_exercises(path)[number]
    names = setup(path)
    exec(code, names)  # it runs: only the check finds it wrong
    assert defined(exercise) <= defined(code)
    with pytest.raises(AssertionError, match=re.escape(message)):
        exec(check, names)


def defined(source):
    """The names that a cell defines."""
    nodes = ast.parse(source).body
    return {n.name for n in nodes if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize(
    "path",
    [path for path in CHAPTERS if (WRONG / f"{path.stem}.py").exists()],
    ids=lambda path: path.stem,
)
def test_every_check_is_tried_with_five_different_wrong_answers(path):
    _, *parts = TITLE.split((WRONG / f"{path.stem}.py").read_text("utf-8"))
    tried = {}
    for number, code in zip(parts[::3], parts[2::3], strict=True):
        tried.setdefault(int(number), set()).add(ast.dump(ast.parse(code)))
    assert tried.keys() == coded_exercises(path).keys()
    assert min(map(len, tried.values())) >= 5
