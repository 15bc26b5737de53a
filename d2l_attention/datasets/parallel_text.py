"""Parallel text in files of others: plain, gzipped, zipped or downloaded.

A file that cannot be used raises a `DataError`.
"""

from collections import Counter
from contextlib import contextmanager
import csv
import gzip
import io
import itertools
from pathlib import Path, PurePosixPath
import re
import warnings
import zipfile
import zlib

from d2l_attention.datasets.tokens import (
    clean,
    normalize_pairs,
    turkic_sides,
)


class DataError(ValueError):
    """A file of parallel text cannot be used as it is."""


def read_pairs(
    path,
    max_bad_share=0.01,
    columns=None,
    raw=False,
    reverse=False,
    spreadsheet=False,
    signs=None,
):
    """Read the pairs of a tab-separated file.

    A line is unusable if one of the two columns is missing or empty, if it
    holds the character NUL, if it is longer than 10,000 characters, or if it
    has more columns than most lines and `columns` is None. Empty lines are
    skipped. A terminal shows how far a large file has been read.

    The options are those of `load_pairs`. What comes back is a list of
    `(source, target)`, normalized unless `raw`. `signs` counts what `clean`
    read as something else.

    Raises:
        DataError: If the file cannot be read, holds more than 500 MB of text,
            has too many unusable lines, or if one of the first two columns
            of three or more holds no words and `columns` is None; or if two
            files have different numbers of lines.
        FileNotFoundError: If there is no file.
    """
    pairs, numbers, widths, bad = [], [], [], {}
    wordless = [0, 0]  # of source and target, in lines with more columns
    for number, line, width, cells in _rows(path, columns, spreadsheet):
        pair = tuple(clean(cell, signs) for cell in cells)
        usable = len(line) <= MAX_LINE and "\0" not in line
        if usable and len(pair) == 2 and all(pair):
            pairs.append(pair)
            numbers.append(number)
            widths.append(width)
            for i, text in enumerate(pair):
                wordless[i] += width > 2 and not any(map(str.isalpha, text))
        elif line.strip():
            bad[number] = line if len(bad) < SHOWN else ""
    needed = _needed(path, columns, spreadsheet)
    if columns is None and pairs:
        # a line with more columns than most has a tab within a sentence
        usual = Counter(widths).most_common(1)[0][0]
        wide = [i for i, width in enumerate(widths) if width > usual]
        if wide:
            needed += (
                f", and {usual} columns at most, as most lines have "
                "(--columns 1,2 does not count them)"
            )
            bad |= {numbers[i]: "\t".join(pairs[i]) for i in wide}
            pairs = [
                x for x, w in zip(pairs, widths, strict=True) if w <= usual
            ]
    _report_bad_lines(named(path), bad, len(pairs), max_bad_share, needed)
    for i, number in enumerate(wordless):
        # perhaps under the name of the column
        if columns is None and 0 < number >= len(pairs) - (len(pairs) > 2):
            raise DataError(
                f"Column {i + 1} of {path} holds no words, as in "
                f"{pairs[-1][i]!r}. Say which columns are the sentences, as in "
                "`--columns 2,4`."
            )
    if not raw:
        pairs = normalize_pairs(pairs, turkic_sides(pairs))
    return [pair[::-1] for pair in pairs] if reverse else pairs


def _rows(path, columns, spreadsheet):
    """Number and text of each line, its columns, its source and target."""
    read = spreadsheet_rows if spreadsheet else plain_rows
    if not are_two(path):
        one, two = (x - 1 for x in check_columns(columns))
        for number, line, cells in read(read_lines(local(path)), path):
            width = len(cells)
            while width > 2 and not cells[width - 1].strip():
                width -= 1
            pair = [cells[i] for i in (one, two) if i < len(cells)]
            yield number, line, width, pair
        return
    if columns is not None:
        raise DataError(
            f"Two files have no columns to choose. Received: {columns} for "
            f"{named(path)}."
        )
    source, target = (read(read_lines(local(one)), one) for one in path)
    for one, two in itertools.zip_longest(source, target):
        if one is None or two is None:
            ended, last = (
                (path[0], two[0]) if one is None else (path[1], one[0])
            )
            raise DataError(
                f"The lines of {named(path)} do not belong together: {ended} "
                f"ends before line {last}."
            )
        cells = [" ".join(row[2]) for row in (one, two)]
        yield one[0], f"{one[1]}\t{two[1]}", 2, cells


def _needed(path, columns, spreadsheet):
    """What a line needs to be a pair, in a message."""
    needed = "text in both files"
    if not are_two(path):
        one, two = check_columns(columns)
        needed = (
            f"text in columns {one} and {two} (--columns names others), and "
            "tabs between columns"
        )
    if spreadsheet:
        needed += ", and a quote within a cell is doubled"
    return needed


