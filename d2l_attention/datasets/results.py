"""Measured results that take longer than a notebook may."""

import csv

from d2l_attention.datasets.corpus import corpus_path


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
        name: Str, what stands behind the date: `"translators"`.

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
