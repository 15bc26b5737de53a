"""What strikes a reader of a corpus, counted before a model is trained on it.

None of it refuses a corpus: each look names a number, an example and what to
do. A corpus of two languages with little to mend gives nothing to read.
"""

from collections import Counter
from html.entities import html5
import re

# What people call a column: its part in the training, or its language.
_COLUMN = {
    *"source target src tgt trg input output text texts sentence sentences "
    "translation translations reference original lang language".split(),
    *"english french german spanish italian portuguese dutch russian polish "
    "ukrainian turkish arabic hebrew persian hindi chinese japanese korean "
    "vietnamese anglais français allemand espagnol deutsch englisch "
    "französisch spanisch español inglés francés italiano português "
    "nederlands русский английский polski українська türkçe العربية עברית "
    "فارسی हिन्दी 中文 英文 英语 日本語 英語 한국어 영어".split(),
    *"en fr de es it pt nl ru pl uk tr ar he fa hi zh ja ko vi eng fra fre "
    "deu ger spa ita por nld rus pol ukr tur ara heb zho cmn jpn kor "
    "vie".split(),
}
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(#[0-9]+|#x[0-9a-f]+|[a-z]+[0-9]*);", re.IGNORECASE)
_SAMPLE = 10_000  # pairs that tell the two languages apart


def look_at(pairs):
    """What strikes a reader of pairs, and what to do about it.

    Args:
        pairs: Dict of normalized pair to pair as people wrote it.

    Yields:
        A str for each thing.
    """
    first = next(iter(pairs.values()), ("", ""))
    if all(map(_is_name, first)):
        yield (
            f"the first pair, {first[0]!r} and {first[1]!r}, looks like names "
            "of columns. Delete that line."
        )
    markup = [pair for pair in pairs.values() if any(map(_has_markup, pair))]
    if markup:
        yield (
            f"{_share(markup, pairs)} hold HTML, such as {_show(markup[0])}. "
            "Take the tags away, and unescape the rest: html.unescape(text)."
        )
    same = [pairs[pair] for pair in pairs if pair[0] == pair[1]]
    if same:
        remedy = "Delete those that are not translated."
        if len(same) > len(pairs) / 2:
            remedy = "Is one column, or one file, read twice?"
        yield (
            f"{_share(same, pairs)} have the same text on both sides, such as "
            f"{same[0][0]!r}. {remedy}"
        )
    turned = exchanged(list(pairs))
    if turned:
        yield (
            f"{_share(turned, pairs)} seem to have their languages the other "
            f"way round than the rest, such as {_show(pairs[turned[0]])}. "
            "Exchange the columns of these lines."
        )


def exchanged(pairs):
    """The pairs whose languages stand the other way round than in most.

    A sample tells on which side each word stands: a pair is laid down as the
    pairs before it say. Then half the words of a pair must say where it
    stands. Where the words do not tell the columns apart, as in paraphrases,
    the list is empty, and so it is for five pairs or 0.1 % of the sample,
    which can be chance.

    Args:
        pairs: List of normalized pairs.

    Returns:
        List of pairs.
    """
    sample = pairs[:: max(1, len(pairs) // _SAMPLE)]
    sides = Counter(), Counter()  # how often a word stands on each
    leans = {}
    for pair in sample:
        words = [[w for w in text.split() if w[0].isalpha()] for text in pair]
        if _side(words, leans) < 0:
            words.reverse()
        for text, counts in zip(words, sides, strict=True):
            counts.update(text)
        for word in {*words[0], *words[1]}:
            one, two = (counts[word] for counts in sides)
            leans[word] = (one > two) - (one < two)
    number = sum(map(Counter.total, sides))
    clear = sum(max(sides[0][w], sides[1][w]) for w in leans)
    if clear < 0.8 * number:
        return []
    if len(_smaller_part(sample, leans)) <= max(5, len(sample) / 1000):
        return []
    return _smaller_part(pairs, leans)


def _smaller_part(pairs, leans):
    """The pairs that stand the other way round than the larger part."""
    parts = {1: [], 0: [], -1: []}
    for pair in pairs:
        words = [text.split() for text in pair]
        side, half = _side(words, leans), (len(words[0]) + len(words[1])) / 2
        parts[(side >= half) - (side <= -half)].append(pair)
    return min(parts[1], parts[-1], key=len)


def _side(words, leans):
    """How many of a pair's words stand on their side, less the others."""
    source, target = words
    return sum(leans.get(word, 0) for word in source) - sum(
        leans.get(word, 0) for word in target
    )


def _is_name(cell):
    parts = [x for x in re.split(r"[\W\d_]+", cell.casefold()) if x]
    return bool(parts) and _COLUMN.issuperset(parts)


def _has_markup(text):
    if "<" in text and _TAG.search(text):
        return True
    return "&" in text and any(
        entity[0] == "#" or f"{entity};" in html5
        for entity in _ENTITY.findall(text)
    )


def _share(some, pairs):
    return f"{len(some):,} of {len(pairs):,} pairs"


def _show(pair):
    return f"{pair[0]!r} → {pair[1]!r}"
