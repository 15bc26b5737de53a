"""nbgrader releases, grades and answers, whatever is handed in.

Three chapters by default; `COURSE_CHAPTERS=all` tries every one, and
`COURSE_CHAPTERS="05 11"` those that it names. It needs the extra `teach`.
"""

import csv
import html
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

import assignment
import build
import course
import editions
import nbformat
import pytest

pytest.importorskip("nbgrader")
import grading  # noqa: E402

CHOSEN = os.environ.get("COURSE_CHAPTERS", "01 03 06")
SOURCES = build.sources([] if CHOSEN == "all" else CHOSEN.split())
ENDLESS = "\n    while True:\n        pass\n"

pytestmark = [
    pytest.mark.backend_free,
    pytest.mark.filterwarnings("ignore::Warning"),  # nbgrader's own
]


def right(chapter, cells):
    for exercise in chapter.exercises:
        cell = cells[f"exercise-{exercise.number}"]
        cell.source = exercise.solution if exercise.code else "An answer."


def wrong_in_two(chapter, cells):
    right(chapter, cells)
    for exercise in coded(chapter)[:2]:
        slips = chapter.slips.get(exercise.number)
        answer = slips[0][1] if slips else exercise.stub
        cells[f"exercise-{exercise.number}"].source = answer


def endless(chapter, cells):
    right(chapter, cells)
    first = coded(chapter)[0]
    cell = cells[f"exercise-{first.number}"]
    name = re.search(r"^def (\w+)", cell.source, re.MULTILINE)[1]
    cell.source = f"def {name}(*inputs, **options):{ENDLESS}"


def edited_and_fatal(chapter, cells):
    right(chapter, cells)
    for exercise in coded(chapter):
        cells[f"exercise-{exercise.number}-check"].source = "pass"
    last = coded(chapter)[-1]
    cells[f"exercise-{last.number}"].source += "\n\nimport os\nos._exit(0)"


def edited(chapter, cells):
    for exercise in coded(chapter):
        cells[f"exercise-{exercise.number}-check"].source = "pass"


STUDENTS = {
    "right": right,
    "Ada Untouched": lambda chapter, cells: None,  # a name with a space
    "wrong": wrong_in_two,
    "endless": endless,
    "fatal": edited_and_fatal,
    "edited": edited,
}


def coded(chapter):
    return [x for x in chapter.exercises if x.code]


def hand_in(course, chapter, student, change):
    name = assignment.name_of(chapter)
    path = Path(name) / f"{name}.ipynb"
    notebook = nbformat.read(course / "release" / path, 4)
    cells = {
        c.metadata.nbgrader.grade_id: c
        for c in notebook.cells
        if "nbgrader" in c.metadata
    }
    change(chapter, cells)
    handed_in = course / "submitted" / student / path
    handed_in.parent.mkdir(parents=True)
    nbformat.write(notebook, handed_in)


@pytest.fixture(scope="module", params=SOURCES, ids=lambda path: path.stem)
def graded(request, tmp_path_factory):
    """A course of one chapter: its folder, the chapter and the report."""
    course = tmp_path_factory.mktemp("course")
    chapter = editions.read_chapter(request.param)
    assignment.write(course, [chapter], timeout=40)
    name = assignment.name_of(chapter)
    options = ["generate_assignment", name, "--create"]
    assert grading.nbgrader(course, 120, *options) == 0
    for student, change in STUDENTS.items():
        hand_in(course, chapter, student, change)
    rows = grading.grade(course, name, limit=600)
    return course, chapter, {row["student"]: row for row in rows}


def test_each_gets_the_points_of_what_is_right(graded):
    _, chapter, rows = graded
    points = [x.points for x in coded(chapter)]
    assert rows.keys() == STUDENTS.keys()
    assert {row["of checked"] for row in rows.values()} == {sum(points)}
    assert {name: row["checked"] for name, row in rows.items()} == {
        "right": sum(points),
        "Ada Untouched": 0,
        "wrong": sum(points[2:]),
        "endless": sum(points[1:]),
        "fatal": 0,
        "edited": 0,
    }


def test_the_report_says_what_is_left_to_do(graded):
    course, chapter, rows = graded
    assert "ended the process" in rows["fatal"]["note"]
    words = any(not x.code for x in chapter.exercises)
    assert bool(rows["right"]["note"]) == words
    assert rows["Ada Untouched"]["note"] == ""
    with (course / f"report_{assignment.name_of(chapter)}.csv").open() as file:
        assert [x["student"] for x in csv.DictReader(file)] == sorted(rows)
    with (course / "grades.csv").open() as file:
        exported = {x["student_id"]: x for x in csv.DictReader(file)}
    assert float(exported["right"]["score"]) == rows["right"]["checked"]
    assert float(exported["fatal"]["score"]) == 0


