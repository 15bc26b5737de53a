"""Tokens as the labels of an axis, in any script.

matplotlib draws a box for each character that no font of a label has. So an
installed font is looked for, and named once for each script if it is missing.
"""

import functools
import re
import unicodedata
import warnings

from d2l_attention.heatmaps.selection import UNREAD
import matplotlib
from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator


def label_axis(axis, tokens, size, name, max_ticks, longest=50):
    """Label `size` cells with `tokens`, or with numbers if it is None.

    At most `max_ticks` labels are drawn, of at most `longest` signs. None is
    read as mathematics.
    """
    if tokens is None:
        locator = axis.get_major_locator()
        if isinstance(locator, MaxNLocator):  # keep ticks that were set
            locator.set_params(integer=True, min_n_ticks=1)
        return
    tokens = [_short(token, longest) for token in readable_tokens(tokens)]
    if len(tokens) != size:
        raise ValueError(
            f"There must be one {name} token for each of {size} rows or "
            f"columns. Received: {len(tokens)} tokens."
            + (UNREAD if len(tokens) == size + 1 else "")
        )
    every = -(-size // max_ticks)
    positions = range(0, size, every)
    shown = [tokens[i] for i in positions]
    axis.set_ticks(
        positions, shown, parse_math=False, fontfamily=families_for(shown)
    )
    if axis.axis_name == "x" and max(map(len, tokens)) > 1:
        axis.set_tick_params(rotation=90)


def longest_label(tokens):
    tokens = () if tokens is None else tokens
    return max(map(len, map(_short, readable_tokens(tokens))), default=0)


def readable_tokens(tokens):
    """Tokens as text, and pieces of words without their tokenizer's signs.

    `Ġthe` of byte pairs and `▁the` of SentencePiece, in which a sign stands
    for the space before a word, are `the`. A piece that goes on a word, such
    as `##ing` of WordPiece, is `-ing`.
    """
    return [readable(token) for token in _words(list(map(str, tokens)))]


def _words(tokens):
    if any(_goes_on(token) for token in tokens):
        return [f"-{t[2:]}" if _goes_on(t) else t for t in tokens]
    if _share_with("Ġ", tokens) > 0.3:
        texts = _texts_of_bytes(tokens)
        if texts is not None:
            return _with_hyphens(texts)
    if _share_with("▁", tokens) > 0.3:
        return _with_hyphens([token.replace("▁", " ") for token in tokens])
    return tokens


def _goes_on(token):
    return token.startswith("##") and token[2:3].isalnum()


def _share_with(sign, tokens):
    return sum(t.startswith(sign) for t in tokens) / max(len(tokens), 1)


def _with_hyphens(texts):
    """Texts with a space before each word: without it, and a hyphen within."""
    words = []
    for before, text in zip(["", *texts], texts, strict=False):
        is_within = _is_of_word(before[-1:]) and _is_of_word(text[:1])
        without = text[1:] if text[:1] == " " and text[1:] else text
        words.append(f"-{text}" if is_within else without)
    return words


def _is_of_word(char):
    """Whether a letter or digit is of a script that sets words apart."""
    return char.isdigit() or char.lower() != char.upper()


@functools.cache
def _bytes_of_signs():
    """The byte that each sign of byte pairs stands for, as in GPT-2.

    Bytes that are printed stand for themselves; the others have the signs
    from U+0100 on, the space among them.
    """
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    signs = {chr(byte): byte for byte in printed}
    return signs | {chr(256 + i): byte for i, byte in enumerate(others)}


def _texts_of_bytes(tokens):
    """The texts of tokens of byte pairs; None if they cannot be such.

    Ġ is a letter of Maltese too, but the others of Maltese are no text in
    bytes. A token that holds a part of a letter is shown by its bytes.
    """
    signs = _bytes_of_signs()
    pieces = [
        bytes(signs[sign] for sign in token)
        if set(token) <= signs.keys()
        else None
        for token in tokens
    ]
    whole = None if None in pieces else _text(b"".join(pieces))
    if whole is None or not whole.replace("\n", "").isprintable():
        return None
    texts = map(_text, pieces)
    return [
        f"⟨{piece.hex(' ')}⟩" if text is None else text
        for piece, text in zip(pieces, texts, strict=True)
    ]


def _text(piece):
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return None


def readable(token):
    """A token as text that shows what it holds, wherever it is drawn.

    Signs that cannot be seen, or that turn the text beside them around,
    stand as their number: `⟨U+202E⟩`. Joiners within a word or an emoji stay.
    Control characters become `\ufffd`, spaces of a token of spaces `␣`, and
    an empty token `⟨empty⟩`. A sign keeps eight combining marks; `…` stands
    for the rest.
    """
    text = str(token)
    if not text:
        return "⟨empty⟩"
    if text.isspace():
        text = text.replace(" ", "␣")
    flags = {at for flag in _FLAG.finditer(text) for at in range(*flag.span())}
    return _keep_few_marks(
        "".join(
            char if at in flags else _visible(text, at)
            for at, char in enumerate(text)
        )
    )


_SIGNS = {"\n": "↵", "\t": "→"}
_JOINERS = "\u200c\u200d"
_MOST_MARKS = 8  # no script needs more
# Signs without a picture, of other categories than Cf.
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# A black flag with the letters of a region (England, Scotland …) and an end;
# these letters are of category Cf, and hide a text anywhere else.
_FLAG = re.compile(
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
)


def _visible(text, at):
    """What stands for the character at one place of a text."""
    char = text[at]
    kind = unicodedata.category(char)
    if char in _SIGNS:
        return _SIGNS[char]
    if kind in ("Cc", "Cs", "Zl", "Zp") or _is_no_character(char):
        return "\ufffd"
    if char in _JOINERS and _is_within_word(text, at):
        return char
    is_space = kind == "Zs" and char != " "
    is_lost = at == 0 and _VARIATION.match(char)
    if kind == "Cf" or char in _BLANK or is_space or is_lost:
        return f"⟨U+{ord(char):04X}⟩"
    return char


def _is_no_character(char):
    """Whether Unicode keeps this number free; XML does not allow it."""
    number = ord(char)
    return number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF


def _is_within_word(text, at):
    """Whether signs that can be seen stand on both sides."""
    sides = text[at - 1 : at] + text[at + 1 : at + 2]
    kinds = [unicodedata.category(char)[0] for char in sides]
    return len(kinds) == 2 and not {"C", "Z"} & set(kinds)


def _keep_few_marks(text):
    shown, marks = [], 0
    for char in text:
        if unicodedata.category(char)[0] == "M":
            marks += 1
            if not shown:
                shown.append("◌")
        elif char not in _JOINERS:
            marks = 0
        if marks <= _MOST_MARKS:
            shown.append(char)
        elif shown[-1] != "…":
            shown.append("…")
    return "".join(shown)


def right_to_left(tokens):
    """Whether more tokens run from right to left than from left to right."""
    tokens = () if tokens is None else map(str, tokens)
    directions = [_direction(token) for token in tokens]
    backward = directions.count("R") + directions.count("AL")
    return backward > directions.count("L")


def _direction(token):
    """Direction of the first letter that has one: "L", "R", "AL", else ""."""
    for char in token:
        direction = unicodedata.bidirectional(char)
        if direction in ("L", "R", "AL"):
            return direction
    return ""


def _short(text, most=50):
    return text if len(text) <= most else f"{text[: most - 1]}…"


_CHINESE = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
    "SimHei",
    # The only face of the collection that some lists of matplotlib name.
    "Noto Sans CJK JP",
    "Arial Unicode MS",
)
_JAPANESE = ("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic")
_KOREAN = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "Apple SD Gothic Neo",
    "Malgun Gothic",
    "NanumGothic",
    "Noto Sans CJK JP",
)
_CHINESE_SCRIPT = "Chinese"
_SYMBOLS = "symbols and emoji"
_UNNAMED = "characters without a name"
# Fonts that draw a script well, the best first, and their Debian package.
# Chinese follows the scripts that share its characters: in a Korean or a
# Japanese text these characters have the shapes that its readers know.
_FONTS = {
    "Hangul (Korean)": (_KOREAN, "fonts-noto-cjk"),
    "Hiragana (Japanese)": (_JAPANESE, "fonts-noto-cjk"),
    "Katakana (Japanese)": (_JAPANESE, "fonts-noto-cjk"),
    "Bopomofo": (_CHINESE, "fonts-noto-cjk"),
    _CHINESE_SCRIPT: (_CHINESE, "fonts-noto-cjk"),
    _SYMBOLS: (("Symbola", "Noto Emoji", "Segoe UI Emoji"), "fonts-symbola"),
}
_LONG_NAMES = {name.split()[0]: name for name in _FONTS}
# What follows the name of the script in the Unicode name of a character.
_KIND = re.compile(
    r" (?:CAPITAL|SMALL|LETTER|SYLLAB|UNIFIED|VOWEL|SIGN|DIGIT|NUMBER)"
)
_reported = set()


