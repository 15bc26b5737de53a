"""A chapter taken apart, and put together again for students and teachers.

The edition for students has the outputs of the published notebook and no
solution: neither code nor the answers to questions of the exercises. The one
for teachers has the solutions in place, the hidden checks, the answers, what
they are worth, and the wrong answers to expect.
"""

import ast
import copy
from dataclasses import dataclass, field
from functools import cached_property
import hashlib
import os
from pathlib import Path
import re
import textwrap

from course import exams
import jupytext
import nbformat

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
WRONG = Path(__file__).parent / "wrong_answers"
SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION\n(.*?)^[ \t]*### END SOLUTION\n?",
    re.MULTILINE | re.DOTALL,
)
HEADING = re.compile(r"^### Exercise (\d+)[.:]? *(.*?) *(●*)$", re.MULTILINE)
FOLD = re.compile(r"<details>\s*<summary>.*?</details>", re.DOTALL)
SUMMARY = re.compile(r"<summary>.*?</summary>|</?details>", re.DOTALL)
SLIP = re.compile(r"^# %% exercise (\d+) \| (.+)$", re.MULTILINE)
RIGHT = "right"  # in place of a message: the check must accept the answer
POINTS = {"●": 5, "●●": 10, "●●●": 20, "": 10}
SKIPPED = ["nbval-skip"]  # of each cell that waits for its reader
IMPORTS = "Imports"
FIGURE = "Code of this figure"
CHECK = "Check my answer"
CLAIMS = "Claims: safe to skip"
CHECKING = """from d2l_attention.notebook import checking


@checking({number})
def check_of_exercise_{number}():
{checks}"""
SOLVED = """# What is solved
from d2l_attention.notebook import show_solved

show_solved()"""


def target(source):
    """The path of the notebook that is built from a source."""
    return source.parents[2] / "notebooks" / f"{source.stem}.ipynb"


def names(source):
    """What a chapter is called on a command line: "02", "2" or in full."""
    return {source.stem, source.stem[:2], source.stem[:2].lstrip("0")}


def path(text):
    """The path that a command line names; `~` is the home folder."""
    return Path(os.path.expanduser(text))


def save(files, force=False):
    """Write files, unless one is there and different.

    Args:
        files: Dict of a path → the text or the bytes that it is to hold.
        force: Whether to overwrite what is different.

    Raises:
        ValueError: If something would be lost; nothing is written then.
    """
    files = {
        path: content.encode() if isinstance(content, str) else content
        for path, content in files.items()
    }
    for path, content in files.items():
        if path.exists() and path.read_bytes() != content and not force:
            raise ValueError(
                f"{path} is there, and different. Nothing was written. To "
                "keep it, name another folder; to lose it, add --force."
            )
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def stub(code):
    """What a reader is given of a cell with a solution between its marks."""
    return SOLUTION.sub(r"\1...  # your code\n", code).rstrip("\n")


def solved(code):
    """The same cell with the solution in its place."""
    return SOLUTION.sub(r"\2", code).rstrip("\n")


def body(checks, setup):
    """Checks as the body of a function, which imports what it uses itself.

    A reader may have given a name of the setup to something else.
    """
    used = {
        x.id for x in ast.walk(ast.parse(checks)) if isinstance(x, ast.Name)
    }
    imports = []
    for node in ast.parse(setup).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            node.names = [
                x
                for x in node.names
                if (x.asname or x.name.partition(".")[0]) in used
            ]
            imports += [ast.unparse(node)] * bool(node.names)
    parts = ["\n".join(imports)] * bool(imports)
    return textwrap.indent("\n\n".join([*parts, checks]), "    ")


def fold(cell, prompt=None):
    """Fold the code of a cell, in JupyterLab and in the book.

    Args:
        cell: A code cell.
        prompt: Str, what stands in the place of the code: JupyterLab shows
            its first line, the book what `mystnb` says.
    """
    cell.metadata["jupyter"] = {"source_hidden": True}
    if prompt is not None:
        cell.source = f"# {prompt}\n{cell.source}"
        cell.metadata["mystnb"] = {
            f"code_prompt_{action}": prompt for action in ("show", "hide")
        }
        tags = cell.metadata.get("tags", [])
        cell.metadata["tags"] = [*tags, "hide-input"]
    return cell


