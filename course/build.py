"""Build the notebooks from their sources, or check that they are built.

    python -m course.build draw [chapter…]
    python -m course.build build [chapter…]
    python -m course.build check [chapter…]
    python -m course.build errors
    python -m course.build student OUT [chapter…]
    python -m course.build instructor OUT [chapter…] [--seed FILE]
    python -m course.build assignment COURSE [chapter…] [--seed FILE]
    python -m course.build exam OUT [chapter…] --seed FILE

A source is `course/source/NN_name.md` (MyST Markdown, jupytext); what is
built is `notebooks/NN_name.ipynb`, executed. `draw` writes the drawings of a
chapter, `course/drawings/NN_what.svg`, from the scripts beside them. `errors`
builds `docs/errors.ipynb` from `course/errors`. `check` runs nothing. The
others write what is handed out, see `handouts.py`.
"""

import argparse
import base64
import html
from pathlib import Path
import re
import runpy
import sys
import time

from course import editions, errors_page, handouts, lists
from course.editions import target
import jupytext
from nbclient import NotebookClient
import nbformat

FOLDER = Path(__file__).parent
DRAWING = re.compile(r'!\[([^\]]*)\]\(\.\./(drawings/\w+\.svg) "([^"]*)"\)')
# GitHub leaves out the style and the class; JupyterLab has no sheet of ours.
CARD = """<div class="predict" style="border-left: 4px solid #2b5fa8; \
padding-left: 1em">

{}

</div>"""


def sources(chapters):
    """The sources of chapters, named by number or in full; all if none."""
    paths = sorted((FOLDER / "source").glob("*.md"))
    known = {name for path in paths for name in editions.names(path)}
    unknown = [name for name in chapters if name not in known]
    if unknown:
        sys.exit(
            f"No chapter is {' or '.join(map(repr, unknown))}. Name a chapter "
            "by its number (2 or 02) or in full (02_kernel_regression)."
        )
    wanted = set(chapters)
    return [p for p in paths if not wanted or wanted & editions.names(p)]


def published(source):
    """The notebook of a source, not executed, exercises as the reader's.

    Cells of another language (`{"lang": "zh"}`) are left to its edition,
    and hidden checks to graders.
    """
    cells, chapter = [], editions.read_chapter(source)
    exercises = (exercise for exercise in chapter.exercises if exercise.code)
    for cell in jupytext.read(source, fmt="md:myst").cells:
        tags = cell.metadata.get("tags", [])
        if cell.metadata.get("lang", "en") != "en":
            continue
        if cell.cell_type == "markdown":
            cell.source = DRAWING.sub(_embedded, cell.source)
            if "predict" in tags:
                cell.source = CARD.format(cell.source)
            cells.append(cell)
        elif "exercise" in tags:
            exercise = next(exercises)
            stub = editions.code(exercise.stub, "exercise")
            cells += [stub, exercise.check_cell(), _folded(exercise.solution)]
        elif not {"check", "hidden"} & set(tags):
            cells.append(_of_its_kind(cell, tags))
    return editions.notebook([*cells, editions.solved_cell()])


def _of_its_kind(cell, tags):
    """A code cell, folded and named as its tags say."""
    if "claims" in tags:
        editions.fold(cell, editions.CLAIMS)
        cell.metadata["tags"] = [*tags, "remove-cell"]
    elif "setup" in tags:
        editions.fold(cell, editions.IMPORTS)
    elif "figure" in tags:
        editions.fold(cell, editions.FIGURE)
    elif "hide-input" in tags:
        editions.fold(cell)
    return cell


def _embedded(drawing):
    """A drawing inside the notebook, which may be opened alone."""
    alt, path, caption = drawing.groups()
    picture = base64.b64encode((FOLDER / path).read_bytes()).decode()
    return (
        f'<figure style="margin:0">\n<img alt="{html.escape(alt)}" '
        'width="720" style="max-width:100%;height:auto" '
        f'src="data:image/svg+xml;base64,{picture}">\n'
        f"<figcaption>{html.escape(caption)}</figcaption>\n</figure>"
    )


def scripts(chosen):
    """The scripts of the drawings of chapters with these sources."""
    numbers = {source.stem[:2] for source in chosen}
    paths = sorted((FOLDER / "drawings").glob("[0-9]*.py"))
    return [path for path in paths if path.stem[:2] in numbers]


