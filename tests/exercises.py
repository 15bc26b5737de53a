"""The exercises of all chapters, for the tests that try answers on them."""

import ast

from course import build, editions
from d2l_attention import notebook
import keras
import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

CHAPTERS = [editions.read_chapter(source) for source in build.sources([])]

each_chapter = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=lambda chapter: chapter.name
)


def coded(chapter):
    """Dict of number → each exercise that asks for code."""
    return {x.number: x for x in chapter.exercises if x.code}


def exercises():
    for chapter in CHAPTERS:
        for number, exercise in coded(chapter).items():
            yield pytest.param(chapter, exercise, id=f"{chapter.name}-{number}")


def answered(chapter, answer):
    """The names after the setup of a chapter and an answer.

    The setup runs for each answer: it takes a tenth of a millisecond, and its
    seeds are what no earlier answer may have moved.
    """
    names = {"__name__": "__main__"}
    exec(compile(chapter.setup, chapter.name, "exec"), names)
    exec(answer, names)
    return names


def check(exercise, names):
    exec(exercise.check, names)


def check_hidden(exercise, names, rng, solved):
    """Run the hidden check, as an assignment does."""
    lines = editions.body(exercise.hidden, exercise.setup)
    names = {**names, "rng": rng, "solved": solved, "apart": notebook.apart}
    exec(f"@apart\ndef hidden_check():\n{lines}", names)


each_exercise = pytest.mark.parametrize(
    ("chapter", "exercise"), list(exercises())
)


def right_answers():
    for chapter in CHAPTERS:
        for number, answers in chapter.right_answers.items():
            for order, (_, answer) in enumerate(answers, 1):
                name = f"{chapter.name}-{number}-{order}"
                yield pytest.param(chapter, number, answer, id=name)


each_right_answer = pytest.mark.parametrize(
    ("chapter", "number", "answer"), list(right_answers())
)


def single(numbers):
    """The same numbers in 32 bits, if they are not whole."""
    numbers = np.array(numbers)
    return np.float32(numbers) if numbers.dtype.kind == "f" else numbers


FORMS = {  # of the numbers that an answer returns
    "lists": lambda numbers: np.array(numbers).tolist(),
    "32 bits": single,
    "tensors": lambda numbers: keras.ops.convert_to_tensor(single(numbers)),
}
DEMANDED = {  # by the text of the exercise
    ("03_masked_softmax", 1, "lists"),  # an array of float32
    ("09_hard_attention", 4, "lists"),  # a tensor with a gradient
    ("09_hard_attention", 4, "32 bits"),
    ("09_hard_attention", 4, "tensors"),
}


def forms():
    for case in exercises():
        chapter, exercise = case.values
        for form in FORMS:
            if (chapter.name, exercise.number, form) not in DEMANDED:
                name = f"{case.id}-{form}"
                yield pytest.param(chapter, exercise, FORMS[form], id=name)


each_form = pytest.mark.parametrize(
    ("chapter", "exercise", "form"), list(forms())
)


def in_form(form, function):
    """The function, with another form of each number that it returns."""

    def convert(result):
        if isinstance(result, (tuple, list)):
            return type(result)(map(convert, result))
        numbers = isinstance(result, (float, np.floating, np.ndarray))
        if numbers or keras.ops.is_tensor(result):
            return form(result)
        return result

    return lambda *inputs, **options: convert(function(*inputs, **options))


def defined(source):
    """The names that a cell defines."""
    nodes = ast.parse(source).body
    return {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
