"""Pieces of words: what people write comes back, and nothing is unknown."""

import functools

from d2l_attention.datasets import (
    DataError,
    SubwordVectorizer,
    ids_to_text,
    learn_subwords,
    load_pairs,
    pairs_to_ids,
    text_to_ids,
    tokenize,
)
from d2l_attention.datasets.tokens import clean, normalize
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

ENGLISH = [
    f"{who} {does} {what}."
    for who in ("Tom", "The girl", "My brother", "Nobody")
    for does in ("doesn't see", "wants", "sold")
    for what in ("the red car", "a house", "Mary's book")
]
CHINESE = [
    f"{who}{does}{what}。"
    for who in ("汤姆", "女孩", "我的兄弟")
    for does in ("看见了", "想要", "卖掉了")
    for what in ("红色的车", "一座房子", "玛丽的书")
]


@pytest.fixture(scope="module")
def chinese():
    return SubwordVectorizer.learn(CHINESE, 340)


@functools.cache
def learned():
    return SubwordVectorizer.learn(ENGLISH, 340)


@given(st.text(max_size=30).filter(lambda text: "▁" not in text))
def test_any_text_comes_back_and_has_no_unknown_id(text):
    assert learned().detokenize(learned().tokenize(text)) == clean(text)
    assert not (learned()([text]) == 1).any()


@pytest.fixture
def english():
    return learned()


def test_known_words_are_few_pieces(english):
    assert len(english.tokenize("The girl wants a house.")) < 9
    assert len(english.tokenize("Zxqj")) > 4


def test_ids_0_to_3_are_padding_unknown_start_and_end(english):
    assert english.get_vocabulary()[:4] == ["", "[UNK]", "[start]", "[end]"]
    assert len(english.get_vocabulary()) == english.vocabulary_size() <= 340
    ids = english(["Tom", "[start] Tom [end]", "[start]", ""])
    n = len(english.tokenize("Tom"))
    assert ids.dtype == np.int32 and ids.shape == (4, n + 2)
    assert (ids[0, :n] > 3).all() and (ids[0, n:] == 0).all()
    assert ids[1, 0] == 2 and ids[1, -1] == 3
    np.testing.assert_array_equal(ids[1, 1:-1], ids[0, :n])
    assert list(ids[2]) == [2] + [0] * (n + 1) and not ids[3].any()


def test_they_stand_where_word_vectorizers_stand(english, chinese):
    pairs = [("Tom wants a house.", "汤姆想要一座房子。"), ("Tom.", "汤姆。")]
    source, target = pairs_to_ids(pairs, (english, chinese), 12)
    assert source.shape == (2, 12) and target.shape == (2, 14)
    assert ids_to_text(source, english) == [pair[0] for pair in pairs]
    assert ids_to_text(target[:, 1:], chinese) == [pair[1] for pair in pairs]
    assert text_to_ids(["Tom wants a house."], english, 2).shape == (1, 2)
    assert tokenize("Tom", english) == english.tokenize("Tom")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tom doesn't see Mary's car.", "Tom|doesn't|see|Mary's|car|."),
        ("a house, sold!", "a|house|,|sold|!"),
        ("« Oui »", "«|Oui|»"),
        ("naïve Zoë", "naïve|Zoë"),
        ("我看见了 Tom。", "我|看|见|了|Tom|。"),
        ("(sold)", "(|sold|)"),
        ("Tom猫.", "Tom|猫|."),
        ("ไทย", "ไทย"),
    ],
)
def test_pieces_are_joined_to_words(text, words, english, chinese):
    pieces = english.tokenize(text)
    numbers, found = english.words(pieces)
    if "我" not in text:  # unseen characters in a row are one run of bytes
        assert found == words.split("|")
    else:
        numbers, found = chinese.words(chinese.tokenize(text))
        assert "".join(found) == text.replace(" ", "")
        assert found[-1] == "。" and len(found) > 3
    assert numbers == sorted(numbers) and {*numbers} == {*range(len(found))}


def test_a_small_corpus_has_fewer_pieces_than_asked_for():
    found = SubwordVectorizer.learn(ENGLISH, 5000)
    assert 340 < found.vocabulary_size() < 500


def test_learning_again_gives_the_same_pieces(english):
    again = SubwordVectorizer.learn(list(ENGLISH), 340)
    assert again.model == english.model
    assert SubwordVectorizer(again.model).tokenize("a house") == (
        english.tokenize("a house")
    )


def test_each_side_learns_its_own_pieces():
    pairs = [*zip(ENGLISH[: len(CHINESE)], CHINESE, strict=True)]
    one, two = learn_subwords(pairs, 340)
    assert any("▁T" in piece for piece in one.get_vocabulary())
    assert "汤" in "".join(two.get_vocabulary())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SubwordVectorizer(b"abc"), "3 bytes are no model"),
        (
            lambda: SubwordVectorizer.learn(["ab"], 9),
            "not learn 9 .*1 texts: .*at least 26[0-9]",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_raw_text_is_split_as_normalized_text_is(tmp_path):
    path = tmp_path / "pairs.tsv"
    lines = [f"{e}\t{e.upper()}\u202f!" for e in ENGLISH]
    path.write_text("\n".join([*lines, lines[0].lower()]), encoding="utf-8")
    options = {"num_validation": 5, "num_test": 5, "num_pairs": 30}
    plain = load_pairs(path, **options)
    raw = load_pairs(path, **options, raw=True)
    for one, other in zip(plain, raw, strict=True):
        assert one == [tuple(map(normalize, pair)) for pair in other]
    source, target = raw.train[0]
    assert source in ENGLISH and target == f"{source.upper()} !"
