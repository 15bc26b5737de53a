"""Hidden checks, with which teachers grade, ask for other numbers each year.

A cell tagged `hidden` stands behind the visible checks of a coded exercise. It
draws sizes, numbers and faults from a generator `rng`, whose seed the teacher
keeps, and compares with `solved`, what the reference solution defines.
"""

import ast
import hashlib
import re
from types import SimpleNamespace
import warnings

import build
import jupytext
import keras
import nbformat
import numpy as np
import pytest
from test_exercises import (
    NOTEBOOKS,
    cells,
    coded_exercises,
    defined,
    wrong_answers,
)

CHAPTERS = build.sources([*(f"{number:02}" for number in range(1, 9)), "16"])
SEEDS = (1, 2, 3)

pytestmark = pytest.mark.backend_free


def hidden_cells(path):
    """Pairs of the number of an exercise and a hidden cell behind it."""
    number = None
    for cell in jupytext.read(path, fmt="md:myst").cells:
        heading = re.search(r"^### Exercise (\d+)", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and heading:
            number = int(heading[1])
        if "hidden" in cell.metadata.get("tags", []):
            yield number, cell.source


# Each chapter is read once, which takes longer than most checks do.
SETUPS = {
    path: "\n\n".join(cell.source for cell in cells(path, "setup"))
    for path in CHAPTERS
}
EXERCISES = {
    (path, number): exercise
    for path in CHAPTERS
    for number, (exercise, _) in coded_exercises(path).items()
}
HIDDEN = {path: list(hidden_cells(path)) for path in CHAPTERS}
WRONG = [case.values for case in wrong_answers()]

each_chapter = pytest.mark.parametrize(
    "path", CHAPTERS, ids=lambda path: path.stem
)
each_exercise = pytest.mark.parametrize(
    ("path", "number"),
    [
        pytest.param(path, number, id=f"{path.stem}-{number}")
        for path, number in EXERCISES
    ],
)


def solution_of(path, number):
    return build.SOLUTION.sub(r"\2", EXERCISES[path, number])


def answered(path, answer):
    """The names behind the setup and an answer."""
    names = {"__name__": "__main__"}
    exec(SETUPS[path], names)
    exec(answer, names)
    return names


def grade(path, number, answer, seed, spy=None):
    """Run an answer and the hidden check as nbgrader does.

    Args:
        spy: None, or a function that the answer's functions become.

    Returns:
        The names that the hidden check left, and its generator.
    """
    solution = solution_of(path, number)
    reference = answered(path, solution)
    names, wanted = answered(path, answer), defined(solution)
    for name in wanted if spy else ():
        names[name] = spy(names[name])
    rng = np.random.default_rng(seed)
    solved = SimpleNamespace(**{name: reference[name] for name in wanted})
    before = names | {"rng": rng, "solved": solved}
    after = before.copy()
    exec(dict(HIDDEN[path])[number], after)
    left = {x for x in after if before.get(x) is not after[x]}
    return left - {"__builtins__"}, rng


@each_chapter
def test_every_coded_exercise_has_one_hidden_check(path):
    """It stands behind the visible ones and fits on a screen."""
    asked_for = [number for chapter, number in EXERCISES if chapter == path]
    assert [number for number, _ in HIDDEN[path]] == asked_for
    found = jupytext.read(path, fmt="md:myst").cells
    sources = [cell.source for cell in found]
    for _, hidden in HIDDEN[path]:
        before = found[sources.index(hidden) - 1]
        assert before.metadata["tags"] == ["check"]
        lines = hidden.split("\n")
        assert len(lines) < 30 and max(map(len, lines)) <= 80


@each_chapter
def test_readers_never_meet_a_hidden_check(path):
    built = nbformat.read(build.target(path), as_version=4)
    for cell in [*built.cells, *build.published(path).cells]:
        assert "hidden" not in cell.metadata.get("tags", [])
        assert not any(hidden in cell.source for _, hidden in HIDDEN[path])


@pytest.mark.parametrize("seed", SEEDS)
@each_exercise
def test_the_solution_passes_whatever_is_drawn(path, number, seed, monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)
    left, _ = grade(path, number, solution_of(path, number), seed)
    # No name of a student is overwritten.
    assert all(name.startswith("hidden_") for name in left)


@each_exercise
def test_the_stub_fails(path, number, monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)
    stub = build.SOLUTION.sub(r"\1...  # your code\n", EXERCISES[path, number])
    with pytest.raises((AssertionError, TypeError, ValueError)):
        grade(path, number, stub, SEEDS[0])


@each_exercise
def test_most_wrong_answers_are_refused(path, number, monkeypatch):
    """Half at least; some break a prohibition only, and are right."""
    monkeypatch.chdir(NOTEBOOKS)
    refused = [
        is_refused(path, number, answer)
        for chapter, of, _, answer in WRONG
        if (chapter, of) == (path, number)
    ]
    assert sum(refused) >= len(refused) / 2 > 0, refused


def is_refused(path, number, answer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning is no refusal
        try:
            grade(path, number, answer, SEEDS[0])
        except Exception:  # also of shapes that do not fit
            return True
    return False


@each_exercise
def test_another_seed_asks_for_other_numbers(path, number, monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)
    first, again, other = (
        asked(path, number, seed) for seed in (SEEDS[0], *SEEDS[:2])
    )
    assert first == again
    assert not set(first) & set(other)


def asked(path, number, seed):
    """Digests of what the check hands to the student's functions."""
    calls = []

    def spy(function):
        def spied(*arguments):
            calls.append(hashlib.sha1(contents(arguments)).hexdigest())
            return function(*arguments)

        return spied

    _, rng = grade(path, number, solution_of(path, number), seed, spy)
    fresh = np.random.default_rng(seed).bit_generator.state
    assert calls and rng.bit_generator.state != fresh
    return calls


def contents(value):
    """The numbers in an argument, as bytes."""
    if isinstance(value, keras.layers.Layer):  # the same class, other weights
        value = value.get_weights()
    if isinstance(value, (list, tuple)):
        return b"(" + b",".join(map(contents, value)) + b")"
    if isinstance(value, set):
        return contents(sorted(value))
    if isinstance(value, np.ndarray):
        return repr(value.shape).encode() + value.tobytes()
    if isinstance(value, (bool, int, float, np.generic)):
        return repr(value).encode()
    return type(value).__name__.encode()


@each_chapter
def test_a_hidden_check_says_what_it_asked_for(path):
    """Each of its assertions names the function it is about, first."""
    for number, source in HIDDEN[path]:
        nodes = list(ast.walk(ast.parse(source)))
        said = [ast.unparse(n.msg) for n in nodes if isinstance(n, ast.Assert)]
        [name] = defined(solution_of(path, number))
        assert said and all(re.match(rf"f?['\"]{name}: ", m) for m in said)
