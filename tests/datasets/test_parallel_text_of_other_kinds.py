"""Files of other kinds: the refusal names the page, and its lines work."""

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path
import re
import tarfile
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


def with_separator(mark):
    def quoted(text):
        doubled = text.replace('"', '""')
        return f'"{doubled}"' if re.search(f'[{mark}"\n]', text) else text

    return "".join(mark.join(map(quoted, pair)) + "\r\n" for pair in PAIRS)


def tmx(tab="  "):
    from xml.sax.saxutils import escape

    units = "\n".join(
        f'{tab}<tu><tuv xml:lang="en"><seg>{escape(one)}</seg></tuv>\n'
        f'{tab}{tab}<tuv xml:lang="fr"><seg>{escape(two)}</seg></tuv></tu>'
        for one, two in PAIRS
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><body>'
    return f"{head}\n{units}\n</body></tmx>\n"


def json_lines():
    rows = (dict(zip(("en", "fr"), pair, strict=True)) for pair in PAIRS)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def sheet():
    """Excel's "Unicode Text": tabs, quotes and UTF-16."""
    return with_separator("\t")


# name of the file on the page → what it looks like, its content
FILES = {
    "commas.csv": ("commas", with_separator(",").encode("utf-8-sig")),
    "semicolons.csv": ("semicolons", with_separator(";").encode("utf-8-sig")),
    "pairs.jsonl": ("JSON", json_lines().encode()),
    "pairs.tmx": ("TMX", tmx().encode()),
    "unicode.txt": ("UTF-16", sheet().encode("utf-16")),
}


def lines_of_the_page():
    """Name of the file that it reads → code, of each block of the section."""
    section = PAGE.read_text("utf-8").partition(f"\n### {TITLE}\n")[2]
    section = re.split("\n##+ ", section)[0]
    blocks = re.findall(r"^```python\n(.*?)^```$", section, re.S | re.M)
    return {re.search('"([a-z]+[.][a-z]+)"', code)[1]: code for code in blocks}


@pytest.mark.filterwarnings("ignore:.*stand in quotes:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_the_page_makes_pairs_of_what_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind, content = FILES[name]
    Path(name).write_bytes(content)
    with pytest.raises(DataError, match=f"{kind}.*{TITLE}.*docs/training.md"):
        read_pairs(name)
    code = lines_of_the_page()[name]
    working = [x for x in code.splitlines() if x and "import" not in x]
    assert len(working) <= 5
    exec(compile(code, name, "exec"), {})
    is_sheet = name == "unicode.txt"
    assert read_pairs("pairs.tsv", raw=True, spreadsheet=is_sheet) == EXPECTED


def test_the_page_has_no_other_lines():
    assert lines_of_the_page().keys() == FILES.keys()


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("JSON", json.dumps(PAIRS, indent=1).encode()),
        ("JSON", json.dumps([*map(list, PAIRS)], indent="\t").encode()),
        ("TMX", tmx("\t").encode()),
        ("TMX", tmx().encode("utf-8-sig")),
        ("UTF-16", sheet().encode("utf-16-le")),
        ("UTF-16", b"\xfe\xff" + sheet().encode("utf-16-be")),
        ("UTF-16", sheet().encode("utf-32")),
        ("commas", b"one,un\ntwo,deux\n"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_variants_of_these_are_known_too(packed, kind, content, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=f"{kind}.*{TITLE}"):
        read_pairs(path)


def test_sentences_with_some_commas_are_not_taken_for_columns(tmp_path):
    """One language alone: the other one may be a file of its own."""
    path = tmp_path / "train.en"
    path.write_text("Yes, I know.\nNo.\nMaybe; who knows?\n")
    with pytest.raises(DataError) as refused:
        read_pairs(path)
    assert TITLE not in str(refused.value)
    assert "--corpus train.en,train.fr" in str(refused.value)


def zipped(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


OFFICE = {"[Content_Types].xml": "", "_rels/.rels": "", "docProps/app.xml": ""}
WORKBOOK = {**OFFICE, "xl/workbook.xml": "", "xl/worksheets/sheet1.xml": ""}
ODS = {"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}
OPUS = {"README": "", "LICENSE": "", "Books.en-fr.xml": ""}
OPUS |= {"Books.en-fr.en": "go\n", "Books.en-fr.fr": "va\n"}
SAVE = "is a workbook.*Save .*UTF-8.*--spreadsheet"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (zipped(**WORKBOOK), SAVE),
        (zipped(**ODS, **{"content.xml": ""}), SAVE),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(999), SAVE),
        (
            zipped(**OPUS),
            "two files with aligned lines. Unpack it, and name both: "
            "--corpus Books.en-fr.en,Books.en-fr.fr",
        ),
        (zipped(**{"a.en_GB": "", "a.zh_Hant": ""}), "a.en_GB,a.zh_Hant"),
        (zipped(**{f"{i}.xml": "" for i in range(999)}), "0.xml.*Unpack it"),
        (zipped(**{"a.csv": "go,va"}), "a.csv.*Unpack it"),
        (bz2.compress(b"go\tva"), "Unpack it"),
        (lzma.compress(b"go\tva"), "Unpack it"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(99), "Unpack it"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "is a PDF"),
    ],
)
def test_a_file_that_is_no_text_says_what_to_do(content, told, tmp_path):
    path = tmp_path / "pairs.any"
    path.write_bytes(content)
    with pytest.raises(DataError, match=told) as refused:
        read_pairs(path)
    message = str(refused.value)
    assert len(message) < 400 and "iconv" not in message


def test_a_packed_folder_is_no_text(tmp_path):
    path = tmp_path / "pairs.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(__file__, "a.py")
    with pytest.raises(DataError, match="no text"):
        read_pairs(path)
