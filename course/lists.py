"""The lists of chapters in README.md and docs, written from one.

`course/chapters.toml` has the chapters in their parts, and `course/source` the
title of each.
"""

from pathlib import Path
import re
import tomllib

ROOT = Path(__file__).parents[1]
LIST = ROOT / "course" / "chapters.toml"


def read_parts():
    """The parts, each with its chapters, as the list has them.

    A chapter also gets its `number`, and its `title` from its source.
    """
    parts = tomllib.loads(LIST.read_text(encoding="utf-8"))["part"]
    for part in parts:
        for chapter in part["chapter"]:
            source = ROOT / "course" / "source" / f"{chapter['source']}.md"
            text = source.read_text(encoding="utf-8")
            title = re.search(r"^# (\d\d)\. (.*)$", text, re.MULTILINE)
            chapter["number"], title = title.groups()
            chapter["title"] = title.split(":")[0]
    return parts


def read_chapters():
    """All chapters in their order."""
    return [chapter for part in read_parts() for chapter in part["chapter"]]


def _readme(text, parts):
    rows = "".join(
        f"| {part['name']} | "
        + ", ".join(
            f"[{x['number']} {x['short']}](notebooks/{x['source']}.ipynb)"
            for x in part["chapter"]
        )
        + " |\n"
        for part in parts
    )
    text = _put_table(text, "| Part | Chapters |\n| --- | --- |\n", rows)
    return _count(text, r"\d+(?= Jupyter notebooks)", parts)


def _index(text, parts):
    trees = "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {part['name']}\n\n"
        + "".join(f"notebooks/{x['source']}\n" for x in part["chapter"])
        + "```\n"
        for part in parts
    )
    tree = "```{toctree}\n:hidden:\n:caption: "
    start = text.index(f"{tree}{parts[0]['name']}\n")
    end = text.index(f"{tree}The documents\n")
    text = f"{text[:start]}{trees}\n{text[end:]}"
    return _count(text, r"^\d+(?= chapters lead)", parts)


def _start(text, parts):
    rows, minutes = "", []
    for x in (chapter for part in parts for chapter in part["chapter"]):
        link = f"[{x['title']}](../notebooks/{x['source']}.ipynb)"
        cells = (x["question"], x["before"] or "–", x["minutes"])
        rows += f"| {x['number']} {link} | {' | '.join(cells)} |\n"
        minutes.append(int(x["minutes"].split(" + ")[0]))
    head = "| Chapter | The question it answers | Before it | Minutes |\n"
    text = _put_table(text, head + "| --- | --- | --- | --- |\n", rows)
    first = round(sum(minutes[: len(parts[0]["chapter"])]) / 60)
    whole = round(sum(minutes) / 60)
    text = _replace(text, r"(?<=about )\d+(?= hours to read)", first)
    text = _replace(text, r"(?<=chapters about )\d+(?=; exercises)", whole)
    text = _count(text, r"(?<=and all )\d+(?= chapters)", parts)
    return _count(text, r"(?<=The course has )\d+(?= chapters)", parts)


def _slides(text, parts):
    rows = "\n\n".join(
        ", ".join(
            f"[{x['number']} {x['short']}]({x['source']}.md)"
            for x in part["chapter"]
        )
        for part in parts
    )
    return _put(text, "[0-9]*\n```\n\n", "\n\nKeys:", rows)


PAGES = {
    "README.md": _readme,
    "docs/index.md": _index,
    "docs/start.md": _start,
    "docs/slides/index.md": _slides,
}


def _put(text, before, after, new):
    """The text with what stands between two others replaced."""
    start = text.index(before) + len(before)
    return text[:start] + new + text[text.index(after, start) :]


def _put_table(text, head, rows):
    """The text with the rows of the table below a head replaced."""
    return _replace(text, rf"(?<={re.escape(head)})(?:\| .*\n)+", rows)


def _replace(text, pattern, new):
    text, found = re.subn(pattern, lambda _: str(new), text, flags=re.M)
    if found != 1:
        raise ValueError(f"{pattern!r} must occur once. Received: {found}.")
    return text


def _count(text, pattern, parts):
    return _replace(text, pattern, sum(len(x["chapter"]) for x in parts))


def write():
    """Write all lists."""
    parts = read_parts()
    for name, page in PAGES.items():
        path = ROOT / name
        text = page(path.read_text(encoding="utf-8"), parts)
        path.write_text(text, encoding="utf-8", newline="\n")


def problems():
    """What is not as the list of chapters has it, as sentences."""
    parts, found = read_parts(), []
    listed = [x["source"] for part in parts for x in part["chapter"]]
    sources = sorted(x.stem for x in (ROOT / "course" / "source").glob("*.md"))
    if listed != sources:
        found.append(f"{LIST.name} does not list the chapters of course/source")
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        if page(text, parts) != text:
            found.append(f"{name}: run `python -m course.build lists`")
    return found
