"""Drawings: each is readable, and is what its script draws."""

from functools import lru_cache
import re

from course import build
from course.sheet import Sheet
import matplotlib as mpl
import pytest

SCRIPTS = build.scripts(build.sources([]))
drawn = lru_cache(build.drawn)  # each once


def sheet_of(lines, height=300):
    """What a script with these lines draws."""
    sheet = Sheet(height)
    exec(lines, {"sheet": sheet})
    return sheet


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_drawing_is_readable_and_what_its_script_draws(script):
    sheet = drawn(script)
    assert sheet.problems() == []
    svg = sheet.svg()
    assert len(svg.encode()) <= 60_000
    kept = script.with_suffix(".svg").read_text(encoding="utf-8")
    # Another version of matplotlib may place a curve's points elsewhere.
    if f"Matplotlib v{mpl.__version__}," in kept:
        assert kept == svg


NARROW = [script for script in SCRIPTS if script.stem.endswith("_narrow")]
WIDE = [script for script in SCRIPTS if script not in NARROW]


@pytest.mark.parametrize("script", NARROW, ids=lambda path: path.stem)
def test_a_narrow_drawing_is_another_form_of_a_wide_one(script):
    wide = script.with_stem(script.stem.removesuffix("_narrow"))
    assert wide in WIDE
    assert drawn(script).width < drawn(wide).width


@pytest.mark.parametrize("script", WIDE, ids=lambda path: path.stem)
def test_a_drawing_stands_in_its_chapter_with_words_for_everybody(script):
    [source] = build.sources([script.stem[:2]])
    drawings = build.DRAWING.findall(source.read_text(encoding="utf-8"))
    [(alt, _, caption)] = [
        drawing
        for drawing in drawings
        if drawing[1] == f"drawings/{script.stem}.svg"
    ]
    assert len(alt) >= 40 and len(caption) >= 20
    assert alt != caption


@pytest.mark.parametrize(
    "source", build.sources([]), ids=lambda source: source.stem
)
def test_every_picture_of_a_source_is_embedded(source):
    text = source.read_text(encoding="utf-8")
    assert len(re.findall(r"\.svg\b", text)) == len(build.DRAWING.findall(text))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            "sheet.label(100, 100, 'one')\nsheet.label(110, 103, 'two')",
            "'two' overlaps 'one'",
        ),
        (
            "sheet.box(100, 100, 'a step')\nsheet.label(104, 118, 'beside')",
            "'beside' touches a box that is not its own",
        ),
        (
            "sheet.box(100, 100, 'far too long for it', width=60)",
            "leaves its box",
        ),
        ("sheet.label(715, 100, 'out of here')", "leaves the card"),
        (
            "sheet.label(200, 100, 'stop')\n"
            "sheet.arrow((100, 100), (300, 100))",
            "a line runs through 'stop'",
        ),
        (
            "sheet.box(180, 80, 'wall')\nsheet.arrow((100, 99), (400, 99))",
            "a line runs through the box at (180, 80)",
        ),
        (
            "sheet.frame(100, 50, 200, 150)\nsheet.label(100, 100, 'edge')",
            "'edge' lies on the edge of a frame",
        ),
        ("sheet.label(200, 100, 'tiny', size=8)", "'tiny' is smaller than"),
        (
            "sheet.label(200, 100, 'pale', colour='#999999')",
            "'pale' has too little contrast",
        ),
        (
            "sheet.label(200, 100, 'keys (B, S, J)')",
            "'keys (B, S, J)' has an axis that the legend lacks",
        ),
        (
            "for i in range(13):\n"
            "    sheet.box(10 + 45 * i, 50, 'x', width=40)",
            "13 boxes, more than 12",
        ),
        (
            "for i in range(7):\n    sheet.label("
            "300, 30 + 30 * i, 'six words that say very little')",
            "words, more than 40",
        ),
    ],
)
def test_what_a_reader_would_stumble_over_is_found(lines, problem):
    found = sheet_of(lines).problems()
    assert any(problem in sentence for sentence in found), found


def test_a_card_has_a_height_within_bounds():
    assert sheet_of("", 300).problems() == []
    assert "the card is 500 high" in sheet_of("", 500).problems()[0]


def test_what_belongs_together_may_touch():
    lines = """
one = sheet.box(60, 100, "one")
two = sheet.box(400, 100, "two", stack=2)
sheet.arrow(one, two, "Q (T, K)")
sheet.frame(40, 60, 640, 150, "together")
sheet.matrix(100, 230, [[0.25, 0.75]], rows=["it"], columns=["a", "b"])
"""
    assert sheet_of(lines).problems() == []


def test_the_graph_of_chapters_is_what_its_script_draws():
    docs = build.FOLDER.parent / "docs"
    names = build.runpy.run_path(str(docs / "prerequisites.py"))
    graph = names["read_graph"]()
    assert graph.has_edge("04", "05") and not graph.has_edge("17", "25")
    sheet = names["draw"](graph)
    told = ("the card is", "boxes, more than", "words, more than")
    found = [p for p in sheet.problems() if not any(t in p for t in told)]
    assert found == []
    page = (docs / "start.md").read_text(encoding="utf-8")
    assert names["described"](page, graph) == page
    kept = (docs / "prerequisites.svg").read_text(encoding="utf-8")
    if f"Matplotlib v{mpl.__version__}," in kept:
        assert kept == names["svg"](sheet)


def test_the_chart_of_figures_is_what_its_script_draws():
    docs = build.FOLDER.parent / "docs"
    names = build.runpy.run_path(str(docs / "figures.py"))
    text = (docs / "figures.md").read_text("utf-8")
    rows = list(names["read_table"](text))
    assert len(rows) == 9 and rows[3][1:] == ("keras-hub", 1.07)
    sheet = names["draw"](text)
    found = [p for p in sheet.problems() if "words, more than" not in p]
    assert found == []
    kept = (docs / "figures.svg").read_text(encoding="utf-8")
    if f"Matplotlib v{mpl.__version__}," in kept:
        assert kept == sheet.svg()
