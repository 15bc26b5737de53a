"""Grade the submissions of one assignment with nbgrader.

    python -m course.grading COURSE NAME [--student STUDENT | --report]

A submission lies in `COURSE/submitted/STUDENT/NAME/NAME.ipynb`. nbgrader
grades a copy of it, in which the cells of the assignment were put right
(`mending.py`), writes its feedback to `COURSE/feedback` and exports the
grades. What nbgrader 0.9 lacks: a submission that kills its kernel, or takes
too long as a whole, stops no other, its answers in words can be read, and its
student learns in which cell it happened. Grading again forgets what an earlier
submission got, except what a reader gave for an answer that is still the same.

The code of students runs on this machine. Run this in a container, or as a
user who owns nothing.
"""

import argparse
import copy
import csv
import hashlib
import html
import json
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import traceback

from course import assignment, editions, mending
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
import nbformat
from nbgrader.api import Gradebook, MissingEntry
from traitlets.config import PyFileConfigLoader

LIMITS = Path(__file__).with_name("kernel_limits.py")
# `exit` of a kernel ends the kernel; in a script it is an exception, and here.
# The first argument is nbconvert's own, which a list of others replaces.
KERNEL = [
    "--HistoryManager.hist_file=:memory:",
    "--IPKernelApp.capture_fd_output=False",  # native lines go to the log
    "--IPKernelApp.exec_lines=import sys; exit = quit = sys.exit; del sys; "
    f"exec(open({str(LIMITS)!r}, encoding='utf-8').read(), {{}})",
]
WAITING = "waiting"  # for points, words that nobody has read
LIMIT = 1800  # seconds for one submission, and for all pages of feedback
# What is no news: a check says no, and a sentence says that the time was over.
NO = ("AssertionError", "NotSolvedYet")
INTERRUPTED = "KeyboardInterrupt"
OLD = {
    "file": "The file that lies in submitted is not the one that was graded. "
    "Grade this student again.",
    "release": "Graded by an earlier release. Grade this student again.",
}
STOPPED = """**The checks gave 0 points.** Your notebook could not be run: {why}

{cell}

{remedy} Then ask whether you may hand it in again."""
REMEDY = """Open your notebook, choose *Restart Kernel and Run All Cells*, and
see how far it gets."""


def grade(course, name, limit=LIMIT, students=None):
    """Grade an assignment; write feedback, `grades.csv` and a report.

    Args:
        course: Path of the course folder.
        name: Str, the assignment, such as `06_exercises`.
        limit: Positive int, seconds for one submission.
        students: List of str, whom to grade; all who handed in by default.
            The report is about all of them anyway.

    Returns:
        List of dict, a row of the report for each student.

    Raises:
        ValueError: If there is no such submission, or no release.
        RuntimeError: If nbgrader could not do a step. The report is there.
    """
    course = Path(course)
    if not course.is_dir():
        raise ValueError(f"There is no folder {course}.")
    handed_in = sorted(
        path.parent.name for path in course.glob(f"submitted/*/{name}")
    )
    if not handed_in:
        names = {path.name for path in course.glob("submitted/*/*/")}
        raise ValueError(
            f"There is no folder {course}/submitted/*/{name}. "
            + f"These are: {', '.join(sorted(names))}." * bool(names)
        )
    students = handed_in if students is None else students
    missing = [student for student in students if student not in handed_in]
    if missing:
        raise ValueError(
            f"{', '.join(missing)} handed in nothing. These did: "
            f"{', '.join(handed_in)}."
        )
    release = read_release(course, name)
    failed = []
    for student in students:
        try:
            done = grade_student(course, name, student, release, limit)
        except Exception:  # whatever a student may hand in, stops no other
            done = False
            with (course / "nbgrader.log").open("a", encoding="utf-8") as log:
                traceback.print_exc(file=log)
        if done:
            print(f"{student}: graded")
        else:
            failed.append(f"autograde {student}")
    rows = read_grades(course, name, handed_in)
    report = course / f"report_{name}.csv"
    write_report(report, rows)
    for step in (
        ["generate_feedback", name, "--force"],
        ["export", "--to", "grades.csv"],
    ):
        if nbgrader(course, LIMIT, *step) != 0:
            failed.append(step[0])
    edited = unreleased(course, name)
    if edited:
        print(edited)
    skipped = uncollected(course, name)
    if skipped:
        print(
            f"In {course}/downloaded/{name}/extracted, but in no folder of a "
            f"student: {', '.join(skipped)}. Copy these by hand."
        )
    if failed:
        raise RuntimeError(
            f"nbgrader failed to {', '.join(failed)}. The end of "
            f"{course / 'nbgrader.log'} says why. The grades are in {report}."
        )
    return rows


