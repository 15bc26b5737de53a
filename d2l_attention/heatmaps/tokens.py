"""Tokens as the labels of an axis, in any script."""

import re
import unicodedata

from d2l_attention.heatmaps.fonts import families_for
from matplotlib.ticker import MaxNLocator


def label_axis(axis, tokens, size, name, max_ticks):
    """Label `size` cells with `tokens`, or with numbers if it is None.

    At most `max_ticks` labels are drawn. None is read as mathematics.
    """
    if tokens is None:
        locator = axis.get_major_locator()
        if isinstance(locator, MaxNLocator):  # keep ticks that were set
            locator.set_params(integer=True)
        return
    tokens = [_short(readable(token)) for token in tokens]
    if len(tokens) != size:
        raise ValueError(
            f"There must be one {name} token for each of {size} rows or "
            f"columns. Received: {len(tokens)} tokens."
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
    """The number of characters of the longest label."""
    tokens = () if tokens is None else tokens
    return max((len(_short(readable(token))) for token in tokens), default=0)


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
    """Direction of the first letter that has one: `"L"`, `"R"` or `"AL"`.

    `"AL"` is Arabic; a token without such a letter has `""`.
    """
    for char in token:
        direction = unicodedata.bidirectional(char)
        if direction in ("L", "R", "AL"):
            return direction
    return ""


def _short(text, most=50):
    return text if len(text) <= most else f"{text[: most - 1]}…"
