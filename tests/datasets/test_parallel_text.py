"""Files of parallel text: good ones, and each way in which one can be bad."""

import functools
import gzip
import hashlib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
import io
import sys
import threading
import tracemalloc
import warnings
import zipfile

from d2l_attention.datasets import parallel_text
from d2l_attention.datasets.parallel_text import (
    DataError,
    download,
    one_or_two,
    read_pairs,
)
from d2l_attention.datasets.tokens import clean, normalize
from hypothesis import example, given, settings
from hypothesis import strategies as st
import pytest

LINES = [f"go {i} .\tva {i} !" for i in range(300)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Va !", "va !"),
        ("Cours\u202f!", "cours !"),
        ("N'est-il pas là ?", "n' est-il pas là ?"),
        ("Qu’il l’aime.", "qu' il l' aime ."),
        ("I don't, it's Tom's.", "i don't , it's tom's ."),
        ("Aujourd'hui, c’est bon", "aujourd'hui , c' est bon"),
        ("我们试试看！", "我 们 试 试 看 ！"),
        ("e\u0301te\u0301", "été"),
        ("هل أنت هنا؟", "هل أنت هنا ؟"),
        ("¿Qué? ¡No!", "¿ qué ? ¡ no !"),
        ("„Ja“, “oui”", "„ ja “ , “ oui ”"),
        ("আমি যাব।", "আমি যাব ।"),
        ("50% (a/b) — x_y", "50 % ( a / b ) — x_y"),
        ("שלום־עולם, צה״ל", "שלום־עולם , צה״ל"),
        ("tal·lent", "tal·lent"),
        ("[end]", "[ end ]"),
        ("𠀋々カー", "𠀋 々 カ ー"),
    ],
)
def test_normalized_text_has_a_space_between_two_tokens(text, expected):
    assert normalize(text) == expected


# Signs that show, hide or join what stands beside them.
_TOUCHY = (
    "aAlLiIİı\u0307\u0301\u0323'’`´ʼ·-‐\u200c\u200d\u00ad\ufeff\x1b\x01 \n.,”"
    "בצ׳״ابمﷲक्षﬁＡ１カｶ々漢😀\U0001f3fdßς…_"
)


@settings(max_examples=300)
@given(st.text(max_size=40) | st.text(_TOUCHY, max_size=8))
@example("A\x1b`A")
@example("漢-A")
@example("ب\u200dカ")
@example("i\u0307\u0301İ\u0307")
@pytest.mark.parametrize("function", [clean, normalize])
def test_reading_a_text_twice_is_reading_it_once(function, text):
    once = function(text)
    assert function(once) == once


@pytest.mark.parametrize("columns", ["", "\tCC-BY 2.0 (France) #1 & #2"])
def test_two_and_three_columns_are_read(tmp_path, columns):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(f"{line}{columns}" for line in LINES) + "\n")
    pairs = read_pairs(path)
    assert len(pairs) == 300
    assert pairs[7] == ("go 7 .", "va 7 !")


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_bytes("\ufeffGo.\tVa !\r\nRun!\tCours !\r\n".encode())
    assert read_pairs(path) == [("go .", "va !"), ("run !", "cours !")]


def test_gzipped_text_is_read_and_half_of_it_refused(tmp_path):
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(LINES).encode()))
    assert len(read_pairs(path)) == 300
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged archive"):
        read_pairs(path)


IDS = [f"{i}\tgo {i}\t{i + 9}\tva {i}" for i in range(300)]


def test_other_columns_are_read(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join([*IDS, "301\tgo\t310\t"]))
    with pytest.warns(UserWarning, match="1 of 301"):
        pairs = read_pairs(path, columns=(4, 2))
    assert len(pairs) == 300 and pairs[7] == ("va 7", "go 7")


@pytest.mark.parametrize("columns", [(0, 1), (2, 2), (1,), (1, 2, 3)])
def test_columns_that_cannot_be_are_refused(tmp_path, columns):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(IDS))
    with pytest.raises(ValueError, match="two different numbers from 1"):
        read_pairs(path, columns=columns)


@pytest.mark.parametrize("text", ["7", "0.12", "2024-01-05", "-", "3 / 4"])
@pytest.mark.parametrize("column", [0, 1])
def test_a_column_without_words_is_no_language(text, column, tmp_path):
    path = tmp_path / "pairs.txt"
    rows = [[f"go {i}", f"va {i}", "more"] for i in range(30)]
    for row in rows[1:]:  # perhaps under the name of the column
        row[column] = text
    path.write_text("\n".join("\t".join(row) for row in rows))
    with pytest.raises(DataError, match=rf"Column {column + 1} .*--columns"):
        read_pairs(path)
    assert len(read_pairs(path, columns=(1, 2))) == 30


