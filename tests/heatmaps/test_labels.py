"""Fonts for scripts that matplotlib's own font lacks, made for the test."""

from d2l_attention.heatmaps import (
    animate_attention,
    display_figure,
    labels,
    plot_attention,
    plot_attention_grid,
    view_attention,
)
from d2l_attention.heatmaps.labels import families_for, readable_tokens
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
import matplotlib
from matplotlib import font_manager
import matplotlib.pyplot as plt
import numpy as np
import pytest

matplotlib.use("agg")
OWN = matplotlib.rcParamsDefault["font.family"]


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine with no fonts but matplotlib's, and a folder to install in."""
    manager = font_manager.fontManager
    own = [entry for entry in manager.ttflist if "mpl-data" in entry.fname]
    monkeypatch.setattr(manager, "ttflist", own)
    monkeypatch.setattr(labels, "_reported", set())
    monkeypatch.setattr(
        font_manager,
        "findSystemFonts",
        lambda: [str(path) for path in tmp_path.glob("*.ttf")],
    )
    yield tmp_path
    plt.close("all")


def install(folder, name, characters):
    """A font whose every glyph is a square."""
    pen = TTGlyphPen(None)
    corners = [(50, 0), (50, 700), (550, 700), (550, 0)]
    pen.moveTo(corners[0])
    for corner in corners[1:]:
        pen.lineTo(corner)
    pen.closePath()
    glyphs = {ord(char): f"g{ord(char)}" for char in characters}
    names = [".notdef", *glyphs.values()]
    square = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(glyphs)
    builder.setupGlyf(dict.fromkeys(names, square))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (600, 50)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": name, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(folder / f"{name}.ttf")


