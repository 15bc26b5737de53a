"""nbgrader releases, grades and answers, whatever is handed in.

One chapter by default; `COURSE_CHAPTERS=all` tries every one, and
`COURSE_CHAPTERS="05 11"` those that it names. It needs the extra `teach`.
"""

import contextlib
import copy
import csv
import html
import json
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace
import zipfile

from course import assignment, build, editions, handouts, mending
import nbformat
import pytest

pytest.importorskip("nbgrader")
from course import grading  # noqa: E402

CHOSEN = os.environ.get("COURSE_CHAPTERS", "01")
SOURCES = build.sources([] if CHOSEN == "all" else CHOSEN.split())
ENDLESS = "\n    while True:\n        pass\n"

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning"),  # nbgrader's own
]


def named(notebook):
    return {mending.name_of(cell): cell for cell in notebook.cells}


def answer_of(exercise, notebook):
    return named(notebook)[f"exercise-{exercise.number}"]


def check_of(exercise, notebook):
    return named(notebook)[f"exercise-{exercise.number}-check"]


def right(chapter, notebook):
    for exercise in chapter.exercises:
        cell = answer_of(exercise, notebook)
        cell.source = exercise.solution if exercise.code else "An answer."


def wrong_in_two(chapter, notebook):
    right(chapter, notebook)
    for exercise in coded(chapter)[:2]:
        slips = chapter.slips.get(exercise.number)
        answer = slips[0][1] if slips else exercise.stub
        answer_of(exercise, notebook).source = answer


def endless(chapter, notebook):
    right(chapter, notebook)
    cell = answer_of(coded(chapter)[0], notebook)
    name = re.search(r"^def (\w+)", cell.source, re.MULTILINE)[1]
    cell.source = f"def {name}(*inputs, **options):{ENDLESS}"


def fatal(chapter, notebook):
    right(chapter, notebook)
    edited(chapter, notebook)
    last = answer_of(coded(chapter)[-1], notebook)
    last.source += "\n\nimport os\nos._exit(0)"


def edited(chapter, notebook):
    for exercise in coded(chapter):
        check_of(exercise, notebook).source = "pass"


def disordered(chapter, notebook):
    """A check deleted, an answer split, a check copied, an answer deleted."""
    right(chapter, notebook)
    first, second, *_, last = coded(chapter)
    cells = notebook.cells
    cells.remove(check_of(first, notebook))
    cells.remove(answer_of(last, notebook))
    answer, check = answer_of(second, notebook), check_of(second, notebook)
    for cell, lines in ((answer, 2), (check, 1)):
        again = copy.deepcopy(cell)
        again["id"] = f"again-{lines}"
        again.source = "\n".join(cell.source.split("\n")[lines:])
        cells.insert(cells.index(cell) + 1, again)
    answer.source = "\n".join(answer.source.split("\n")[:2])


STUDENTS = {
    "right": right,
    "Ada Untouched": lambda chapter, notebook: None,  # a name with a space
    "wrong": wrong_in_two,
    "endless": endless,
    "fatal": fatal,
    "edited": edited,
    "disordered": disordered,
}


def coded(chapter):
    return [x for x in chapter.exercises if x.code]


def hand_in(course, chapter, student, change):
    name = assignment.name_of(chapter)
    path = Path(name) / f"{name}.ipynb"
    notebook = nbformat.read(course / "release" / path, 4)
    change(chapter, notebook)
    handed_in = course / "submitted" / student / path
    handed_in.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, handed_in)


@pytest.fixture(scope="module", params=SOURCES, ids=lambda path: path.stem)
def graded(request, tmp_path_factory):
    """A course of one chapter: its folder, the chapter and the report."""
    course = tmp_path_factory.mktemp("course")
    chapter = editions.read_chapter(request.param)
    assignment.write(course, [chapter], timeout=20)
    name = assignment.name_of(chapter)
    options = ["generate_assignment", name, "--create"]
    assert grading.nbgrader(course, 120, *options) == 0
    for student, change in STUDENTS.items():
        hand_in(course, chapter, student, change)
    before = {x: x.read_bytes() for x in course.glob("submitted/*/*/*")}
    rows = grading.grade(course, name, limit=600)
    after = {x: x.read_bytes() for x in course.glob("submitted/*/*/*")}
    assert after == before
    return course, chapter, {row["student"]: row for row in rows}


def exported(course):
    """The points of each student in `grades.csv`."""
    with (course / "grades.csv").open() as file:
        return {
            x["student_id"]: float(x["score"]) for x in csv.DictReader(file)
        }


