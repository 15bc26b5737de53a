"""Long sequences made on the spot: nested lists to evaluate, and a lookup."""

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
    """Different nested lists of digits, and the digit each comes to.

    As `[MAX 4 [MIN 2 9 ] 1 ]`, which is 4. Each element is an operation with
    probability 1/4 while the depth allows it, of 2 to `max_args` elements;
    operations are maximum, minimum, median (rounded down) and the sum modulo
    10. Expressions of other lengths are drawn again.

    Source: Nangia and Bowman (2018), arXiv:1804.06028, for the grammar; Tay et
    al. (2021), arXiv:2011.04006, for depth 10 and 10 arguments.

    Args:
        num_examples: Positive int, N.
        min_length: Positive int, fewest tokens.
        max_length: Positive int, most tokens T.
        seed: Int.
        max_depth: Positive int, deepest element.
        max_args: Int of at least 2, most elements of a list.

    Returns:
        ids, int32 array `(N, T)` of indices in `LIST_OPS_TOKENS`, padded with
        0, and labels, int32 array `(N,)` of 0 … 9.

    Raises:
        ValueError: If a number is not positive, `min_length` is above
            `max_length`, or depth or arguments allow no list.
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
    rng, found = random.Random(seed), {}
    while len(found) < num_examples:
        try:
            tokens, value = _expression(rng, max_depth, max_args, max_length)
        except _TooLong:
            continue
        if len(tokens) >= min_length:
            found[tuple(tokens)] = value
    ids = np.zeros((num_examples, max_length), "int32")
    for row, tokens in zip(ids, found, strict=True):
        row[: len(tokens)] = [LIST_OPS_TOKENS.index(x) for x in tokens]
    return ids, np.array(list(found.values()), "int32")


class _TooLong(Exception):
    """There is no room for an expression."""


def _expression(rng, max_depth, max_args, room):
    """Tokens and value; most trees are far too long, and left at once."""
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
    """Which values stand with the names that the first tokens ask for?

    Each name occurs once, at a random place among fillers, in one token with
    a random value. Nothing but a look at the right place, however far, tells
    the answer: chance is 1 / num_values. Several questions ask for different
    names; a model learns the sooner, the more it is asked.

    Args:
        num_examples: Positive int, N.
        length: Int, tokens T; at least a question and a name each.
        num_questions: Positive int, Q; no more than names.
        num_names: Positive int.
        num_values: Positive int, answers.
        num_fillers: Positive int, kinds of tokens that mean nothing.
        seed: Int.

    Returns:
        ids, int32 array `(N, T)`: 1 … num_names are questions, then come the
        pairs, then the fillers, num_names (1 + num_values) + num_fillers in
        all; labels, int32 array `(N, Q)` of values; and places, int32 array
        `(N, Q)`, where the answers stand.

    Raises:
        ValueError: If a number is not positive, or there is no room.
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
    pairs = 1 + num_names
    fillers = pairs + num_names * num_values
    ids = rng.integers(fillers, fillers + num_fillers, (num_examples, length))
    values = rng.integers(num_values, size=(num_examples, num_names))
    order = rng.random((num_examples, length - num_questions)).argsort(axis=1)
    places = num_questions + order[:, :num_names]
    names = np.arange(num_names)
    tokens = pairs + names * num_values + values
    np.put_along_axis(ids, places, tokens, axis=1)
    asked = rng.random((num_examples, num_names)).argsort(axis=1)
    asked = asked[:, :num_questions]
    ids[:, :num_questions] = 1 + asked
    answers, where = (
        np.take_along_axis(x, asked, axis=1).astype("int32")
        for x in (values, places)
    )
    return ids.astype("int32"), answers, where


def _check_positive(**sizes):
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(
                f"`{name}` must be positive. Received: {name}={size}."
            )
