"""Files of other kinds: the refusal names the page, and its lines work."""

import gzip
import io
import json
import lzma
from pathlib import Path
import re
import warnings
import zipfile

from d2l_attention.datasets.parallel_text import DataError, read_pairs
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
TITLE = "Other kinds of files"
PAIRS = [
    ("Yes, I know.", "Oui, je le sais."),
    ('She said "no"; I left.', "Elle a dit « non » ; je suis parti."),
    ("Two\nlines", "Deux\nlignes"),
    ("a\ttab", "été & <b>hiver</b>"),
    ("猫", "chat"),
]
EXPECTED = [tuple(" ".join(text.split()) for text in pair) for pair in PAIRS]
PLAIN = [("été", "summer"), ("chat", "cat")]


def table(mark):
    def quoted(text):
        doubled = text.replace('"', '""')
        return f'"{doubled}"' if re.search(f'[{mark}"\n]', text) else text

    return "".join(mark.join(map(quoted, pair)) + "\r\n" for pair in PAIRS)


def tmx():
    from xml.sax.saxutils import escape

    units = "\n".join(
        f'<tu><tuv xml:lang="en"><seg>{escape(one)}</seg></tuv>\n'
        f'<tuv xml:lang="fr"><seg>{escape(two)}</seg></tuv></tu>'
        for one, two in PAIRS
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><body>'
    return f"{head}\n{units}\n</body></tmx>\n"


def json_lines():
    rows = (dict(zip(("en", "fr"), pair, strict=True)) for pair in PAIRS)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def old(end):
    return "".join("\t".join(pair) + end for pair in PLAIN)


def section():
    text = PAGE.read_text("utf-8").partition(f"\n### {TITLE}\n")[2]
    return re.split("\n##+ ", text)[0]


def lines_of_the_page():
    """Name of the file that it reads → code, of each block of the section."""
    blocks = re.findall(r"^```python\n(.*?)^```$", section(), re.S | re.M)
    return {re.search('"([a-z]+[.][a-z]+)"', code)[1]: code for code in blocks}


def table_rows():
    """The encodings and the delimiters that the page names, as they are."""
    return re.findall(r'\| `"([a-z0-9-]+)"` \| `("[^"]+")` \|', section())


# what the code of a block reads → the block, what else it may read so, what it
# should write
CASES = [
    *(
        ("table.csv", {"utf-8-sig": encoding, '","': mark}, EXPECTED)
        for encoding, mark in table_rows()
    ),
    ("pairs.jsonl", {}, EXPECTED),
    ("pairs.tmx", {}, EXPECTED),
    ("old.txt", {"mac": "\r"}, PLAIN),
    ("old.txt", {}, PLAIN),
]


def content_of(name, changed):
    if name == "table.csv":
        mark = json.loads(changed['","'])
        return table(mark).encode(changed["utf-8-sig"])
    if name == "old.txt":
        return old(changed.get("mac", "\n")).encode("cp1252")
    return {"pairs.jsonl": json_lines, "pairs.tmx": tmx}[name]().encode()


@pytest.mark.parametrize(("name", "changed", "expected"), CASES)
def test_the_page_makes_pairs_of_what_is_refused(
    name, changed, expected, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content_of(name, changed))
    code = lines_of_the_page()[name]
    for old_text, new in changed.items():
        code = code.replace(old_text, new)
    with pytest.raises(DataError, match=f"{TITLE}.*docs/training.md"):
        read_pairs(name)
    working = [x for x in code.splitlines() if x and "import" not in x]
    assert len(working) <= 5
    exec(compile(code, name, "exec"), {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_pairs("pairs.tsv", raw=True) == expected


def test_the_page_has_no_other_lines():
    assert lines_of_the_page().keys() == {name for name, _, _ in CASES}
    assert len(table_rows()) == 4


def zipped(text):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.txt", text)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        zipped("go\tva\n"),
        lzma.compress(b"go\tva"),
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(999),  # old Excel
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
        old("\n").encode("latin-1"),
        old("\n").encode("utf-16-le"),
        old("\n").encode("utf-32"),
        old("\r").encode(),
        json.dumps(PAIRS, indent=1).encode(),
        b"one,un\ntwo,deux\n",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_no_corpus_is_refused_and_told_the_page(
    packed, content, tmp_path
):
    path = tmp_path / "pairs.any"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=TITLE) as refused:
        read_pairs(path)
    assert str(path) in str(refused.value) and len(str(refused.value)) < 500


def test_one_language_alone_is_asked_for_the_other(tmp_path):
    path = tmp_path / "train.en"
    path.write_text("Yes, I know.\nNo.\nMaybe; who knows?\n")
    with pytest.raises(DataError, match="--corpus train.en,train.fr"):
        read_pairs(path)


@pytest.mark.filterwarnings("ignore:.*not pairs:UserWarning")
def test_quotes_of_a_spreadsheet_stay_and_are_counted(tmp_path):
    path = tmp_path / "sheet.tsv"
    rows = [*PAIRS[:2], ("all in", "tout")]
    path.write_text("".join(f'"{a}"\t"{b}"\n' for a, b in rows[:1]))
    with pytest.warns(UserWarning, match="stand in quotes") as told:
        assert read_pairs(path, raw=True)[0][0] == '"Yes, I know."'
    message = str(told[0].message)
    assert (
        f'{path}: 2 cells stand in quotes, such as "Yes, I know." in line 1'
        in (message)
    )


def test_the_quotes_of_a_text_stay_in_silence(tmp_path):
    honest = [
        ('"Yes," he said.', '"Oui", dit-il.'),
        ('"I know."', '"Je sais."'),
        ('He said "no".', 'Il a dit "non".'),
        ('"One sentence.', '"Une phrase.'),
        ('And another."', 'Et une autre."'),
        ('a 3" nail', "un clou"),
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join("\t".join(pair) + "\n" for pair in honest))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_pairs(path, raw=True) == honest