def test_numbers_and_their_names_are_two_languages(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(IDS))
    assert read_pairs(path, columns=(1, 2))[7] == ("7", "go 7")
    path.write_text("7\tseven\n8\teight")  # two columns: a dictionary
    assert len(read_pairs(path)) == 2


@pytest.mark.parametrize("more", ["", "\tCC-BY"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_tab_within_a_sentence_makes_no_other_pair(more, side, tmp_path):
    """The sentence would be cut, or the translation be its second half."""
    path = tmp_path / "pairs.txt"
    rows = [[f"go {i} on", f"va {i} là"] for i in range(300)]
    rows[7][side] = rows[7][side].replace(" ", "\t")
    lines = ["\t".join(row) + more for row in rows]
    path.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=r"1 of 300 .*\(line 8\)"):
        assert len(read_pairs(path)) == 299
    assert len(read_pairs(path, columns=(1, 2))) == 300
    for row in rows[8:90]:
        row[side] = row[side].replace(" ", "\t")
    path.write_text("\n".join("\t".join(row) + more for row in rows))
    message = r"83 of 300 .*line 8, 9.* columns at most.*--columns 1,2.*Line 8"
    with pytest.raises(DataError, match=message):
        read_pairs(path)


def test_columns_that_few_lines_have_are_no_tab_if_they_are_empty(tmp_path):
    path = tmp_path / "pairs.txt"
    lines = [f"go {i}\tva {i}" + "\t" * (i % 3) for i in range(30)]
    path.write_text("\n".join(lines))
    assert len(read_pairs(path)) == 30
    lines = [f"go {i}\tva {i}" + "\tCC-BY" * (i < 20) for i in range(30)]
    path.write_text("\n".join(lines))
    assert len(read_pairs(path)) == 30


def test_the_character_nul_is_named(tmp_path):
    path = tmp_path / "pairs.txt"
    lines = [f"go {'on ' * 99}{i}\tva {i}\0"[i % 9 > 0 :] for i in range(30)]
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match="30 of 30 .*the character NUL"):
        read_pairs(path)


@pytest.fixture
def aligned(tmp_path):
    """Two files whose lines belong together, of 300 pairs."""
    sides = zip(*(line.split("\t") for line in LINES), strict=True)
    paths = [tmp_path / "train.en", tmp_path / "train.fr.gz"]
    texts = ["\n".join(side).encode() for side in sides]
    paths[0].write_bytes(texts[0])
    paths[1].write_bytes(gzip.compress(texts[1]))
    return paths


def test_two_aligned_files_are_pairs(aligned, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(LINES))
    assert read_pairs(aligned) == read_pairs(path)
    assert read_pairs([str(x) for x in aligned], raw=True)[7] == (
        "go 7 .",
        "va 7 !",
    )
    turned = read_pairs(aligned[::-1])
    assert turned == [pair[::-1] for pair in read_pairs(path)]


def test_a_line_that_is_empty_in_both_files_is_no_pair(aligned):
    for path in aligned:
        path.write_text("one\n\n  \nthree \tfour\n")
    expected = [("one", "one"), ("three four", "three four")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_pairs(aligned) == expected
    aligned[0].write_text("one\ntwo\n\nthree\n")
    with pytest.raises(DataError, match=r"1 of 3.*line 2.*text in both files"):
        read_pairs(aligned)


@pytest.mark.parametrize("shorter", [0, 1])
def test_files_of_different_length_do_not_belong_together(aligned, shorter):
    short, long = aligned[shorter], aligned[1 - shorter]
    short.write_text("one\ntwo\n")
    long.write_text("one\ntwo\nthree\nfour\n")
    with pytest.raises(DataError, match=f"{short.name} ends before line 3"):
        read_pairs(aligned)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="is a folder. Name the file in it"):
        read_pairs(tmp_path)


def test_two_files_have_no_columns(aligned):
    with pytest.raises(DataError, match=r"no columns.*\(2, 1\).*train.en and"):
        read_pairs(aligned, columns=(2, 1))


def test_two_files_have_a_comma_between_them(tmp_path):
    assert one_or_two("pairs.tsv") == "pairs.tsv"
    for text in ("a.en,b.fr", "a.en, b.fr"):
        assert one_or_two(text) == ["a.en", "b.fr"]
    with_comma = tmp_path / "a,b"
    with_comma.write_text("")
    assert one_or_two(str(with_comma)) == str(with_comma)
    for text in ("a,b,c", "a,"):
        with pytest.raises(ValueError, match=f"and no space.*{text}"):
            one_or_two(text)


