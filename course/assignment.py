"""A course folder for nbgrader, with one assignment for each chapter.

    python -m course.build assignment COURSE 06 08.3 08.4 [--seed FILE]

`06` takes all exercises of a chapter, `08.3` one of them. An assignment holds
the setup and the exercises alone. Each coded exercise has one cell of checks:
those that students see and, between nbgrader's markers, hidden ones, which
compare with the solution on sizes and numbers drawn from the seed. The
repository is public, so the seed is what students do not know.
"""

from pathlib import Path
import secrets

from course import editions, exams
import nbformat

SEED = "seed.txt"
CONFIG = r'''"""How nbgrader runs this course; see the book, *Grading*."""

from pathlib import Path
import re

from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat.v4 import new_output
from nbgrader.plugins import FileNameCollectorPlugin
from nbgrader.preprocessors import (
    ClearHiddenTests,
    GetGrades,
    NbGraderPreprocessor,
)


class ShortenTracebacks(NbGraderPreprocessor):
    """Feedback says what went wrong, not the lines of a hidden check."""

    def preprocess_cell(self, cell, resources, index):
        if cell.metadata.get("nbgrader", {{}}).get("grade"):
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    output.traceback = [f"{{output.ename}}: {{output.evalue}}"]
        return cell, resources


class LeaveOutSecrets(NbGraderPreprocessor):
    """A student's `%history` or `%tb` shows no hidden check.

    It comes before `ClearHiddenTests`, which takes them out of the sources.
    """

    def preprocess(self, nb, resources):
        hidden = re.findall(
            r"### BEGIN HIDDEN TESTS(.*?)### END HIDDEN TESTS",
            "\n".join(cell.source for cell in nb.cells),
            re.DOTALL,
        )
        lines = [x.strip() for x in "\n".join(hidden).splitlines()]
        lines = {{x[:80] for x in lines if len(x) > 15}}
        for cell in nb.cells:
            graded = cell.metadata.get("nbgrader", {{}}).get("grade")
            for i, output in enumerate(cell.get("outputs", [])):
                text = re.sub(r"\x1b\[[0-9;]*m", "", self._text(output))
                if not graded and any(line in text for line in lines):
                    text = "(This showed a hidden check, and was left out.)"
                    cell.outputs[i] = new_output("stream", text=text)
        return nb, resources

    def _text(self, output):
        parts = [output.get("text", ""), output.get("evalue", "")]
        parts += [*output.get("traceback", [])]
        parts += map(str, output.get("data", {{}}).values())
        return "\n".join(parts)


class Grades(GetGrades):
    """Notes which words nobody has read yet."""

    def _get_score(self, cell, resources):
        super()._get_score(cell, resources)
        name = cell.metadata.nbgrader["grade_id"]
        grade = self.gradebook.find_grade(
            name, self.notebook_id, self.assignment_id, self.student_id
        )
        if cell.cell_type == "markdown" and grade.needs_manual_grade:
            resources["nbgrader"].setdefault("waiting", []).append(name)


class Page(HTMLExporter):
    """Feedback that calls an exercise by its number, and says what waits."""

    def from_notebook_node(self, nb, resources=None, **options):
        page, resources = super().from_notebook_node(nb, resources, **options)
        waiting = resources["nbgrader"].get("waiting", [])

        def exercise(match):
            name, number, score = match.groups()
            if name in waiting:
                score = "waiting for a reader"
            return f'<a href="#{{name}}">Exercise {{number}}</a> ({{score}})'

        page = re.sub(
            r'<a href="#(exercise-(\d+)[^"]*)">[^<]+</a> \(([^)]*)\)',
            exercise,
            page,
        )
        page = re.sub(
            r"Grade cell: <code>exercise-(\d+)-check</code>",
            r"Check of exercise \1",
            page,
        )
        for name in waiting:
            page = re.sub(
                rf'(<a name="{{name}}">.*?)Score: [^<]*',
                r"\1Waiting for a reader ",
                page,
                count=1,
                flags=re.DOTALL,
            )
        return page, resources


class Collector(FileNameCollectorPlugin):
    """Students of one name get the number that stands behind it in the zip.

    nbgrader alone stops the whole collection at the second of two equal names.
    """

    def collect(self, submitted_file):
        found = super().collect(submitted_file)
        if found is None:
            self.log.warning("NOT COLLECTED: %s", submitted_file)
            return None
        name, number = found["student_id"], self._number(submitted_file)
        if name not in self._names(submitted_file):
            return found
        numbers = self._names(submitted_file)[name]
        earlier = [x.name for x in Path("submitted").glob("*_*")]
        if len(numbers) > 1 or f"{{name}}_{{number}}" in earlier:
            found["student_id"] = f"{{name}}_{{number}}"
            self.log.warning("%s is %s", submitted_file, found["student_id"])
        if numbers[number] != submitted_file:
            self.log.warning(
                "NOT COLLECTED: %s, but %s", submitted_file, numbers[number]
            )
            return None
        return found

    def _number(self, path):
        return re.match(self.named_regexp, path)[2]

    def _names(self, path):
        """Dict of a name → its numbers → the file that counts."""
        names = {{}}
        (root,) = (x for x in Path(path).parents if x.name == "extracted")
        for file in sorted(map(str, root.rglob("*.ipynb"))):
            match = re.match(self.named_regexp, file)
            if match:
                numbers = names.setdefault(match["student_id"], {{}})
                numbers[match[2]] = file
        return names


c = get_config()  # noqa: F821
# nbgrader's own feedback shows hidden checks, with the seed and the solution.
c.GenerateFeedback.exporter_class = Page
c.GenerateFeedback.preprocessors = [
    Grades,
    LeaveOutSecrets,
    ClearHiddenTests,
    ShortenTracebacks,
    CSSHTMLHeaderPreprocessor,
]
c.CourseDirectory.course_id = "attention"
# Seconds for one cell. A cell that takes longer fails, and the next one runs.
c.ExecutePreprocessor.timeout = {timeout}
too_long = "it took longer than {timeout} seconds, "
too_long += "which is the limit for one cell"
c.ExecutePreprocessor.error_on_timeout = {{
    "ename": "CellTimeoutError",
    "evalue": too_long,
    "traceback": [f"CellTimeoutError: {{too_long}}"],
}}
c.ClearSolutions.code_stub = {{"python": "...  # your code"}}
c.ClearSolutions.text_stub = "*Your answer:*"
# Names in a zip of Moodle ("Ada Lovelace_12_assignsubmission_file_/x.ipynb",
# or without the slash) and of Canvas ("lovelaceada_LATE_12_34_x-1.ipynb").
# What stands behind the name of the assignment, such as " (1)", is left out.
c.ZipCollectApp.collector_plugin = Collector
c.FileNameCollectorPlugin.named_regexp = (
    r".*/(?P<student_id>[^/]+?)(?:_LATE)?_(\d+)_"
    r"(?:assignsubmission_file_/?|\d+_)"
    r"(?P<file_id>\d\d_[a-z]+)(?:[ _(-][^/]*)?\.ipynb$"
)
'''
PACKAGES = (
    "An answer may import d2l_attention, Keras, TensorFlow, NumPy, Matplotlib, "
    "and what comes with Python."
)
ROOM = "# If your answer needs code, write it here."
HIDDEN = """
### BEGIN HIDDEN TESTS
from d2l_attention.notebook import apart


@apart
def hidden_check():
{checks}
### END HIDDEN TESTS
"""
COMPARED = """from types import SimpleNamespace

names = {{"__name__": "solved"}}
exec({reference!r}, names)
solved = SimpleNamespace(**names)
rng = np.random.default_rng({seed})
{checks}"""