@dataclass
class Exercise:
    """One exercise: what it asks, and for code the cells that check it."""

    number: int
    title: str
    mark: str
    asks: str = ""
    answers: list = field(default_factory=list)
    code: str = ""  # with the solution between its markers
    checks: list = field(default_factory=list)
    hidden: str = ""
    setup: str = ""  # of the chapter

    @property
    def points(self):
        return POINTS[self.mark]

    @property
    def stub(self):
        return stub(self.code)

    @property
    def solution(self):
        return solved(self.code)

    @property
    def check(self):
        """All checks as one cell, which ends in one line, right or wrong."""
        checks = body("\n\n".join(self.checks), self.setup)
        return CHECKING.format(number=self.number, checks=checks)

    def check_cell(self):
        """The check as its reader has it; *Run All* goes on after it."""
        return fold(code(self.check, "check", "raises-exception"), CHECK)

    def question(self):
        """The text of the question, with what it is worth."""
        head = f"### Exercise {self.number}"
        head += f": {self.title}" * bool(self.title) + f" {self.mark}"
        kind = "checked by the cell below" if self.code else "in words"
        if self.code and self.answers:
            kind += "; what it asks in words is for yourself"
        return (
            f"{head.rstrip()}\n\n*{self.points} points, {kind}.*\n\n{self.asks}"
        )


@dataclass
class Chapter:
    """A chapter's source: its name, title, setup and exercises."""

    name: str
    title: str
    setup: str
    exercises: list

    @property
    def number(self):
        return self.name[:2]

    @cached_property
    def slips(self):
        """Dict of exercise number → its wrong answers.

        Each is what is wrong, the code, and what the check must say.
        """
        found = {}
        for number, message, why, answer in self._tried():
            if message != RIGHT:
                found.setdefault(number, []).append((why, answer, message))
        return found

    @cached_property
    def right_answers(self):
        """Dict of exercise number → answers that are right, and unusual.

        Each is what is unusual, and the code.
        """
        found = {}
        for number, message, why, answer in self._tried():
            if message == RIGHT:
                found.setdefault(number, []).append((why, answer))
        return found

    def _tried(self):
        """The answers with which the checks of this chapter are tried."""
        path = WRONG / f"{self.name}.py"
        text = path.read_text("utf-8") if path.exists() else ""
        _, *parts = SLIP.split(text)
        for number, message, body in zip(*[iter(parts)] * 3, strict=True):
            why, answer = re.match(r"\s*((?:# .*\n)*)((?s:.*))", body).groups()
            why = " ".join(line[2:] for line in why.splitlines())
            yield int(number), message, why, answer.strip()


def read_chapter(source):
    """Take the source of a chapter apart.

    Args:
        source: Path of `course/source/NN_name.md`.

    Raises:
        ValueError: If a check stands before its exercise, or an exercise has
            two answers or two hidden checks.
    """
    cells = jupytext.read(source, fmt="md:myst").cells
    cells = [c for c in cells if c.metadata.get("lang", "en") == "en"]
    setup = [c.source for c in cells if "setup" in c.metadata.get("tags", [])]
    title = re.search(r"^# (?:\d+\. )?(.+)$", cells[0].source, re.M)[1]
    begin = next(
        i for i, c in enumerate(cells) if c.source.startswith("## Exercises")
    )
    chapter = Chapter(source.stem, title, "\n\n".join(setup), [])
    for cell in cells[begin:]:
        if cell.cell_type == "markdown":
            _read_prose(cell.source, chapter)
        else:
            _read_code(cell, chapter)
    return chapter


def _read_prose(text, chapter):
    for part in re.split(r"(?=^### Exercise )", text, flags=re.MULTILINE):
        heading = HEADING.match(part)
        if heading:
            number, title, mark = heading.groups()
            chapter.exercises.append(
                Exercise(int(number), title, mark, setup=chapter.setup)
            )
            part = part[heading.end() :]
        elif not chapter.exercises:
            continue  # the heading of all exercises
        exercise = chapter.exercises[-1]
        answers = FOLD.findall(part)
        exercise.answers += [SUMMARY.sub("", x).strip() for x in answers]
        asked = re.sub(r"\n{3,}", "\n\n", FOLD.sub("", part)).strip()
        exercise.asks = f"{exercise.asks}\n\n{asked}".strip()


