"""Each exercise needs only the setup, has a solution, and checks itself."""

from pathlib import Path

import build
import jupytext
import matplotlib
import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CHAPTERS = sorted((NOTEBOOKS / "source").glob("*.md"))

matplotlib.use("agg")


def cells(path, tag):
    return [
        cell
        for cell in jupytext.read(path, fmt="md:myst").cells
        if tag in cell.metadata.get("tags", [])
    ]


def exercises():
    for path in CHAPTERS:
        pairs = zip(cells(path, "exercise"), cells(path, "check"), strict=True)
        for number, (exercise, check) in enumerate(pairs, 1):
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
    solution = build.SOLUTION.sub(r"\2", exercise.source)
    stub = build.SOLUTION.sub(r"\1...  # your code\n", exercise.source)
    assert solution != exercise.source != stub
    names = setup(path)
    exec(solution, names)
    exec(check.source, names)
    names = setup(path)
    with pytest.raises(Exception):  # noqa: B017, PT011
        exec(stub, names)
        exec(check.source, names)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_exercises_that_check_themselves(path):
    assert len(cells(path, "exercise")) >= 2
