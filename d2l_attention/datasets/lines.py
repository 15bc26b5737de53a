"""Read the lines of a text, plain, gzipped or zipped, in bounded memory."""

from contextlib import contextmanager
import gzip
import io
import itertools
from pathlib import PurePosixPath
import re
import warnings
import zipfile
import zlib

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


class DataError(ValueError):
    """A file of parallel text cannot be used as it is."""


def read_lines(path):
    """The number and the text of each line, in bounded memory.

    A line ends in `\\n` or `\\r\\n`, or in `\\r` where a file has no `\\n`. A
    `\\r` elsewhere is white space, and a warning gives the lines that hold it.
    A line of more than `MAX_LINE` characters is cut to one more than that.

    Raises:
        DataError: If the file is damaged, is not UTF-8, holds more than
            `MAX_BYTES` of text, or mixes the ends of lines.
    """
    with path.open("rb") as file, _unpacked(file, path) as content:
        blocks = _blocks(file, content, path)
        first = next(blocks, "")
        if first[:2] in _UTF_16 or first.count("\0") > len(first) / 8:
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
            f"space. Lines with one: {len(strays):,} (line {some_of(strays)}).",
            stacklevel=2,
        )


def some_of(numbers):
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