def name_of(chapter):
    """The name of a chapter's assignment, unlike that of its notebook."""
    return f"{chapter.number}_exercises"


def write(course, chapters, seed_file=None, timeout=120, force=False):
    """Write `nbgrader_config.py` and `source/NAME/NAME.ipynb` into a folder.

    Args:
        course: Path of the course folder; made if there is none.
        chapters: List of `editions.Chapter`.
        seed_file: Path of a text that the teacher keeps; it becomes the
            course folder's own `seed.txt`. Without it that one is used, or
            made.
        timeout: Positive int, seconds for one cell.
        force: Whether to overwrite assignments that are different.

    Returns:
        List of str, what the teacher should know.

    Raises:
        ValueError: If a seed file is missing, empty, or not the course's, or
            an assignment would be overwritten; nothing is written then.
    """
    course = Path(course)
    files, own = {}, course / SEED
    seed = None if seed_file is None else exams.read_seed(seed_file)
    if not own.exists():
        seed = seed or secrets.token_hex(16)
        files[own] = seed + "\n"
    elif seed not in (None, exams.read_seed(own)):
        raise ValueError(
            f"{seed_file} holds another seed than {own}, which would check "
            "some students unlike others. Leave --seed out, or begin a new "
            "course folder."
        )
    seed = seed or exams.read_seed(own)
    config = course / "nbgrader_config.py"
    if not config.exists():  # a teacher may have changed it
        files[config] = CONFIG.format(timeout=timeout)
    for chapter in chapters:
        name = name_of(chapter)
        path = course / "source" / name / f"{name}.ipynb"
        files[path] = nbformat.writes(assignment(chapter, seed)) + "\n"
    editions.save(files, force)
    return [said for chapter in chapters for said in shortcomings(chapter)]


