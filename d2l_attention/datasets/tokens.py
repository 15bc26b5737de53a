"""What a token is, in any text: a word, a mark, or a Chinese character."""

import functools
import re
import unicodedata

import regex

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
