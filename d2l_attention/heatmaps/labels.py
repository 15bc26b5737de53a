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


_JAPANESE = ("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic")
# Fonts that draw a script well, the best first. In a Korean or a Japanese text,
# the characters that all three share have the shapes that its readers know.
_PREFERRED = {
    "HANGUL": (
        *("Noto Sans CJK KR", "Noto Sans KR", "Apple SD Gothic Neo"),
        *("Malgun Gothic", "NanumGothic", "Noto Sans CJK JP"),
    ),
    "HIRAGANA": _JAPANESE,
    "KATAKANA": _JAPANESE,
    "CJK": (
        *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC"),
        *("PingFang SC", "Hiragino Sans GB", "Microsoft YaHei"),
        *("WenQuanYi Zen Hei", "SimHei", "Noto Sans CJK JP"),
    ),
    "SYMBOLS": ("Symbola", "Noto Emoji", "Segoe UI Emoji"),
}
# How a warning names what is no script, or has another name.
_NAMES = {
    "HANGUL": "Hangul (Korean)",
    "HIRAGANA": "Hiragana (Japanese)",
    "KATAKANA": "Katakana (Japanese)",
    "CJK": "Chinese",
    "SYMBOLS": "symbols and emoji",
    "UNNAMED": "characters without a name",
}
_reported, _unusable = set(), set()


def families_for(texts, family=None):
    """The families of a label: those of the style, and what they lack.

    matplotlib takes each character from the first family that has it. Where
    those of the style have not all, installed fonts follow. A warning tells,
    once for each script, what none of them has.
    """
    family = list(family or matplotlib.rcParams["font.family"])
    seen = {char for char in "".join(texts) if not _is_invisible(char)}
    missing = seen - frozenset().union(*map(_characters, family))
    scripts = {_script(char) for char in seen}
    while missing:
        name = _best_font(missing, scripts)
        if name is None:
            _tell(missing)
            break
        family.append(name)
        missing -= _characters(name)
    return family


def provide_fonts(figure):
    """Give each text of a figure the families that draw its characters."""
    for text in figure.findobj(Text):
        family = families_for([text.get_text()], text.get_fontfamily())
        text.set_fontfamily(family)


def _best_font(characters, scripts):
    """The installed font that draws most of the characters; None if none."""
    manager = font_manager.fontManager
    names = [name for x in _PREFERRED if x in scripts for name in _PREFERRED[x]]
    for rescan in (False, True):
        if rescan:  # for fonts that are newer than matplotlib's list
            known = {str(entry.fname) for entry in manager.ttflist} | _unusable
            for path in sorted(set(font_manager.findSystemFonts()) - known):
                try:
                    manager.addfont(path)
                # A font of pictures cannot be scaled; other files are broken.
                except (OSError, RuntimeError, NotImplementedError):
                    _unusable.add(path)
        installed = {entry.name for entry in manager.ttflist}
        others = sorted(installed, key=lambda name: ("Sans" not in name, name))
        best, most = None, 0
        for name in [*filter(installed.__contains__, names), *others]:
            drawn = len(characters & _characters(name))
            if drawn > most:
                best, most = name, drawn
            if drawn == len(characters):
                break
        if best:
            return best
    return None


def _is_invisible(char):
    """Whether a character is drawn without a glyph, or breaks a line."""
    return char.isspace() or (
        unicodedata.category(char) == "Cf"
        or unicodedata.name(char, "").startswith("VARIATION SELECTOR")
    )


def _script(char):
    """The script of a character: the first word of its Unicode name."""
    name = unicodedata.name(char, "UNNAMED")
    # Ideographic and full-width punctuation.
    if "\u3000" <= char <= "\u303f" or "\uff00" <= char <= "\uff60":
        return "CJK"
    if name != "UNNAMED" and unicodedata.category(char)[0] not in "LMNP":
        return "SYMBOLS"
    return name.split()[0].split("-")[0]


def _characters(name):
    """The characters of the font that matplotlib takes for a family."""
    if name.lstrip(".").startswith(("Last Resort", "LastResort")):
        return frozenset()  # it draws a box with the name of the script
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


def _tell(characters):
    for script in sorted({_script(char) for char in characters} - _reported):
        _reported.add(script)
        of_script = sorted(x for x in characters if _script(x) == script)
        examples = ", ".join(f"{x} (U+{ord(x):04X})" for x in of_script[:3])
        named, advice = _NAMES.get(script, script.title()), ""
        if script != "UNNAMED":
            font = _PREFERRED.get(script, [f"Noto Sans {named}"])[0]
            package = "cjk" if script in _PREFERRED else "core"
            package = f"fonts-noto-{package}"
            if script == "SYMBOLS":
                package = "fonts-symbola"
            advice = f", for example {font} (Debian: {package})"
        warnings.warn(
            f"No installed font can draw {named}: {examples}. A box stands for "
            f"each such character. Install a font that has them{advice}.",
            stacklevel=4,
        )
