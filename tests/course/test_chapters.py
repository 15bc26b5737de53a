"""A chapter has the form that the course promises, from top to bottom."""

import ast
import dis
import inspect
import re

from course import build, lint
from course.lint import cells_of, read_cells, tags
import nbformat
import pytest

CHAPTERS = build.sources([])
ENDING = [
    "## In short",
    "## Further reading",
    "## Next",
    "## Exercises",
]

pytestmark = [
    pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem),
]


def text_of(source):
    """The Markdown of a chapter behind its front matter."""
    return source.read_text(encoding="utf-8").split("---\n", 2)[2]


def test_it_opens_with_what_a_reader_must_know(source):
    opening, setup, *_ = cells_of(source)
    assert opening.source.startswith(f"# {source.name[:2]}. ")
    assert lint.STATED.search(opening.source)
    mirrors = re.search(r"[Mm]irrors\b", text_of(source))
    assert mirrors or follows_no_document(source)
    assert tags(setup) == {"setup"}


def test_a_drawing_stands_on_the_first_screens(source):
    small = {"claims", "predict"}  # a line of JupyterLab, a card
    cells = [x for x in cells_of(source) if not tags(x) & small]
    # A card parts the text around it, so there is a cell more than six.
    first = [cell.source for cell in cells[:7]]
    assert build.DRAWING.search("\n".join(first))


def test_it_ends_as_all_chapters_do(source):
    headings = re.findall(r"^## .*$", text_of(source), re.MULTILINE)
    assert headings[-len(ENDING) :] == ENDING
    further = text_of(source).split("## Further reading")[1].split("## Next")[0]
    assert 3 <= len(re.findall(r"\n- \[(?!What the docum)", further)) <= 6


def test_a_prediction_is_a_card_with_a_folded_answer(source):
    prose = [x for x in read_cells(source) if x.cell_type == "markdown"]
    cards = [x.source for x in prose if "predict" in tags(x)]
    assert cards
    for card in cards:
        question, fold, answer = card.partition("<details><summary>Answer")
        assert question.startswith("**Predict.** ") and "?" in question, card
        assert "```" not in question and answer.endswith("</details>"), card
    for cell in prose:
        assert "predict" in tags(cell) or "**Predict" not in cell.source


def test_claims_leave_nothing_that_the_chapter_uses(source):
    """They are not in the edition for students, which runs without them."""
    claimed = set()
    for cell in read_cells(source):
        if cell.cell_type == "code":
            read, stored = names_of(compile(cell.source, "cell", "exec"))
            if "claims" in tags(cell):
                assert not re.search(r"\brng\b|display_figure", cell.source)
                claimed |= stored
            else:
                assert not claimed & read, cell.source
                claimed -= stored


def names_of(code):
    """The global names that code reads before it stores them, and stores."""
    read, stored = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            read |= {step.argval} - stored
        elif step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            stored.add(step.argval)
        elif inspect.iscode(step.argval):  # of a function
            read |= names_of(step.argval)[0] - stored
    return read, stored


def test_the_documents_are_argued_with_on_their_own_page(source):
    """A chapter has one link to it, and names no document in its text."""
    _, *cells = read_cells(source)
    prose = [x.source for x in cells if x.cell_type == "markdown"]
    for text in prose:
        text = text.split("## Further reading")[0]
        assert not re.search(r"(?<![\d,.])00[0-4]\b", text), text
    links = re.findall(r"\(\.\./docs/errors\.ipynb#(\S+)\)", "".join(prose))
    if follows_no_document(source):
        assert not links and not errors_of(source).exists()
        return
    title = re.search(r"^# (.*)$", text_of(source), re.MULTILINE)[1]
    slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    assert {*links} == {slug}
    told = re.search(r"and what holds: (\d+) points?,", "".join(prose))
    assert int(told[1]) == len(entries(source))


def follows_no_document(source):
    """From chapter 27 on: the documents end in 2023."""
    return source.name >= "27"


def errors_of(source):
    return build.errors_page.FOLDER / source.name


def entries(source):
    """What a chapter's part of the page of errors is made of."""
    path = errors_of(source)
    prose = [x for x in cells_of(path) if x.cell_type == "markdown"]
    return [build.errors_page.fields(x.source, path.name) for x in prose]


def test_what_the_documents_say_is_told_apart_by_a_cell(source):
    """Or by a section of a chapter, which the test names."""
    if follows_no_document(source):
        return
    cells = cells_of(errors_of(source))
    for entry, after in zip(cells, [*cells[1:], None], strict=True):
        if entry.cell_type == "code":
            continue
        if after is None or after.cell_type != "code":
            test = build.errors_page.fields(entry.source, "")["Test"]
            named = re.findall(
                r"section \*(.+?)\*[^\[]*\[[^\]]*\]\(\S*/(\w+)\.ipynb\)", test
            )
            assert named, test
            for section, name in named:
                chapter = build.FOLDER / "source" / f"{name}.md"
                assert re.search(
                    rf"^##+ {re.escape(section)}$",
                    chapter.read_text("utf-8"),
                    re.MULTILINE,
                ), section


def test_figures_have_captions_and_their_code_is_folded(source):
    for cell in cells_of(source):
        if cell.cell_type == "code" and "display_figure(" in cell.source:
            assert tags(cell) & {"figure", "hide-input"}, cell.source
            for node in ast.walk(ast.parse(cell.source)):
                if getattr(getattr(node, "func", None), "id", "") == (
                    "display_figure"
                ):
                    named = {keyword.arg for keyword in node.keywords}
                    assert len(node.args) > 2 or "caption" in named


def test_a_figure_that_is_drawn_is_shown(source):
    for cell in nbformat.read(build.target(source), as_version=4).cells:
        if cell.cell_type == "code" and "display_figure(" in cell.source:
            kinds = [
                kind for out in cell.outputs for kind in out.get("data", {})
            ]
            drawn = cell.source.count("display_figure(")
            # The last line of a cell alone shows what it returns.
            assert kinds.count("text/html") == drawn == 1, cell.source


def test_the_start_page_says_the_same_minutes(source):
    page = (build.FOLDER.parent / "docs" / "start.md").read_text("utf-8")
    [row] = re.findall(rf"^\| {source.name[:2]} \[.*$", page, re.MULTILINE)
    stated = str(lint.count(source).stated)
    assert re.search(r"\| (\d+) \+ ", row)[1] == stated


def test_exercises_are_graded_and_answered(source):
    exercises = text_of(source).split(ENDING[-1])[1]
    _, *parts = re.split(r"^### (.*)$", exercises, flags=re.MULTILINE)
    assert 4 <= len(parts) // 2 <= 6
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        assert re.match(r"Exercise \d: .+ ●{1,3}$", title), title
        assert "<details>" in body or ":tags: [exercise]" in body, title
