import re

from d2l_attention.datasets import (
    END,
    START,
    DataError,
    ids_to_text,
    load_pairs,
    load_translation,
    make_vectorizers,
    text_to_ids,
)
import numpy as np
import pytest


@pytest.fixture(scope="module")
def data():
    return load_translation(max_length=8, batch_size=32)


def test_labels_are_the_target_one_token_ahead(data):
    inputs, labels, weights = next(iter(data.train))
    target, labels = inputs["target"].numpy(), labels.numpy()
    np.testing.assert_array_equal(
        target[:, 1:], labels[:, :-1] * (target[:, 1:] > 0)
    )
    np.testing.assert_array_equal(weights.numpy(), labels != 0)
    vocabulary = data.target_vectorizer.get_vocabulary()
    assert (target[:, 0] == vocabulary.index(START)).all()
    assert ((labels == vocabulary.index(END)).sum(1) == 1).all()


def test_shapes_follow_the_lengths(data):
    for split, length in zip(data[:4], (8, 8, 8, 16), strict=True):
        inputs, labels, weights = next(iter(split))
        assert inputs["source"].shape == (32, length)
        assert inputs["target"].shape == labels.shape == (32, length + 1)
        assert weights.dtype == "float32" and labels.dtype == "int32"


def test_ids_are_the_text_in_the_order_of_load_pairs(data):
    pairs = load_pairs(max_length=8).test
    inputs, labels, _ = next(iter(data.test))
    assert ids_to_text(labels, data.target_vectorizer) == [
        target for _, target in pairs[:32]
    ]
    assert ids_to_text(inputs["source"], data.source_vectorizer) == [
        source for source, _ in pairs[:32]
    ]


def test_training_batches_are_shuffled_anew_each_epoch(data):
    first, second = (next(iter(data.train))[1].numpy() for _ in range(2))
    assert not np.array_equal(first, second)


def test_apostrophes_and_brackets_survive_the_vectorizer(data):
    vocabulary = data.target_vectorizer.get_vocabulary()
    assert {START, END, "n'", "l'", "est-ce"} <= set(vocabulary)
    assert vocabulary[:2] == ["", "[UNK]"]


def test_unknown_words_become_unk_and_long_text_is_cut(data):
    ids = text_to_ids(["xyzzy .", ""], data.source_vectorizer, 3)
    assert ids.dtype == np.int32
    np.testing.assert_array_equal(ids[0] == 1, [True, False, False])
    np.testing.assert_array_equal(ids[1], 0)
    cut = text_to_ids(["a b c d e"], data.source_vectorizer, 3)
    assert cut.shape == (1, 3)


def test_the_vocabulary_can_be_kept_small():
    data = load_translation(max_length=8, vocab_size=50)
    assert data.source_vectorizer.vocabulary_size() == 50


def write_pairs(path, num_sources):
    lines = [
        f"sentence {i}\tphrase {i} {j}"
        for i in range(num_sources)
        for j in (0, 1)
    ]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    "options", [{"vocab_size": 3}, {"min_frequency": 10_000}]
)
def test_a_vocabulary_without_room_for_words_says_so(options):
    (name, value), *_ = options.items()
    with pytest.raises(DataError, match=f"{name}={value}"):
        make_vectorizers([("a b", "c d")] * 10, **options)


@pytest.mark.parametrize(("side", "name"), [(0, "source"), (1, "target")])
def test_a_side_of_ids_alone_has_no_vocabulary(side, name):
    pairs = [[f"go {i % 5}", f"va {i % 5}"] for i in range(30)]
    for i, pair in enumerate(pairs):
        pair[side] = f"s{i:04}"
    with pytest.raises(DataError, match=f"of the {name} .*no word.*'s0000'"):
        make_vectorizers(pairs)


def test_a_column_with_one_source_is_asked_about(tmp_path):
    path = tmp_path / "pairs.txt"
    lines = [f"eng\tva {i}" for i in range(30)]
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match="one source, such as 'eng'.*columns"):
        load_pairs(path)


def test_translations_of_one_source_stay_in_one_split(tmp_path):
    path = write_pairs(tmp_path / "pairs.txt", 50)
    pairs = load_pairs(path, num_validation=10, num_test=10)
    sources = [{s for s, _ in split} for split in pairs]
    assert [len(split) for split in pairs] == [60, 10, 10, 0]
    assert len(set().union(*sources)) == 50


TWINS = ("{}.", "{}!", "{}", "{} ?", "“{}”", "{}…", "{} .", "¿{}?", "{}。")


