"""A chapter has the form that the course promises, from top to bottom."""

import ast
import re

from course import build, errors_page
from course.lint import cells_of, read_cells, tags
import nbformat
import pytest

CHAPTERS = build.sources([])
ENDING = [
    "## What the documents say",
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
    for promise in ("**Before this:**", "**Mirrors**", "**Time:**"):
        assert promise in opening.source
    assert tags(setup) == {"setup"}


def test_a_drawing_stands_on_the_first_screens(source):
    first = [cell.source for cell in cells_of(source)[:6]]
    assert build.DRAWING.search("\n".join(first))


def test_it_ends_as_all_chapters_do(source):
    headings = re.findall(r"^## .*$", text_of(source), re.MULTILINE)
    assert headings[-len(ENDING) :] == ENDING
    further = text_of(source).split("## Further reading")[1].split("## Next")[0]
    assert 3 <= further.count("\n- [") <= 6


def test_a_prediction_is_a_question_with_a_folded_answer(source):
    text = text_of(source)
    _, *predictions = text.split("**Predict")
    assert predictions
    for prediction in predictions:
        question, fold, _ = prediction.partition("<details><summary>Answer")
        assert question.startswith(".**") and "?" in question, question
        assert fold and "```" not in question, question


def test_the_documents_are_argued_with_at_the_end_only(source):
    _, *cells = read_cells(source)
    for cell in cells:
        if cell.source.startswith(ENDING[0]):
            return
        if cell.cell_type == "markdown":
            named = re.search(r"(?<![\d,.])00[0-4]\b", cell.source)
            assert not named, cell.source


def test_what_the_documents_say_is_told_apart_by_a_cell(source):
    section = text_of(source).split(ENDING[0])[1].split(ENDING[1])[0]
    headings = re.findall(r"^##+ (.*)$", text_of(source), re.MULTILINE)
    told = errors_page.entries(source)
    assert len(told) == section.count("<details>") > 0
    behind = section.split("</details>")[1:]
    for entry, rest in zip(told, behind, strict=True):
        named = re.search(r"section \*(.+?)\*", entry["Test:"])
        if named:
            assert named[1] in headings
        else:
            assert rest.lstrip().startswith("```{code-cell}"), entry["title"]


def test_figures_have_captions(source):
    for cell in cells_of(source):
        if cell.cell_type == "code" and "display_figure(" in cell.source:
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
    stated = re.search(r"\*\*Time:\*\* about (\d+) minutes", text_of(source))
    assert re.search(r"\| (\d+) \+ ", row)[1] == stated[1]


def test_exercises_are_graded_and_answered(source):
    exercises = text_of(source).split(ENDING[-1])[1]
    _, *parts = re.split(r"^### (.*)$", exercises, flags=re.MULTILINE)
    assert 4 <= len(parts) // 2 <= 6
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        assert re.match(r"Exercise \d: .+ ●{1,3}$", title), title
        assert "<details>" in body or ":tags: [exercise]" in body, title