def page_of(course, chapter, student):
    """What a page of feedback shows."""
    name = assignment.name_of(chapter)
    page = course / "feedback" / student / name / f"{name}.html"
    return html.unescape(re.sub(r"<[^>]*>", "", page.read_text("utf-8")))


def test_each_gets_the_points_of_what_is_right(graded):
    course, chapter, rows = graded
    points = [x.points for x in coded(chapter)]
    assert rows.keys() == STUDENTS.keys()
    assert {row["of checked"] for row in rows.values()} == {sum(points)}
    wanted = {
        "right": sum(points),
        "Ada Untouched": 0,
        "wrong": sum(points[2:]),
        "endless": sum(points[1:]),
        "fatal": 0,
        "edited": 0,
        "disordered": sum(points[:-1]),
    }
    assert {name: row["checked"] for name, row in rows.items()} == wanted
    assert exported(course) == wanted


def test_the_report_says_what_is_left_to_do(graded):
    course, chapter, rows = graded
    first, second, *_, last = (x.number for x in coded(chapter))
    assert "ended the process" in rows["fatal"]["note"]
    waits = "Answers in words wait for a reader."
    words = any(not x.code for x in chapter.exercises)
    assert rows["right"]["note"] == waits * words
    assert (waits in rows["fatal"]["note"]) == words
    assert rows["Ada Untouched"]["note"] == ""
    assert f"check of exercise {first} was changed" in rows["edited"]["note"]
    for sentence in (
        f"The check of exercise {first} was missing, and was put back.",
        f"The answer of exercise {second} was in 2 cells, which are one now.",
        f"The check of exercise {second} was there 2 times.",
        f"The answer of exercise {last} was missing.",
    ):
        assert sentence in rows["disordered"]["note"]
        assert sentence in page_of(course, chapter, "disordered")
    with (course / f"report_{assignment.name_of(chapter)}.csv").open() as file:
        assert [x["student"] for x in csv.DictReader(file)] == sorted(rows)


def test_everybody_gets_a_page_of_feedback(graded):
    course, chapter, rows = graded
    pages = {x: page_of(course, chapter, x) for x in rows}
    assert "os._exit(0)" in pages["fatal"]
    assert "The checks gave 0 points." in pages["fatal"]
    # A check of an exercise whose answers loop has a limit of its own.
    assert re.search("CellTimeoutError|did not end within", pages["endless"])
    raised = re.compile("^NotSolvedYet: ", re.MULTILINE)  # not only written
    assert raised.search(pages["Ada Untouched"])
    assert not raised.search(pages["right"])
    assert "Before grading" not in pages["right"]


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
    shown = page_of(course, chapter, "wrong")
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
    seeds = [re.findall(r"^ *rng = .*\((\d+)\)$", x, re.M)[-1] for x in checks]
    assert len(seeds) == sum(bool(x.hidden) for x in chapter.exercises)
    assert not any(seed in text for seed in seeds)
    for exercise in chapter.exercises:
        assert not exercise.hidden or exercise.hidden not in text
        for answer in exercise.answers:
            assert answer not in text


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_edition_for_students_runs_from_top_to_bottom(source, tmp_path):
    editions.save(handouts.edition_files("student", tmp_path, source))
    options = "-q -p no:cacheprovider -p course.nbval_plugin --nbval"
    options += " --nbval-current-env --nbval-cell-timeout 600"
    options += " --nbval-sanitize-with course/sanitize.cfg"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), tmp_path],
        capture_output=True,
        text=True,
        cwd=build.FOLDER.parent,
    )
    assert run.returncode == 0, run.stdout[-3000:]


def collected_by():
    """The pattern of a zip's names."""
    lines = re.findall(r'^    r"(.*)"$', assignment.CONFIG, re.MULTILINE)
    return "".join(lines)


@pytest.mark.parametrize(
    "name",
    [
        "Ada Lovelace_4711_assignsubmission_file_/06_exercises.ipynb",
        "Ada Lovelace_4711_assignsubmission_file_06_exercises.ipynb",
        "Ada Lovelace_12345_67890_06_exercises.ipynb",
        "Ada Lovelace_LATE_12345_67890_06_exercises-2.ipynb",
        "Ada Lovelace_4711_assignsubmission_file_/06_exercises (1).ipynb",
        "Ada Lovelace_4711_assignsubmission_file_/06_exercises(12).ipynb",
        "Ada Lovelace_LATE_12345_67890_06_exercises (1)-2.ipynb",
        "Ada Lovelace_4711_assignsubmission_file_/06_exercises - Copy.ipynb",
        "Ada Lovelace_4711_assignsubmission_file_/06_exercises_1.ipynb",
    ],
)
def test_the_names_of_moodle_and_canvas_are_understood(name):
    found = re.match(collected_by(), f"/x/extracted/{name}")
    assert found.groupdict() == {
        "student_id": "Ada Lovelace",
        "file_id": "06_exercises",
    }


