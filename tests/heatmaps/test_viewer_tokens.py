"""Tokens as a reader sees them: nothing hidden, nothing turned around."""

from d2l_attention.heatmaps.labels import readable
from hostile_tokens import HOSTILE
import pytest


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("\u202eevil", "⟨U+202E⟩evil"),
        ("pass\u00adword", "pass⟨U+00AD⟩word"),
        ("\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"),
        ("\u200b", "⟨U+200B⟩"),
        ("\ufeffthe", "⟨U+FEFF⟩the"),
        ("a\U000e0041b", "a⟨U+E0041⟩b"),
        ("\u3164", "⟨U+3164⟩"),
        ("\ufe0f", "⟨U+FE0F⟩"),
    ],
)
def test_signs_that_cannot_be_seen_stand_as_their_number(token, shown):
    assert readable(token) == shown


@pytest.mark.parametrize(
    "token",
    [
        "می‌خواهم",  # Persian, with a non-joiner
        "ক্\u200dষ",  # Bengali, with a joiner
        "👩‍👩‍👧‍👧",
        "❤\ufe0f‍🔥",
        "🇫🇷",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    ],
)
def test_joiners_within_words_emoji_and_flags_stay(token):
    assert readable(token) == token


@pytest.mark.parametrize("sign", ["\u200c", "\u200d"])
def test_joiners_that_join_nothing_stand_as_their_number(sign):
    name = f"⟨U+{ord(sign):04X}⟩"
    assert readable(sign) == name
    assert readable(sign * 2) == name * 2
    assert readable(f"a{sign}") == f"a{name}"
    assert readable(f"{sign}a") == f"{name}a"


def test_letters_of_a_region_hide_no_text_behind_a_flag():
    letters = "".join(chr(0xE0000 + ord(sign)) for sign in "ignorethis")
    assert "⟨U+E0069⟩" in readable(f"🏴{letters}\U000e007f")


def test_empty_tokens_and_spaces_are_seen():
    assert readable("") == "⟨empty⟩"
    assert readable(" ") == "␣" and readable("  ") == "␣␣"
    assert readable("\u00a0") == "⟨U+00A0⟩"
    assert readable("\n") == "↵" and readable("\t") == "→"
    assert readable(" \n") == "␣↵"
    assert readable("New York") == "New York"
    assert readable(7) == "7"


def test_controls_and_what_no_text_may_hold_become_one_sign():
    for token in ("\x00", "\x1b", "\ud800", "\u2028", "\u2029", "\ufffe"):
        assert readable(token) == "\ufffd"
    assert readable("\ufdd0") == "\ufffd"


def test_a_sign_keeps_eight_marks():
    eight = "a" + "\u0301" * 8
    assert readable(eight) == eight
    assert readable(eight + "\u0301") == eight + "…"
    assert readable("a" + "\u0301" * 300 + "b") == eight + "…b"
    assert readable(f"{eight}b{eight[1:]}") == f"{eight}b{eight[1:]}"
    assert readable("a" + "\u0301\u200d" * 300 + "\u0301").count("\u0301") == 8
    assert readable("क्षत्रिय") == "क्षत्रिय"


def test_a_mark_without_a_letter_gets_a_circle():
    assert readable("\u0301") == "◌\u0301"
    assert readable("\u0301a") == "◌\u0301a"


def test_no_hostile_token_is_empty_or_turns_text_around():
    for token in HOSTILE:
        shown = readable(token)
        assert shown.strip() and "\u202e" not in shown
        shown.encode()  # no surrogate is left alone
