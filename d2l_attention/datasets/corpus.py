"""The shipped English–French corpus, with gold alignments and tags."""

import csv
import functools
from pathlib import Path
from typing import NamedTuple

from d2l_attention.datasets.files import DataError

_COLUMNS = (
    "english",
    "french",
    "alignment",
    "english_tags",
    "french_tags",
)


class Sentence(NamedTuple):
    """One line of the corpus. Spaces separate tokens, links and tags."""

    source: str
    target: str
    alignment: str
    source_tags: str
    target_tags: str


def corpus_path():
    """Path of `eng-fra.tsv`, which lies in the wheel or beside the package."""
    package = Path(__file__).parents[1]
    for folder in (package / "data", package.parent / "data"):
        if (folder / "eng-fra.tsv").is_file():
            return folder / "eng-fra.tsv"
    raise FileNotFoundError(
        f"eng-fra.tsv is neither in {package / 'data'} nor in "
        f"{package.parent / 'data'}."
    )


@functools.cache
def read_corpus():
    """All sentences of the shipped corpus, as a tuple of `Sentence`."""
    with corpus_path().open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        header = tuple(next(rows))
        if header != _COLUMNS:
            raise DataError(
                f"{corpus_path()} must have the columns {_COLUMNS}. "
                f"Received: {header}."
            )
        return tuple(Sentence(*row) for row in rows)


def load_alignments(pairs):
    """The gold alignments of pairs of the shipped corpus.

    Args:
        pairs: List of `(source, target)`, as `load_pairs` returns them.

    Returns:
        For each pair, the set of links `(source position, target position)`.

    Raises:
        KeyError: If a pair is not in the shipped corpus.
    """
    links = _by_pair()
    return [
        {
            tuple(int(i) for i in link.split("-"))
            for link in links[tuple(pair)].alignment.split()
        }
        for pair in pairs
    ]


def load_tags(pairs):
    """The parts of speech (UPOS) of pairs of the shipped corpus.

    Args:
        pairs: List of `(source, target)`, as `load_pairs` returns them.

    Returns:
        For each pair, `(source tags, target tags)`, two lists of str.

    Raises:
        KeyError: If a pair is not in the shipped corpus.
    """
    sentences = (_by_pair()[tuple(pair)] for pair in pairs)
    return [(s.source_tags.split(), s.target_tags.split()) for s in sentences]


@functools.cache
def _by_pair():
    return {sentence[:2]: sentence for sentence in read_corpus()}
