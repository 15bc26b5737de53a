"""What strikes a reader of a corpus is counted, shown, and said once."""

import random

from d2l_attention.datasets import DataError, load_pairs
from d2l_attention.datasets.corpus import read_corpus
from d2l_attention.datasets.parallel_text import read_pairs
import pytest

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
        ("英文", "阿拉伯文"),
        ("ไทย", "ქართული"),
        ("en", "sv"),
        ("EN", "HU"),
        ("en-US", "pt-BR"),
        ("eng_Latn", "fra_Latn"),
        ("English (US)", "Swedish"),
    ],
)
def test_names_of_columns(header, looks):
    (told,) = looks([header, *shipped()])
    assert "1 of 301 pairs look like names" in told
    assert f"{header[0]!r} → {header[1]!r}" in told
    assert "names of columns" in told and "Delete" in told
    told = looks([*shipped(), header])  # no header there
    assert not [x for x in told if "another script" not in x]


@pytest.mark.parametrize(
    "header",
    [
        ("Go on .", "Vas-y ."),
        ("Hello", "Allô"),
        ("No.", "No."),
        ("Dog", "Cow"),
        ("He is.", "Es el."),
    ],
)
def test_a_first_sentence_is_no_name_of_a_column(header, looks):
    told = looks([header, *shipped()])
    assert not [x for x in told if "same text" not in x]


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
    told = looks([*zip(english, english[1:], strict=False)])
    assert not [x for x in told if "languages" in x]


def test_a_test_of_ones_own_is_looked_at_too(tmp_path, capsys):
    corpus, own = tmp_path / "pairs.tsv", tmp_path / "test.tsv"
    lines = ["\t".join(pair) for pair in shipped()]
    corpus.write_text("\n".join(lines[9:]), encoding="utf-8")
    own.write_text("\n".join(["english\tfrench", *lines[:9]]))
    load_pairs(corpus, test_path=own, **OPTIONS, verbose=1)
    assert f"{own}: 1 of 10 pairs look like names" in capsys.readouterr().out


def shifted(pairs):
    sources, targets = zip(*pairs, strict=True)
    return [*zip(sources[1:], targets[:-1], strict=True)]


@pytest.mark.parametrize(
    "kind", ["shifted", "of another text", "by length", "by length in parts"]
)
def test_sides_that_do_not_belong_together(kind, looks):
    pairs = shipped(1500)
    if kind == "by length":  # and shifted: questions tell it
        pairs = shifted(sorted(pairs, key=lambda pair: len(pair[0])))
    if kind == "by length in parts":  # so that lengths rise on both sides
        parts = [pairs[i : i + 100] for i in range(0, 1500, 100)]
        parts = [sorted(x, key=lambda pair: len(pair[0])) for x in parts]
        pairs = shifted(sum(parts, []))
    if kind == "shifted":
        pairs = shifted(pairs)
    if kind == "of another text":
        others = random.Random(1).sample(read_corpus(), 1500)
        pairs = [(s, x.target) for (s, _), x in zip(pairs, others, strict=True)]
    (told,) = looks(pairs)
    assert "questions" in told and "shifted by a line" in told
    share, _, rest = told.partition(" of ")
    assert int(share.replace(",", "")) > 900
    assert rest.startswith(f"{len(pairs):,} pairs")


def test_a_shift_in_the_middle_of_a_file(looks):
    pairs = shipped(3000)
    (told,) = looks([*pairs[:2000], *shifted(pairs[2000:])])
    share, _, rest = told.partition(" of ")  # of whole parts
    assert 900 < int(share.replace(",", "")) < 1200
    assert rest.startswith("2,999 pairs")


def test_sides_of_a_few_words_need_not_be_alike(looks):
    words = sorted({w for s, _ in shipped(3000) for w in s.split()})
    turned = random.Random(0).sample(words, len(words))
    assert looks([*zip(words, (f"x{w}" for w in turned), strict=True)]) == []


HONEST = [
    *("Ich weiß…", "„Viel Spaß“", "groß”", "LE CAFÉ…", "“IL CAFFÈ”", "IRMÃ»"),
    *("Ні! Ні!", "МІЙ ДІМ", "«École» «École»", "—Él… —Él", "Её он видел"),
    *("Êtes-vous sœurs ?", "Größe: ÄÖÜ äöü", "What ???", "John <john@x.org>"),
    *("vector<int>", "cp <source> <dest>", "x <y and z> w", "a < b and c > d"),
]
MISREAD = [
    *("don\x92t", "Ïðèâåò ìèð", "????? ????", "grand-pÃ¨re", "goÃ»t"),
    *("Ã–sterreich", "nâ€™est", "РџСЂРёРІРµС‚", "NoÃ«l", "caf\ufffd"),
]


@pytest.mark.parametrize("text", HONEST)
def test_a_text_that_is_as_it_should_be_is_not_told(text, looks):
    pairs = shipped()
    pairs[7] = pairs[7][0], text
    told = looks(pairs)
    assert not [x for x in told if "another script" not in x]


@pytest.mark.parametrize("text", MISREAD)
def test_text_that_was_misread_is_told(text, looks):
    pairs = shipped()
    pairs[7] = pairs[7][0], text
    (told,) = looks(pairs)
    assert told.startswith("1 of 300 pairs hold text that was read in another")
    assert repr(text) in told and "UTF-8" in told


def test_a_long_line_of_accents_is_soon_read(looks):
    """A pattern that tries each way to part it would take for ever."""
    pairs = shipped()
    pairs[7] = pairs[7][0], "é" * 5000 + "a"
    assert looks(pairs) == []


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_text_that_was_read_in_another_encoding(encoding, looks):
    pairs = shipped()
    foreign = [i for i in range(9, 300) if not pairs[i][1].isascii()][:7]
    for i in foreign:
        source, target = pairs[i]
        # three letters, since one may be so by chance
        spoiled = f"{target} été là".encode().decode(encoding, "replace")
        pairs[i] = source, spoiled
    (told,) = looks(pairs)
    assert told.startswith("7 of 300 pairs") and "encoding" in told


@pytest.mark.parametrize("side", [0, 1])
def test_one_side_for_many(side, looks):
    pairs = shipped()
    for i in range(60, 150):
        pair = [*pairs[i]]
        pair[side] = ("TODO", "N/A", "NULL")[i % 3]
        pairs[i] = tuple(pair)
    (told,) = looks(pairs)
    assert told.startswith("90 of 300 pairs share a side")
    assert repr(pairs[60][side]) in told


def test_a_side_in_another_script(looks):
    chinese = [(f"try {i} now .", f"试试{i}。") for i in range(299)]
    pairs = [
        *chinese,
        ("Nothing", "rien"),
        ("第二", "试试。"),
        ("OK 7", "好"),
    ]
    (told,) = looks(pairs)
    assert told.startswith("2 of 302 pairs have a side in another script")
    mixed = [
        (f"go {i}", "иди idi"[i % 2 * 4 :][:3] + f" {i}") for i in range(99)
    ]
    assert looks(mixed) == []  # two scripts of one language


@pytest.mark.parametrize("seed", range(3))
def test_the_real_corpus(seed, looks, tatoeba):
    pairs = read_pairs(tatoeba, raw=True)
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
