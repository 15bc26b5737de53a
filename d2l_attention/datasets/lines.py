"""Read the lines of a text, plain, gzipped or zipped, in bounded memory."""

from contextlib import contextmanager
import gzip
import io
from pathlib import PurePosixPath
import re
import zipfile
import zlib

# Bounds of memory, whatever an archive unpacks to.
MAX_BYTES = 500_000_000  # of text; more is refused
MAX_LINE = 10_000  # characters; a longer line is unusable

_NOTE = re.compile(r"[._]|(readme|licen[cs]e|copying|about|notes)\b", re.I)


class DataError(ValueError):
    """A file of parallel text cannot be used as it is."""


def read_lines(path):
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
