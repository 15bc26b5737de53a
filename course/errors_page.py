"""The page on what the documents say, made of `course/errors/NN_name.md`.

An entry is headed by what holds:

    ## Each head reads all features

    **Said in** 004 §2.

    **It says** that the input is split into H parts, one for each head.

    **It holds** that the projections are split: …

    **Test:** change one input feature, and every head's weights move.

The cell that tells the readings apart follows, unless the test names the
section of a chapter that has it. A point that is no error begins its heading
with `Remark:`. The cells of a file need its first one, tagged `setup`, and no
other file. `docs/errors.ipynb` is made of all of them, and executed.
"""

from pathlib import Path
import re

from course import editions
import jupytext

FOLDER = Path(__file__).parent / "errors"
PAGE = Path(__file__).parents[1] / "docs" / "errors.ipynb"
FIELDS = ("Said in", "It says", "It holds", "Test:")
TEST = "Code of this test"
OPENING = """# What the documents say, and what holds

The course follows five documents on attention, numbered 000 to 004. Each \
heading below is what holds where a document says something else, leaves \
something open, or says one thing in two ways. The code of a test tells the \
readings apart."""
ENTRY = """### {title}

{Said in}

<div class="readings">
<div>

**It says** {It says}

</div>
<div>

**It holds** {It holds}

</div>
</div>

**Test:** {Test}"""


def sources():
    return sorted(FOLDER.glob("*.md"))


def fields(text, name):
    """An entry's heading and its fields, as a dict.

    Raises:
        ValueError: If a field is missing, empty, or out of its place.
    """
    pattern = r"## (?P<title>[^\n]+)\n" + "".join(
        rf"\s*\*\*{field}\*\*\s+(?P<f{number}>\S.*?)"
        for number, field in enumerate(FIELDS)
    )
    match = re.fullmatch(pattern, text.strip(), re.DOTALL)
    if match is None:
        raise ValueError(
            f"{name}: an entry has a heading and, in this order, "
            f"{', '.join(f'**{field}**' for field in FIELDS)}. "
            f"Received: {text.strip()[:80]!r}."
        )
    told = {
        field.rstrip(":"): match[f"f{number}"]
        for number, field in enumerate(FIELDS)
    }
    return {"title": match["title"], **told}


def published():
    """The page, not executed."""
    cells = [editions.prose(OPENING)]
    for source in sources():
        chapter = editions.target(source)
        taught = (source.parents[1] / "source" / source.name).read_text("utf-8")
        title = re.search(r"^# (.+)$", taught, re.MULTILINE)[1]
        link = f"[The chapter](../notebooks/{chapter.name})"
        cells.append(editions.prose(f"## {title}\n\n{link}"))
        for cell in jupytext.read(source, fmt="md:myst").cells:
            tags = cell.metadata.get("tags", [])
            if cell.cell_type == "markdown":
                cell.source = ENTRY.format(**fields(cell.source, source.name))
            elif "setup" in tags:
                editions.fold(cell, editions.IMPORTS)
                cell.metadata["tags"] = [*tags, "remove-cell"]
            else:
                editions.fold(cell, TEST)
            cells.append(cell)
    return editions.notebook(cells)