def _read_code(cell, chapter):
    tags = cell.metadata.get("tags", [])
    exercise = chapter.exercises[-1] if chapter.exercises else None
    if exercise is None or not (exercise.code or "exercise" in tags):
        raise ValueError(f"{chapter.name}: a check stands before its exercise.")
    if ("exercise" in tags and exercise.code) or (
        "hidden" in tags and exercise.hidden
    ):
        raise ValueError(
            f"{chapter.name}: exercise {exercise.number} has two cells tagged "
            f"{tags}."
        )
    if "exercise" in tags:
        exercise.code = cell.source
    elif "hidden" in tags:
        exercise.hidden = cell.source
    else:
        exercise.checks.append(cell.source)


def student(chapter, published):
    """The edition for students.

    Args:
        chapter: `Chapter`.
        published: The built notebook, with its outputs.
    """
    cells = [
        cell
        for cell in _taught(published)
        if "claims" not in cell.metadata.get("tags", [])
    ]
    for exercise in chapter.exercises:
        cells.append(prose(exercise.question()))
        if exercise.code:
            cells.append(code(exercise.stub, "exercise"))
            cells.append(exercise.check_cell())
        else:
            cells.append(prose("*Your answer:*"))
    return notebook([*cells, published.cells[-1]])  # what is solved


def instructor(chapter, published):
    """The edition for teachers: solutions, rubrics, slips, hidden checks."""
    cells = _taught(published)
    rubrics = exams.rubrics(chapter.name)
    for exercise in chapter.exercises:
        cells.append(prose(exercise.question()))
        if exercise.code:
            cells.append(code(exercise.solution, "exercise"))
            cells.append(exercise.check_cell())
        if exercise.hidden:
            text = f"**Hidden check**\n\n```python\n{exercise.hidden}\n```"
            cells.append(prose(text))
        notes = [f"**Answer.** {answer}" for answer in exercise.answers]
        if not exercise.code:
            rows = rubrics.get(exercise.number, [])
            notes += [
                "**Worth.**\n\n"
                + "\n".join(f"- {n} points: {what}" for n, what in rows)
            ] * bool(rows)
        slips = chapter.slips.get(exercise.number, [])
        notes += ["**Slips to expect.**"] * bool(slips)
        notes += [
            f"<details><summary>{why}</summary>\n\n```python\n{answer}\n```\n\n"
            f"The check says: *{message}*\n\n</details>"
            for why, answer, message in slips
        ]
        if notes:
            cells.append(prose("\n\n".join(notes)))
    return notebook(cells)


def _taught(published):
    """The cells before the exercises, and their heading."""
    cells = copy.deepcopy(published.cells)
    begin = next(
        i for i, c in enumerate(cells) if c.source.startswith("## Exercises")
    )
    heading = cells[begin].source.split("### Exercise")[0].rstrip()
    return [*cells[:begin], prose(heading)]


def with_line_feeds(notebook):
    """A notebook whose cells end their lines as ours do, not as Windows.

    Half a surrogate pair, which no file can hold, becomes U+FFFD.
    """
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        text = cell.source.encode("utf-16", "surrogatepass")
        text = text.decode("utf-16", "replace")
        cell.source = "\n".join(re.split(r"\r\n|\r|\n", text))
    return notebook


def prose(text, **metadata):
    return nbformat.v4.new_markdown_cell(text, metadata=metadata)


def code(text, *tags, **metadata):
    if tags:
        metadata["tags"] = [*tags, *SKIPPED]
    return nbformat.v4.new_code_cell(text, metadata=metadata)


def solved_cell():
    """The last cell, which says what is solved."""
    return code(SOLVED, tags=["solved", "remove-cell"])


def notebook(cells):
    """A notebook whose cell ids come from what the cells hold."""
    name_cells(cells)
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata = nbformat.from_dict(
        {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python", "file_extension": ".py"},
        }
    )
    return made


def name_cells(cells):
    seen = set()
    for cell in cells:
        digest = hashlib.sha1(cell.source.encode()).hexdigest()[:8]
        while digest in seen:
            digest = hashlib.sha1(digest.encode()).hexdigest()[:8]
        seen.add(digest)
        cell["id"] = digest
