"""What strikes a reader of a corpus, counted before a model is trained on it.

Nothing of it refuses a corpus. Each look finds the pairs that look like
something; one rule tells their share, an example, and the way on. A corpus of
two languages with little to mend gives nothing to read.
"""

from collections import Counter
from html.entities import html5
import re
import unicodedata

import numpy as np
import regex

# What people call a column: its part in the training, or its language, in
# English or its own name, or by a code, perhaps with a script or a region.
_COLUMN = {
    *"source target src tgt trg input output text texts sentence sentences "
    "translation translations reference original lang "
    "language".split(),
    *"english french german spanish italian portuguese dutch swedish norwegian "
    "danish finnish icelandic polish czech slovak slovene slovenian hungarian "
    "romanian bulgarian croatian serbian bosnian macedonian albanian greek "
    "russian ukrainian belarusian lithuanian latvian estonian turkish "
    "azerbaijani kazakh uzbek georgian armenian arabic hebrew persian farsi "
    "kurdish urdu hindi bengali bangla punjabi marathi gujarati tamil telugu "
    "kannada malayalam nepali sinhala thai lao khmer burmese vietnamese "
    "indonesian malay tagalog filipino javanese chinese mandarin cantonese "
    "japanese korean mongolian tibetan swahili amharic somali hausa yoruba "
    "igbo zulu xhosa afrikaans catalan galician basque irish welsh latin "
    "esperanto".split(),
    *"anglais français allemand espagnol deutsch englisch "
    "französisch spanisch español inglés francés italiano português "
    "nederlands svenska norsk dansk suomi čeština slovenčina magyar română "
    "hrvatski srpski català galego euskara русский английский български "
    "српски беларуская polski українська türkçe ελληνικά العربية עברית "
    "فارسی اردو हिन्दी বাংলা தமிழ் తెలుగు ไทย ລາວ ខ្មែរ မြန်မာ ქართული հայերեն "
    "한국어 영어".split(),
}
_CODES = {
    *"aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca "
    "ce ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj "
    "fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii "
    "ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la "
    "lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa "
    "sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk "
    "tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "
    "eng fra fre deu ger spa ita por nld dut rus pol ukr tur ara heb zho "
    "chi cmn jpn kor vie swe dan nob nor fin ces cze slk hun ron rum bul "
    "hrv srp ell gre lit lav est fas pes per urd hin ben tam tel tha lao "
    "khm mya ind msa cat glg eus kat hye aze kaz uzb swa".split()
}
_WITH = {*"us uk gb br cn tw hk latn cyrl arab hans hant deva".split()}
_HAN_NAME = regex.compile(r"\p{Han}{1,5}[文语語话話]")
_TAG = re.compile(
    r"</?\s*(?:a|b|big|blockquote|body|br|center|cite|code|dd|div|dl|dt|em|font"
    r"|h[1-6]|head|hr|html|i|img|li|link|meta|ol|p|pre|s|script|small|span"
    r"|strike|strong|style|sub|sup|table|tbody|td|th|thead|title|tr|tt|u|ul)"
    r"(?:\s+[\w-]+\s*=[^<>]*)?\s*/?>|<!--",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(#[0-9]+|#x[0-9a-f]+|[a-z]+[0-9]*);", re.IGNORECASE)
_LETTER_OF_UTF_8 = re.compile(
    b"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}"
)
# A sign in place of what could not be read, and controls of Latin-1.
_NO_TEXT = re.compile("[\ufffd\x80-\x84\x86-\x9f]")
# Cyrillic text of a byte a letter, read as Latin-1.
_CYRILLIC = re.compile(r"(?:[^A-Za-zÀ-ÿ]*[À-ÿ]){4}[^A-Za-z]*")
_ENCODINGS = ("cp1252", "latin-1", "cp1250", "cp1251", "mac_roman")
_SAMPLE = 10_000  # pairs that tell the two languages apart
_OWN_SHARE = 0.01  # of a column's letters, from which a script is its own
_BLOCK = 100  # pairs in a row, whose sides belong together or do not
_FEW = 50  # pairs of which that cannot be said
_TOGETHER = 0.2  # correlation; translations have .8, other texts 0


def find_warnings(pairs):
    """What strikes a reader of pairs, and what to do about it, as many str.

    `pairs` has each pair as people wrote it, by the normalized one, in their
    order.
    """
    number, left = len(pairs), dict(pairs)
    for find, told, way_on in _LOOKS:
        if found := find(left):
            source, target = left[found[0]]
            yield (
                f"{len(found):,} of {number:,} pairs {told}, such as "
                f"{source!r} → {target!r}. {way_on}"
            )
            for pair in found:  # what is told once is enough
                del left[pair]


def _names(pairs):
    first = next(iter(pairs), ("", ""))
    named = first[0] != first[1] and all(map(_is_name, first))
    return [first] * named


def _is_name(cell):
    """Whether a cell is a name; a code stands alone, without a mark."""
    parts = [x for x in re.split(r"[\W\d_]+", cell.casefold()) if x]
    parts = [x for x in parts if x not in _WITH] or parts
    together = "".join(parts)
    if together in _CODES and re.fullmatch(r"\w+(-\w+)?", cell):
        return True
    return bool(parts) and (
        _COLUMN.issuperset(parts) or bool(_HAN_NAME.fullmatch(together))
    )


def _markup(pairs):
    return [x for x, written in pairs.items() if any(map(_has_markup, written))]


def _has_markup(text):
    if "<" in text and _TAG.search(text):
        return True
    return "&" in text and any(
        entity[0] == "#" or f"{entity};" in html5
        for entity in _ENTITY.findall(text)
    )


def _misread(pairs):
    return [x for x, written in pairs.items() if any(map(_is_misread, written))]


def _is_misread(text):
    """Whether a text was decoded as what it was not, or not at all."""
    if text.isascii():
        return text.count("?") > 3 and not any(map(str.isalnum, text))
    if _NO_TEXT.search(text) or _CYRILLIC.fullmatch(text):
        return True
    return any(_is_utf_8(text, encoding) for encoding in _ENCODINGS)


def _is_utf_8(text, encoding):
    """Whether a text is UTF-8 that was read in this encoding.

    Two characters can be a letter of UTF-8 by chance, most of all a letter and
    the mark behind its word.
    """
    content = text.encode(encoding, "replace")
    if not _LETTER_OF_UTF_8.search(content):
        return False
    high = sum(byte > 0x7F for byte in content)
    pairs = [
        found
        for found in _LETTER_OF_UTF_8.finditer(content)
        if unicodedata.category(text[found.start()])[0] != "P"
        and (
            unicodedata.category(text[found.end() - 1])[0] != "P"
            or text[found.end() : found.end() + 1].isalpha()
        )
    ]
    seldom = encoding in ("cp1252", "latin-1")
    least, share = (1, 0.5) if seldom else (3, 0.8)
    read = sum(found.end() - found.start() for found in pairs)
    return len(pairs) >= least and read > share * high


def _untranslated(pairs):
    return [pair for pair in pairs if pair[0] == pair[1]]


def _repeated(pairs):
    """Pairs with a side that stands beside very many others."""
    least = max(20, len(pairs) / 100)
    sides = [Counter(pair[side] for pair in pairs) for side in (0, 1)]
    return [
        pair
        for pair in pairs
        if any(sides[side][text] > least for side, text in enumerate(pair))
    ]


def _other_script(pairs):
    """Pairs with a side that has no letter of its column's scripts."""
    some = list(pairs)[:: max(1, len(pairs) // _SAMPLE)]
    found = set()
    for side in (0, 1):
        letters = Counter(
            x for x in "".join(p[side] for p in some) if x.isalpha()
        )
        scripts = Counter()
        for letter, number in letters.items():
            scripts[_script(letter)] += number
        own = {
            script
            for script, number in scripts.items()
            if number >= _OWN_SHARE * scripts.total()
        }
        known = {x for x in letters if _script(x) in own}
        for pair in pairs:
            if known.isdisjoint(pair[side]):
                there = {_script(x) for x in pair[side] if x.isalpha()}
                if there and own.isdisjoint(there):
                    found.add(pair)
    return [pair for pair in pairs if pair in found]


def _script(letter):
    """The script of a letter, as the names of characters begin with it."""
    return unicodedata.name(letter, "?").partition(" ")[0]


def _apart(pairs):
    """Pairs of parts of the file whose sides do not belong together.

    A translation of a longer sentence is longer, and that of a question is a
    question. So what changes from a pair to the next changes on both sides,
    where the file is sorted by length, too.
    """
    if len(pairs) < _FEW:
        return []
    written = list(pairs.items())
    parts = np.array_split(
        np.arange(len(written)), max(1, len(written) // _BLOCK)
    )
    found = []
    for part in parts:
        sides = [
            _changes([written[i][1][side] for i in part]) for side in (0, 1)
        ]
        seen = [
            np.corrcoef(one, two)[0, 1]
            for (one, says), (two, also) in zip(*sides, strict=True)
            if says and also
        ]
        if seen and max(seen) < _TOGETHER:
            found += [written[i][0] for i in part]
    return found


def _changes(texts):
    """What changes from each text to the next, and whether that says much."""
    sentences = np.median([len(text) for text in texts]) >= 8
    length = np.diff(np.log1p([len(text) for text in texts]))
    yield length, sentences and length.std() > 0.2
    for mark in (r"[?？؟⸮;՞]\W*$", r"\p{N}"):
        has = regex.compile(mark)
        change = np.diff([float(bool(has.search(x))) for x in texts])
        yield change, np.mean(change != 0) > 0.05


def _exchanged(pairs):
    """The pairs whose languages stand the other way round than in most.

    A sample tells on which side each word stands: a pair is laid down as the
    pairs before it say. Then half the words of a pair must say where it
    stands. Where the words do not tell the columns apart, as in paraphrases,
    the list is empty, and so it is for five pairs or 0.1 % of the sample,
    which can be chance.
    """
    pairs = list(pairs)
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


# How pairs are found, what they look like, and the way on.
_LOOKS = (
    (_names, "look like names of columns", "Delete that line."),
    (
        _markup,
        "hold HTML",
        "Take the tags away, and unescape the rest: html.unescape(text).",
    ),
    (
        _misread,
        "hold text that was read in another encoding than its own",
        "Make the file anew from its source, as UTF-8.",
    ),
    (
        _untranslated,
        "have the same text on both sides",
        "Delete those that are not translated. If they are most, is one "
        "column, or one file, read twice?",
    ),
    (
        _repeated,
        "share a side with many others",
        "Delete those that are no translations.",
    ),
    (
        _other_script,
        "have a side in another script than its column",
        "Delete those that are no translations.",
    ),
    (
        _exchanged,
        "seem to have their languages the other way round than the rest",
        "Exchange the columns of these lines.",
    ),
    (
        _apart,
        "stand where long sentences and questions have no long sentences and "
        "questions beside them",
        "Is one file, or one column, shifted by a line there, or of another "
        "text?",
    ),
)
