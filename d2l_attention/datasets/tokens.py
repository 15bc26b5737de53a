"""What a token is, in any text: a word, a mark, or a Chinese character.

A word that people see as one is one token. Which signs do not count, and which
are one, Unicode's properties of characters say (UAX 29, UAX 31, UAX 44):

| sign | read as |
| --- | --- |
| what nobody sees (U+200B, U+00AD, U+200F, U+FEFF, controls …) | nothing |
| a joiner (U+200C, U+200D) where it joins and parts nothing | nothing |
| a second dot (U+0307) on a letter i | nothing |
| a presentation form of letters (wide, ligature, initial, …) | the letters |
| another apostrophe between two letters; a Hebrew geresh | ' |
| quotes before the last Hebrew letter of a word | gershayim |
| another dot between two letters l | · |
| another hyphen (U+2010, U+2011) | - |
"""

from collections import Counter
import functools
import re
import unicodedata

import regex

_OF_NO_WORD = r"[\p{Han}\u3040-\u30ff]"  # Chinese and Japanese characters
_OF_WORD = rf"[\w--{_OF_NO_WORD}]"
_MARK = r"[\p{P}--[\p{Pc}'\-·־״]]"
# These, and punctuation but for the marks inside words: apostrophes, hyphens,
# the Catalan dot and the Hebrew gershayim.
_TOKEN = regex.compile(
    rf"[{_MARK}{_OF_NO_WORD}]|(?<!{_OF_WORD})[\-·]|[\-·](?!{_OF_WORD})",
    regex.VERSION1,
)
# What is written without a space before or after it.
_EAST = rf"[{_OF_NO_WORD}[{_MARK}&&[\u3000-\u303f\uff00-\uffef]]]"
_WRITTEN_TOGETHER = regex.compile(_EAST, regex.VERSION1)
_BESIDE = regex.compile(rf"(?<={_EAST}) | (?={_EAST})", regex.VERSION1)
_SPACELESS = regex.compile(rf"[\p{{LB=SA}}{_OF_NO_WORD}]", regex.VERSION1)
_ELISION = re.compile(r"\b([cdjlmnst]|qu|jusqu|lorsqu|puisqu)'(?=\w)")
# Joiners part or join letters after a letter that joins, a mark or a picture,
# before another letter, mark or picture, and beside a virama.
_JOINS = r"\p{JT=D}\p{JT=L}\p{JT=C}\p{M}\p{ExtPict}\p{Emoji_Modifier}"
_FORMS = "".join(
    rf"\p{{DT={kind}}}"
    for kind in ("Wide", "Narrow", "Initial", "Medial", "Final", "Isolated")
)
_KINDS = {
    "nothing": r"[[\p{DI}--[\u200c\u200d\U000E0020-\U000E007F]]"
    r"\x01-\x08\x0e-\x1b\x7f]|(?<=i)\u0307"
    rf"|(?<![{_JOINS}])[\u200c\u200d](?!\p{{CCC=9}})"
    r"|(?<!\p{CCC=9})[\u200c\u200d]"
    rf"(?![[\p{{L}}\p{{M}}\p{{ExtPict}}]--{_OF_NO_WORD}])",
    "forms": rf"[[{_FORMS}[\p{{DT=Compat}}&&\p{{Latin}}]]&&[\p{{L}}\p{{N}}]]+",
    "apostrophe": r"(?<=\p{L})[’＇‘‛`´′](?=\p{L})|[ʼʻ]|(?<=\p{Hebrew})׳",
    # before the last letter of a word
    "gershayim": r"(?<=\p{Hebrew})[\"“”](?=\p{Hebrew}(?!\p{Hebrew}))",
    "dot": r"(?<=[lL])[‧∙⋅](?=[lL])",
    "hyphen": "[‐‑]",
}
_VARIANT = regex.compile(
    "|".join(f"(?P<{name}>{signs})" for name, signs in _KINDS.items()),
    regex.VERSION1,
)
_READ_AS = {
    "nothing": "",
    "apostrophe": "'",
    "gershayim": "״",
    "dot": "·",
    "hyphen": "-",
}
# Lower case in Turkish, Azerbaijani and other Turkic languages (the lines "T"
# of Unicode's CaseFolding.txt).
_TURKIC = str.maketrans("Iİ", "ıi")
_TURKIC_SHARE = 0.2  # of ı and İ among all letters i; Turkish has .4


