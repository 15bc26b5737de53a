"""What is handed out of the chapters: editions, assignments, exams.

    python -m course.build student OUT [chapter…]
    python -m course.build instructor OUT [chapter…] [--seed FILE]
    python -m course.build assignment COURSE [chapter…] [--seed FILE]
    python -m course.build exam OUT [chapter…] --seed FILE
    python -m course.build slides OUT [chapter…]

A chapter is named by its number, or in full. For an assignment, `08.3` names
one exercise of chapter 08; for slides, which show concept questions to a room,
one question. OUT and FILE lie outside the repository, and what
is there and different is kept, unless `--force` is added.
"""

import argparse
from pathlib import Path
import re

from course import assignment, editions, exams
import nbformat

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("student", "instructor", "assignment", "exam", "slides")
BY_NUMBER = ("assignment", "slides")  # commands that take `08.3`
CHAPTERS = "such as 06; all without any"
MATHJAX = ROOT / "docs/_static/mathjax/tex-svg.js"


def add_commands(commands):
    """Add the five commands to a parser's subparsers."""
    for name in COMMANDS:
        command = commands.add_parser(name)
        command.add_argument("out", type=outside, help="a folder")
        command.add_argument("chapters", nargs="*", help=CHAPTERS)
        command.add_argument(
            "--force", action="store_true", help="overwrite what is different"
        )
        if name not in ("student", "slides"):
            command.add_argument(
                "--seed",
                type=outside,
                help="a file with a text of yours",
                required=name == "exam",
            )
        if name == "exam":
            command.add_argument("--title", default="Exam")
            command.add_argument("--number", type=int, default=20)


def outside(text):
    """A path that a command line names, outside every clone of the project."""
    path = editions.path(text)
    resolved = path.resolve()
    for folder in (resolved, *resolved.parents):
        if (folder / "course" / "source").is_dir() and (
            folder / "course" / "build.py"
        ).exists():
            raise argparse.ArgumentTypeError(
                f"{path} lies in the repository {folder}, where a commit could "
                "publish seeds and solutions. Take a folder outside it, such "
                f"as ~/{path.name}."
            )
    return path


def whole(chapters):
    """The chapters of `06 08.3 08.4`."""
    return [name.partition(".")[0] or name for name in chapters]


def write(arguments, sources):
    """Carry out a command for the sources of some chapters.

    Raises:
        ValueError: If something is missing or would be overwritten.
    """
    out, names = arguments.out, [source.stem for source in sources]
    if arguments.command == "assignment":
        chapters = choose(arguments.chapters, sources)
        options = {"force": arguments.force}
        told = assignment.write(out, chapters, arguments.seed, **options)
        for chapter in chapters:
            name = assignment.name_of(chapter)
            print(
                f"{out / 'source' / name / name}.ipynb is written. Next, in "
                f"{out}: nbgrader generate_assignment {name} --create"
            )
        for sentence in told:
            print(sentence)
        return
    files = {}
    if arguments.command == "slides":
        wanted = arguments.chapters or [name[:2] for name in names]
        chosen = [
            question
            for chapter in wanted  # in the order that was asked for
            for source in sources
            for number in wishes([chapter], source)
            for question in exams.choose(source.stem, number)
        ]
        files[out / MATHJAX.name] = MATHJAX.read_bytes()
        files[out / "questions.html"] = exams.slides(chosen)
    elif arguments.command == "exam":
        seed = exams.read_seed(arguments.seed)
        drawn = exams.draw(names, seed, arguments.title, arguments.number)
        files |= exam_files(out, arguments.title, drawn, seed)
    else:
        for source in sources:
            files |= edition_files(arguments.command, out, source)
    if arguments.command == "instructor":
        files |= questions_files(out, names, arguments.seed)
    editions.save(files, arguments.force)


def choose(chapters, sources):
    """Chapters of which all exercises, or some (`08.3`), are chosen."""
    chosen = []
    for source in sources:
        chapter = editions.read_chapter(source)
        numbers = wishes(chapters, source)
        there = [str(exercise.number) for exercise in chapter.exercises]
        for number in numbers:
            if number not in (None, *there):
                raise ValueError(
                    f"Chapter {chapter.number} has exercises "
                    f"{', '.join(there)}. Received: {chapter.number}.{number}."
                )
        if numbers and None not in numbers:
            chapter.exercises = [
                exercise
                for exercise in chapter.exercises
                if str(exercise.number) in numbers
            ]
        chosen.append(chapter)
    return chosen


def wishes(chapters, source):
    """What stands behind the dots of the names of a chapter; None: no dot."""
    names = [name.partition(".") for name in chapters]
    return [
        number if dot else None
        for name, dot, number in names
        if name in editions.names(source)
    ]


def edition_files(edition, out, source):
    """A chapter for students or for teachers: dict of path → text."""
    chapter = editions.read_chapter(source)
    built = editions.target(source)
    published = nbformat.read(built, as_version=4)
    made = getattr(editions, edition)(chapter, published)
    return {out / built.name: nbformat.writes(made) + "\n"}


def exam_files(out, title, drawn, seed):
    """Two versions of an exam, and their answers, to read and print.

    Raises:
        ValueError: If the title has nothing to name the files by.
    """
    name = re.sub(r"[\W_]+", "_", title).strip("_").lower()
    if not name:
        raise ValueError(
            "A title needs a letter or a digit, which name the files. "
            f"Received: {title!r}."
        )
    files = {out / MATHJAX.name: MATHJAX.read_bytes()}
    for version in "AB":
        texts = exams.exam(drawn, seed, title, version)
        for text, kind in zip(texts, ("", "_answers"), strict=True):
            stem = f"{name}_{version.lower()}{kind}"
            files[out / f"{stem}.md"] = text
            files[out / f"{stem}.html"] = exams.page(title, text)
    return files


def questions_files(out, names, seed_file):
    """The questions for Moodle and, from a seed, a midterm and a final.

    The midterm asks about the first half of the chapters, the final about
    all, and asks nothing that the midterm asked.
    """
    names = [name for name in names if exams.read(name)["question"]]
    files = {out / "questions.xml": exams.moodle(names)}
    if seed_file is None:
        return files
    seed = exams.read_seed(seed_file)
    half = names[: (len(names) + 1) // 2]
    midterm = exams.draw(half, seed, "Midterm", min(20, 5 * len(half)))
    number = min(20, 5 * len(names))
    final = exams.draw(names, seed, "Final", number, without=midterm)
    files |= exam_files(out, "Midterm", midterm, seed)
    return files | exam_files(out, "Final", final, seed)