def read_release(course, name):
    """The notebook that students were given.

    Raises:
        ValueError: If nbgrader has not made it yet.
    """
    path = course / "release" / name / f"{name}.ipynb"
    try:
        if not path.exists() or not (course / "gradebook.db").exists():
            raise MissingEntry
        with gradebook_of(course) as gradebook:
            gradebook.find_assignment(name)
    except MissingEntry:
        raise ValueError(
            f"{name} was not released. In {course}, call "
            f"`nbgrader generate_assignment {name} --create` first."
        ) from None
    return nbformat.read(path, as_version=4)


def gradebook_of(course):
    return Gradebook(f"sqlite:///{course / 'gradebook.db'}")


def grade_student(course, name, student, release, limit):
    """Grade one submission; whether nbgrader did.

    What cannot be run is not run: its checks give nothing, and its answers in
    words wait for a reader.
    """
    submitted = course / "submitted" / student / name
    notebook, mended, why = read_submission(submitted, name, release)
    same = forget(course, name, student, notebook)
    graded = {"mended": mended, "why": ""} | state(course, name, student)
    if why:
        graded["remedy"] = (
            f"Your file must be called {name}.ipynb; rename it, if it is the "
            "right one. See whether Jupyter opens it."
        )
    with tempfile.TemporaryDirectory(prefix="mended-", dir=course) as steps:
        folder = Path(steps) / student / name
        path = folder / f"{name}.ipynb"
        options = ["autograde", name, "--student", student, "--force"]
        options.append(
            f"--CourseDirectory.submitted_directory={Path(steps).name}"
        )
        options += [f"--Execute.extra_arguments={x}" for x in KERNEL]
        ignored = shutil.ignore_patterns(path.name)
        shutil.copytree(
            submitted, folder, ignore=ignored, ignore_dangling_symlinks=True
        )
        cell = ""
        if not why:
            nbformat.write(noted(notebook, graded), path)
            ended = nbgrader(course, limit, *options)
            if ended != 0:
                why, cell = explain(notebook, folder, ended, limit)
        if why:
            graded["why"] = why
            nbformat.write(noted(notebook, graded, cell), path)
            ended = nbgrader(course, limit, *options, "--Execute.enabled=False")
    settle(course, name, student, same, ran=not why)
    tell(course, name, student)
    return ended == 0


def tell(course, name, student):
    """Say on top of what was graded why cells stopped, if some did."""
    notebook = graded_notebook(course, name, student)
    if notebook and (said := stopped(notebook)):
        notebook.metadata.graded["stopped"] = said
        text = "**These cells stopped before their end.**\n\n" + listed(said)
        notebook.cells.insert(0, editions.prose(text))
        path = graded_path(course, name, student)
        path.unlink()  # nbgrader lets nobody write it
        nbformat.write(notebook, path)


def stopped(notebook):
    """A sentence for each exercise of which a cell stopped, and why.

    A check that says no to an answer stops no cell.
    """
    said = {}
    for place, cell in enumerate(notebook.cells):
        graded = (cell.metadata.get("nbgrader") or {}).get("grade")
        for output in cell.get("outputs", []):
            name = output.get("ename")
            if output.output_type != "error" or name == INTERRUPTED:
                continue
            if graded and name in NO:
                continue
            called = _called(notebook.cells[: place + 1])
            why = output.evalue.strip() or name or "an error without a name"
            why = why.splitlines()[0]
            why = why if len(why) <= 200 else f"{why[:200]} …"
            sentence = f"{called} stopped: {why.rstrip('.')}."
            if name == "ModuleNotFoundError":
                sentence += f" {assignment.PACKAGES}"
            exercise = re.search(r"exercise \d+", called)
            # What its check misses then is the same.
            said.setdefault(exercise[0] if exercise else called, sentence)
    return [*said.values()]


def listed(sentences):
    """Sentences as a list in Markdown; what they quote is no HTML."""
    return "\n".join(f"- {html.escape(x, quote=False)}" for x in sentences)


def read_submission(folder, name, release):
    """A submission, mended.

    Args:
        folder: Path of the folder that the student handed in.
        name: Str, the assignment.
        release: The notebook that students were given.

    Returns:
        The notebook, what was mended, and why it cannot be read, or "". Of
        what cannot be read nothing counts: it is the release.
    """
    path = folder / f"{name}.ipynb"
    if not path.exists():
        found = ", ".join(sorted(x.name for x in folder.iterdir())) or "nothing"
        return release, [], f"{path.name} is missing. Found: {found}."
    try:
        content = path.read_bytes()
        found = json.loads(content.decode(json.detect_encoding(content)))
        for part in (found, *found.get("cells", [])):
            part.setdefault("metadata", {})  # which some programs leave out
        handed_in = nbformat.reads(json.dumps(found), as_version=4)
        return *mending.mend(handed_in, release), ""
    except Exception as error:  # whatever a student may hand in
        why = f"the file is no notebook ({type(error).__name__})."
        return release, [], why