def shortcomings(chapter):
    """What an assignment of this chapter lacks, as sentences."""
    bare = [x.number for x in chapter.exercises if x.code and not x.hidden]
    rubrics = exams.rubrics(chapter.name)
    loose = [
        x.number
        for x in chapter.exercises
        if not x.code and x.number not in rubrics
    ]
    told = []
    if bare:
        told.append(
            f"{chapter.name}: exercises {_list(bare)} have no hidden check. "
            "Students can read all that checks them."
        )
    if loose:
        told.append(
            f"{chapter.name}: exercises {_list(loose)} have no rubric, only "
            "an answer."
        )
    return told


def _list(numbers):
    return ", ".join(map(str, numbers))


def assignment(chapter, seed):
    """The assignment of a chapter, as its teacher has it.

    nbgrader makes the students' version of it: it takes away solutions,
    answers and hidden tests.
    """
    opening = (
        f"# Exercises of chapter {chapter.number}: {chapter.title}\n\n"
        f"The first cell imports what you need. Leave the cells "
        "of checks as they are: they are put back before grading. Exercises "
        "are about the chapter; keep it open beside. If an answer in words "
        "needs code, the cell below it is for that. It has no points, "
        f"and is run when you are graded. {PACKAGES}"
    )
    cells = [
        editions.prose(opening),
        editions.code(chapter.setup, **_text("setup")),
    ]
    rubrics = exams.rubrics(chapter.name)
    for exercise in chapter.exercises:
        name = f"exercise-{exercise.number}"
        question = exercise.question()
        cells.append(editions.prose(question, **_text(f"{name}-text")))
        if exercise.code:
            answer = _cell(name, solution=True)
            cells.append(editions.code(exercise.code, **answer))
            checks = _checks(chapter, exercise, seed)
            graded = _cell(
                f"{name}-check", grade=True, locked=True, points=exercise.points
            )
            cells.append(
                editions.code(checks, tags=["raises-exception"], **graded)
            )
        else:
            rows = rubrics.get(exercise.number, [])
            graded = _cell(
                name, grade=True, solution=True, points=exercise.points
            )
            cells.append(
                editions.prose(_model_answer(exercise, rows), **graded)
            )
            cells.append(editions.code(ROOM))
    return editions.notebook(cells)


def _checks(chapter, exercise, seed):
    if not exercise.hidden:
        return exercise.check
    rng = exams.generator(seed, chapter.name, exercise.number)
    compared = COMPARED.format(
        reference=f"{chapter.setup}\n\n{exercise.solution}",
        seed=rng.getrandbits(32),
        checks=exercise.hidden,
    )
    hidden = HIDDEN.format(checks=editions.body(compared, chapter.setup))
    return exercise.check + "\n" + hidden.rstrip()


def _model_answer(exercise, rows):
    answer = "\n\n".join(exercise.answers)
    worth = "\n".join(f"- {points} points: {what}" for points, what in rows)
    return f"{answer}\n\n{worth}".strip()


def _text(name):
    """Metadata of a cell that is only put back, if a student changed it."""
    return _cell(name, locked=True)


def _cell(name, grade=False, solution=False, locked=False, points=None):
    """nbgrader's metadata of a cell."""
    entry = {
        "schema_version": 3,
        "grade_id": name,
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "task": False,
    }
    if grade:
        entry["points"] = points
    return {"nbgrader": entry}
