"""The build: sources become notebooks, and a stale one is found."""

import re

from course import build, errors_page, lists
import nbformat
import pytest

SOURCE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Title

+++ {"lang": "zh"}

# 标题

```{code-cell}
:tags: [setup]
import math
```

```{code-cell}
x = 1 + 1
x
```

+++ {"tags": ["predict"]}

**Predict.** And 2 + 2?

```{code-cell}
:tags: [figure]
"a figure"
```

```{code-cell}
:tags: [claims]
assert x == 2
```

## Exercises

### Exercise 1: twice

Double a number.

```{code-cell}
:tags: [exercise]

def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION
```

```{code-cell}
:tags: [check]

assert double(3) == 6
```
"""


ENTRY = """## Every head reads all features

**Said in** 004 §2.

**It says** one.

**It holds** that
two.

**Test:** count them.
"""


@pytest.mark.parametrize(
    "source", build.sources([]), ids=lambda source: source.stem
)
def test_every_chapter_is_built_from_its_source(source):
    assert build.problems(source) == []


def test_the_page_of_errors_is_built_from_its_sources():
    assert build.errors_problems() == []


def test_an_entry_is_told_apart_by_its_fields():
    assert errors_page.fields(ENTRY, "04_test.md") == {
        "title": "Every head reads all features",
        "Said in": "004 §2.",
        "It says": "one.",
        "It holds": "that\ntwo.",
        "Test": "count them.",
    }


@pytest.mark.parametrize("field", errors_page.FIELDS)
def test_an_entry_without_a_field_is_refused(field):
    entry = ENTRY.replace(f"**{field}**", "And")
    with pytest.raises(ValueError, match=r"04_test.md: an entry has .*Every"):
        errors_page.fields(entry, "04_test.md")


def test_letters_of_the_notation_have_one_meaning():
    page = (build.FOLDER.parent / "docs" / "notation.md").read_text("utf-8")
    first = re.findall(r"^\| (\S[^|]*) \|", page, re.MULTILINE)
    letters = [one for cell in first for one in cell.split(", ")]
    letters = [one for one in letters if one not in ("Letter", "---")]
    assert len(letters) == len(set(letters)) > 15


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
    for folder in ("course/source", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    source = tmp_path / "course" / "source" / "01_test.md"
    source.write_text(SOURCE, encoding="utf-8")
    return source


def test_a_built_notebook_is_what_a_reader_should_meet(chapter):
    assert build.problems(chapter) == ["01_test.ipynb is not built"]
    build.build(chapter)
    assert build.problems(chapter) == []
    notebook = nbformat.read(build.target(chapter), as_version=4)
    title, *_, stub, check, solution, last = notebook.cells
    code = notebook.cells[2]
    assert code.outputs[0]["data"]["text/plain"] == "2"
    assert "..." in stub.source and "return" not in stub.source
    assert stub.execution_count is None and check.execution_count is None
    assert "<summary>Solution</summary>" in solution.source
    assert "return 2 * x" in solution.source
    assert "标题" not in title.source  # another edition's
    assert last.outputs[0]["text"] == "No exercise has been checked yet.\n"


def test_cells_are_folded_and_named_by_their_kind(chapter):
    _, setup, code, card, figure, claims, _, _, check, *_ = build.published(
        chapter
    ).cells
    prompts = {
        "Imports": setup,
        "Code of this figure": figure,
        "Claims: safe to skip": claims,
        "Check my answer": check,
    }
    for prompt, cell in prompts.items():
        # JupyterLab shows the first line of code that it hides.
        assert cell.source.startswith(f"# {prompt}\n")
        assert cell.metadata["jupyter"] == {"source_hidden": True}
        assert cell.metadata["mystnb"]["code_prompt_show"] == prompt
        hides = {"remove-cell"} if cell is claims else {"hide-input"}
        assert hides < set(cell.metadata["tags"])
    assert "jupyter" not in code.metadata
    assert card.source.startswith('<div class="predict" style="border-left')
    assert "\n\n**Predict.** And 2 + 2?\n\n</div>" in card.source


def test_all_checks_of_an_exercise_are_one_cell_before_the_solution(chapter):
    second = "```{code-cell}\n:tags: [check]\n\nassert double(5) == 10\n```\n"
    chapter.write_text(f"{SOURCE}\n{second}", encoding="utf-8")
    *_, check, solution, _ = build.published(chapter).cells
    assert "double(3)" in check.source and "double(5)" in check.source
    assert "Solution" in solution.source
    assert {"nbval-skip", "raises-exception"} < set(check.metadata["tags"])


def test_building_twice_gives_the_same_bytes(chapter):
    build.build(chapter)
    first = build.target(chapter).read_bytes()
    build.build(chapter)
    assert build.target(chapter).read_bytes() == first


def test_a_source_that_changed_is_noticed(chapter):
    build.build(chapter)
    chapter.write_text(SOURCE.replace("1 + 1", "1 + 2"), encoding="utf-8")
    assert "was not built from" in build.problems(chapter)[0]


WARNED = {"output_type": "stream", "name": "stderr", "text": "deprecated"}
FAILED = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
PRINTED = {"output_type": "stream", "name": "stdout", "text": "2"}
LONG = {**PRINTED, "text": "2" * 600_000}


@pytest.mark.parametrize(
    ("count", "output", "found"),
    [
        (1, PRINTED, None),
        (None, PRINTED, ": cell 2 never ran"),
        (1, WARNED, ": cell 2 shows an error"),
        (1, FAILED, ": cell 2 shows an error"),
        (1, LONG, " has more than 600 kB"),
    ],
)
def test_what_a_reader_should_not_meet_is_noticed(
    count, output, found, chapter
):
    notebook = build.published(chapter)  # as if a kernel had run its cells
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = 1
    code = notebook.cells[2]
    code.execution_count, code.outputs = count, [nbformat.from_dict(output)]
    nbformat.write(notebook, build.target(chapter))
    said = [] if found is None else [f"01_test.ipynb{found}"]
    assert build.problems(chapter) == said


def test_a_failing_build_leaves_the_earlier_notebook(chapter):
    build.build(chapter)
    before = build.target(chapter).read_bytes()
    chapter.write_text(SOURCE.replace("1 + 1", "1 / 0"), encoding="utf-8")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        build.build(chapter)
    assert build.target(chapter).read_bytes() == before


def test_the_lists_are_those_of_the_sources():
    assert lists.problems() == []


def test_a_chapter_more_is_in_every_list():
    """One entry of the list of chapters, and the number of them."""
    parts = lists.read_parts()
    new = parts[-1]["chapter"][-1] | {"number": "99", "source": "99_new"}
    new |= {"title": "Something new", "short": "new things"}
    parts[-1]["chapter"].append(new)
    number = str(sum(len(part["chapter"]) for part in parts))
    for name, page in lists.PAGES.items():
        text = (lists.ROOT / name).read_text("utf-8")
        changed = page(text, parts)
        assert page(changed, parts) == changed
        added = {*changed.splitlines()} - {*text.splitlines()}
        assert "99_new" in " ".join(added)
        counted = name.startswith("docs/slides") or number in " ".join(added)
        assert counted, name