def is_token(character):
    """Whether a character is a token by itself, in any text."""
    return bool(_TOKEN.match(character))


def clean(text, signs=None):
    """A text as people see it: single spaces, each sign in one form.

    Args:
        text: Str.
        signs: `Counter` that counts `(sign, what it was read as)`, or None.

    Raises:
        ValueError: If it holds half of a surrogate pair, which is no
            character.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"A text must consist of characters. Received: {ascii(text[:80])}, "
            f"with half a surrogate pair at position {error.start}."
        ) from error

    def read_as(found):
        kind, sign = found.lastgroup, found[0]
        other = _READ_AS.get(kind)
        if other is None:
            other = unicodedata.normalize("NFKC", sign)
        if signs is not None:
            signs[sign, other] += 1
        return other

    before = None
    while text != before:  # a sign that goes shows what stands beside it
        before = text
        text = _VARIANT.sub(read_as, unicodedata.normalize("NFC", text))
        text = " ".join(unicodedata.normalize("NFC", text).split())
    return text


def normalize(text, turkic=False):
    """A text in lower case, with a space between any two tokens.

    Each punctuation mark is a token, and so is each Chinese or Japanese
    character. A French elision ends its token: `l' eau`. Other words keep
    their apostrophes and hyphens: `don't`, `est-il`. In a Turkic language,
    `I` in lower case is `ı`; elsewhere it is `i`, and so is `İ` everywhere.
    """
    text = unicodedata.normalize("NFC", text)
    text = text.translate(_TURKIC) if turkic else text.replace("İ", "i")
    text = clean(text.lower()).replace("’", "'")
    text = _TOKEN.sub(r" \g<0> ", text)
    return " ".join(_ELISION.sub(r"\1' ", text).split())


def is_turkic(texts):
    """Whether the letters i of some texts are those of a Turkic language."""
    letters = Counter()
    for text in texts:
        letters.update({letter: text.count(letter) for letter in "iIıİ"})
    return letters["ı"] + letters["İ"] > _TURKIC_SHARE * letters.total()


def is_spaceless(texts):
    """Whether most letters of some texts are of scripts without spaces.

    In Thai, Lao, Khmer and Burmese (line breaking class SA of UAX 14), and in
    Chinese and Japanese, a sentence does not show its words.
    """
    text = "".join(texts)
    number = sum(x.isalpha() for x in text)
    return 2 * len(_SPACELESS.findall(text)) > number


def turkic_sides(pairs):
    """For the sources and for the targets, whether they are Turkic."""
    return [is_turkic(pair[side] for pair in pairs) for side in (0, 1)]


def normalize_pairs(pairs, turkic):
    """The list of normalized pairs; `turkic` is that of `turkic_sides`."""
    return [tuple(map(normalize, pair, turkic)) for pair in pairs]


def join_tokens(text):
    """Tokens between spaces as people write them in Chinese and Japanese."""
    return _BESIDE.sub("", text)


def split_tokens(text):
    """The list of the tokens that `join_tokens` joined."""
    return _WRITTEN_TOGETHER.sub(r" \g<0> ", text).split()


def without_end_marks(text):
    """A normalized text without the marks around it, if it has others.

    Texts that are equal then are twins: a model that has learned the one has
    seen the other. The dots of Turkic letters i do not count.
    """
    first, last = 0, len(text)
    while last and _is_mark(text[last - 1]):
        last -= 1
    while first < last and _is_mark(text[first]):
        first += 1
    return (text[first:last] or text).replace("ı", "i")


@functools.cache
def _is_mark(character):
    return character == " " or unicodedata.category(character)[0] == "P"
