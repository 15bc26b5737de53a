"""A translator: its training, its scores, and `python -m d2l_attention`."""

from d2l_attention._extras import check_extra

check_extra("d2l_attention.translator", "translator")

from d2l_attention.translator.run_folder import load_translator
from d2l_attention.translator.scores import (
    Score,
    bleu,
    chrf,
    paired_bootstrap,
)
from d2l_attention.translator.translator import Translator

__all__ = [
    "Score",
    "Translator",
    "bleu",
    "chrf",
    "load_translator",
    "paired_bootstrap",
]