@pytest.mark.parametrize(
    "name",
    [
        "ada_lovelace_4711_assignsubmission_file_/06_exercises.ipynb",
        "ada_lovelace_4711_assignsubmission_file_06_exercises.ipynb",
        "ada_lovelace_12345_67890_06_exercises.ipynb",
        "ada_lovelace_LATE_12345_67890_06_exercises (1).ipynb",
    ],
)
def test_a_student_may_have_an_underscore_in_the_name(name):
    found = re.match(collected_by(), f"/x/extracted/all_of_06/{name}")
    assert found.groupdict() == {
        "student_id": "ada_lovelace",
        "file_id": "06_exercises",
    }


def test_what_is_not_collected_is_named_and_equal_names_stop_nobody(tmp_path):
    name = "06_exercises"
    course, inside = tmp_path, "_assignsubmission_file_"
    chapter = small_chapter()
    assignment.write(course, [chapter])
    release_of(course, name)
    archive = course / "downloaded" / name / "archive"
    archive.mkdir(parents=True)
    handed_in = {
        f"Ada Lovelace_4711{inside}/{name}.ipynb": "one",
        f"Ada Lovelace_4799{inside}/{name}.ipynb": "another",
        f"Bo_4712{inside}/{name} (1).ipynb": "bo's",
        f"Bob_4715{inside}/{name}.ipynb": "bob's",
        f"Cy_4713{inside}/my homework.ipynb": "cy's",
        f"Di_4714{inside}/{name} (1).ipynb": "a draft",
        f"Di_4714{inside}/{name}.ipynb": "di's",
    }
    with zipfile.ZipFile(archive / "all.zip", "w") as file:
        for path, text in handed_in.items():
            file.writestr(path, text)
    assert grading.nbgrader(course, 60, "zip_collect", name) == 0
    lies = {
        x.parent.parent.name: x.read_text()
        for x in course.glob(f"submitted/*/{name}/{name}.ipynb")
    }
    assert lies == {
        "Ada Lovelace_4711": "one",
        "Ada Lovelace_4799": "another",
        "Bo": "bo's",
        "Bob": "bob's",
        "Di": "di's",
    }
    log = (course / "nbgrader.log").read_text()
    skipped = re.findall(r"NOT COLLECTED: .*extracted/all/(\w+?)_", log)
    assert skipped == ["Cy", "Di"]
    homework = f"all/Cy_4713{inside}/my homework.ipynb"
    assert grading.uncollected(course, name) == [homework]
    (course / "submitted" / "Bo").rename(course / "Bo")  # and Bob's stays
    found = grading.uncollected(course, name)
    assert found == [f"all/Bo_4712{inside}/{name} (1).ipynb", homework]
    (course / "Bo").rename(course / "submitted" / "Bo")
    # Later one of the two hands in again, and is still told from the other.
    with zipfile.ZipFile(archive / "all.zip", "w") as file:
        path = f"Ada Lovelace_4711{inside}/{name}.ipynb"
        file.writestr(path, "once more")
    shutil.rmtree(course / "downloaded" / name / "extracted")
    again = ["zip_collect", name, "--force"]
    assert grading.nbgrader(course, 60, *again) == 0
    submitted = course.glob(f"submitted/*/{name}/{name}.ipynb")
    found = {x.parent.parent.name: x.read_text() for x in submitted}
    assert found == lies | {"Ada Lovelace_4711": "once more"}


def test_what_cannot_be_read_is_named(tmp_path):
    name = "06_exercises"
    release = editions.notebook([editions.prose("# Exercises")])
    (tmp_path / "mine.ipynb").write_text("{}")
    for text, said in (
        (None, "06_exercises.ipynb is missing. Found: mine.ipynb."),
        ("no json", "the file is no notebook (JSONDecodeError)."),
        ('{"cells": [1], "nbformat": 4, "metadata": {}}', "the file is no"),
        ('{"nbformat": 4, "nbformat_minor": 5}', "the file is no notebook"),
    ):
        if text is not None:
            (tmp_path / f"{name}.ipynb").write_text(text)
        read = grading.read_submission(tmp_path, name, release)
        assert read[:2] == (release, []) and read[2].startswith(said)
    said, _ = grading.explain(release, tmp_path, None, 9)
    assert said == "it took more than 9 seconds in all."