def are_two(path):
    """Whether a corpus is two files with aligned lines."""
    return isinstance(path, list | tuple)


def local(path):
    """`pathlib.Path` of a file, which is downloaded if that is asked for."""
    if str(path).startswith("download:"):
        return download(str(path).removeprefix("download:"))
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder. Name the file in it.")
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {path}.")
    return Path(path)


def named(path):
    """The name of a corpus, of one file or two, in a message."""
    return (
        " and ".join(map(str, path))
        if isinstance(path, list | tuple)
        else str(path)
    )


def one_or_two(text):
    """A path, or a list of two: `train.en,train.fr` are aligned files."""
    if "," not in text or Path(text).exists():
        return text
    paths = [path.strip() for path in text.split(",")]
    if len(paths) != 2 or not all(paths):
        raise ValueError(
            "One file, or two with a comma and no space between. Received: "
            f"{text}"
        )
    return paths


def check_columns(columns, number=None):
    """The columns of the source and the target; None = the first two."""
    if columns is None:
        return 1, 2
    highest = float("inf") if number is None else number
    if len({*columns}) != 2 or any(not 1 <= x <= highest for x in columns):
        raise ValueError(
            "`columns` must be two different numbers from 1"
            + (f" to {number}" if number else "")
            + f". Received: {columns}"
        )
    return columns


# name → (address, checksum). manythings.org serves only its newest edition.
# This copy never changes: Dive into Deep Learning hosts it, and publishes its
# checksum.
DOWNLOADS = {
    "fra-eng": (
        "https://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
        "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5",
    ),
}


def download(name):
    """The path of a corpus of `DOWNLOADS`, which is downloaded once.

    Only a file of the right checksum takes the place of an older one.
    """
    import pooch
    import requests

    if name not in DOWNLOADS:
        raise DataError(
            f"There is no download of this name. Received: {name!r}; "
            f"known: {', '.join(sorted(DOWNLOADS))}."
        )
    url, checksum = DOWNLOADS[name]
    folder = pooch.os_cache("d2l_attention")
    try:
        path = pooch.retrieve(
            url, checksum, fname=url.split("/")[-1], path=folder
        )
    except (ValueError, OSError, requests.RequestException) as error:
        raise DataError(
            f"Could not fetch {name} from {url}: {error} You can download a "
            "file by hand and pass its path instead."
        ) from error
    return Path(path)


# The lines of a text.

# Bounds of memory, whatever an archive unpacks to.
MAX_BYTES = 500_000_000  # of text; more is refused
MAX_LINE = 10_000  # characters; a longer line is unusable
BLOCK = 1 << 16  # characters that are read at once

PAGE = 'the lines of Python in "Other kinds of files" of docs/training.md'

_WORKBOOK = (
    "is a workbook. Save its sheet as text in UTF-8: with tabs, and name that "
    f'file with --spreadsheet, or as "CSV UTF-8", of which {PAGE} make tabs.'
)
_PACKED = (
    "is packed. Unpack it, and name the file; .gz and .zip may stay packed."
)
_NO_TEXT = {  # what a file begins with
    b"\xd0\xcf\x11\xe0": _WORKBOOK,  # of Excel, before 2007
    b"BZh": _PACKED,
    b"\xfd7zXZ": _PACKED,
    b"7z\xbc\xaf": _PACKED,
    b"Rar!": _PACKED,
    b"(\xb5/\xfd": _PACKED,  # zstd
    b"%PDF": "is a PDF. Save its sentences as text.",
}
_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")  # its first bytes, as surrogates
_LANGUAGE = re.compile(r"(.*)\.([a-z]{2,3}(?:[_-]\w+)?)")  # as in train.en
_FORMAT = re.compile(r".*\.(xml|tmx|ids|txt|tsv|csv|md|pdf)")
_NOTE = re.compile(r"[._]|(readme|licen[cs]e|copying|about|notes)\b", re.I)


def read_lines(path):
    """The number and the text of each line, in bounded memory.

    A line ends in `\\n` or `\\r\\n`, or in `\\r` where a file has no `\\n`. A
    `\\r` elsewhere is white space, and a warning gives the lines that hold it.
    A line of more than `MAX_LINE` characters is cut to one more than that.
    """
    with path.open("rb") as file, _unpacked(file, path) as content:
        blocks = _blocks(file, content, path)
        first = next(blocks, "")
        if _is_utf_16(first):
            raise DataError(
                f"{path} is UTF-16, or no text. For UTF-16, {PAGE} save it as "
                "UTF-8."
            )
        mac = "\r" in first[:-1] and "\n" not in first
        end, stray = ("\r", "\n") if mac else ("\n", "\r")
        lines = _split(itertools.chain([first], blocks), end, path)
        number, outside, strays = 0, 0, []
        for number, line in enumerate(lines, 1):
            if stray in line:
                if mac or _are_several(line):
                    raise _mixed(path, number)
                # before a tab it ends no line: `paste` has joined two files
                outside += line.count("\r") - line.count("\r\t")
                strays.append(number)
            yield number, line
        if outside > number:
            raise _mixed(path, strays[0])
    if strays:
        warnings.warn(
            f"{path}: a carriage return (\\r) that ends no line was read as a "
            f"space. Lines with one: {len(strays):,} (line "
            f"{_some_of(strays)}).",
            stacklevel=2,
        )