def drawn(script):
    """The `Sheet` that a script draws."""
    return runpy.run_path(str(script))["sheet"]


def draw(script):
    """Write the drawing of a script beside it."""
    sheet = drawn(script)
    # The same bytes on Windows, since notebooks embed them.
    script.with_suffix(".svg").write_bytes(sheet.svg().encode())
    return [f"{script.name}: {problem}" for problem in sheet.problems()]


def _folded(solution):
    text = f"```python\n{solution}\n```"
    return nbformat.v4.new_markdown_cell(
        '<details class="solution"><summary>Solution</summary>\n\n'
        f"{text}\n\n</details>",
        metadata={"solution": True},
    )


def build(source):
    """Execute a chapter from a fresh kernel and write it."""
    execute(published(source), target(source))


def execute(notebook, path):
    """Run a notebook from a fresh kernel in its folder, and write it."""
    started = time.perf_counter()
    NotebookClient(
        notebook,
        timeout=600,
        record_timing=False,
        coalesce_streams=True,
        skip_cells_with_tag="nbval-skip",
        extra_arguments=["--IPKernelApp.capture_fd_output=False"],
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    notebook.metadata.language_info = {
        "name": "python",
        "file_extension": ".py",
    }
    beside = path.with_suffix(".part")
    nbformat.write(notebook, beside)
    beside.replace(path)
    print(f"{path.name}: {time.perf_counter() - started:.0f} s")


def problems(source):
    """What is wrong with a built chapter, as sentences."""
    return compare(target(source), published(source), source.name)


def compare(path, wanted, source):
    """What is wrong with a built notebook, as sentences."""
    if not path.exists():
        return [f"{path.name} is not built"]
    built = nbformat.read(path, as_version=4)
    # A sanitized comparison: what the source decides, not what a run adds.
    has, should = (
        [(c.id, c.cell_type, c.source, c.metadata) for c in notebook.cells]
        for notebook in (built, wanted)
    )
    if has != should:
        return [f"{path.name} was not built from {source}"]
    found = []
    for number, cell in enumerate(built.cells):
        if cell.cell_type != "code":
            continue
        if "nbval-skip" in cell.metadata.get("tags", []):
            continue
        if cell.execution_count is None:
            found.append(f"{path.name}: cell {number} never ran")
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"{path.name}: cell {number} shows an error")
    if path.stat().st_size > 600_000:
        found.append(f"{path.name} has more than 600 kB")
    return found


def errors_problems():
    """What is wrong with the built page of errors, as sentences."""
    return compare(errors_page.PAGE, errors_page.published(), "course/errors")


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course.build", description=__doc__.split("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("draw", "build", "check", "lint"):
        command = commands.add_parser(name)
        command.add_argument("chapters", nargs="*", help=handouts.CHAPTERS)
    commands.add_parser("errors", help="build the page of errors")
    commands.add_parser("lists", help="write the lists of all chapters")
    handouts.add_commands(commands)
    # argparse knows no chapters that stand behind an option.
    arguments, others = parser.parse_known_args()
    if any(x.startswith("-") for x in others):
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if arguments.command == "errors":
        execute(errors_page.published(), errors_page.PAGE)
        sys.exit("\n".join(errors_problems()) or None)
    if arguments.command == "lists":
        lists.write()
        return runpy.run_path(str(lists.ROOT / "docs/prerequisites.py"))[
            "write"
        ]()
    arguments.chapters += others
    names = arguments.chapters
    if arguments.command in handouts.BY_NUMBER:
        names = handouts.whole(names)
    chosen = sources(names)
    if arguments.command in handouts.COMMANDS:
        try:
            return handouts.write(arguments, chosen)
        except (OSError, ValueError) as error:
            sys.exit(str(error))
    if arguments.command == "draw":
        found = [p for s in scripts(chosen) for p in draw(s)]
        sys.exit("\n".join(found) or None)
    if arguments.command == "lint":
        from course import lint  # it reads drawings as this module does

        sys.exit("\n".join(lint.main(chosen)) or None)
    if arguments.command == "build":
        for source in chosen:
            build(source)
    found = [problem for source in chosen for problem in problems(source)]
    if not names:
        found += errors_problems() + lists.problems()
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()
