"""What a course needs of the chapters: editions, assignments, exams.

    python notebooks/build.py student OUT [chapter…]
    python notebooks/build.py instructor OUT [chapter…] [--seed FILE]
    python notebooks/build.py assignment COURSE [chapter…] [--seed FILE]
    python notebooks/build.py exam OUT [chapter…] --seed FILE

A chapter is named by its first letters. For an assignment, `08.3` names one
exercise of chapter 08.
"""

from pathlib import Path
import shutil

import assignment
import editions
import nbformat
import questions

COMMANDS = ("student", "instructor", "assignment", "exam")
MATHJAX = Path(__file__).parents[1] / "docs/_static/mathjax/tex-svg.js"


def add_commands(commands):
    """Add the four commands to a parser's subparsers."""
    for name in COMMANDS:
        command = commands.add_parser(name)
        command.add_argument("out", type=Path, help="a folder")
        command.add_argument("chapters", nargs="*", help="their first letters")
        if name != "student":
            command.add_argument(
                "--seed",
                help="a file with a text of yours",
                required=name == "exam",
            )
        if name == "assignment":
            command.add_argument("--force", action="store_true")
        if name == "exam":
            command.add_argument("--title", default="Exam")
            command.add_argument("--number", type=int, default=20)


def whole(chapters):
    """The chapters of `06 08.3 08.4`."""
    return [name.split(".")[0] for name in chapters]


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
        print("\n".join(told))
    elif arguments.command == "exam":
        seed = questions.read_seed(arguments.seed)
        drawn = questions.draw(names, seed, arguments.title, arguments.number)
        write_exam(out, arguments.title, drawn, seed)
    else:
        for source in sources:
            write_edition(arguments.command, out, source)
        if arguments.command == "instructor":
            write_questions(out, names, arguments.seed)


def choose(chapters, sources):
    """Chapters of which all exercises, or some (`08.3`), are chosen."""
    chosen = []
    for source in sources:
        chapter = editions.read_chapter(source)
        wishes = [
            x for x in chapters if source.name.startswith(x.split(".")[0])
        ]
        numbers = {int(x.split(".")[1]) for x in wishes if "." in x}
        there = {exercise.number for exercise in chapter.exercises}
        if numbers - there:
            raise ValueError(
                f"Chapter {chapter.number} has exercises {sorted(there)}. "
                f"Received: {sorted(numbers)}."
            )
        chapter.exercises = [
            exercise
            for exercise in chapter.exercises
            if not numbers or exercise.number in numbers
        ]
        chosen.append(chapter)
    return chosen


def write_edition(edition, out, source):
    """Write a chapter for students or for teachers into a folder."""
    chapter = editions.read_chapter(source)
    built = editions.target(source)
    published = nbformat.read(built, as_version=4)
    out.mkdir(parents=True, exist_ok=True)
    made = getattr(editions, edition)(chapter, published)
    nbformat.write(made, out / built.name)


def write_exam(out, title, drawn, seed):
    """Write two versions of an exam, and their answers, to read and print."""
    out.mkdir(parents=True, exist_ok=True)
    for version in "AB":
        texts = questions.exam(drawn, seed, title, version)
        for text, kind in zip(texts, ("", "_answers"), strict=True):
            name = f"{title}_{version}{kind}".lower().replace(" ", "_")
            (out / f"{name}.md").write_text(text, encoding="utf-8")
            page = questions.page(title, text)
            (out / f"{name}.html").write_text(page, encoding="utf-8")
    shutil.copy(MATHJAX, out)


def write_questions(out, names, seed_file):
    """Write the questions for Moodle and, from a seed, a midterm and a final.

    The midterm asks about the first half of the chapters, the final about
    all, and asks nothing that the midterm asked.
    """
    names = [name for name in names if questions.read(name)["question"]]
    (out / "questions.xml").write_bytes(questions.moodle(names))
    if seed_file is None:
        return
    seed = questions.read_seed(seed_file)
    half = names[: (len(names) + 1) // 2]
    midterm = questions.draw(half, seed, "Midterm", min(20, 5 * len(half)))
    number = min(20, 5 * len(names))
    final = questions.draw(names, seed, "Final", number, without=midterm)
    write_exam(out, "Midterm", midterm, seed)
    write_exam(out, "Final", final, seed)
