"""What the documents get wrong, collected from the chapters.

A chapter tells each point in one form, folded, under its heading *What the
documents say*:

    <details><summary>The input is split into heads</summary>

    **Said in** 004 §2.

    **It says** that the input is split into H parts, one for each head.

    **What holds:** every head reads all features; its projections are split.

    **Test:** change one input feature, and every head's weights move.

    </details>

The cell that tells the readings apart stands below, unless the test names the
section that has it. A point that is no error begins its summary with
`Remark:`. `docs/errors.md` is made of all of them.
"""

from pathlib import Path
import re

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
HEADING = "## What the documents say"
ENTRY = re.compile(
    r"<details><summary>(?P<title>.*?)</summary>(?P<body>.*?)</details>",
    re.DOTALL,
)
FIELDS = ("Said in", "It says", "What holds:", "Test:")
OPENING = """# What the documents say, and what holds

The course follows five documents on attention. Here is where they are wrong,
leave something open or say one thing in two ways. The chapter named beside a
point has the cell that tells the readings apart.
This page is made from the chapters by `python -m course.build build`;
change it there.
"""


def entries(source):
    """The entries of a chapter: dicts of its title and its fields.

    Raises:
        ValueError: If an entry lacks a field.
    """
    _, _, section = source.read_text(encoding="utf-8").partition(HEADING)
    section = section.partition("\n## ")[0]
    found = []
    for entry in ENTRY.finditer(section):
        told = {"title": entry["title"].strip()}
        for field in FIELDS:
            text = re.search(
                rf"\*\*{field}\*\*\s*(.*?)(?=\n\n\*\*|\Z)",
                entry["body"].strip(),
                re.DOTALL,
            )
            if text is None:
                raise ValueError(
                    f"{source.name}: {told['title']!r} has no **{field}**."
                )
            told[field] = " ".join(text[1].split())
        found.append(told)
    return found


def page(sources):
    """The page of all chapters, as Markdown."""
    wrong, remarks = [OPENING], ["## Remarks that are not errors\n"]
    for source in sources:
        number = source.stem.partition("_")[0]
        chapter = f"[{number}](../notebooks/{source.stem}.ipynb)"
        for told in entries(source):
            remark = told["title"].startswith("Remark:")
            title = told["title"].removeprefix("Remark:").strip()
            lines = [
                f"{'###' if remark else '##'} {title[0].upper()}{title[1:]}\n",
                f"Chapter {chapter}; said in {told['Said in'].rstrip('.')}.\n",
                f"- *It says* {told['It says']}",
                f"- *What holds:* {told['What holds:']}",
                f"- *Test:* {told['Test:']}\n",
            ]
            (remarks if remark else wrong).append("\n".join(lines))
    return "\n".join([*wrong, *remarks])


def write(sources):
    """Write the page anew."""
    PAGE.write_text(page(sources), encoding="utf-8")