def _is_utf_16(text):
    """Whether a text, read as UTF-8, is UTF-16, or none: NUL fills it."""
    return text[:2] in _UTF_16 or text.count("\0") > len(text) / 8


def _some_of(numbers):
    """The first of some numbers, in a message."""
    return ", ".join(map(str, numbers[:5])) + " …" * (len(numbers) > 5)


def _are_several(line):
    """Whether carriage returns end the lines within a line.

    Two rows of columns can be a single one, with a break in its second cell.
    """
    rows = ["\t" in part.strip("\t") for part in line.split("\r")]
    return len(line) > MAX_LINE or sum(rows) > 2


def _mixed(path, number):
    return DataError(
        f"{path} has line ends of two kinds, \\n and the \\r of old Macs (line "
        f"{number}). Save it with one kind, in an editor."
    )


def _blocks(file, content, path):
    """A text in pieces of bounded size; a terminal shows how far it is."""
    from tqdm import tqdm

    with (
        # bad bytes become surrogates, which no UTF-8 holds
        io.TextIOWrapper(
            content, "utf-8-sig", "surrogateescape", newline=""
        ) as text,
        tqdm(
            desc=f"Reading {path.name}",
            total=path.stat().st_size,
            unit="B",
            unit_scale=True,
            delay=2,
            leave=False,
            disable=None,  # unless standard error is a terminal
        ) as bar,
    ):
        while block := text.read(BLOCK):
            if content.tell() > MAX_BYTES:
                raise DataError(
                    f"{path} holds more than {MAX_BYTES:,} bytes of text. Take "
                    "a part of it."
                )
            yield block
            bar.update(file.tell() - bar.n)


def _split(blocks, end, path):
    """The lines of a text, without their ends."""
    number, rest = 0, ""
    for block in blocks:
        try:
            block.encode()
        except UnicodeEncodeError as error:
            number += 1 + block.count(end, 0, error.start)
            byte = ord(block[error.start]) - 0xDC00
            raise DataError(
                f"{path} is not UTF-8: line {number} holds the byte "
                f"0x{byte:02x}. If that line alone is wrong, mend it; if not, "
                "save the file as UTF-8, with an editor or with "
                "`iconv -f OLD_ENCODING -t UTF-8`."
            ) from error
        *lines, rest = (rest + block).split(end)
        number += len(lines)
        for line in lines:
            yield line.rstrip("\r")[: MAX_LINE + 1]
        if len(rest) > BLOCK:
            rest = rest[:MAX_LINE] + "…"
    if rest:
        yield rest.rstrip("\r")[: MAX_LINE + 1]


@contextmanager
def _unpacked(file, path):
    """The content of an open file, or of the one text in an archive."""
    start = file.read(8)
    for beginning, what in _NO_TEXT.items():
        if start.startswith(beginning):
            raise DataError(f"{path} {what}")
    file.seek(0)
    packed = zipfile.is_zipfile(file)
    file.seek(0)
    try:
        if packed:
            with zipfile.ZipFile(file) as archive:
                with archive.open(_text_in(archive, path)) as content:
                    yield content
        elif start.startswith(b"PK"):
            raise zipfile.BadZipFile("its directory is missing")
        elif start.startswith(b"\x1f\x8b"):
            with gzip.open(file) as content:
                yield content
        else:
            yield file
    except (
        zipfile.BadZipFile,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
        NotImplementedError,  # an unknown method of compression
        RuntimeError,  # the archive has a password
    ) as error:
        raise DataError(
            f"{path} is a damaged archive, or cannot be read: {error}"
        ) from error