def families_for(texts, family=None):
    family = list(family or matplotlib.rcParams["font.family"])
    for script, characters in _lacking("".join(texts), family).items():
        while missing := characters - _drawn_by(family):
            name = _font_for(script, missing) or _rescan(script, missing)
            if name is None or name in family:
                _tell(script, missing)
                break
            family.append(name)
    return family


def provide_fonts(figure):
    """Give each text of a figure the families that draw its characters."""
    for text in figure.findobj(Text):
        family = families_for([text.get_text()], text.get_fontfamily())
        text.set_fontfamily(family)


def _lacking(text, family):
    """Dict of script to the set of its characters that no family draws."""
    characters = {char for char in set(text) if not _is_invisible(char)}
    scripts = {}
    for char in sorted(characters - _drawn_by(family)):
        scripts.setdefault(_script(char), set()).add(char)
    order = [*_FONTS, *scripts]
    return dict(sorted(scripts.items(), key=lambda item: order.index(item[0])))


def _is_invisible(char):
    """Whether a character is drawn without a glyph, or breaks a line."""
    return char.isspace() or (
        unicodedata.category(char) == "Cf"
        or unicodedata.name(char, "").startswith("VARIATION SELECTOR")
    )


def _script(char):
    """The script of a character in plain words, from its Unicode name."""
    name = unicodedata.name(char, "")
    if not name:
        return _UNNAMED
    # Ideographic and full-width punctuation.
    if "\u3000" <= char <= "\u303f" or "\uff00" <= char <= "\uff60":
        return _CHINESE_SCRIPT
    if unicodedata.category(char)[0] not in "LMNP":
        return _SYMBOLS
    before, *kind = _KIND.split(name, maxsplit=1)
    script = (before if kind else name.split()[0].split("-")[0]).title()
    script = _CHINESE_SCRIPT if script == "Cjk" else script
    return _LONG_NAMES.get(script, script)


