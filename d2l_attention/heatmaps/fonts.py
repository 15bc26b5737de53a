"""Fonts for the scripts that a figure's own font cannot draw.

matplotlib draws a box for each character that no font of a label has. The
functions here look for an installed font that has it. If there is none, they
say once for each script what to install.
"""

import functools
import re
import unicodedata
import warnings

import matplotlib
from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

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
_told = set()


def families_for(texts, family=None):
    """The font families that together draw all characters of some texts.

    Args:
        texts: Iterable of str.
        family: List of str, the families to begin with; those of
            `matplotlib.rcParams` by default.

    Returns:
        List of str.

    Warns:
        UserWarning: Once for each script that no installed font can draw.
    """
    family = list(family or matplotlib.rcParams["font.family"])
    for script, characters in _lacking("".join(texts), family).items():
        while missing := characters - _drawn_by(family):
            found = _font_for(script, missing) or _rescan(script, missing)
            if found is None or found in family:
                _tell(script, missing)
                break
            family.append(found)
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
        found = len(characters & _character_map(entry.fname, face))
        if found > most:
            best, most = name, found
        if found == len(characters):
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
    if script in _told:
        return
    _told.add(script)
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
