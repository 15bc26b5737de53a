"""Read parallel text: plain, gzipped or zipped, on disk or downloaded.

A file that cannot be used raises a `DataError`, which names the file and,
where it can, the line. A download is written beside its place and renamed
once its checksum is right, so an older file is never lost.
"""

from contextlib import contextmanager
import gzip
import io
from pathlib import Path, PurePosixPath
import re
import unicodedata
import zipfile
import zlib

import regex

# name → (address, checksum). manythings.org serves only its newest edition.
# This copy never changes: Dive into Deep Learning hosts it, and publishes its
# checksum.
DOWNLOADS = {
    "fra-eng": (
        "https://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
        "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5",
    ),
}

# Bounds of memory, whatever an archive unpacks to.
MAX_BYTES = 500_000_000  # of text; more is refused
MAX_LINE = 10_000  # characters; a longer line is unusable

# Punctuation, but for the marks inside words: apostrophes, hyphens, the
# Catalan dot and the Hebrew geresh; and each Chinese or Japanese character.
_TOKEN = regex.compile(
    r"[[\p{P}--[\p{Pc}'\-‐‑·־׳״]][\p{Han}\u3040-\u30ff]]", regex.VERSION1
)
_ELISION = re.compile(r"\b([cdjlmnst]|qu|jusqu|lorsqu|puisqu)'(?=\w)")
_NOTE = re.compile(r"[._]|(readme|licen[cs]e|copying|about|notes)\b", re.I)


class DataError(ValueError):
    """A file of parallel text cannot be used as it is."""


def is_token(character):
    """Whether a character is a token by itself, in any text."""
    return bool(_TOKEN.match(character))


def normalize(text):
    """A text in lower case, with a space between any two tokens.

    Each punctuation mark is a token, and so is each Chinese or Japanese
    character. A French elision ends its token: `l' eau`. Other words keep
    their apostrophes and hyphens: `don't`, `est-il`.
    """
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'")
    text = _TOKEN.sub(r" \g<0> ", text)
    return " ".join(_ELISION.sub(r"\1' ", text).split())


def clean(text):
    """A text as people write it, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def read_pairs(path, max_bad_share=0.01, columns=None, raw=False):
    """Read the pairs of a tab-separated file.

    A line is unusable if one of the two columns is missing or empty, if it
    holds the character NUL, or if it is longer than 10,000 characters. Empty
    lines are skipped. A terminal shows how far a large file has been read.

    Args:
        path: A text file, plain, gzipped or in a zip; or `"download:NAME"`.
        max_bad_share: Float, share of unusable lines that is tolerated. They
            are skipped, and a warning gives their numbers.
        columns: Two positive ints, the columns of the source and the target,
            counted from 1; None = the first two.
        raw: Whether to return the text as people wrote it, with single
            spaces.

    Returns:
        List of `(source, target)`, normalized unless `raw`.

    Raises:
        DataError: If the file cannot be read, holds more than 500 MB of text,
            has too many unusable lines, or if the first of three columns or
            more holds only numbers and `columns` is None.
        FileNotFoundError: If there is no file.
    """
    if str(path).startswith("download:"):
        path = download(str(path).removeprefix("download:"))
    one, two = check_columns(columns)
    pairs, bad, bad_line = [], [], ""
    spell, numbered = clean if raw else normalize, columns is None
    for number, line in _read_lines(Path(path)):
        cells = line.split("\t")
        pair = tuple(spell(x) for i in (one, two) for x in cells[i - 1 : i])
        if len(pair) == 2 and all(pair) and "\0" not in line:
            pairs.append(pair)
            numbered = numbered and len(cells) > 2 and cells[0].isdecimal()
        elif line.strip():
            bad.append(number)
            bad_line = bad_line or line[:60]
    _report_bad_lines(path, bad, bad_line, len(pairs), max_bad_share, one, two)
    if numbered:
        raise DataError(
            f"The first column of {path} holds only numbers. Say which columns "
            "are the sentences, as in `--columns 2,4`."
        )
    return pairs


def check_columns(columns, number=None):
    """The columns of the source and the target; None = the first two.

    Raises:
        ValueError: If they are not two different ints from 1 to `number`.
    """
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


def download(name, folder=None, downloads=None):
    """Download a known corpus, unless it was downloaded before.

    Args:
        name: One of `DOWNLOADS`.
        folder: Where to keep the file; None = the user's cache.
        downloads: Dict name → (address, checksum), in place of `DOWNLOADS`.
            A checksum is a SHA-256, or begins with its kind, as in `sha1:…`.

    Returns:
        Path of the file.

    Raises:
        DataError: If the name is unknown, the server cannot be reached, or
            the file has another checksum.
    """
    import pooch
    import requests

    downloads = DOWNLOADS if downloads is None else downloads
    if name not in downloads:
        raise DataError(
            f"There is no download of this name. Received: {name!r}; "
            f"known: {', '.join(sorted(downloads))}."
        )
    url, checksum = downloads[name]
    folder = pooch.os_cache("d2l_attention") if folder is None else folder
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


def _read_lines(path):
    """The number and the text of each line, in bounded memory."""
    from tqdm import tqdm

    with (
        path.open("rb") as file,
        _unpacked(file, path) as content,
        # bad bytes become surrogates, which no UTF-8 holds
        io.TextIOWrapper(content, "utf-8-sig", "surrogateescape") as text,
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
        for number, line in enumerate(_whole_lines(text), 1):
            if strange := re.search("[\udc80-\udcff]", line):
                raise DataError(
                    f"{path} is not UTF-8: line {number} holds the byte "
                    f"0x{ord(strange[0]) - 0xDC00:02x}. Save it as UTF-8, with "
                    "an editor or with `iconv -f OLD_ENCODING -t UTF-8`."
                )
            yield number, line
            if number % 1000 == 0:
                bar.update(file.tell() - bar.n)


def _whole_lines(text):
    """Lines without their ends; one too long is cut, and ends in NUL."""
    while line := text.readline(MAX_LINE):
        rest = line
        while len(rest) == MAX_LINE and not rest.endswith("\n"):
            rest = text.readline(MAX_LINE)
            line = line[:100] + "\0"
        if text.buffer.tell() > MAX_BYTES:
            raise DataError(
                f"{text.buffer.name} holds more than {MAX_BYTES:,} bytes of "
                "text. Take a part of it."
            )
        yield line.removesuffix("\n")


@contextmanager
def _unpacked(file, path):
    """The content of an open file, or of the one text in an archive."""
    start = file.read(4)
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
    if len(texts) != 1:
        raise DataError(
            f"{path} must hold one .txt or .tsv file. Received: {names}. "
            "Unpack it, and name the file."
        )
    return texts[0]


def _report_bad_lines(path, bad, first, num_good, max_bad_share, one, two):
    """Warn of the unusable lines, or refuse the file if they are too many."""
    import warnings

    if not bad:
        if not num_good:
            raise DataError(f"{path} is empty.")
        return
    total = num_good + len(bad)
    some = ", ".join(map(str, bad[:5]))
    some += " …" if len(bad) > 5 else ""
    message = f"{path}: {len(bad)} of {total} lines are not pairs (line {some})"
    if len(bad) > max_bad_share * total:
        raise DataError(
            f"{message}; at most {max_bad_share:.1%} are tolerated. A line "
            f"needs text in columns {one} and {two}, and tabs between columns "
            f"(not commas). Line {bad[0]} begins with {first!r}."
        )
    warnings.warn(f"{message}; skipped.", stacklevel=3)
