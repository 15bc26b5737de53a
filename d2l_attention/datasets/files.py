"""Read parallel text: plain, gzipped or zipped, on disk or downloaded.

A file that cannot be used raises a `DataError`, which names the file and,
where it can, the line. A download is written beside its place and renamed
once its checksum is right, so an older file is never lost.
"""

from collections import Counter
import functools
import itertools
from pathlib import Path
import re
import unicodedata

from d2l_attention.datasets.bad_lines import SHOWN, report_bad_lines
from d2l_attention.datasets.lines import MAX_LINE, DataError, read_lines
from d2l_attention.datasets.spreadsheets import plain_rows, spreadsheet_rows
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

# Punctuation, but for the marks inside words: apostrophes, hyphens, the
# Catalan dot and the Hebrew geresh; and each Chinese or Japanese character.
_TOKEN = regex.compile(
    r"[[\p{P}--[\p{Pc}'\-‐‑·־׳״]][\p{Han}\u3040-\u30ff]]", regex.VERSION1
)
_ELISION = re.compile(r"\b([cdjlmnst]|qu|jusqu|lorsqu|puisqu)'(?=\w)")


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


def without_end_marks(text):
    """A normalized text without the marks around it, if it has others.

    Texts that are equal then are twins: a model that has learned the one has
    seen the other.
    """
    first, last = 0, len(text)
    while last and _is_mark(text[last - 1]):
        last -= 1
    while first < last and _is_mark(text[first]):
        first += 1
    return text[first:last] or text


@functools.cache
def _is_mark(character):
    return character == " " or unicodedata.category(character)[0] == "P"


def clean(text):
    """A text as people write it, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def read_pairs(
    path,
    max_bad_share=0.01,
    columns=None,
    raw=False,
    reverse=False,
    spreadsheet=False,
):
    """Read the pairs of a tab-separated file.

    A line is unusable if one of the two columns is missing or empty, if it
    holds the character NUL, if it is longer than 10,000 characters, or if it
    has more columns than most lines and `columns` is None. Empty lines are
    skipped. A terminal shows how far a large file has been read.

    Args:
        path: A text file, plain, gzipped or in a zip; `"download:NAME"`; or a
            pair of files: line i of the second translates line i of the first.
        max_bad_share: Float, share of unusable lines that is tolerated. They
            are skipped, and a warning gives their numbers.
        columns: Two positive ints, the columns of the source and the target,
            counted from 1; None = the first two. Only of one file.
        raw: Whether to return the text as people wrote it, with single
            spaces.
        reverse: Whether source and target change places, of one file or two.
        spreadsheet: Whether to take away the quotes that a spreadsheet puts
            around cells; a cell may then be broken over lines.

    Returns:
        List of `(source, target)`, normalized unless `raw`.

    Raises:
        DataError: If the file cannot be read, holds more than 500 MB of text,
            has too many unusable lines, or if one of the first two columns
            of three or more holds no words and `columns` is None; or if two
            files have different numbers of lines.
        FileNotFoundError: If there is no file.
    """
    pairs, numbers, widths, bad = [], [], [], {}
    wordless = [0, 0]  # of source and target, in lines with more columns
    spell = clean if raw else normalize
    for number, line, width, cells in _rows(path, columns, spreadsheet):
        pair = tuple(map(spell, cells))
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
    report_bad_lines(named(path), bad, len(pairs), max_bad_share, needed)
    for i, number in enumerate(wordless):
        # perhaps under the name of the column
        if columns is None and 0 < number >= len(pairs) - (len(pairs) > 2):
            raise DataError(
                f"Column {i + 1} of {path} holds no words, as in "
                f"{pairs[-1][i]!r}. Say which columns are the sentences, as in "
                "`--columns 2,4`."
            )
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
    """A path, or a list of two: `train.en,train.fr` are aligned files.

    Raises:
        ValueError: If there are more than two.
    """
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
