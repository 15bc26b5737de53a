"""Tasks on long sequences, drawn at random: nested lists, and a lookup."""

import random
import statistics

import numpy as np

OPERATORS = {
    "[MAX": max,
    "[MIN": min,
    "[MED": lambda values: int(statistics.median(values)),
    "[SM": lambda values: sum(values) % 10,
}
LIST_OPS_TOKENS = ("", *OPERATORS, "]", *map(str, range(10)))
OPERATOR_SHARE = 0.25


def draw_list_ops(
    num_examples, min_length, max_length, seed=0, max_depth=10, max_args=10
):
    """Draw nested lists of digits, no two alike, and the value of each.

    For example, `[MAX 4 [MIN 2 9 ] 1 ]` has the value 4. An operation is the
    maximum, the minimum, the median (rounded down) or the sum modulo 10 of 2
    to `max_args` elements. While the depth allows it, each element is itself
    an operation with probability 1/4; otherwise it is a digit. Expressions
    that are too short or too long are drawn again.

    Source: Nangia and Bowman (2018), arXiv:1804.06028, for the grammar; Tay et
    al. (2021), arXiv:2011.04006, for depth 10 and 10 arguments.

    Args:
        num_examples: Positive int, number N of expressions.
        min_length, max_length: Positive ints, lengths in tokens of the
            shortest expression and of the longest, T.
        seed: Int, seed of the draws.
        max_depth: Positive int, depth of the deepest element.
        max_args: Int of at least 2, length of the longest list.

    Returns:
        Two int32 arrays: the ids `(N, T)`, which are indices in
        `LIST_OPS_TOKENS`, padded with 0; and the labels `(N,)`, 0 … 9.
    """
    _check_positive(
        num_examples=num_examples, min_length=min_length, max_depth=max_depth
    )
    if max_args < 2 or (max_depth == 1 and min_length > 1):
        raise ValueError(
            "Lists need `max_args` of at least 2 and a depth of at least 2. "
            f"Received: max_args={max_args}, max_depth={max_depth}, "
            f"min_length={min_length}."
        )
    if min_length > max_length:
        raise ValueError(
            "`min_length` must not be above `max_length`. Received: "
            f"min_length={min_length}, max_length={max_length}."
        )
    rng, values = random.Random(seed), {}
    while len(values) < num_examples:
        try:
            tokens, value = _expression(rng, max_depth, max_args, max_length)
        except _TooLong:
            continue
        if len(tokens) >= min_length:
            values[tuple(tokens)] = value
    ids = np.zeros((num_examples, max_length), "int32")
    for row, tokens in zip(ids, values, strict=True):
        row[: len(tokens)] = [LIST_OPS_TOKENS.index(x) for x in tokens]
    return ids, np.array(list(values.values()), "int32")


class _TooLong(Exception):
    """An expression does not fit."""


def _expression(rng, max_depth, max_args, room):
    """Draw one expression: its tokens and its value.

    Most expressions are far too long. They are given up as soon as they have
    more than `room` tokens.
    """
    if room < 1:
        raise _TooLong
    if max_depth == 1 or rng.random() > OPERATOR_SHARE:
        digit = rng.randrange(10)
        return [str(digit)], digit
    operator = rng.choice(list(OPERATORS))
    tokens, values = [operator], []
    for _ in range(rng.randint(2, max_args)):
        element, value = _expression(
            rng, max_depth - 1, max_args, room - len(tokens) - 1
        )
        tokens += element
        values.append(value)
    return [*tokens, "]"], OPERATORS[operator](values)


def draw_retrieval(
    num_examples,
    length,
    num_questions=1,
    num_names=8,
    num_values=8,
    num_fillers=16,
    seed=0,
):
    """Draw sequences whose first tokens ask for the values of names.

    A name and its value are one token. Each name occurs once, at a random
    place among fillers, with a random value. Only a look at the right place,
    however far away, tells the answer: chance is 1 / num_values. Several
    questions ask for different names. With more questions, a model learns
    sooner.

    Args:
        num_examples: Positive int, number N of sequences.
        length: Int, number T of tokens, at least `num_questions` +
            `num_names`.
        num_questions: Positive int, number Q of questions, at most
            `num_names`.
        num_names, num_values: Positive ints, numbers of names, and of values
            that a name can have.
        num_fillers: Positive int, number of fillers, which mean nothing.
        seed: Int, seed of the draws.

    Returns:
        Three int32 arrays: the ids `(N, T)`, the values that are asked for
        `(N, Q)`, and the places where they stand `(N, Q)`. Ids 1 … num_names
        are questions, the next num_names · num_values are pairs of name and
        value, and the last num_fillers are fillers.
    """
    _check_positive(
        num_examples=num_examples,
        num_questions=num_questions,
        num_names=num_names,
        num_values=num_values,
        num_fillers=num_fillers,
    )
    if num_questions > num_names or length < num_questions + num_names:
        raise ValueError(
            "There must be a name for each question, and room for both. "
            f"Received: length={length}, num_questions={num_questions}, "
            f"num_names={num_names}."
        )
    rng = np.random.default_rng(seed)
    pairs = 1 + num_names  # id of the first pair
    fillers = pairs + num_names * num_values
    ids = rng.integers(fillers, fillers + num_fillers, (num_examples, length))
    values = rng.integers(num_values, size=(num_examples, num_names))
    order = rng.random((num_examples, length - num_questions)).argsort(axis=1)
    places = num_questions + order[:, :num_names]  # (N, num_names)
    names = np.arange(num_names)
    tokens = pairs + names * num_values + values
    np.put_along_axis(ids, places, tokens, axis=1)
    asked = rng.random((num_examples, num_names)).argsort(axis=1)
    asked = asked[:, :num_questions]  # (N, Q), names without their 1
    ids[:, :num_questions] = 1 + asked
    answers = np.take_along_axis(values, asked, axis=1).astype("int32")
    answer_places = np.take_along_axis(places, asked, axis=1).astype("int32")
    return ids.astype("int32"), answers, answer_places


def _check_positive(**sizes):
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(
                f"`{name}` must be positive. Received: {name}={size}."
            )
