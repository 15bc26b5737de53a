"""What strikes a reader of a corpus is counted, shown, and said once."""

from pathlib import Path
import random

from d2l_attention.datasets import DataError, load_pairs
from d2l_attention.datasets.corpus import read_corpus
from d2l_attention.datasets.files import read_pairs
import pytest

TATOEBA = Path(__file__).parents[3] / "shared" / "data" / "fra-eng.zip"
OPTIONS = {"num_validation": 9, "num_test": 9, "max_length": 30}


def shipped(number=300):
    rows = random.Random(0).sample(read_corpus(), number)
    return [(row.source, row.target) for row in rows]


@pytest.fixture
def looks(tmp_path, capsys):
    """The lines about a file that `load_pairs` prints before it splits."""

    def look(pairs, name="pairs.tsv", **options):
        path = tmp_path / name
        lines = ["\t".join(pair) for pair in pairs]
        path.write_text("\n".join(lines), encoding="utf-8")
        capsys.readouterr()
        load_pairs(path, **OPTIONS, verbose=1, **options)
        lines = capsys.readouterr().out.splitlines()
        start = f"Warning: {path}: "
        return [x.removeprefix(start) for x in lines if x.startswith(start)]

    return look


def test_an_honest_corpus_gives_nothing_to_see(looks):
    for number in (30, 300, 3000):
        assert looks(shipped(number)) == []
    chinese = [(f"try {i} .", f"试试{i}。") for i in range(99)]
    assert looks(chinese) == []
    assert (
        looks([(f"go {i} & {i} < 9", f"va {i} > 7;") for i in range(99)]) == []
    )


@pytest.mark.parametrize(
    "header",
    [
        ("english", "french"),
        ("Source", "Target"),
        ("en", "fr"),
        ("sentence_1", "sentence_2"),
        ("Deutsch", "Français"),
        ("src_text", "tgt_text"),
        ("ENG", "中文"),
    ],
)
def test_names_of_columns(header, looks):
    (told,) = looks([header, *shipped()])
    assert f"{header[0]!r} and {header[1]!r}" in told
    assert "names of columns" in told and "Delete" in told
    assert looks([*shipped(), header]) == []  # no header there


@pytest.mark.parametrize("header", [("Go on .", "Vas-y ."), ("Hello", "Allô")])
def test_a_first_sentence_is_no_name_of_a_column(header, looks):
    assert looks([header, *shipped()]) == []


@pytest.mark.parametrize("text", ["a &amp; b", "&#39;a", "&#x27;a", "<b>a</b>"])
@pytest.mark.parametrize("side", [0, 1])
def test_markup(text, side, looks):
    pairs = shipped()
    for i in (7, 50, 51):
        pair = [*pairs[i]]
        pair[side] += f" {text}"
        pairs[i] = tuple(pair)
    (told,) = looks(pairs)
    assert "3 of 300 pairs hold HTML" in told
    assert pairs[7][side] in told and "html.unescape" in told


def test_text_that_is_not_translated(looks):
    pairs = shipped()
    for i in (7, 50):
        pairs[i] = (pairs[i][0].upper(), pairs[i][0])
    (told,) = looks(pairs)
    assert "2 of 300 pairs have the same text on both sides" in told
    assert pairs[7][0] in told and "Delete" in told


def test_a_file_that_is_read_twice(looks):
    (told,) = looks([(source, source) for source, _ in shipped()])
    assert "300 of 300 pairs" in told and "read twice" in told


def exchanged(pairs, which):
    return [pair[::-1] if which(i) else pair for i, pair in enumerate(pairs)]


@pytest.mark.parametrize(
    "which",
    [
        lambda i: i >= 150,
        lambda i: i % 2,
        lambda i: i < 30,
        lambda i: i >= 285,
        lambda i: random.Random(i).random() < 0.2,
    ],
    ids=["half", "every second", "the first", "the last", "some"],
)
def test_languages_that_have_changed_places(which, looks):
    pairs = exchanged(shipped(), which)
    number = sum(bool(which(i)) for i in range(300))
    (told,) = looks(pairs)
    count = int(told.partition(" of ")[0])
    assert 0.95 * number <= count <= number
    assert "of 300 pairs" in told and "languages" in told
    assert any(f"{s!r} → {t!r}" in told for s, t in pairs)


def test_two_columns_of_one_language_have_no_order(looks):
    """Paraphrases, and sentences turned round."""
    english = [pair[0] for pair in shipped(3000)]
    turned = [(x, " ".join(x.split()[::-1])) for x in english]
    assert looks(turned) == []
    assert looks([*zip(english, english[1:], strict=False)]) == []


def test_a_test_of_ones_own_is_looked_at_too(tmp_path, capsys):
    corpus, own = tmp_path / "pairs.tsv", tmp_path / "test.tsv"
    lines = ["\t".join(pair) for pair in shipped()]
    corpus.write_text("\n".join(lines[9:]), encoding="utf-8")
    own.write_text("\n".join(["english\tfrench", *lines[:9]]))
    load_pairs(corpus, test_path=own, **OPTIONS, verbose=1)
    assert f"{own}: the first pair, 'english' and" in capsys.readouterr().out


@pytest.mark.skipif(not TATOEBA.exists(), reason="the real corpus is not here")
@pytest.mark.parametrize("seed", range(3))
def test_the_real_corpus(seed, looks):
    pairs = read_pairs(TATOEBA, raw=True)
    pairs = random.Random(seed).sample(pairs, 10 ** (3 + seed))
    assert not [x for x in looks(pairs) if "same text" not in x]
    half = len(pairs) // 2
    told = looks(exchanged(pairs, lambda i: i >= half))
    (told,) = [x for x in told if "same text" not in x]
    count = int(told.partition(" of ")[0].replace(",", ""))
    assert 0.95 * half <= count <= half


def test_numbers_below_a_header_are_no_language(tmp_path):
    path = tmp_path / "pairs.tsv"
    lines = [f"{i}\tgo {i}\tva {i}" for i in range(30)]
    path.write_text("\n".join(["id\tenglish\tfrench", *lines]))
    with pytest.raises(DataError, match="Column 1 .*no words.*--columns 2,4"):
        read_pairs(path)