def _text_in(archive, path):
    """The name of the one text in an archive that is no note about it."""
    names = archive.namelist()
    for name in names:
        inside = PurePosixPath(name.replace("\\", "/"))
        if inside.is_absolute() or ".." in inside.parts:
            raise DataError(f"{path} holds a path that escapes it: {name!r}.")
    texts = [
        name
        for name in names
        if name.endswith((".txt", ".tsv"))
        and not _NOTE.match(PurePosixPath(name).name)
    ]
    if len(texts) == 1:
        return texts[0]
    if "xl/workbook.xml" in names or "content.xml" in names:
        raise DataError(f"{path} {_WORKBOOK}")
    stems = {}
    for name in names:
        if not _FORMAT.fullmatch(name) and (of := _LANGUAGE.fullmatch(name)):
            stems.setdefault(of[1], []).append(name)
    for aligned in stems.values():
        if len(aligned) == 2:
            raise DataError(
                f"{path} holds two files with aligned lines. Unpack it, and "
                f"name both: --corpus {','.join(aligned)}."
            )
    some = f"{', '.join(names[:5])}{', …' * (len(names) > 5)}"
    raise DataError(
        f"{path} must hold one .txt or .tsv file. Received: {some}. Unpack it, "
        "and name the file."
    )


# The cells of lines with tabs, and the quotes that a spreadsheet adds: it puts
# a cell into quotes that holds a quote, a tab or the end of a line, some also
# one that holds a comma, and doubles the quotes within.

_QUOTED = re.compile('"([^"]|"")*"')


def plain_rows(lines, path):
    """Number, text and cells of each row of a text, whose quotes are its own.

    A warning counts the cells that a spreadsheet may have put into quotes,
    unless more cells hold quotes that no spreadsheet writes.
    """
    quoted, others, example, opened = 0, 0, "", ""
    for number, line in lines:
        cells = line.split("\t")
        yield number, line, cells
        if '"' not in line:
            continue
        for cell in cells:
            if _QUOTED.fullmatch(cell):
                quoted += 1
                example = example or f"{cell} in line {number}"
            elif '"' in cell:
                others += 1
        # A cell that is broken over lines is the last of a row, then the first.
        first, last = cells[0], cells[-1]
        if opened and first.endswith('"') and first.count('"') % 2:
            quoted, others = quoted + 1, others - 2  # its halves
            example, opened = example or opened, ""
        if last.startswith('"') and last.count('"') % 2:
            opened = f"{last} in line {number}"
    if quoted > others:
        warnings.warn(
            f"{path}: {quoted:,} cells stand in quotes, such as {example}. If "
            "a spreadsheet put them there, --spreadsheet takes them away.",
            stacklevel=2,
        )


def spreadsheet_rows(lines, path):
    """Rows as a spreadsheet writes them, without its quotes.

    Each has the number of its first line, its text and its cells. A line that
    no spreadsheet writes has no cells; nor have those after it, up to the end
    of its quote.
    """
    of_row = []

    def remembered():
        for number, line in lines:
            of_row.append((number, line))
            yield line.replace("\r", " ") + "\n"

    rows = csv.reader(remembered(), delimiter="\t", strict=True)
    while True:
        of_row.clear()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error:
            for number, line in of_row:
                yield number, line, []
        else:
            yield of_row[0][0], " ".join(line for _, line in of_row), cells


# Lines that are no pairs: a few are skipped, and many refuse a file.

SHOWN = 9  # lines that say what kind of file it is


def _report_bad_lines(name, bad, num_good, max_bad_share, needed):
    """Warn of the unusable lines, or refuse the file if they are too many.

    `bad` has the text of each by its number; later ones may have an empty
    text. `needed` says what a line needs to be a pair.
    """
    total = num_good + len(bad)
    if not total:
        raise DataError(f"{name} is empty.")
    message = (
        f"{name}: {len(bad)} of {total} lines are not pairs (line "
        f"{_some_of(sorted(bad))})"
    )
    if len(bad) <= max_bad_share * total:
        if bad:
            warnings.warn(f"{message}; skipped.", stacklevel=4)
        return
    first = [line for _, line in sorted(bad.items()) if line][:SHOWN]
    shown = f"Line {min(bad)} begins with {first[0][:60]!r}."
    if any("\0" in line for line in first):
        shown = "They hold the character NUL, which no text has."
    remedy = "Mend them, or let --max-bad-share skip more."
    if 4 * num_good < len(bad) and "\t" not in first[0]:
        if kind := _kind_of(first):
            raise DataError(
                f"{name} looks like {kind}; {PAGE} make tabs of it. {shown}"
            )
        remedy = (
            "If each language has a file of its own, name both: --corpus "
            "train.en,train.fr."
        )
    raise DataError(
        f"{message}; at most {max_bad_share:.1%} are tolerated. A line needs "
        f"{needed}. {shown} {remedy}"
    )


def _kind_of(lines):
    """What the first lines of a file without tabs look like; None = text."""
    beginning = lines[0].lstrip()[:1]
    if beginning in ("{", "["):
        return "JSON"
    if beginning == "<":
        return "TMX or other XML"
    for mark, name in ((";", "semicolons"), (",", "commas")):
        if sum(mark in line for line in lines) > len(lines) / 2:
            return f"columns with {name} between"
    return None
