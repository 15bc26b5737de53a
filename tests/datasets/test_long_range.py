"""Nested lists and lookups, checked by an evaluation of their own."""

from d2l_attention.datasets import (
    LIST_OPS_TOKENS,
    draw_list_ops,
    draw_retrieval,
)
import numpy as np
import pytest


def evaluate(text):
    """By Python itself, through the text of an expression."""
    words = {
        "[MAX": "max([",
        "[MIN": "min([",
        "[MED": "median([",
        "[SM": "total([",
        "]": "]),",
    }
    code = " ".join(words.get(w, f"{w},") for w in text.split())
    names = {
        "median": lambda x: int(np.median(x)),
        "total": lambda x: sum(x) % 10,
    }
    return eval(code.rstrip(","), names)  # noqa: S307


def text_of(ids):
    return " ".join(LIST_OPS_TOKENS[i] for i in ids if i)


def test_list_ops_are_what_they_come_to():
    assert evaluate("[MAX 4 [MIN 2 9 ] [SM 7 8 ] [MED 1 2 6 9 ] ]") == 5
    ids, labels = draw_list_ops(300, 20, 60, seed=1)
    assert ids.shape == (300, 60)
    assert [evaluate(text_of(row)) for row in ids] == list(labels)
    lengths = (ids > 0).sum(1)
    assert lengths.min() >= 20
    assert ((ids > 0) == (np.arange(60) < lengths[:, None])).all()
    assert len({row.tobytes() for row in ids}) == 300
    assert set(labels) == set(range(10))
    assert {x for row in ids for x in row} == set(range(len(LIST_OPS_TOKENS)))


@pytest.mark.parametrize(
    "bad", [{"max_depth": 0}, {"max_depth": 1}, {"max_args": 1}]
)
def test_lists_that_cannot_be_are_refused(bad):
    (name, value), *_ = bad.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        draw_list_ops(5, 5, 20, **bad)


def test_depth_and_arguments_are_bounded():
    ids, _ = draw_list_ops(50, 5, 200, max_depth=3, max_args=4)
    for row in ids:
        depth, counts, seen = 0, [0], []
        for token in text_of(row).split():
            if token == "]":
                seen.append(counts.pop())
                depth -= 1
                continue
            counts[-1] += 1
            if token.startswith("["):
                depth += 1
                counts.append(0)
            assert depth <= 2  # the digits inside are the third
        assert 2 <= min(seen) <= max(seen) <= 4


def test_the_same_seed_draws_the_same():
    for draw in (
        lambda seed: draw_list_ops(5, 10, 30, seed),
        lambda seed: draw_retrieval(5, 20, seed=seed),
    ):
        for a, b in zip(draw(1), draw(1), strict=True):
            np.testing.assert_array_equal(a, b)
        assert (draw(1)[0] != draw(2)[0]).any()


@pytest.mark.parametrize("num_questions", [1, 3])
def test_retrieval_has_its_answers_where_it_says(num_questions):
    ids, labels, places = draw_retrieval(
        500, 50, num_questions, 4, 5, 3, seed=1
    )
    assert labels.shape == places.shape == (500, num_questions)
    names = ids[:, :num_questions] - 1
    for row in names:
        assert len(set(row)) == num_questions
    for column in names.T:
        assert set(column) == set(range(4))
    pairs = np.take_along_axis(ids, places, 1) - 5
    np.testing.assert_array_equal(pairs // 5, names)
    np.testing.assert_array_equal(pairs % 5, labels)
    inside = (ids >= 5) & (ids < 25)
    assert (inside.sum(1) == 4).all()
    assert ids[:, num_questions:].min() == 5
    assert ids.max() == 4 * 6 + 3
    found = np.sort((ids[inside].reshape(500, 4) - 5) // 5, axis=1)
    assert (found == np.arange(4)).all()
    assert places.min() == num_questions
    assert places.max() == 49
    middle = (num_questions + 49) / 2
    assert abs(places[:, 0].mean() - middle) < 4 * 14.1 / 500**0.5


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: draw_list_ops(0, 5, 9), "num_examples=0"),
        (lambda: draw_list_ops(3, 9, 5), "min_length=9, max_length=5"),
        (lambda: draw_retrieval(3, 8), "length=8, .*num_names=8"),
        (lambda: draw_retrieval(3, 20, 9), "num_questions=9, num_names=8"),
        (lambda: draw_retrieval(3, 20, num_values=0), "num_values=0"),
    ],
)
def test_numbers_are_checked(call, message):
    with pytest.raises(ValueError, match=message):
        call()
