"""Each exercise needs only the setup, has a solution, and checks itself.

`course/wrong_answers/NN_name.py` holds plausible wrong answers to the exercises
of a chapter: cells that begin with a line `# %% exercise 2 | words`, the words
being those that the check must say, and a comment that names the slip. A cell
that begins with `# %% exercise 2 | right` is an answer that the check must
accept, though it is written in another way than the solution.
"""

import ast
import builtins
import inspect
import re
import tracemalloc
from types import SimpleNamespace

from course import editions
from d2l_attention import notebook
from d2l_attention.notebook import time_limit
from exercises import (
    CHAPTERS,
    answered,
    check,
    check_hidden,
    coded,
    defined,
    each_chapter,
    each_exercise,
    each_form,
    each_right_answer,
    in_form,
)
import keras
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def in_the_folder_of_the_notebooks(monkeypatch):
    monkeypatch.chdir(editions.NOTEBOOKS)


@pytest.fixture(autouse=True)
def nothing_is_measured_after_a_check():
    """What one answer holds would be counted for the next."""
    yield
    left = tracemalloc.is_tracing()
    tracemalloc.stop()
    assert not left


@each_exercise
def test_the_solution_passes_its_check(chapter, exercise):
    assert exercise.solution != exercise.code != exercise.stub
    names = answered(chapter, exercise.solution)
    check(exercise, names)


@each_exercise
def test_a_stub_is_told_that_it_returned_nothing(chapter, exercise):
    names = answered(chapter, exercise.stub)
    [name] = defined(exercise.stub)
    with pytest.raises(AssertionError, match=f"yet: {name} returned nothing"):
        check(exercise, names)


@each_exercise
def test_the_check_that_a_reader_runs_is_that_of_the_source(chapter, exercise):
    """Its lines are indented, which a text of several lines would notice."""
    shown = ast.parse(exercise.check).body[-1]
    lines = editions.body(exercise.hidden, exercise.setup)
    hidden = ast.parse(f"def hidden():\n{lines}").body[-1]
    visible = "\n\n".join(exercise.checks)
    for block, checks in ((shown, visible), (hidden, exercise.hidden)):
        assert isinstance(block, ast.FunctionDef)
        checks = [*map(ast.dump, ast.parse(checks).body)]
        *imports, _ = [*block.body, None][: -len(checks)]
        assert all(isinstance(x, ast.Import | ast.ImportFrom) for x in imports)
        assert [*map(ast.dump, block.body)][-len(checks) :] == checks


def reused(names):
    """The names of a notebook whose reader gave many away."""
    import math

    taken = dict.fromkeys(dir(builtins), 0) | vars(np) | vars(math)
    taken |= {"np": None, "keras": keras.layers, "rng": 7}
    taken |= {
        name: SimpleNamespace()
        for name, value in names.items()
        if inspect.ismodule(value) or inspect.isclass(value)
    }
    return names | taken | {"__builtins__": names["__builtins__"]}


@each_exercise
def test_what_a_reader_calls_other_things_does_not_matter(chapter, exercise):
    """The answer is the solution, whose own names are as they were."""
    names = answered(chapter, exercise.solution)
    answers = {name: names[name] for name in defined(exercise.solution)}
    solved = SimpleNamespace(**answers)
    hostile = reused(names) | answers
    check(exercise, hostile)
    check_hidden(exercise, hostile, np.random.default_rng(1), solved)


def test_a_wrong_answer_is_wrong_after_an_import_of_everything():
    """`all` of NumPy takes a generator for true."""
    [chapter] = [x for x in CHAPTERS if x.number == "30"]
    exercise = coded(chapter)[3]
    everything = "from numpy import *\n\n"
    for _, answer, message in chapter.slips[3]:
        names = answered(chapter, everything + answer)
        assert names["all"](x for x in [False])
        with pytest.raises(AssertionError, match=re.escape(message)):
            check(exercise, names)
    for rows in ("a, b", "a * 0, b * 0", "a, b * tokens[:, :, None]"):
        answer = f"def without_padding(a, b, tokens):\n    return {rows}"
        names = answered(chapter, everything + answer)
        reference = answered(chapter, exercise.solution)
        solved = SimpleNamespace(**reference)
        with pytest.raises(AssertionError):
            check_hidden(exercise, names, np.random.default_rng(1), solved)


def hasten(monkeypatch, seconds):
    """Give answers less time than a reader's have."""
    monkeypatch.setattr(notebook, "time_limit", lambda _: time_limit(seconds))


@each_chapter
def test_a_chapter_has_exercises_that_check_themselves(chapter):
    assert len(coded(chapter)) >= 2, "a chapter has two exercises in code"
    assert all(exercise.checks for exercise in coded(chapter).values())


def wrong_answers():
    for chapter in CHAPTERS:
        for number, slips in chapter.slips.items():
            for order, (_, answer, message) in enumerate(slips, 1):
                yield pytest.param(
                    chapter,
                    number,
                    message,
                    answer,
                    id=f"{chapter.name}-{number}-{order}",
                )


@pytest.mark.parametrize(
    ("chapter", "number", "message", "answer"), wrong_answers()
)
def test_a_wrong_answer_is_refused_with_words_that_help(
    chapter, number, message, answer, monkeypatch
):
    hasten(monkeypatch, seconds=2)
    exercise = coded(chapter)[number]
    names = answered(chapter, answer)  # it runs: only the check finds it wrong
    assert defined(exercise.code) <= defined(answer)
    with pytest.raises(AssertionError, match=re.escape(message)):
        check(exercise, names)


# Raised once, by a product of finite numbers in NumPy, and never again.
@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul")
@each_right_answer
def test_a_right_answer_is_accepted_however_it_is_written(
    chapter, number, answer
):
    names = answered(chapter, answer)
    check(coded(chapter)[number], names)


@each_form
def test_the_form_of_a_right_answer_does_not_matter(chapter, exercise, form):
    names = answered(chapter, exercise.solution)
    [name] = defined(exercise.solution)
    names[name] = in_form(form, names[name])
    check(exercise, names)


def exercises_that_loop():
    """Those of which some answer has a `while`."""
    for chapter in CHAPTERS:
        for number, exercise in coded(chapter).items():
            answers = [x[1] for x in chapter.slips.get(number, [])]
            answers += [x[1] for x in chapter.right_answers.get(number, [])]
            if any(map(loops, [exercise.solution, *answers])):
                yield pytest.param(
                    chapter, exercise, id=f"{chapter.name}-{number}"
                )


def loops(source):
    return any(isinstance(n, ast.While) for n in ast.walk(ast.parse(source)))


@pytest.mark.parametrize(("chapter", "exercise"), exercises_that_loop())
def test_an_answer_that_never_ends_is_ended_with_a_sentence(
    chapter, exercise, monkeypatch
):
    hasten(monkeypatch, seconds=0.2)
    [name] = defined(exercise.solution)
    endless = f"def {name}(*inputs):\n    while True:\n        pass"
    names = answered(chapter, endless)
    with pytest.raises(AssertionError, match="within 0.2 seconds"):
        with time_limit(5):  # where the check has none
            check(exercise, names)


@pytest.mark.parametrize(
    "chapter",
    [chapter for chapter in CHAPTERS if chapter.slips],
    ids=lambda chapter: chapter.name,
)
def test_every_check_is_tried_with_five_different_wrong_answers(chapter):
    assert chapter.slips.keys() == coded(chapter).keys()
    for number, slips in chapter.slips.items():
        different = {ast.dump(ast.parse(answer)) for _, answer, _ in slips}
        assert len(different) >= 5, f"exercise {number} has too few"