# A course of one small chapter, which imports nothing


def small_chapter():
    solution = "def {0}():\n    ### BEGIN SOLUTION\n    return 1\n    "
    solution += "### END SOLUTION\n"
    exercises = [
        editions.Exercise(
            number,
            "",
            "●",
            asks=f"Write {name}.",
            code=solution.format(name),
            checks=[f"assert {name}() == 1"],
            hidden=f"assert {name}() == solved.{name}()",
        )
        for number, name in ((1, "f"), (2, "g"))
    ]
    for number in (3, 4):
        asks = f"Why {number}?"
        exercises.append(editions.Exercise(number, "", "●●", asks=asks))
    setup = "import numpy as np"
    return editions.Chapter("06_multi_head", "Small", setup, exercises)


def words_elsewhere(chapter, notebook):
    right(chapter, notebook)
    cells = named(notebook)
    third, fourth = cells["exercise-3"], cells["exercise-4"]
    third.source = fourth.source = "*Your answer:*"
    place = notebook.cells.index(third) + 1
    notebook.cells.insert(place, editions.prose("WORDS OF THREE"))
    cells["exercise-4-text"].source += "\n\nWORDS OF FOUR"


def leaves(chapter, notebook):
    """Answers that leave Python, as a script does."""
    right(chapter, notebook)
    for exercise, end in zip(coded(chapter), ("exit()", "quit()"), strict=True):
        answer_of(exercise, notebook).source += f"\n\n{end}"


def first(text):
    """A student whose first answer is a text; `{}` is the right one."""

    def change(chapter, notebook):
        right(chapter, notebook)
        cell = answer_of(coded(chapter)[0], notebook)
        cell.source = text.replace("{}", cell.source)

    return change


def misnamed(chapter, notebook):
    right(chapter, notebook)
    notebook.metadata.name = "another file"


def ends(chapter, notebook):
    right(chapter, notebook)
    for exercise in coded(chapter):
        answer_of(exercise, notebook).source += "\n\nimport os\nos._exit(0)"


def of_windows(chapter, notebook):
    """Each line ends with \\r\\n, and Colab has dropped the names."""
    right(chapter, notebook)
    named(notebook)["exercise-3"].source = "Because\n\nof this."
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "\r\n")
        cell.metadata.pop("nbgrader", None)


def raises(chapter, notebook):
    """An exception without a name and words, then one of too many."""
    right(chapter, notebook)
    nameless = "raise type('', (Exception,), {})()"
    notebook.cells.append(editions.code(nameless))
    answers = [answer_of(x, notebook) for x in coded(chapter)]
    answers[0].source += "\n\nraise ValueError('<b>y' * 10**6)"
    answers[1].source += "\n\n'x' * 30_000_000"


def looks_back(chapter, notebook):
    first(
        "calls = []\n\ndef f():\n    calls.append(0)\n"
        "    if len(calls) > 1:\n        raise RuntimeError('stop')\n"
        "    return 1"
    )(chapter, notebook)
    check = notebook.cells.index(check_of(coded(chapter)[0], notebook))
    notebook.cells.insert(check + 1, editions.code("%tb"))
    notebook.cells.append(editions.code("%history"))


WARNS = """import logging, sys, warnings

def f():
    np.log(np.zeros(2))
    warnings.warn("old", DeprecationWarning)
    logging.warning("logged")
    print("said", file=sys.stderr)
    return 1"""
SHOWS = """{}

from IPython.display import HTML
while True:
    try:
        display(HTML("x" * 10**6))
    except ValueError:
        pass"""
SMALL = {
    "warns": first(WARNS),
    "raises": raises,
    "looks": looks_back,
    "own": first("assert 1 > 2, 'my own test'\n\n{}"),
    "prints": first("def f():\n    while True:\n        print('x' * 999)"),
    "displays": first(SHOWS),
    "imports": first("import no_such_package\n\n{}"),
    # names that the check uses itself
    "names": first(
        "{}\n\nfrom numpy import *\nlist = sum = len = np = checking = 0"
    ),
    "windows": of_windows,
    "endless": first(f"def f():{ENDLESS}"),
    "misnamed": misnamed,
    "ends": ends,
    "words": words_elsewhere,
    "leaves": leaves,
    "function": first("def f():\n    exit()"),
}


