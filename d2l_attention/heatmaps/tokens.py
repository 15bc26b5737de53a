"""Tokens as the labels of an axis, in any script."""

import unicodedata
import warnings

import matplotlib
from matplotlib import font_manager
from matplotlib.ticker import MaxNLocator

# Fonts with Chinese, Japanese and Korean glyphs, as the systems name them.
_CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
)


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
    options = {"parse_math": False}
    if any(_is_cjk(token) for token in tokens):
        options["fontfamily"] = _fonts_with_cjk()
    axis.set_ticks(positions, [tokens[i] for i in positions], **options)
    if axis.axis_name == "x" and max(map(len, tokens)) > 1:
        axis.set_tick_params(rotation=90)


def longest_label(tokens):
    """The number of characters of the longest label."""
    tokens = () if tokens is None else tokens
    return max((len(_short(readable(token))) for token in tokens), default=0)


def readable(token):
    """A token as text that can be drawn: control characters become signs."""
    return "".join(
        _SIGNS.get(char, "\ufffd")
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
        else char
        for char in str(token)
    )


_SIGNS = {"\n": "↵", "\t": "→"}


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


def _is_cjk(text):
    return any(
        unicodedata.name(char, "").startswith(("CJK", "HIRAGANA", "KATAKANA"))
        for char in text
    )


def _fonts_with_cjk():
    known = {font.name for font in font_manager.fontManager.ttflist}
    found = [name for name in _CJK_FONTS if name in known]
    if not found:
        warnings.warn(
            "No font for Chinese, Japanese and Korean was found. Install one, "
            f"such as {_CJK_FONTS[0]}.",
            stacklevel=4,
        )
    return [*matplotlib.rcParams["font.family"], *found[:1]]
