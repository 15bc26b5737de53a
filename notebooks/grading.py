"""Grade all submissions of one assignment with nbgrader.

    python notebooks/grading.py COURSE NAME

A submission lies in `COURSE/submitted/STUDENT/NAME/NAME.ipynb`. nbgrader
grades it, writes its feedback to `COURSE/feedback` and exports the grades.
This adds what nbgrader 0.9 lacks: a submission that kills its kernel, or takes
too long as a whole, stops no other; it is named in the report, and its student
gets a page that says in which cell it happened.

The code of students runs on this machine. Run this in a container, or as a
user who owns nothing.
"""

import argparse
import csv
import html
import os
from pathlib import Path
import signal
import subprocess
import sys

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
import nbformat
from nbgrader.api import Gradebook

LIMIT = 1800  # seconds for one submission
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{name}: not graded</title>
<style>body {{ font: 16px/1.5 sans-serif; max-width: 40em; margin: 2em auto;
padding: 0 1em; }} pre {{ background: #f4f4f4; padding: .5em; }}</style>
<h1>{name}: 0 points</h1>
<p>Your notebook could not be graded: {reason}</p>
{cell}
<p>Open your notebook, choose <i>Restart Kernel and Run All Cells</i>, and see
how far it gets. Then ask whether you may hand it in again.</p>
</html>
"""


def grade(course, name, limit=LIMIT):
    """Grade an assignment; write feedback, `grades.csv` and a report.

    Args:
        course: Path of the course folder.
        name: Str, the assignment, such as `06_exercises`.
        limit: Positive int, seconds for one submission.

    Returns:
        List of dict, a row of the report for each student.

    Raises:
        ValueError: If there is no submission.
    """
    course = Path(course)
    students = sorted(
        path.parent.name for path in course.glob(f"submitted/*/{name}")
    )
    if not students:
        raise ValueError(f"There is no folder {course}/submitted/*/{name}.")
    failed = {}
    for student in students:
        options = [name, "--student", student, "--create", "--force"]
        ended = nbgrader(course, limit, "autograde", *options)
        print(f"{student}: {'graded' if ended == 0 else 'not graded'}")
        if ended != 0:
            failed[student] = explain(course, name, student, ended, limit)
    if len(failed) < len(students):
        nbgrader(course, limit, "generate_feedback", name, "--force")
    for student, (reason, cell) in failed.items():
        write_page(course, name, student, reason, cell)
    nbgrader(course, limit, "export", "--to", "grades.csv")
    rows = read_grades(course, name, students, failed)
    write_report(course / f"report_{name}.csv", rows)
    return rows


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


def explain(course, name, student, ended, limit):
    """Why a submission could not be graded: a sentence, and a cell or ""."""
    if ended is None:
        return f"it took more than {limit} seconds in all.", ""
    path = course / "submitted" / student / name / f"{name}.ipynb"
    if not path.exists():
        found = sorted(x.name for x in path.parent.iterdir())
        return f"{path.name} is missing. Found: {', '.join(found)}.", ""
    try:
        submitted = nbformat.read(path, as_version=4)
    except Exception as error:  # whatever a student may hand in
        return f"the file is no notebook ({type(error).__name__}).", ""
    release = course / "release" / name / path.name
    put_back(submitted, nbformat.read(release, as_version=4))
    cell = where_it_died(submitted, path.parent)
    if cell is None:
        return "nbgrader stopped; nbgrader.log of the course has why.", ""
    return "this cell ended the process in which it ran.", cell


def put_back(submitted, release):
    """Give cells that a student may not change their first source again."""
    first = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in release.cells
        if cell.metadata.get("nbgrader", {}).get("locked")
    }
    for cell in submitted.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = first.get(name, cell.source)


def where_it_died(notebook, folder, timeout=120):
    """The source of the cell that killed its kernel; None if none did."""
    last = []
    client = NotebookClient(
        notebook,
        timeout=timeout,
        allow_errors=True,
        interrupt_on_timeout=True,
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: last.append(cell.source),
    )
    try:
        client.execute()
    except DeadKernelError:
        return last[-1]
    return None


def write_page(course, name, student, reason, cell):
    """Write the feedback of a submission that nbgrader could not grade."""
    folder = course / "feedback" / student / name
    folder.mkdir(parents=True, exist_ok=True)
    cell = f"<pre>{html.escape(cell)}</pre>" if cell else ""
    text = PAGE.format(
        name=html.escape(name), reason=html.escape(reason), cell=cell
    )
    (folder / f"{name}.html").write_text(text, encoding="utf-8")


def read_grades(course, name, students, failed):
    """The rows of the report, from nbgrader's gradebook.

    Args:
        course: Path of the course folder.
        name: Str, the assignment.
        students: List of str.
        failed: Dict of a student whose submission could not be graded →
            what `explain` returned.
    """
    rows = []
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assignment = gradebook.find_assignment(name)
        for student in students:
            if student in failed:
                checked, read, note = 0.0, 0.0, failed[student][0]
            else:
                found = gradebook.find_submission(name, student)
                checked, read = found.code_score, found.written_score
                waits = "answers in words wait for a reader"
                note = waits if found.needs_manual_grade else ""
            rows.append(
                {
                    "student": student,
                    "checked": checked,
                    "read": read,
                    "of checked": assignment.max_code_score,
                    "of read": assignment.max_written_score,
                    "note": note,
                }
            )
    return rows


def write_report(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("course", type=Path, help="the course folder")
    parser.add_argument("name", help="the assignment, such as 06_exercises")
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help="seconds a submission (1800)"
    )
    options = parser.parse_args()
    try:
        rows = grade(options.course, options.name, options.limit)
    except ValueError as error:
        sys.exit(str(error))
    for row in rows:
        print(
            "{student:20} {checked:g} of {of checked:g}, "
            "{read:g} of {of read:g}  {note}".format(**row)
        )


if __name__ == "__main__":
    main()