def release_of(course, name, *options):
    options = ["generate_assignment", name, "--create", *options]
    assert grading.nbgrader(course, 120, *options) == 0


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small course that was graded: folder, chapter and report."""
    course = tmp_path_factory.mktemp("small")
    chapter = small_chapter()
    assignment.write(course, [chapter], timeout=10)
    name = assignment.name_of(chapter)
    release_of(course, name)
    for student, change in SMALL.items():
        hand_in(course, chapter, student, change)
    file = course / "submitted" / "misnamed" / name / f"{name}.ipynb"
    file.rename(file.with_name("my homework.ipynb"))
    rows = grading.grade(course, name, limit=600)
    return course, chapter, {row["student"]: row for row in rows}


def test_words_in_another_cell_wait_for_a_reader(small):
    course, chapter, rows = small
    note = rows["words"]["note"]
    for number in (3, 4):
        assert f"Exercise {number} has no answer in its cell, but" in note
    assert "Answers in words wait for a reader." in note
    page = page_of(course, chapter, "words")
    assert "WORDS OF THREE" in page and "WORDS OF FOUR" in page
    assert "No response." not in page
    with grading.gradebook_of(course) as gradebook:
        name = assignment.name_of(chapter)
        assert {
            grade.name
            for grade in grading.entries(gradebook, name, "words", "grades")
            if grade.needs_manual_grade
        } == {"exercise-3", "exercise-4"}


def test_an_answer_that_leaves_python_stops_its_cell_alone(small):
    course, chapter, rows = small
    assert rows["leaves"]["checked"] == 10
    assert "SystemExit" in page_of(course, chapter, "leaves")
    assert rows["function"]["checked"] == 5
    assert "Not run" not in rows["leaves"]["note"] + rows["function"]["note"]


def test_a_cell_that_took_too_long_hears_of_the_limit(small):
    course, chapter, rows = small
    limit = "took longer than 10 seconds, which is the limit for one cell"
    assert limit in page_of(course, chapter, "endless")
    note = rows["endless"]["note"]
    assert f"The check of exercise 1 stopped: it {limit}." in note


@pytest.mark.parametrize("student", ["prints", "displays"])
def test_a_loop_that_writes_costs_its_exercise_alone(small, student):
    course, chapter, rows = small
    cell = "check" if student == "prints" else "answer"
    sentence = f"The {cell} of exercise 1 stopped: it wrote more than "
    assert sentence in rows[student]["note"]
    assert rows[student]["checked"] == (5 if cell == "check" else 10)
    name = assignment.name_of(chapter)
    page = course / "feedback" / student / name / f"{name}.html"
    assert page.stat().st_size < 25e6
    assert sentence in page_of(course, chapter, student)


def test_a_right_answer_may_warn(small):
    course, chapter, rows = small
    assert rows["warns"]["checked"] == 10
    assert rows["warns"]["note"] == "Answers in words wait for a reader."
    assert "logged" in page_of(course, chapter, "warns")


def test_an_error_of_any_kind_is_a_short_sentence(small):
    course, chapter, rows = small
    note = rows["raises"]["note"]
    assert "stopped: an error without a name." in note
    assert "The answer of exercise 1 stopped: <b>y<b>y" in note
    assert "The answer of exercise 2 stopped: it wrote more than" in note
    assert len(note) < 2000 and rows["raises"]["checked"] == 10
    name = assignment.name_of(chapter)
    page = course / "feedback" / "raises" / name / f"{name}.html"
    assert page.stat().st_size < 2e6
    assert "stopped: &lt;b&gt;y" in page.read_text("utf-8")


def test_nobody_reads_a_hidden_check_on_the_page(small):
    course, chapter, rows = small
    assert rows["looks"]["checked"] == 5
    page = page_of(course, chapter, "looks")
    assert page.count("This showed a hidden check, and was left out.") == 2
    for secret in (
        "hidden_check",
        "SimpleNamespace",
        "default_rng",
        "solved.f",
    ):
        assert secret not in page


def test_an_assertion_of_ones_own_is_named(small):
    _, _, rows = small
    note = rows["own"]["note"]
    assert "The answer of exercise 1 stopped: my own test." in note
    assert rows["own"]["checked"] == 5


def test_what_cannot_be_graded_stops_no_other(tmp_path, monkeypatch):
    """Nor the report, whose error says who was not graded."""
    for student in ("Ada", "Bob"):
        (tmp_path / "submitted" / student / "06").mkdir(parents=True)

    def fail_for_ada(course, name, student, *_):
        return student != "Ada" or 1 / 0

    for name, stand_in in {
        "read_release": lambda *_: None,
        "grade_student": fail_for_ada,
        "read_grades": lambda *_: [{"student": "Bob"}],
        "nbgrader": lambda *_: 0,
        "unreleased": lambda *_: "",
        "uncollected": lambda *_: [],
    }.items():
        monkeypatch.setattr(grading, name, stand_in)
    with pytest.raises(RuntimeError, match="failed to autograde Ada. "):
        grading.grade(tmp_path, "06")
    assert "Bob" in (tmp_path / "report_06.csv").read_text()
    assert "ZeroDivisionError" in (tmp_path / "nbgrader.log").read_text()


@pytest.mark.parametrize("spoilt", ["metadata", "surrogate"])
def test_a_notebook_that_lacks_a_little_is_read(spoilt, tmp_path):
    cell = {"cell_type": "code", "source": "x = 1", "outputs": []}
    cell |= {"execution_count": None}
    made = {"cells": [cell], "nbformat": 4, "nbformat_minor": 4}
    if spoilt == "surrogate":
        cell |= {"source": "x = 1  # \ud83d", "metadata": {}}
        made["metadata"] = {}
    (tmp_path / "06.ipynb").write_text(json.dumps(made))
    release = editions.notebook([editions.prose("# Exercises")])
    found, _, why = grading.read_submission(tmp_path, "06", release)
    assert why == "" and "x = 1" in found.cells[0].source
    nbformat.write(found, tmp_path / "again.ipynb")


def test_a_package_that_is_not_there_is_named_and_those_that_are(small):
    course, chapter, rows = small
    note = rows["imports"]["note"]
    sentence = "The answer of exercise 1 stopped: No module named 'no_such_"
    assert sentence in note and "may import d2l_attention, Keras" in note
    assert note.count("exercise 1") == 1  # what its check misses is the same
    assert rows["imports"]["checked"] == 5
    page = html.unescape(page_of(course, chapter, "imports"))
    assert sentence in page and "may import d2l_attention, Keras" in page


def test_names_that_a_student_gave_away_cost_no_point(small):
    _, _, rows = small
    assert rows["names"]["checked"] == 10
    waits = "Answers in words wait for a reader."
    assert rows["names"]["note"] == waits


def test_lines_of_windows_are_lines(small):
    course, chapter, rows = small
    assert rows["windows"]["checked"] == 10
    assert "another assignment" not in rows["windows"]["note"]
    assert mending.UNNAMED in rows["windows"]["note"]
    assert rows["windows"]["read"] == "waiting"
    assert "Because" in page_of(course, chapter, "windows")


def test_a_page_calls_exercises_by_their_numbers(small):
    course, chapter, rows = small
    name = assignment.name_of(chapter)
    page = course / "feedback" / "words" / name / f"{name}.html"
    page = " ".join(page.read_text("utf-8").split())
    assert "Test cell" not in page and "Grade cell" not in page
    for number in (1, 2):
        assert f">Exercise {number}</a> (Score: 5.0 / 5.0)" in page
        assert f"Check of exercise {number}" in page
    for number in (3, 4):
        assert f">Exercise {number}</a> (waiting for a reader)" in page
    assert page.count("Waiting for a reader") == 2
    assert "Score: 0.0 / 10.0" not in page


def test_a_file_of_another_name_hears_what_to_do(small):
    course, chapter, rows = small
    page = page_of(course, chapter, "misnamed")
    assert "Your file must be called 06_exercises.ipynb" in page
    assert "Restart Kernel" not in page
    assert "Found: my homework.ipynb" in rows["misnamed"]["note"]


def test_the_cell_that_ended_its_process_is_named(small):
    course, chapter, rows = small
    sentence = "The answer of exercise 1 ended the process in which it ran."
    assert sentence in rows["ends"]["note"]
    page = page_of(course, chapter, "ends")
    assert sentence in page and "os._exit(0)" in page


def test_the_report_tells_what_was_not_graded_as_it_is_now(small, capsys):
    """A new file, and a new release, are not graded until one says so."""
    course, chapter, _ = small
    name = assignment.name_of(chapter)
    assert grading.unreleased(course, name) == ""
    hand_in(course, chapter, "leaves", right)
    rows = grading.grade(course, name, students=[])
    notes = {row["student"]: row["note"] for row in rows}
    other = "The file that lies in submitted is not the one that was graded"
    assert other in notes["leaves"]
    assert other not in notes["words"] + notes["function"]

    source = course / "source" / name / f"{name}.ipynb"
    notebook = nbformat.read(source, 4)
    cells = named(notebook)
    cells["exercise-1-check"].source += "\nassert f() < 2"
    cells["exercise-2-check"].metadata.nbgrader.points = 7
    cells["exercise-3-text"].source += "\n\nAnd when?"
    cells["exercise-3"].source = "Another answer of the teacher."
    nbformat.write(notebook, source)
    capsys.readouterr()
    rows = grading.grade(course, name, students=["leaves"])
    said = capsys.readouterr().out
    assert "is not what was released" in said
    assert f"nbgrader generate_assignment {name} --create --force" in said
    for part in (
        "The check of exercise 1",
        "The check of exercise 2",
        "The text of exercise 3",
    ):
        assert part in said
    assert "answer of" not in said
    assert {row["of checked"] for row in rows} == {10}

    release_of(course, name, "--force")
    assert grading.unreleased(course, name) == ""
    rows = grading.grade(course, name, students=["leaves"])
    notes = {row["student"]: row["note"] for row in rows}
    earlier = "Graded by an earlier release"
    assert earlier in notes["words"] and earlier not in notes["leaves"]
    assert "The check of exercise 1 was released anew" in notes["leaves"]
    assert "was changed" not in notes["leaves"]
    assert {row["of checked"] for row in rows} == {12}


@pytest.fixture
def gradebook(monkeypatch):
    """A gradebook of one student: the lists of the grades and the comments."""
    book = {"grades": [], "comments": []}
    opened = SimpleNamespace(
        db=SimpleNamespace(commit=lambda: None),
        find_assignment=lambda name: SimpleNamespace(
            max_code_score=5, max_written_score=7
        ),
    )
    for name, stand_in in {
        "gradebook_of": lambda course: contextlib.nullcontext(opened),
        "entries": lambda gradebook, name, student, kind: book[kind],
        "graded_notebook": lambda *_: None,
        "state": lambda *_: dict.fromkeys(grading.OLD),
    }.items():
        monkeypatch.setattr(grading, name, stand_in)
    return book


def test_one_answer_in_words_that_waits_is_enough(gradebook):
    for waits in (False, True, False):
        grade = {"cell_type": "markdown", "needs_manual_grade": waits}
        gradebook["grades"].append(SimpleNamespace(score=2, **grade))
    (row,) = grading.read_grades("course", "06", ["Ada"])
    assert row["read"] == 6 and row["checked"] == 0
    assert "Answers in words wait for a reader." in row["note"]
    gradebook["grades"][1].needs_manual_grade = False
    (row,) = grading.read_grades("course", "06", ["Ada"])
    assert "wait" not in row["note"] and row["read"] == 6
    gradebook["grades"][:] = [SimpleNamespace(score=0, **grade)]
    for waits, read in ((False, 0), (True, "waiting")):
        gradebook["grades"][0].needs_manual_grade = waits
        (row,) = grading.read_grades("course", "06", ["Ada"])
        assert row["read"] == read


def test_a_changed_answer_loses_what_a_reader_gave(gradebook, monkeypatch):
    def handed_in(*answers):
        entry = {"solution": True, "locked": False}
        cells = [
            editions.prose(x, nbgrader={**entry, "grade_id": f"exercise-{i}"})
            for i, x in enumerate(answers, 1)
        ]
        return editions.notebook(cells)

    before = handed_in("The same.", "The old one.")
    monkeypatch.setattr(grading, "graded_notebook", lambda *_: before)
    for name in ("exercise-1", "exercise-2"):
        gradebook["grades"].append(SimpleNamespace(name=name, manual_score=3))
        comment = SimpleNamespace(name=name, manual_comment="Good.")
        gradebook["comments"].append(comment)
    now = handed_in("The same.", "The new one.")
    assert grading.forget("course", "06", "Ada", now) == {"exercise-1"}
    assert [x.manual_score for x in gradebook["grades"]] == [3, None]
    assert [x.manual_comment for x in gradebook["comments"]] == ["Good.", None]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_notebook_is_read_in_every_encoding_of_json(tmp_path, encoding):
    release = editions.notebook([editions.prose("# Übungen")])
    text = nbformat.writes(release)
    (tmp_path / "06_exercises.ipynb").write_text(text, encoding)
    read, _, why = grading.read_submission(tmp_path, "06_exercises", release)
    assert (read.cells, why) == (release.cells, "")


def give(course, chapter, student, exercise, points):
    """Points and a comment, as nbgrader's page for reading gives them."""
    name = assignment.name_of(chapter)
    cell = f"exercise-{exercise.number}"
    with grading.gradebook_of(course) as gradebook:
        grade = gradebook.find_grade(cell, name, name, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        comment = gradebook.find_comment(cell, name, name, student)
        comment.manual_comment = f"{points} points for this."
        gradebook.db.commit()


@pytest.mark.parametrize("graded", SOURCES[:1], indirect=True)
def test_a_second_hand_in_forgets_the_first_and_keeps_what_was_read(graded):
    """Report, grades and feedback agree, whatever was handed in and read."""
    course, chapter, first = graded
    name = assignment.name_of(chapter)
    words = [x for x in chapter.exercises if not x.code]
    full = sum(x.points for x in coded(chapter))

    def grade(*students):
        rows = grading.grade(course, name, 600, students)
        assert [row["student"] for row in rows] == sorted(STUDENTS)
        assert exported(course) == {
            row["student"]: row["checked"]
            + (0 if row["read"] == "waiting" else row["read"])
            for row in rows
        }
        return {row["student"]: row for row in rows}

    def new_answer(chapter, notebook):
        right(chapter, notebook)
        answer_of(words[1], notebook).source = "Another answer."

    def new_and_fatal(chapter, notebook):
        fatal(chapter, notebook)
        answer_of(words[1], notebook).source = "Another answer."

    give(course, chapter, "right", words[0], 7)
    give(course, chapter, "right", words[1], 4)
    rows = grade()  # nobody: only what was read
    assert (rows["right"]["read"], rows["right"]["note"]) == (11, "")
    assert "4 points for this." in page_of(course, chapter, "right")

    hand_in(course, chapter, "right", new_and_fatal)
    hand_in(course, chapter, "wrong", right)
    hand_in(course, chapter, "disordered", lambda *_: None)
    page = f"submitted/disordered/{name}/{name}.ipynb"
    (course / page).write_text("no notebook")
    rows = grade("right", "wrong", "disordered")
    assert (rows["right"]["checked"], rows["right"]["read"]) == (0, 7)
    assert "ended the process" in rows["right"]["note"]
    assert "wait for a reader" in rows["right"]["note"]
    shown = page_of(course, chapter, "right")
    assert "7 points for this." in shown and "4 points" not in shown
    assert "Another answer." in shown  # and can be read
    assert rows["wrong"]["checked"] == full
    assert rows["disordered"]["checked"] == 0
    assert "the file is no notebook" in rows["disordered"]["note"]
    assert "no notebook" in page_of(course, chapter, "disordered")
    for student in ("Ada Untouched", "endless", "fatal", "edited"):
        assert rows[student] == first[student]

    hand_in(course, chapter, "right", new_answer)
    rows = grade("right")
    assert (rows["right"]["checked"], rows["right"]["read"]) == (full, 7)
    assert rows["right"]["note"] == "Answers in words wait for a reader."
    with grading.gradebook_of(course) as gradebook:
        unread = [
            grade.name
            for grade in grading.entries(gradebook, name, "right", "grades")
            if grade.needs_manual_grade
        ]
    assert unread == [f"exercise-{words[1].number}"]
    assert not list(course.glob("mended-*"))


@pytest.mark.parametrize("graded", SOURCES[:1], indirect=True)
def test_a_step_that_nbgrader_fails_to_do_is_said(graded):
    course, chapter, _ = graded
    config = course / "nbgrader_config.py"
    broken = '\nc.GenerateFeedback.preprocessors = ["not.there"]\n'
    config.write_text(config.read_text("utf-8") + broken, "utf-8")
    (course / "grades.csv").unlink()
    (course / "grades.csv").mkdir()
    with pytest.raises(RuntimeError, match="to generate_feedback, export. The"):
        grading.grade(course, assignment.name_of(chapter), students=[])


def test_who_handed_in_nothing_and_what_was_not_released_is_named(tmp_path):
    (tmp_path / "submitted" / "ada" / "06_x").mkdir(parents=True)
    with pytest.raises(ValueError, match="^bob handed in nothing. .*: ada.$"):
        grading.grade(tmp_path, "06_x", students=["ada", "bob"])
    with pytest.raises(ValueError, match="`nbgrader generate_assignment 06_x"):
        grading.grade(tmp_path, "06_x")
    assert not (tmp_path / "gradebook.db").exists()


def test_a_report_for_one_student_is_refused(tmp_path, monkeypatch, capsys):
    options = ["--report", "--student", "ada"]
    arguments = ["grading.py", str(tmp_path), "06_exercises", *options]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit):
        grading.main()
    assert "--report grades nobody" in capsys.readouterr().err


def test_a_folder_or_a_name_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="There is no folder .*/nowhere"):
        grading.grade(tmp_path / "nowhere", "06_exercises")
    (tmp_path / "submitted" / "ada" / "06_exercises").mkdir(parents=True)
    with pytest.raises(ValueError, match="These are: 06_exercises."):
        grading.grade(tmp_path, "06")


def test_a_course_without_submissions_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no folder .*submitted/\*/06_x"):
        grading.grade(Path(tmp_path), "06_x")
