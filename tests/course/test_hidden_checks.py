"""Hidden checks, with which teachers grade, ask for other numbers each year.

A cell tagged `hidden` stands behind the visible checks of a coded exercise. It
draws sizes, numbers and faults from a generator `rng`, whose seed the teacher
keeps, and compares with `solved`, what the reference solution defines.
"""

import ast
from contextlib import suppress
from functools import partial
import hashlib
import re
from types import SimpleNamespace
import warnings

from course import build, editions
from d2l_attention.notebook import time_limit
from exercises import (
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
import jupytext
import keras
import nbformat
import numpy as np
import pytest

SEED, ANOTHER = 1, 2


@pytest.fixture(autouse=True)
def in_the_folder_of_the_notebooks(monkeypatch):
    monkeypatch.chdir(editions.NOTEBOOKS)


def source_of(chapter):
    [source] = build.sources([chapter.name])
    return source


def grade(chapter, exercise, answer, seed, spy=None):
    """Run an answer and the hidden check as nbgrader does.

    Args:
        spy: None, or a function that the answer's functions become.

    Returns:
        The generator of the hidden check.
    """
    reference = answered(chapter, exercise.solution)
    names, wanted = answered(chapter, answer), defined(exercise.solution)
    for name in wanted if spy else ():
        names[name] = spy(names[name])
    rng = np.random.default_rng(seed)
    solved = SimpleNamespace(**{name: reference[name] for name in wanted})
    check_hidden(exercise, names, rng, solved)
    return rng


@each_chapter
def test_every_coded_exercise_has_one_hidden_check(chapter):
    """It stands behind the visible ones and fits on a screen."""
    found = jupytext.read(source_of(chapter), fmt="md:myst").cells
    sources = [cell.source for cell in found]
    for exercise in coded(chapter).values():
        before = found[sources.index(exercise.hidden) - 1]
        assert before.metadata["tags"] == ["check"]
        lines = exercise.hidden.split("\n")
        assert len(lines) < 30 and max(map(len, lines)) <= 80


@each_chapter
def test_readers_never_meet_a_hidden_check(chapter):
    source = source_of(chapter)
    built = nbformat.read(build.target(source), as_version=4)
    for cell in [*built.cells, *build.published(source).cells]:
        assert "hidden" not in cell.metadata.get("tags", [])
        for exercise in coded(chapter).values():
            assert exercise.hidden not in cell.source


@each_right_answer
def test_a_right_answer_passes(chapter, number, answer):
    grade(chapter, coded(chapter)[number], answer, SEED)


@each_form
def test_the_form_of_a_right_answer_does_not_matter(chapter, exercise, form):
    spy = partial(in_form, form)
    grade(chapter, exercise, exercise.solution, SEED, spy)


@each_exercise
def test_arguments_that_an_answer_changes_do_not_change_what_is_right(
    chapter, exercise
):
    """They are copies, or the check says that they must stay."""

    def spoiling(function):
        def own(result):
            return result.copy() if isinstance(result, np.ndarray) else result

        copied = in_form(own, function)  # it may be a view of an argument

        def spoil(*inputs):
            result = copied(*inputs)
            for x in inputs:
                if isinstance(x, np.ndarray) and x.size:
                    x[...] = x[::-1].copy()
            return result

        return spoil

    inputs = chapter, exercise, exercise.solution, SEED, spoiling
    try:
        grade(*inputs)
    except AssertionError as refused:
        assert re.search("stay|change", str(refused)), refused


@each_exercise
def test_the_stub_fails(chapter, exercise):
    with pytest.raises((AssertionError, TypeError, ValueError)):
        grade(chapter, exercise, exercise.stub, SEED)


@each_exercise
def test_most_wrong_answers_are_refused(chapter, exercise):
    """Half at least; some break a prohibition only, and are right."""
    refused = [
        is_refused(chapter, exercise, answer)
        for _, answer, _ in chapter.slips[exercise.number]
    ]
    assert sum(refused) >= len(refused) / 2 > 0, refused


def is_refused(chapter, exercise, answer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning is no refusal
        try:
            with time_limit(2):
                grade(chapter, exercise, answer, SEED)
        except Exception:  # also of shapes that do not fit
            return True
    return False


@each_exercise
def test_the_solution_passes_and_another_seed_asks_for_other_numbers(
    chapter, exercise
):
    first, again, other = (
        asked(chapter, exercise, seed) for seed in (SEED, SEED, ANOTHER)
    )
    assert first == again
    assert not set(first) & set(other)


def asked(chapter, exercise, seed):
    """Digests of what the check hands to the student's functions."""
    calls = []

    def spy(function):
        def spied(*arguments):
            calls.append(hashlib.sha1(contents(arguments)).hexdigest())
            return function(*arguments)

        return spied

    rng = grade(chapter, exercise, exercise.solution, seed, spy)
    fresh = np.random.default_rng(seed).bit_generator.state
    assert calls and rng.bit_generator.state != fresh
    return calls


def contents(value):
    """The numbers in an argument, as bytes."""
    if isinstance(value, keras.layers.Layer):  # the same class, other weights
        value = value.get_weights()
    if keras.ops.is_tensor(value):
        value = keras.ops.convert_to_numpy(value)
    if isinstance(value, (list, tuple)):
        return b"(" + b",".join(map(contents, value)) + b")"
    if isinstance(value, set):
        return contents(sorted(value))
    if isinstance(value, np.ndarray):
        return repr(value.shape).encode() + value.tobytes()
    if isinstance(value, (bool, int, float, np.generic)):
        return repr(value).encode()
    return type(value).__name__.encode()


@each_exercise
def test_the_first_question_has_a_size_that_was_not_shown(chapter, exercise):
    """Or a table of what the visible check asks for would pass some seeds."""
    shown, first = [], []
    names = answered(chapter, exercise.solution)
    for name in defined(exercise.solution):
        names[name] = asks(names[name], shown)
    with suppress(AssertionError):  # of a check that counts memory
        check(exercise, names)
    reference = answered(chapter, exercise.solution)
    for seed in range(12):
        names, rng = dict(reference), np.random.default_rng(seed)
        for name in defined(exercise.solution):
            names[name] = asks(reference[name], first, only=True)
        with pytest.raises(Asked):
            check_hidden(exercise, names, rng, SimpleNamespace(**reference))
    assert first and shown
    drawn = {repr(size) for size in first}
    if len(drawn) > 1:  # else the numbers are drawn, and not the sizes
        assert not drawn & {repr(size) for size in shown}


class Asked(Exception):
    """A function was called; what it answers does not matter."""


def asks(function, sizes, only=False):
    """A function that notes the sizes of its arguments, and may stop then."""

    def asked(*arguments, **options):
        sizes.append([size(x) for x in [*arguments, *options.values()]])
        if only:
            raise Asked
        return function(*arguments, **options)

    return asked


def size(value):
    """The shape of an array of real numbers; anything discrete as it is."""
    if isinstance(value, keras.layers.Layer):
        return [tuple(weight.shape) for weight in value.weights]
    if isinstance(value, (list, tuple)):
        return [size(x) for x in value]
    if hasattr(value, "dtype") and np.ndim(value):
        whole = isinstance(value, np.ndarray) and value.dtype.kind in "iub"
        return value.tolist() if whole else tuple(value.shape)
    return None if callable(value) else value


@each_chapter
def test_a_hidden_check_says_what_it_asked_for(chapter):
    """Each of its assertions names the function it is about, first."""
    for exercise in coded(chapter).values():
        nodes = list(ast.walk(ast.parse(exercise.hidden)))
        said = [ast.unparse(n.msg) for n in nodes if isinstance(n, ast.Assert)]
        [name] = defined(exercise.solution)
        assert said and all(re.match(rf"f?['\"]{name}: ", m) for m in said)