def warnings_of(recwarn):
    return [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize(
    ("text", "script", "font", "package"),
    [
        ("মনোযোগ", "Bengali", "Noto Sans Bengali", "fonts-noto-core"),
        ("ध्यान", "Devanagari", "Noto Sans Devanagari", "fonts-noto-core"),
        ("ความ", "Thai", "Noto Sans Thai", "fonts-noto-core"),
        ("주의", "Hangul (Korean)", "Noto Sans CJK KR", "fonts-noto-cjk"),
        ("注意。", "Chinese", "Noto Sans CJK SC", "fonts-noto-cjk"),
        ("𝌆🦊", "symbols and emoji", "Symbola", "fonts-symbola"),
    ],
)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_script_that_no_font_has_is_told_once(
    text, script, font, package, recwarn
):
    tokens = [text, "a"]
    for _ in range(2):
        plot_attention(np.eye(2), query_tokens=tokens, key_tokens=tokens)
    (warning,) = warnings_of(recwarn)
    assert f"can draw {script}: " in warning
    assert f"example {font}" in warning and package in warning


@pytest.mark.parametrize(
    "text", ["é ∈ ß", "Ελληνικά", "Привет", "سلام", "שלום"]
)
def test_what_the_own_font_has_keeps_the_own_font(text):
    assert families_for([text]) == OWN


def test_after_installing_a_font_the_labels_appear(machine):
    tokens = ["মন", "a"]
    options = {"query_tokens": tokens, "key_tokens": tokens}
    with pytest.warns(UserWarning, match="Bengali"):
        plot_attention(np.eye(2), **options)
    install(machine, "My Bengali", "মন")
    ax = plot_attention(np.eye(2), **options)
    label = ax.get_xticklabels()[0]
    assert label.get_fontfamily() == [*OWN, "My Bengali"]
    ax.figure.canvas.draw()  # a missing glyph would be an error here


def test_korean_and_chinese_take_the_japanese_face_where_it_is_the_only_one(
    machine,
):
    for name in ("Another Sans", "Noto Sans CJK JP"):
        install(machine, name, "주의注意する")
    for text in ("주의", "注意", "する", "주의注意する"):
        assert families_for([text]) == [*OWN, "Noto Sans CJK JP"]


def test_characters_have_the_shapes_of_their_language(machine):
    for name in ("SC", "JP", "KR"):
        install(machine, f"Noto Sans CJK {name}", "주의注意する")
    found = {
        text: families_for([text])[-1].split()[-1]
        for text in ("注意", "注意する", "注意 주의")
    }
    assert found == {"注意": "SC", "注意する": "JP", "注意 주의": "KR"}


def test_two_scripts_take_two_fonts_and_a_third_is_told(machine):
    install(machine, "Anything Sans", "มน")
    install(machine, "Anything Serif", "주의")
    with pytest.warns(UserWarning, match=r"Bengali: ন \(U\+09A8\)"):
        found = families_for(["มน 주의 ন"])
    assert found == [*OWN, "Anything Sans", "Anything Serif"]


def test_a_file_that_is_no_font_is_passed_over(machine):
    (machine / "broken.ttf").write_bytes(b"no font")
    install(machine, "My Thai", "ค")
    assert families_for(["ค"]) == [*OWN, "My Thai"]


def test_signs_that_are_never_drawn_need_no_font():
    assert families_for(["\u200da\ufe0f\u3000\n"]) == OWN


def test_titles_and_names_take_the_fonts_of_their_script(machine):
    install(machine, "My Chinese", "注意力")
    expected = [*OWN, "My Chinese"]
    ax = plot_attention(np.eye(2), title="注意")
    assert ax.title.get_fontfamily() == expected
    figure = plot_attention_grid({"注意": np.eye(2)[None]})
    assert figure.axes[0].yaxis.label.get_fontfamily() == expected
    animate_attention(np.eye(2), query_tokens=["注", "力"])
    assert plt.gca().title.get_fontfamily() == expected
    figure = plt.figure()
    title = figure.suptitle("注意")
    display_figure(figure, "x")
    assert title.get_fontfamily() == expected


@pytest.mark.skipif(
    not any("CJK" in entry.name for entry in font_manager.fontManager.ttflist),
    reason="no Chinese font is installed",
)
def test_an_installed_chinese_font_is_found(monkeypatch):
    monkeypatch.undo()
    assert "CJK" in families_for(["注意"])[-1]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (
            ["<s>", "The", "Ġwalk", "ing", ",", "Ġcaf", "Ã©", "Ġ", "Ċ"],
            ["<s>", "The", "walk", "-ing", ",", "caf", "-é", "␣", "↵"],
        ),
        (["ĠæĹ", "¥", "æľ¬", "Ġa"], ["⟨20 e6 97⟩", "⟨a5⟩", "本", "a"]),
        (
            ["▁Der", "▁Haus", "meister", ".", "▁", "</s>"],
            ["Der", "Haus", "-meister", ".", "␣", "</s>"],
        ),
        (["[CLS]", "walk", "##ing", "##"], ["[CLS]", "walk", "-ing", "##"]),
        (["Ġanni", "mar", "l-", "Ġimgħa"], None),  # Maltese, no bytes
        (["Ġorġ", "Ġwanni"], None),
        (["a", "▁", "b", "c"], None),  # a sign among others
        (["plain", "words", "#", "##"], None),
        (["###", "ĠThe", "Ġtitle"], ["###", "The", "title"]),
    ],
)
def test_pieces_of_words_lose_the_signs_of_their_tokenizer(tokens, words):
    assert readable_tokens(tokens) == (words or tokens)


def test_an_axis_and_a_page_show_words():
    tokens = ["▁walk", "ing"]
    ax = plot_attention(np.eye(2), key_tokens=tokens)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["walk", "-ing"]
    page = view_attention(np.eye(2)[None], key_tokens=tokens).to_html()
    assert '["walk", "-ing"]' in page


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        (["▁של", "ום"], True),
        (["«سلام", "7", "!"], True),
        (["▁the", "של", "▁cat"], False),
        (["7", "▁", "!"], False),
        (None, False),
    ],
)
def test_the_first_letter_says_where_a_token_runs(tokens, found):
    """Signs before it, such as the mark of a word's beginning, do not."""
    assert labels.right_to_left(tokens) == found
