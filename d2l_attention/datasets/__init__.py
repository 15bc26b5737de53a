"""The shipped corpus, Tatoeba files, token ids, and tasks drawn at random."""

from d2l_attention._extras import check_extra

check_extra("d2l_attention.datasets", "translator", do_without=["tensorflow"])

from d2l_attention.datasets.corpus import (
    load_alignments,
    load_results,
    load_tags,
)
from d2l_attention.datasets.long_range import (
    LIST_OPS_TOKENS,
    draw_list_ops,
    draw_retrieval,
)
from d2l_attention.datasets.pairs import load_pairs, load_translation
from d2l_attention.datasets.parallel_text import DataError
from d2l_attention.datasets.shapes import Shapes, draw_shapes
from d2l_attention.datasets.vocabularies import (
    END,
    START,
    SubwordVectorizer,
    ids_to_text,
    learn_subwords,
    make_vectorizer,
    make_vectorizers,
    pairs_to_ids,
    text_to_ids,
    tokenize,
)

__all__ = [
    "END",
    "LIST_OPS_TOKENS",
    "START",
    "DataError",
    "Shapes",
    "SubwordVectorizer",
    "draw_list_ops",
    "draw_retrieval",
    "draw_shapes",
    "ids_to_text",
    "learn_subwords",
    "load_alignments",
    "load_pairs",
    "load_results",
    "load_tags",
    "load_translation",
    "make_vectorizer",
    "make_vectorizers",
    "pairs_to_ids",
    "text_to_ids",
    "tokenize",
]
