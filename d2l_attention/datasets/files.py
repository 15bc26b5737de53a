"""Read parallel text: plain or zipped, on disk or downloaded.

A file that cannot be used raises a `DataError`, which names the file and,
where it can, the line. A download is written beside its place and renamed
once its checksum is right, so an older file is never lost.
"""

from pathlib import Path, PurePosixPath
import re
import unicodedata
import zipfile
import zlib

# name → (address, checksum). manythings.org serves only its newest edition.
# This copy never changes: Dive into Deep Learning hosts it, and publishes its
# checksum.
DOWNLOADS = {
    "fra-eng": (
        "https://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
        "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5",
    ),
}

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PUNCTUATION = '.,!?;:…"«»()。，！？；：、「」؟،؛'
_ELISION = re.compile(r"\b([cdjlmnst]|qu|jusqu|lorsqu|puisqu)'(?=\w)")


class DataError(ValueError):
    """A file of parallel text cannot be used as it is."""


def normalize(text):
    """A text in lower case, with a space between any two tokens.

    Each punctuation mark is a token, and so is each Chinese or Japanese
    character. A French elision ends its token: `l' eau`. Other words keep
    their apostrophes and hyphens: `don't`, `est-il`.
    """
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'")
    text = re.sub(f"([{_CJK}{re.escape(_PUNCTUATION)}])", r" \1 ", text)
    return " ".join(_ELISION.sub(r"\1' ", text).split())


def read_pairs(path, max_bad_share=0.01):
    """Read the pairs of a tab-separated file.

    The first column is the source, the second the target; further columns
    are ignored. A line is unusable if one of the two is missing or empty, or
    if it holds the character NUL. Empty lines are skipped.

    Args:
        path: A text file, a zip of one, or `"download:NAME"`.
        max_bad_share: Float, share of unusable lines that is tolerated. They
            are skipped, and a warning gives their numbers.

    Returns:
        List of `(source, target)`, normalized.

    Raises:
        DataError: If the file cannot be read, or has too many unusable lines.
        FileNotFoundError: If there is no file.
    """
    if str(path).startswith("download:"):
        path = download(str(path).removeprefix("download:"))
    pairs, bad = [], []
    for number, line in enumerate(_read_text(Path(path)).split("\n"), 1):
        columns = [normalize(column) for column in line.split("\t")[:2]]
        if len(columns) == 2 and all(columns) and "\0" not in line:
            pairs.append(tuple(columns))
        elif line.strip():
            bad.append(number)
    _report_bad_lines(path, bad, len(pairs), max_bad_share)
    return pairs


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


def _read_text(path):
    """The text of a file, or of the one text file in an archive."""
    data = _read_member(path) if zipfile.is_zipfile(path) else None
    if data is None:
        data = path.read_bytes()
        if data.startswith(b"PK"):
            raise DataError(f"{path} is a damaged or truncated zip archive.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(
            f"{path} is not UTF-8: byte {error.start} on line {line} is "
            f"0x{data[error.start]:02x}."
        ) from error


def _read_member(path):
    """The bytes of the one text file in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            for name in names:
                inside = PurePosixPath(name.replace("\\", "/"))
                if inside.is_absolute() or ".." in inside.parts:
                    raise DataError(
                        f"{path} holds a path that escapes it: {name!r}."
                    )
            texts = [
                name
                for name in names
                if name.endswith((".txt", ".tsv"))
                and not PurePosixPath(name).name.startswith(("_", "."))
            ]
            if len(texts) != 1:
                raise DataError(
                    f"{path} must hold one .txt or .tsv file. "
                    f"Received: {texts}."
                )
            return archive.read(texts[0])
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,  # an unknown method of compression
        RuntimeError,  # the archive has a password
    ) as error:
        raise DataError(
            f"{path} is a damaged zip archive, or cannot be read: {error}"
        ) from error


def _report_bad_lines(path, bad, num_good, max_bad_share):
    """Warn of the unusable lines, or refuse the file if they are too many."""
    import warnings

    total = num_good + len(bad)
    if not num_good:
        raise DataError(f"{path} has no line of two tab-separated columns.")
    if not bad:
        return
    some = ", ".join(map(str, bad[:5])) + (" …" if len(bad) > 5 else "")
    message = f"{path}: {len(bad)} of {total} lines are not pairs (line {some})"
    if len(bad) > max_bad_share * total:
        raise DataError(
            f"{message}; at most {max_bad_share:.1%} are tolerated."
        )
    warnings.warn(f"{message}; skipped.", stacklevel=3)