def test_memory_is_bounded_whatever_an_archive_holds(tmp_path, monkeypatch):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a" * 50_000_000))  # one line
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    with pytest.raises(DataError, match=r"1 of 1 .*begins with 'aaaa"):
        read_pairs(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    monkeypatch.setattr(parallel_text, "MAX_BYTES", 1_000_000)
    with pytest.raises(DataError, match="more than 1,000,000 bytes of text"):
        read_pairs(path)


def test_a_line_that_is_too_long_is_told_and_the_next_ones_read(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(["go\t" + "va " * 4000, *LINES]))
    with pytest.warns(UserWarning, match=r"1 of 301.*\(line 1\)"):
        assert len(read_pairs(path)) == 300


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_a_terminal_shows_a_bar_and_a_log_does_not(tmp_path, monkeypatch, kind):
    from tqdm import tqdm

    class Impatient(tqdm):
        def __init__(self, **options):
            super().__init__(**{**options, "delay": 0, "mininterval": 0})

    monkeypatch.setattr("tqdm.tqdm", Impatient)
    monkeypatch.setattr(sys, "stderr", kind())
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(LINES * 10))
    assert len(read_pairs(path)) == 3000
    shown = sys.stderr.getvalue()
    assert ("Reading pairs.tsv: 100%" in shown) == (kind is Terminal)
    assert shown == "" or kind is Terminal


def write_zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_few_bad_lines_are_skipped_and_their_numbers_told(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join([*LINES, "no tab here", "empty\t ", ""]))
    with pytest.warns(UserWarning, match=r"2 of 302.*line 301, 302"):
        assert len(read_pairs(path)) == 300


def test_many_bad_lines_are_refused(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join([*LINES, *["bad"] * 10]))
    with pytest.raises(DataError, match=r"10 of 310.*line 301.*1.0%"):
        read_pairs(path)
    message = "in columns 3 and 4 .* and tabs.*Line 1 begins with 'go 0"
    with pytest.raises(DataError, match=message):
        read_pairs(path, columns=(3, 4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(read_pairs(path, max_bad_share=0.05)) == 300
    assert len(caught) == 1


def test_a_file_without_any_pair_is_refused(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("")
    with pytest.raises(DataError, match="pairs.txt is empty"):
        read_pairs(path)


def test_a_file_that_is_not_utf_8_names_byte_and_line(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_bytes(b"go .\tva !\n\xe9t\xe9\tsummer\n")
    with pytest.raises(
        DataError, match="not UTF-8: line 2 .*byte 0xe9. .*Other kinds"
    ):
        read_pairs(path)


def test_a_line_with_nul_is_unusable(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("go\tva\nsee\0\tvois\n")
    with pytest.raises(DataError, match=r"1 of 2 lines are not pairs \(line 2"):
        read_pairs(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.txt"):
        read_pairs(tmp_path / "nothing.txt")


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """Download "a" into a cache of its own."""

    def from_server(downloads):
        monkeypatch.setattr(parallel_text, "DOWNLOADS", downloads)
        monkeypatch.setattr("pooch.os_cache", lambda _: tmp_path / "cache")
        return download("a")

    return from_server


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_download_is_checked_kept_and_not_fetched_twice(server, fetch):
    folder, address = server
    served = write_zip(folder / "a.zip", {"a.txt": "\n".join(LINES)})
    downloads = {"a": (f"{address}/a.zip", sha256(served), "a.txt")}
    path = fetch(downloads)
    assert len(read_pairs(path)) == 300
    served.unlink()
    assert fetch(downloads) == path


def test_a_wrong_checksum_leaves_the_earlier_copy_alone(
    server, fetch, tmp_path
):
    folder, address = server
    served = write_zip(folder / "a.zip", {"a.txt": "\n".join(LINES)})
    good = {"a": (f"{address}/a.zip", sha256(served), "a.txt")}
    path = fetch(good)
    before = path.read_bytes()
    served.write_bytes(b"something else")
    other = {"a": (f"{address}/a.zip", "0" * 64, "a.txt")}
    with pytest.raises(DataError, match="hash"):
        fetch(other)
    assert path.read_bytes() == before
    assert {p.name for p in (tmp_path / "cache").iterdir()} == {
        "a.zip",
        "a.zip.unzip",
    }


def test_a_download_that_is_not_there_leaves_nothing_behind(
    server, fetch, tmp_path
):
    _, address = server
    with pytest.raises(DataError, match="Could not fetch a .*404"):
        fetch({"a": (f"{address}/a.zip", "0" * 64, "a.txt")})
    assert not list((tmp_path / "cache").glob("*.zip"))


def test_a_name_that_is_unknown_is_told_what_is_known():
    with pytest.raises(DataError, match="'deu-eng'.*known: fra-eng"):
        read_pairs("download:deu-eng")
