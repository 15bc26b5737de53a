"""Parallel text: the shipped corpus, Tatoeba files, and ids made of them."""

from d2l_attention.datasets.corpus import load_alignments, load_tags
from d2l_attention.datasets.files import DataError
from d2l_attention.datasets.translation import (
    END,
    START,
    ids_to_text,
    load_pairs,
    load_translation,
    text_to_ids,
)

__all__ = [
    "END",
    "START",
    "DataError",
    "ids_to_text",
    "load_alignments",
    "load_pairs",
    "load_tags",
    "load_translation",
    "text_to_ids",
]
