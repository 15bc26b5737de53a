"""What is shipped: a corpus with gold alignments and tags; measured results."""

import csv
import functools
from pathlib import Path
from typing import NamedTuple

from d2l_attention.datasets.parallel_text import DataError

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
        pairs: As in `load_alignments`.

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


def load_results(name):
    """The rows of the newest results of this name.

    `data/results` holds dated tables, `2026-11-21_translators.csv`, beside
    the commands that measured them. They come with the package.

    Example:
        >>> from d2l_attention import datasets
        >>> rows = datasets.load_results("efficiency")
        >>> rows[0]["mechanism"], rows[0]["n"]
        ('dense', '512')

    Args:
        name: Str, what follows the date: `"translators"`.

    Returns:
        List of dicts of str, one for each row, by the names of the columns.

    Raises:
        ValueError: If there are no results of this name.
    """
    folder = corpus_path().parent / "results"
    dated = "????-??-??_"
    paths = sorted(folder.glob(f"{dated}{name}.csv"))
    if not paths:
        known = {path.stem[len(dated) :] for path in folder.glob("*.csv")}
        raise ValueError(
            f"`name` must be one of {sorted(known)}. Received: {name!r}."
        )
    with paths[-1].open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
