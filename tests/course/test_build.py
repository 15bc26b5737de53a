"""The build: sources become notebooks, and a stale one is found."""

import re

from course import build, errors_page
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
x = 1 + 1
x
```

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


ENTRY = """## What the documents say

<details><summary>One</summary>

**Said in** 004 §2.

**It says** one.

**What holds:** two.

**Test:** the cell below
counts them.

</details>
"""


@pytest.mark.parametrize(
    "source", build.sources([]), ids=lambda source: source.stem
)
def test_every_chapter_is_built_from_its_source(source):
    assert build.problems(source) == []


def test_the_page_of_errors_is_made_of_the_chapters():
    made = errors_page.page(build.sources([]))
    assert errors_page.PAGE.read_text(encoding="utf-8") == made


def test_an_entry_without_a_field_is_refused(tmp_path):
    source = tmp_path / "03_test.md"
    entry = ENTRY.replace("**What holds:** two.", "Two.")
    source.write_text(entry, encoding="utf-8")
    with pytest.raises(ValueError, match=r"03_test.md: 'One' has no \*\*What"):
        errors_page.entries(source)


def test_errors_and_remarks_stand_apart(tmp_path):
    source = tmp_path / "03_test.md"
    remark = ENTRY.split("\n", 2)[2].replace("One", "Remark: a third")
    source.write_text(ENTRY + remark, encoding="utf-8")
    wrong, remarks = errors_page.page([source]).split("## Remarks")
    assert "## One\n\nChapter [03]" in wrong and "said in 004 §2." in wrong
    assert "- *What holds:* two." in wrong and "third" not in wrong
    assert "### A third\n\nChapter [03]" in remarks


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
    title, code, stub, check, solution = notebook.cells
    assert code.outputs[0]["data"]["text/plain"] == "2"
    assert "..." in stub.source and "return" not in stub.source
    assert stub.execution_count is None and check.execution_count is None
    assert "<summary>Solution</summary>" in solution.source
    assert "return 2 * x" in solution.source
    assert "标题" not in title.source  # another edition's


def test_a_check_in_two_cells_stands_before_the_solution(chapter):
    second = "```{code-cell}\n:tags: [check]\n\nassert double(5) == 10\n```\n"
    chapter.write_text(f"{SOURCE}\n{second}", encoding="utf-8")
    *_, first, other, solution = build.published(chapter).cells
    assert "double(3)" in first.source and "double(5)" in other.source
    assert "Solution" in solution.source
    assert "nbval-skip" in other.metadata["tags"]


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
LONG = {**PRINTED, "text": "2" * 500_000}


@pytest.mark.parametrize(
    ("count", "output", "found"),
    [
        (1, PRINTED, None),
        (None, PRINTED, ": cell 1 never ran"),
        (1, WARNED, ": cell 1 shows an error"),
        (1, FAILED, ": cell 1 shows an error"),
        (1, LONG, " has more than 500 KB"),
    ],
)
def test_what_a_reader_should_not_meet_is_noticed(
    count, output, found, chapter
):
    notebook = build.published(chapter)  # as if a kernel had run its cell
    code = notebook.cells[1]
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
