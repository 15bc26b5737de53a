"""What ends a line, and what does not."""

import gzip
import warnings

from d2l_attention.datasets import SubwordVectorizer, ids_to_text
from d2l_attention.datasets.parallel_text import DataError, read_pairs
from d2l_attention.heatmaps import read_pharaoh
import pytest

# what `str.splitlines` takes for the end of a line, and what none is
SEPARATORS = [*"\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"]
NUMBER = 301


def write(path, text):
    """A text as it is, plain or gzipped, as the name says."""
    content = text.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    path.write_bytes(content)
    return path


def rows(end="\n", **changed):
    """Lines of three columns; `changed` has the text of some of them."""
    lines = {f"n{i}": f"go {i}\tva {i}\tCC-BY" for i in range(1, NUMBER + 1)}
    return "".join(line + end for line in {**lines, **changed}.values())


@pytest.fixture
def carriage_returns(recwarn):
    """The warnings so far of carriage returns, which only they may cause."""

    def told():
        messages = [str(warning.message) for warning in recwarn]
        assert all("carriage return" in message for message in messages)
        return messages

    warnings.simplefilter("always")
    return told


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("mark", SEPARATORS, ids=ascii)
@pytest.mark.parametrize("suffix", [".tsv", ".gz"])
def test_a_mark_within_a_line_moves_no_column_and_no_line(
    suffix, mark, end, tmp_path, carriage_returns
):
    path = tmp_path / f"pairs{suffix}"
    inside = {
        "n5": f"go{mark}5\tva 5\tCC-BY",
        "n57": f"go 57\tva{mark}57\tCC-BY",
        "n58": f"go 58\tva 58{mark}\tCC-BY",
        "n60": f"go 60\tva 60\tCC{mark}BY",
    }
    write(path, rows(end, **inside))
    expected = [(f"go {i}", f"va {i}") for i in range(1, NUMBER + 1)]
    assert read_pairs(path) == expected
    told = carriage_returns()
    assert len(told) == (mark == "\r")
    assert not told or str(path) in told[0]
    assert not told or "with one: 4 (line 5, 57, 58, 60)" in told[0]


@pytest.mark.parametrize("mark", SEPARATORS, ids=ascii)
def test_a_mark_within_a_line_of_one_file_keeps_two_aligned(
    mark, tmp_path, carriage_returns
):
    """One in each file, so that their numbers of lines are equal again."""
    sides = [
        [f"{word} {i}" for i in range(1, NUMBER + 1)] for word in ("go", "va")
    ]
    sides[0][6], sides[1][252] = f"go{mark}7", f"va{mark}253"
    paths = [
        write(tmp_path / name, "\n".join(side))
        for name, side in zip(("a.en", "a.fr.gz"), sides, strict=True)
    ]
    expected = [(f"go {i}", f"va {i}") for i in range(1, NUMBER + 1)]
    assert read_pairs(paths) == expected
    told = carriage_returns()
    assert len(told) == 2 * (mark == "\r")
    for message, path, number in zip(told, paths, (7, 253), strict=False):
        assert str(path) in message
        assert f"with one: 1 (line {number})" in message


def test_two_columns_that_were_pasted_keep_their_line_ends(
    tmp_path, carriage_returns
):
    """`paste` of two files of Windows: each cell ends as its file's line."""
    path = write(tmp_path / "pairs.tsv", "go\r\tva\r\nrun\r\tcours\r\n")
    assert read_pairs(path) == [("go", "va"), ("run", "cours")]
    (told,) = carriage_returns()
    assert "with one: 2 (line 1, 2)" in told


@pytest.mark.parametrize("place", [None, 3, 57, 20_000])
@pytest.mark.parametrize("suffix", [".tsv", ".gz"])
def test_a_file_of_the_classic_mac_is_refused(suffix, place, tmp_path):
    """With another end too, whether that one stands early or late."""
    lines = [f"go {i}\tva {i}\r" for i in range(1, 20_001)]
    if place is not None:
        lines[place - 1] = lines[place - 1].replace("\r", "\n")
    path = write(tmp_path / f"pairs{suffix}", "".join(lines))
    for one_or_two in (path, [path, path]):
        with pytest.raises(DataError, match="line ends of another kind"):
            read_pairs(one_or_two)


@pytest.mark.parametrize("number", [3, 9, 1000])
@pytest.mark.parametrize("first", [True, False])
def test_a_file_that_is_half_of_a_classic_mac_is_refused(
    first, number, tmp_path
):
    """Joined of two files; each line of the one would be lost in a line."""
    parts = [
        "".join(f"{go} {i}\t{va} {i}{end}" for i in range(length))
        for go, va, end, length in (
            ("go", "va", "\n", 1000),
            ("run", "cours", "\r", number),
        )
    ]
    text = "".join(parts[::-1] if first else parts)
    path = write(tmp_path / "pairs.tsv", text)
    told = f"of another kind.*line {1 if first else 1001}"
    with pytest.raises(DataError, match=told):
        read_pairs(path)


def test_a_line_of_any_length_has_its_own_end(tmp_path):
    """Also where an end stands on the border of what is read at once."""
    for length in (*range(9_990, 10_000), *range(65_520, 65_540)):
        long = "a" * (length - 2) + "\tb"
        path = write(tmp_path / "pairs.tsv", f"{long}\r\ngo\tva\r\n")
        if length <= 10_000:
            assert read_pairs(path) == [(long[:-2], "b"), ("go", "va")]
            continue
        with pytest.raises(DataError, match=r"1 of 2.*\(line 1\)"):
            read_pairs(path)
        with pytest.warns(UserWarning, match=r"1 of 2 .*\(line 1\)"):
            assert read_pairs(path, max_bad_share=0.5) == [("go", "va")]


@pytest.mark.parametrize("mark", ["\n", *SEPARATORS], ids=ascii)
def test_what_a_model_writes_is_a_single_line(mark):
    """Its pieces can be the bytes of any mark."""
    pieces = SubwordVectorizer.learn(["the cat sleeps"] * 10, 300)
    ids = {piece: i for i, piece in enumerate(pieces.get_vocabulary())}
    word = [ids[piece] for piece in pieces.tokenize("cat")]
    inside = [ids[f"<0x{byte:02X}>"] for byte in mark.encode()]
    row = [*inside, *word, *inside, *word, *inside, ids["[end]"], 0]
    assert ids_to_text([row], pieces) == ["cat cat"]


@pytest.mark.parametrize("mark", SEPARATORS, ids=ascii)
def test_a_mark_among_alignments_moves_no_line(mark, tmp_path):
    path = write(tmp_path / "gold.txt", f"0-0{mark}1-1\n\n2-2\r\n")
    assert read_pharaoh(path) == [{(0, 0), (1, 1)}, set(), {(2, 2)}]