def write_twins(path, number, longest=3):
    """Sentences that stand there again, with other marks and in capitals."""
    texts = [f"sentence {i}" + " x" * (i % longest) for i in range(number)]
    lines = [
        f"{twin.format(text)}\tphrase {i} {j}"
        for i, text in enumerate(texts)
        for j, twin in enumerate(TWINS)
        for text in (text, text.upper())
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def numbers_of(split):
    return {int(re.search("[0-9]+", source)[0]) for source, _ in split}


@pytest.mark.parametrize("raw", [False, True])
def test_twins_stay_in_one_split(raw, tmp_path):
    path = write_twins(tmp_path / "pairs.txt", 60)
    options = {"num_validation": 10, "num_test": 10, "max_length": 4}
    splits = load_pairs(path, **options, raw=raw)
    numbers = [numbers_of(split) for split in splits]
    assert [len(x) for x in splits[1:]] == [len(x) for x in numbers[1:]]
    assert len(numbers[1]) == len(numbers[2]) == 10
    assert sum(map(len, numbers)) == len(set().union(*numbers)) == 60
    drawn = load_pairs(path, **options, raw=raw, num_pairs=150)
    numbers = [numbers_of(split) for split in drawn]
    assert sum(map(len, numbers)) == len(set().union(*numbers))


def test_a_test_of_ones_own_has_no_twin_in_training(tmp_path):
    path = write_twins(tmp_path / "pairs.txt", 60)
    own = tmp_path / "test.txt"
    own.write_text("SENTENCE 3\tone\n“Sentence 4 x!”\ttwo")
    pairs = load_pairs(path, test_path=own, num_validation=10)
    others = numbers_of([*pairs.train, *pairs.validation])
    assert others == {*range(60)} - {3, 4}


def test_marks_alone_are_sentences_too(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("?\ta\n!\tb\n...\tc\n- -\td\nx\te")
    pairs = load_pairs(path, num_validation=1, num_test=1)
    assert sum(map(len, pairs)) == 5


@pytest.mark.parametrize(
    ("number", "held_out"),
    [(3, 1), (30, 3), (300, 30), (2000, 200), (9999, 999), (10_500, 1000)],
)
def test_a_small_corpus_holds_back_a_tenth(number, held_out, tmp_path):
    path = write_pairs(tmp_path / "pairs.txt", number)
    pairs = load_pairs(path)
    assert [len(x) for x in pairs[1:3]] == [held_out, held_out]
    assert len(pairs.train) == 2 * (number - 2 * held_out)
    pairs = load_pairs(path, num_validation=1, test_path=path_of_one(tmp_path))
    assert len(pairs.validation) == len(pairs.test) == 1


def path_of_one(folder):
    path = folder / "test.txt"
    path.write_text("something else\tautre chose")
    return path


def test_a_corpus_too_small_for_its_splits_says_so(tmp_path):
    path = write_pairs(tmp_path / "pairs.txt", 20)
    with pytest.raises(
        DataError, match="^20 different sour.*num_validation=10.*Hold back few"
    ):
        load_pairs(path, num_validation=10, num_test=10)


def test_a_corpus_of_long_sentences_says_how_long_they_are(tmp_path):
    path = write_pairs(tmp_path / "pairs.txt", 50)  # 3 tokens
    message = "^0 diff.*ent pairs: 100. 100 have more than max_length=2"
    with pytest.raises(DataError, match=message):
        load_pairs(path, max_length=2, num_validation=40, num_test=5)
    with pytest.raises(DataError) as small:
        load_pairs(path, max_length=3, num_validation=40, num_test=10)
    assert "Different pairs: 100." in str(small.value)
    assert "max_length" not in str(small.value)


def test_pairs_are_drawn_at_random_by_the_seed(tmp_path):
    path = write_pairs(tmp_path / "pairs.txt", 1000)
    options = {"num_pairs": 500, "num_validation": 9, "num_test": 9}
    first, again, other = (
        load_pairs(path, seed=seed, **options) for seed in (1, 1, 2)
    )
    assert first == again != other
    drawn = {int(s.split()[1]) for split in first for s, _ in split}
    assert 430 < len(drawn) < 450  # 1000 · (1 − 1/4) = 437.5 are expected
    assert 480 < np.mean(list(drawn)) < 520
    everything = load_pairs(path, **{**options, "num_pairs": 2000})
    assert everything == load_pairs(path, **{**options, "num_pairs": None})


def test_every_pair_that_was_read_is_accounted_for(tmp_path, capsys):
    path = write_pairs(tmp_path / "pairs.txt", 100)
    lines = path.read_text().split("\n")
    lines += [lines[3], lines[4], "a b c d e\tf", "a\tb c d e f g h i"]
    path.write_text("\n".join(lines))
    options = {"max_length": 3, "num_validation": 20, "num_test": 20}
    load_pairs(path, **options)
    assert capsys.readouterr().out == ""
    pairs = load_pairs(path, **options, num_pairs=180, verbose=1)
    read, left = capsys.readouterr().out.splitlines()
    numbers = [int(x) for x in re.findall(r"\d+", read)]
    total, twice, long, limit, undrawn, further = numbers
    assert (total, twice, long, limit, undrawn) == (204, 2, 2, 3, 20)
    train, *held = [int(x) for x in re.findall(r"\d+", left)]
    assert [train, *held] == [len(x) for x in pairs[:3]]
    assert len(pairs.long_test) == 1 and 20 < further < 40
    assert total == twice + long + undrawn + further + train + sum(held)


def test_a_length_that_drops_many_is_told_with_the_way_on(tmp_path, capsys):
    lines = [f"go on , {i} !\t{'好' * (i % 20 + 1)}" for i in range(200)]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    load_pairs(path, max_length=16, verbose=1)
    out = capsys.readouterr().out
    assert "40 with more than 16 tokens (--max-length 18 keeps nine of" in out
    load_pairs(path, max_length=18, verbose=1)
    assert "--max-length" not in capsys.readouterr().out


@pytest.mark.parametrize("raw", [False, True])
def test_a_test_of_ones_own_is_not_trained_on(raw, tmp_path, capsys):
    """Every pair of it, in its order, even one that stands there twice."""
    path = write_pairs(tmp_path / "pairs.txt", 50)
    own = tmp_path / "test.txt"
    lines = ["Sentence 3\tone", "new\ttwo", "Sentence 3\tone", "a b c d e\tf"]
    lines += ["a b c d e f g h i\tmore than twice as long"]
    own.write_text("\n".join(lines))
    options = {"max_length": 4, "num_validation": 10, "num_test": 20}
    pairs = load_pairs(path, test_path=own, **options, raw=raw, verbose=1)
    capital = "Sentence 3" if raw else "sentence 3"
    assert pairs.test == [(capital, "one"), ("new", "two"), (capital, "one")]
    assert pairs.long_test == [("a b c d e", "f")]
    others = [s for split in pairs[:2] for s, _ in split]
    assert len(pairs.validation) == 10 and len(pairs.train) == 2 * 39
    assert "sentence 3" not in others and len({*others}) == 49
    out = capsys.readouterr().out
    assert f"test is {own}. Its sources are those of 2 other pairs" in out
    assert "Left: 78 to train on, 10 to validate, and 3 to test." in out
    with pytest.raises(DataError, match="nothing is left to train on"):
        load_pairs(path, test_path=path, **options)
    own.write_text(lines[3])
    with pytest.raises(DataError, match="test.txt has at most max_length=4 "):
        load_pairs(path, test_path=own, **options)


def test_columns_of_two_files_are_those_of_neither(tmp_path):
    path = write_pairs(tmp_path / "pairs.txt", 50)
    own = [tmp_path / "test.en", tmp_path / "test.fr"]
    for one in own:
        one.write_text("one\ntwo\n")
    options = {"num_validation": 10, "num_test": 10}
    pairs = load_pairs(path, test_path=own, columns=(2, 1), **options)
    assert pairs.test == [("one", "one"), ("two", "two")]
    assert pairs.train[0][0].startswith("phrase")
    with pytest.raises(DataError, match="have no columns"):
        load_pairs(own, columns=(2, 1), **options)


def test_columns_turn_the_corpus_round():
    there = load_pairs(max_length=8, num_validation=9, num_test=9).train
    back = load_pairs(
        max_length=8, num_validation=9, num_test=9, columns=(2, 1)
    ).train
    assert len(set(there) & {(two, one) for one, two in back}) > 0.9 * len(back)


def test_reverse_turns_every_file_round(tmp_path):
    path = write_pairs(tmp_path / "pairs.txt", 50)
    own = [tmp_path / "test.en", tmp_path / "test.fr"]
    own[0].write_text("one\ntwo\n")
    own[1].write_text("un\ndeux\n")
    options = {"num_validation": 10, "num_test": 10}
    back = load_pairs(path, test_path=own, reverse=True, **options)
    assert back.test == [("un", "one"), ("deux", "two")]
    there = load_pairs(path, test_path=own[::-1], columns=(2, 1), **options)
    assert back == there
    twice = {"columns": (2, 1), "reverse": True}
    again = load_pairs(path, test_path=own[::-1], **twice, **options)
    assert again == load_pairs(path, test_path=own, **options) != back
    options |= {"max_length": 8}
    shipped = load_pairs(reverse=True, **options)
    assert shipped == load_pairs(columns=(2, 1), **options)


def test_chinese_is_split_by_character(tmp_path):
    path = tmp_path / "cmn.txt"
    path.write_text(
        "\n".join(f"try {i} .\t试试{i}。" for i in range(40)), encoding="utf-8"
    )
    data = load_translation(
        path, batch_size=4, num_validation=10, num_test=10, min_frequency=1
    )
    vocabulary = data.target_vectorizer.get_vocabulary()
    assert {"试", "。"} <= set(vocabulary)


def test_the_real_corpus_loads(tatoeba):
    pairs = load_pairs(tatoeba, max_length=10, num_pairs=30_000, num_test=2000)
    assert len(pairs.test) == 2000 and len(pairs.train) > 20_000
    assert not {s for s, _ in pairs.train} & {s for s, _ in pairs.test}


def test_the_shipped_corpus_has_two_languages():
    with pytest.raises(ValueError, match=r"from 1 to 2. Received: \(1, 3\)"):
        load_pairs(columns=(1, 3))