def state(course, name, student):
    """What is graded now: dict with a sum of the file and of the release."""
    path = course / "submitted" / student / name / f"{name}.ipynb"
    with gradebook_of(course) as gradebook:
        notebook = gradebook.find_notebook(name, name)
        cells = sorted([x.name, x.source] for x in notebook.source_cells)
        points = sorted([x.name, x.max_score] for x in notebook.grade_cells)
    release = json.dumps([cells, points]).encode()
    file = path.read_bytes() if path.exists() else b""
    return {
        "file": hashlib.sha1(file).hexdigest(),
        "release": hashlib.sha1(release).hexdigest(),
    }


def unreleased(course, name):
    """What a teacher edited in `source` and did not release: a text, or ""."""
    path = course / "source" / name / f"{name}.ipynb"
    if not path.exists():
        return ""
    cells = nbformat.read(path, as_version=4).cells
    cells = {mending.name_of(x): x for x in cells if mending.name_of(x)}
    with gradebook_of(course) as gradebook:
        notebook = gradebook.find_notebook(name, name)
        texts = {x.name: x.source.strip() for x in notebook.source_cells}
        points = {x.name: x.max_score for x in notebook.grade_cells}
    edited = [
        mending.called(cell)
        for key, cell in cells.items()
        if key not in texts
        or _given(cell) not in (None, texts[key])
        or cell.metadata.nbgrader.get("points", 0) != points.get(key, 0)
    ]
    edited += [f"Cell '{key}'" for key in texts if key not in cells]
    if not edited:
        return ""
    return (
        f"{path} is not what was released. Edited: {'; '.join(edited)}. The "
        "release was graded, without these edits. To make them count, call "
        f"`nbgrader generate_assignment {name} --create --force` in {course}, "
        "hand the new release out, and grade everybody again."
    )


def uncollected(course, name):
    """Notebooks of a zip that became no submission: list of paths, as str."""
    folder = course / "downloaded" / name / "extracted"
    if not folder.exists():
        return []
    config = PyFileConfigLoader("nbgrader_config.py", str(course)).load_config()
    pattern = config.FileNameCollectorPlugin.get("named_regexp", "")
    students = {path.parent.name for path in course.glob(f"submitted/*/{name}")}
    found = []
    for path in sorted(folder.rglob("*.ipynb")):
        match = re.match(pattern, str(path.resolve())) if pattern else None
        student = match and match.groupdict().get("student_id")
        if not any(
            x == student or x.startswith(f"{student}_") for x in students
        ):
            found.append(str(path.relative_to(folder)))
    return found


def _given(cell):
    """What nbgrader makes of a cell of `source`; None if that is its stub."""
    if mending.is_locked(cell):
        return cell.source.strip()
    if editions.SOLUTION.search(cell.source):
        return editions.stub(cell.source).strip()
    return None


def noted(notebook, graded, cell=""):
    """A notebook that says on top what was mended, and why it was not run."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata.graded = graded
    mended, why = graded["mended"], graded["why"]
    parts = []
    if why:
        cell = textwrap.indent(cell, "    ")
        remedy = graded.get("remedy", REMEDY)
        parts.append(STOPPED.format(why=why, cell=cell, remedy=remedy))
    if mended:
        parts.append("**Before grading, cells were put right.**")
        parts.append(listed(mended))
    if parts:
        notebook.cells.insert(0, editions.prose("\n\n".join(parts)))
    return notebook


def answers(notebook):
    """Dict of a cell's name → the answer that it is, or that it checks."""
    found, answer = {}, ""
    for cell in notebook.cells:
        name = mending.name_of(cell)
        if name:
            locked = mending.is_locked(cell)
            answer = answer if locked else cell.source.strip()
            found[name] = answer
    return found


def forget(course, name, student, notebook):
    """Clear what an earlier submission got; what a reader gave stays, if the
    answer is the same.

    Returns:
        The names of cells with the same answer as in the earlier submission.
    """
    last = graded_notebook(course, name, student)
    old = answers(last) if last else {}
    new = answers(notebook)
    same = {cell for cell in new if old.get(cell) == new[cell]}
    with gradebook_of(course) as gradebook:
        for grade in entries(gradebook, name, student, "grades"):
            grade.auto_score, grade.needs_manual_grade = 0, False
            if last and grade.name not in same:
                grade.manual_score = grade.extra_credit = None
        for comment in entries(gradebook, name, student, "comments"):
            if last and comment.name not in same:
                comment.manual_comment = None
        gradebook.db.commit()
    return same


def settle(course, name, student, same, ran):
    """Tell nbgrader what it does not see after it graded.

    An answer that was read need not be read again if it is the `same`, and a
    check that was not run has passed nothing.
    """
    with gradebook_of(course) as gradebook:
        for grade in entries(gradebook, name, student, "grades"):
            if grade.manual_score is not None and grade.name in same:
                grade.needs_manual_grade = False
            if not ran and grade.cell_type == "code":
                grade.auto_score = 0
        gradebook.db.commit()


