"""Which exercises are solved in the notebooks of a folder.

    python -m course.progress [FOLDER] [chapter…]

The answers are taken from the notebooks, the checks from the chapters'
sources. An exercise that was not touched is not run. The folder `notebooks`
is the default; an answer must be saved before it is seen.
"""

import argparse
import json
import re
import subprocess
import sys
import threading

from course import build, editions
import nbformat

LIMIT = 180  # seconds for one exercise, the first imports included
CHILD = """
import json, sys
import matplotlib
matplotlib.use("agg")
setup, tasks = json.load(sys.stdin)
names = {"__name__": "__main__"}
exec(compile(setup, "setup", "exec"), names)
for number, answer, checks in tasks:
    here = dict(names)
    said = ""
    try:
        exec(compile(answer, "your answer", "exec"), here)
        exec(compile(checks, "the check", "exec"), here)
    except BaseException as error:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
    print("\\0" + json.dumps([number, said]), flush=True)
"""


def answers(notebook):
    """Dict of exercise number → the code that a reader wrote for it."""
    found, number = {}, None
    for cell in editions.with_line_feeds(notebook).cells:
        heading = editions.HEADING.search(cell.source)
        if cell.cell_type == "markdown" and heading:
            number = int(heading[1])
        elif cell.cell_type == "code" and number and not is_ours(cell):
            found.setdefault(number, []).append(cell.source)
    return {number: "\n\n".join(parts) for number, parts in found.items()}


def is_ours(cell):
    """Whether a cell checks answers, here or in an assignment."""
    graded = cell.metadata.get("nbgrader", {}).get("grade")
    return graded or {"check", "solved"} & {*cell.metadata.get("tags", [])}


def progress(chapter, notebook, limit=LIMIT):
    """What is solved in a notebook.

    Args:
        chapter: `editions.Chapter`.
        notebook: The reader's notebook.
        limit: Positive int, seconds for one exercise.

    Returns:
        Dict of exercise number → None if it was not begun, "" if it is
        solved, else what its check says.
    """
    written = answers(notebook)
    found, tasks = {}, []
    for exercise in chapter.exercises:
        if not exercise.code:
            continue
        answer = written.get(exercise.number, "")
        found[exercise.number] = None
        if answer.strip() not in ("", exercise.stub.strip()):
            tasks.append((exercise.number, answer, exercise.check))
    while tasks:
        done = run(chapter.setup, tasks, limit)
        found |= done
        if len(done) < len(tasks):  # the next one stopped its process
            number = tasks[len(done)][0]
            found[number] = f"it ended its process, or took over {limit} s"
        tasks = tasks[len(done) + 1 :]
    return found


def run(setup, tasks, limit):
    """Run answers and checks in one process, until one of them stops it."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        cwd=editions.NOTEBOOKS,
    )
    process.stdin.write(json.dumps([setup, tasks]))
    process.stdin.close()
    done = {}
    while len(done) < len(tasks):
        alarm = threading.Timer(limit, process.kill)
        alarm.start()
        line = next((x for x in process.stdout if x.startswith("\0")), None)
        alarm.cancel()
        if line is None:
            break
        number, said = json.loads(line[1:])
        no = re.fullmatch(r"(?s)NotSolvedYet: .*? solved yet(?:: (.*))?", said)
        done[number] = (no[1] or "its check fails") if no else said
    process.kill()
    process.wait()
    process.stdout.close()
    return done


def report(chapter, found):
    """The lines that a reader sees for a chapter."""
    solved = sum(said == "" for said in found.values())
    yield f"{chapter.number} {chapter.title}: {solved} of {len(found)} solved"
    if solved < len(found) and any(x is not None for x in found.values()):
        for exercise in chapter.exercises:
            said = found.get(exercise.number)
            if said is not None:
                state = f"not yet: {said.splitlines()[0]}" if said else "solved"
                yield f"   exercise {exercise.number} {exercise.mark}: {state}"


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course.progress", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "folder", nargs="?", type=editions.path, default=editions.NOTEBOOKS
    )
    parser.add_argument("chapters", nargs="*", help="such as 06")
    options = parser.parse_args()
    paths = {
        source: options.folder / editions.target(source).name
        for source in build.sources(options.chapters)
    }
    chosen = [source for source, path in paths.items() if path.exists()]
    if not chosen:
        sys.exit(f"No notebook of the course lies in {options.folder}.")
    solved = total = 0
    for source in chosen:
        chapter = editions.read_chapter(source)
        notebook = nbformat.read(paths[source], as_version=4)
        found = progress(chapter, notebook)
        print("\n".join(report(chapter, found)), flush=True)
        solved += sum(said == "" for said in found.values())
        total += len(found)
    print(f"In all: {solved} of {total} solved")


if __name__ == "__main__":
    main()