def test_everybody_gets_a_page_of_feedback(graded):
    course, chapter, rows = graded
    name = assignment.name_of(chapter)
    page = f"{name}/{name}.html"
    pages = {x: (course / "feedback" / x / page).read_text() for x in rows}
    assert "os._exit(0)" in pages["fatal"]
    assert "0 points" in pages["fatal"]
    assert "CellTimeoutError" in pages["endless"]
    raised = re.compile("^AssertionError: ", re.MULTILINE)  # not only written
    assert raised.search(pages["Ada Untouched"])
    assert not raised.search(pages["right"])


def test_feedback_tells_the_message_and_no_secret(graded):
    course, chapter, rows = graded
    name = assignment.name_of(chapter)
    kept = (course / "source" / name / f"{name}.ipynb").read_text("utf-8")
    seeds = re.findall(r"rng = np.random.default_rng\((\d{6,})\)", kept)
    assert len(seeds) == sum(bool(x.hidden) for x in chapter.exercises)
    first, second, *_ = coded(chapter)
    for student in rows:
        page = (
            course / "feedback" / student / name / f"{name}.html"
        ).read_text()
        assert "HIDDEN" not in page and "hidden_" not in page
        assert not any(seed in page for seed in seeds)
    wrong = course / "feedback" / "wrong" / name / f"{name}.html"
    shown = html.unescape(re.sub(r"<[^>]*>", "", wrong.read_text("utf-8")))
    for exercise in (first, second):
        slips = chapter.slips.get(exercise.number, [])[:1]
        slips = [answer for _, answer, _ in slips]
        known = "\n".join([exercise.stub, *exercise.checks, *slips])
        for line in map(str.strip, exercise.solution.splitlines()):
            assert len(line) < 13 or line in known or line not in shown


def test_a_release_holds_no_secret(graded):
    course, chapter, _ = graded
    name = assignment.name_of(chapter)
    name = f"{name}/{name}.ipynb"
    release = nbformat.read(course / "release" / name, 4)
    text = "\n".join(cell.source for cell in release.cells)
    assert "HIDDEN" not in text and "SOLUTION" not in text
    assert "default_rng(hidden" not in text
    kept = nbformat.read(course / "source" / name, 4)
    checks = [c.source for c in kept.cells if "HIDDEN" in c.source]
    seeds = [re.findall(r"^rng = .*\((\d+)\)$", x, re.M)[-1] for x in checks]
    assert len(seeds) == sum(bool(x.hidden) for x in chapter.exercises)
    assert not any(seed in text for seed in seeds)
    for exercise in chapter.exercises:
        assert not exercise.hidden or exercise.hidden not in text
        for answer in exercise.answers:
            assert answer not in text


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_edition_for_students_runs_from_top_to_bottom(source, tmp_path):
    editions.save(course.edition_files("student", tmp_path, source))
    for name in ("conftest.py", "sanitize.cfg"):
        shutil.copy(build.FOLDER / name, tmp_path)
    options = "-q --nbval --nbval-current-env --nbval-cell-timeout 600"
    options += " --nbval-sanitize-with sanitize.cfg -p no:cacheprovider ."
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stdout[-3000:]


@pytest.mark.parametrize(
    "name",
    [
        "Ada Lovelace_4711_assignsubmission_file_/06_exercises.ipynb",
        "Ada Lovelace_4711_assignsubmission_file_06_exercises.ipynb",
        "Ada Lovelace_12345_67890_06_exercises.ipynb",
        "Ada Lovelace_LATE_12345_67890_06_exercises-2.ipynb",
    ],
)
def test_the_names_of_moodle_and_canvas_are_understood(name):
    lines = re.findall(r'^    r"(.*)"$', assignment.CONFIG, re.MULTILINE)
    found = re.match("".join(lines), f"/x/extracted/{name}")
    assert found.groupdict() == {
        "student_id": "Ada Lovelace",
        "file_id": "06_exercises",
    }


def test_what_cannot_be_read_is_named(tmp_path):
    name = "06_exercises"
    folder = tmp_path / "submitted" / "x" / name
    folder.mkdir(parents=True)
    (folder / "mine.ipynb").write_text("{}")
    explained = grading.explain(tmp_path, name, "x", 1, 9)
    assert explained == (
        "06_exercises.ipynb is missing. Found: mine.ipynb.",
        "",
    )
    (folder / f"{name}.ipynb").write_text("no json")
    said, _ = grading.explain(tmp_path, name, "x", 1, 9)
    assert said.startswith("the file is no notebook (")
    said, _ = grading.explain(tmp_path, name, "x", None, 9)
    assert said == "it took more than 9 seconds in all."


def test_a_course_without_submissions_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no folder .*submitted/\*/06_x"):
        grading.grade(Path(tmp_path), "06_x")