def entries(gradebook, name, student, kind):
    """The grades, or the comments, of a submission; none if there is none."""
    try:
        submission = gradebook.find_submission(name, student)
    except MissingEntry:
        return []
    return [x for part in submission.notebooks for x in getattr(part, kind)]


def graded_notebook(course, name, student):
    """The notebook as nbgrader graded it; None if it has not."""
    path = graded_path(course, name, student)
    return nbformat.read(path, as_version=4) if path.exists() else None


def graded_path(course, name, student):
    return course / "autograded" / student / name / f"{name}.ipynb"


def nbgrader(course, limit, *arguments):
    """Run a command of nbgrader; its exit status, None if it took too long.

    What it started, a kernel above all, ends with it.
    """
    log = course / "nbgrader.log"
    # nbgrader calls other programs of its environment by name.
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    with log.open("a", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "nbgrader", *arguments],
            cwd=course,
            env=os.environ | {"PATH": os.pathsep.join(path)},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _end(process):
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.kill()
    process.wait()


def explain(notebook, folder, ended, limit):
    """Why a submission could not be run: a sentence, and a cell or ""."""
    if ended is None:
        return f"it took more than {limit} seconds in all.", ""
    place = where_it_died(copy.deepcopy(notebook), folder)
    if place is None:
        return "nbgrader stopped. Its log, nbgrader.log, says why.", ""
    name = _called(notebook.cells[: place + 1])
    sentence = f"{name} ended the process in which it ran."
    return sentence, notebook.cells[place].source


def _called(cells):
    """What the last of some cells is called in a sentence."""
    above = [cell for cell in cells if mending.name_of(cell)]
    if not above:
        return "A cell at the top"
    name = mending.called(above[-1])
    if above[-1] is cells[-1]:
        return name
    return f"A cell below {name[0].lower()}{name[1:]}"


def where_it_died(notebook, folder, timeout=120):
    """The place of the cell that killed its kernel; None if none did."""
    last = []
    client = NotebookClient(
        notebook,
        timeout=timeout,
        allow_errors=True,
        interrupt_on_timeout=True,
        extra_arguments=KERNEL,
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: last.append(cell_index),
    )
    try:
        client.execute()
    except DeadKernelError:
        return last[-1]
    return None


def read_grades(course, name, students):
    """The rows of the report, from nbgrader's gradebook.

    Args:
        course: Path of the course folder.
        name: Str, the assignment.
        students: List of str.
    """
    rows = []
    with gradebook_of(course) as gradebook:
        assignment = gradebook.find_assignment(name)
        for student in students:
            row = {"student": student, "checked": 0.0, "read": 0.0}
            row["of checked"] = assignment.max_code_score
            row["of read"] = assignment.max_written_score
            waits = False
            for grade in entries(gradebook, name, student, "grades"):
                words = grade.cell_type == "markdown"
                row["read" if words else "checked"] += grade.score
                waits |= words and grade.needs_manual_grade
            notebook = graded_notebook(course, name, student)
            said = notebook.metadata.get("graded", {}) if notebook else {}
            why = said.get("why")
            notes = [why and f"Not run: {why}", *said.get("mended", [])]
            notes.append("" if notebook else "Not graded.")
            notes += said.get("stopped", [])
            now = state(course, name, student)
            notes += [OLD[x] for x in OLD if said.get(x, now[x]) != now[x]]
            notes.append("Answers in words wait for a reader." * waits)
            row["note"] = " ".join(filter(None, notes))
            if waits and not row["read"]:
                row["read"] = WAITING
            rows.append(row)
    return rows


def write_report(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course.grading", description=__doc__.split("\n")[0]
    )
    parser.add_argument("course", type=editions.path, help="the course folder")
    parser.add_argument("name", help="the assignment, such as 06_exercises")
    parser.add_argument(
        "--student",
        action="append",
        help="grade this one alone; may be given more than once",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="grade nobody: write feedback and grades after reading",
    )
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help="seconds a submission (1800)"
    )
    options = parser.parse_args()
    if options.report and options.student:
        parser.error(
            "--report grades nobody. Leave --student out; it is about all."
        )
    students = [] if options.report else options.student
    try:
        rows = grade(options.course, options.name, options.limit, students)
    except (RuntimeError, ValueError) as error:
        sys.exit(str(error))
    for row in rows:
        read = row["read"]
        read = read if read == WAITING else f"{read:g} of {row['of read']:g}"
        print(
            "{student:20} {checked:g} of {of checked:g}, ".format(**row)
            + f"{read}  {row['note']}"
        )


if __name__ == "__main__":
    main()