def _fonts_of(script):
    return _FONTS.get(
        script, ((f"Noto Sans {script}", "Nirmala UI"), "fonts-noto-core")
    )


def _font_for(script, characters):
    """The installed font that draws most of the characters; None if none."""
    # The "last resort" draws a box with the name of the script in it.
    entries = {
        entry.name: entry
        for entry in font_manager.fontManager.ttflist
        if entry.weight in (400, "normal")
        and not entry.name.lstrip(".").startswith(("Last Resort", "LastResort"))
    }
    known = [name for name in _fonts_of(script)[0] if name in entries]
    others = sorted(entries, key=lambda name: ("Sans" not in name, name))
    best, most = None, 0
    for name in [*known, *others]:
        entry = entries[name]
        face = getattr(entry, "index", 0)
        drawn = len(characters & _character_map(entry.fname, face))
        if drawn > most:
            best, most = name, drawn
        if drawn == len(characters):
            break
    return best


def _rescan(script, characters):
    """The same, among fonts that were installed after matplotlib's list."""
    manager = font_manager.fontManager
    known = {str(entry.fname) for entry in manager.ttflist} | _unusable
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            manager.addfont(path)
        # A font of pictures cannot be scaled, and other files are broken.
        except (OSError, RuntimeError, NotImplementedError):
            _unusable.add(path)
    return _font_for(script, characters)


_unusable = set()


def _drawn_by(family):
    return frozenset().union(*map(_characters, family))


def _characters(name):
    """The characters of the font that matplotlib takes for a family."""
    try:
        path = font_manager.findfont(
            FontProperties(family=[name]), fallback_to_default=False
        )
    except ValueError:
        return frozenset()
    # Before 3.11, matplotlib reads only the first face of a collection.
    return _character_map(str(path), getattr(path, "face_index", 0))


@functools.cache
def _character_map(path, face):
    options = {"face_index": face} if face else {}
    return frozenset(map(chr, FT2Font(path, **options).get_charmap()))


def _tell(script, characters):
    if script in _reported:
        return
    _reported.add(script)
    examples = ", ".join(
        f"{char} (U+{ord(char):04X})" for char in sorted(characters)[:3]
    )
    (font, *_), package = _fonts_of(script)
    example = f", for example {font} (Debian: {package})"
    warnings.warn(
        f"No installed font can draw {script}: {examples}. A box stands for "
        f"each such character. Install a font that has them"
        f"{example if script != _UNNAMED else ''}.",
        stacklevel=4,
    )
