"""Measure the memory that the kernel of a chapter needs.

    python data/results/kernel_memory.py > data/results/DATE_kernel_memory.csv

Each notebook runs in a kernel of its own: the whole chapter, and its
assignment with the right answers. The figure is the high-water mark of the
kernel's process (VmHWM), so this runs on Linux only.
"""

import csv
import sys

from course import build, editions
from nbclient import NotebookClient

ASK = """
from pathlib import Path as _Path
print(_Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def measure(notebook):
    """The megabytes (of 2²⁰ bytes) of the kernel that ran a notebook."""
    notebook.cells.append(editions.code(ASK))
    editions.name_cells(notebook.cells)
    NotebookClient(
        notebook,
        timeout=600,
        skip_cells_with_tag="nbval-skip",
        resources={"metadata": {"path": str(editions.NOTEBOOKS)}},
    ).execute()
    return int(notebook.cells[-1].outputs[0].text) / 1024


def answered(chapter):
    """The assignment of a chapter, with the right answers."""
    cells = [editions.code(chapter.setup)]
    for exercise in chapter.exercises:
        if exercise.code:
            cells.append(editions.code(exercise.solution))
            cells += [editions.code(check) for check in exercise.checks]
    return editions.notebook(cells)


def main():
    writer = csv.writer(sys.stdout)
    writer.writerow(["chapter", "notebook", "megabytes"])
    for source in build.sources(sys.argv[1:]):
        chapter = editions.read_chapter(source)
        for kind, notebook in (
            ("chapter", build.published(source)),
            ("assignment", answered(chapter)),
        ):
            row = [chapter.name, kind, round(measure(notebook))]
            writer.writerow(row)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
