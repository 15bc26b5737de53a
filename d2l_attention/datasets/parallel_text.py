"""Parallel text in files of others, or downloaded.

A corpus is text in UTF-8 with tabs between its columns, or two files with
aligned lines; gzip may have packed it. No other kind of file is guessed at:
what is no such text raises a `DataError`.
"""

from collections import Counter
from contextlib import contextmanager
import gzip
import io
import itertools
from pathlib import Path
import re
import warnings
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
    for number, line, width, cells in _rows(path, columns):
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
    needed = _needed(path, columns)
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


def _rows(path, columns):
    """Number and text of each line, its columns, its source and target."""
    if not are_two(path):
        one, two = (x - 1 for x in check_columns(columns))
        for number, line, cells in _cells(read_lines(local(path)), path):
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
    source, target = (_cells(read_lines(local(x)), x) for x in path)
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


def _needed(path, columns):
    """What a line needs to be a pair, in a message."""
    if are_two(path):
        return "text in both files"
    one, two = check_columns(columns)
    return (
        f"text in columns {one} and {two} (--columns names others), and tabs "
        "between columns"
    )


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
    return " and ".join(map(str, path)) if are_two(path) else str(path)


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


# name → (address, checksum, file in it). manythings.org serves only its newest
# edition. This copy never changes: Dive into Deep Learning hosts it, and
# publishes its checksum.
DOWNLOADS = {
    "fra-eng": (
        "https://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
        "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5",
        "fra.txt",
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
    url, checksum, member = DOWNLOADS[name]
    try:
        (path,) = pooch.retrieve(
            url,
            checksum,
            fname=url.split("/")[-1],
            path=pooch.os_cache("d2l_attention"),
            processor=pooch.Unzip([member]),
        )
    except (ValueError, OSError, requests.RequestException) as error:
        raise DataError(
            f"Could not fetch {name} from {url}: {error} You can download a "
            f"file by hand, unpack it, and pass the path of its {member}."
        ) from error
    return Path(path)


# The lines of a text.

# Bounds of memory, whatever an archive unpacks to.
MAX_BYTES = 500_000_000  # of text; more is refused
MAX_LINE = 10_000  # characters; a longer line is unusable
BLOCK = 1 << 16  # characters that are read at once

OTHERS = (
    'A corpus is text in UTF-8 with tabs, plain or gzipped; "Other kinds of '
    'files" in docs/training.md converts others.'
)


def read_lines(path):
    """The number and the text of each line, in bounded memory.

    A line ends in `\\n` or `\\r\\n`. Another `\\r` is white space, and a
    warning gives the lines that hold one. A line of more than `MAX_LINE`
    characters is cut to one more than that.
    """
    number, outside, strays = 0, 0, []
    with path.open("rb") as file, _unpacked(file, path) as content:
        lines = _split(_blocks(file, content, path), path)
        for number, line in enumerate(lines, 1):
            if "\r" in line:
                if _are_several(line):
                    raise _of_other_ends(path, number)
                # before a tab it ends no line: `paste` has joined two files
                outside += line.count("\r") - line.count("\r\t")
                strays.append(number)
            yield number, line
    if outside and outside >= number:
        raise _of_other_ends(path, strays[0])
    if strays:
        warnings.warn(
            f"{path}: a carriage return (\\r) that ends no line was read as a "
            f"space. Lines with one: {len(strays):,} (line "
            f"{_some_of(strays)}).",
            stacklevel=2,
        )


def _are_several(line):
    """Whether carriage returns end the lines within a line.

    Two rows of columns can be a single one, with a break in its second cell.
    """
    rows = ["\t" in part.strip("\t") for part in line.split("\r")]
    return len(line) > MAX_LINE or sum(rows) > 2


def _of_other_ends(path, number):
    return DataError(
        f"{path} has line ends of another kind, the \\r of old Macs (line "
        f"{number}). {OTHERS}"
    )


def _some_of(numbers):
    """The first of some numbers, in a message."""
    return ", ".join(map(str, numbers[:5])) + " …" * (len(numbers) > 5)


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


def _split(blocks, path):
    """The lines of a text, without their ends."""
    number, rest = 0, ""
    for block in blocks:
        try:
            block.encode()
        except UnicodeEncodeError as error:
            number += 1 + block.count("\n", 0, error.start)
            byte = ord(block[error.start]) - 0xDC00
            raise DataError(
                f"{path} is not UTF-8: line {number} holds the byte "
                f"0x{byte:02x}. Mend that line, if no other is wrong. {OTHERS}"
            ) from error
        *lines, rest = (rest + block).split("\n")
        number += len(lines)
        for line in lines:
            yield line.rstrip("\r")[: MAX_LINE + 1]
        if len(rest) > BLOCK:
            rest = rest[:MAX_LINE] + "…"
    if rest:
        yield rest.rstrip("\r")[: MAX_LINE + 1]


@contextmanager
def _unpacked(file, path):
    """The content of an open file, which gzip may have packed."""
    is_packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    try:
        yield gzip.open(file) if is_packed else file
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"{path} is a damaged archive, or cannot be read: {error}"
        ) from error


_QUOTED = re.compile('"([^"]|"")*"')  # as a spreadsheet writes some cells


def _cells(lines, path):
    """Number, text and cells of each line; quotes are those of the text.

    A warning counts the cells that a spreadsheet may have put into quotes,
    unless more cells hold quotes that no spreadsheet writes.
    """
    quoted, others, example = 0, 0, ""
    for number, line in lines:
        cells = line.split("\t")
        yield number, line, cells
        for cell in cells if '"' in line else ():
            if _QUOTED.fullmatch(cell):
                quoted += 1
                example = example or f"{cell} in line {number}"
            elif '"' in cell:
                others += 1
    if quoted > others:
        warnings.warn(
            f"{path}: {quoted:,} cells stand in quotes, such as {example}. If "
            'a spreadsheet put them there, "Other kinds of files" in '
            "docs/training.md takes them away.",
            stacklevel=2,
        )


# Lines that are no pairs: a few are skipped, and many refuse a file.

SHOWN = 9  # lines of which a message may quote one


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
    first = next(line for _, line in sorted(bad.items()) if line)
    shown = f"Line {min(bad)} begins with {first[:60]!r}."
    if any("\0" in line for line in bad.values()):
        shown = "They hold the character NUL, which no text has."
    remedy = "Mend them, or let --max-bad-share skip more."
    if 4 * num_good < len(bad) and "\t" not in first:
        remedy = (
            "If each language has a file of its own, name both: --corpus "
            "train.en,train.fr."
        )
    raise DataError(
        f"{message}; at most {max_bad_share:.1%} are tolerated. A line needs "
        f"{needed}. {shown} {remedy} {OTHERS}"
    )
