"""What a slide is made of: pictures of the chapters, and what to say.

Each deck begins with a title slide, from what the book says of its chapter.

    :::{drawing} 06_heads
    :::

shows `course/drawings/06_heads.svg`;

    :::{notebook-figure} 06_multi_head.ipynb opposite signs one head looks left
    :::

shows the figure of the committed notebook whose caption has these words. Both
take the text for those who cannot see it from the chapter. A picture takes
what room the rest of its slide leaves; `:width:` leaves room at its side, in
pixels of a slide of 1280 by 720. With `:fragment:` it comes with the next key.

    :::{container} ask
    What is asked stands at one height on all slides.
    :::

    :::{speaker-note} 3
    What to say in three minutes.
    :::

writes a note for the speaker's window, which also watches the time.
"""

import base64
import hashlib
import html
import json
from pathlib import Path
import re
import struct

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from sphinx_revealjs.nodes import revealjs_section

ROOT = Path(__file__).parents[2]
NOTEBOOKS, COURSE = ROOT / "notebooks", ROOT / "course"
WIDTH = 1240  # of a slide of 1280
# The parts of the course in their order, with the edges of course/sheet.py.
COLOURS = ("#2b5fa8", "#b35900", "#6a3fa0", "#2e7d32", "#666666")
FIGURE = re.compile(
    r'<img alt="(?P<alt>[^"]*)"[^>]*src="data:image/(?P<kind>\w+);base64,'
    r'(?P<data>[^"]*)">(?:<figcaption>(?P<caption>.*?)</figcaption>)?',
    re.DOTALL,
)


class Picture(SphinxDirective):
    """A picture by reference; its file is written beside the pages."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {
        "width": directives.nonnegative_int,
        "fragment": directives.flag,
    }

    def show(self, path, picture, kind, alt, size):
        self.env.note_dependency(str(path))
        self.env.note_dependency(__file__)
        scale = self.options.get("width", WIDTH) / size[0]
        if kind == "png":  # a dot for each pixel of the slide
            scale = min(scale, 1)
        width, height = (round(scale * length - 0.5) for length in size)
        digest = hashlib.sha256(picture).hexdigest()[:12]
        folder = Path(self.env.app.outdir, "_images")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{path.stem}-{digest}.{kind}").write_bytes(picture)
        shown = "picture fragment" if "fragment" in self.options else "picture"
        text = (
            f'<img class="{shown}" alt="{html.escape(alt)}" width="{width}" '
            f'height="{height}" src="_images/{path.stem}-{digest}.{kind}">'
        )
        return [nodes.raw("", text, format="html")]


class Drawing(Picture):
    """A drawing of `course/drawings`, with its chapter's description."""

    def run(self):
        name = self.arguments[0]
        path = COURSE / "drawings" / f"{name}.svg"
        if not path.is_file():
            there = sorted(p.stem for p in path.parent.glob("*.svg"))
            raise self.error(f"No drawing {name!r}. There are {there}.")
        (source,) = COURSE.glob(f"source/{name[:2]}_*.md")
        self.env.note_dependency(str(source))
        said = re.search(
            rf"!\[([^\]]*)\]\(../drawings/{name}\.svg",
            source.read_text(encoding="utf-8"),
        )
        picture = path.read_bytes()
        box = re.search(rb'viewBox="0 0 (\S+) (\S+)"', picture)
        size = tuple(map(float, box.groups()))
        return self.show(path, picture, "svg", said[1], size)


class NotebookFigure(Picture):
    """A figure out of an output of a committed notebook."""

    def run(self):
        name, _, words = self.arguments[0].partition(" ")
        words = " ".join(words.split()).strip("\"'")
        path = NOTEBOOKS / name
        if not path.is_file():
            raise self.error(f"No notebook {name!r} in {NOTEBOOKS}.")
        found = list(figures(path))
        wanted = [f for f in found if words.lower() in f["caption"].lower()]
        if len(wanted) != 1 or not words:
            there = "\n".join(f["caption"] for f in found)
            raise self.error(
                f"{len(wanted)} figures of {name} have {words!r} in their "
                f"captions, which are:\n{there}"
            )
        picture = base64.b64decode(wanted[0]["data"])
        size = struct.unpack(">II", picture[16:24])
        return self.show(path, picture, "png", wanted[0]["alt"], size)


def figures(path):
    """Alt text, caption and data of each PNG that a notebook shows."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/html", ""))
            for match in FIGURE.finditer(text):
                if match["kind"] == "png":
                    yield {
                        key: html.unescape(value or "")
                        for key, value in match.groupdict().items()
                    }


class speaker_note(nodes.General, nodes.Element):
    """What the speaker sees, and the audience does not."""


class SpeakerNote(SphinxDirective):
    """Minutes, and what to say in them."""

    required_arguments = 1
    has_content = True

    def run(self):
        minutes = float(self.arguments[0])
        said = speaker_note("", minutes=f"{minutes:g}")
        self.state.nested_parse(self.content, self.content_offset, said)
        timing = revealjs_section()  # becomes attributes of the slide
        timing.attributes["data-timing"] = round(60 * minutes)
        return [timing, said]


def begin_note(self, node):
    minutes = node["minutes"]
    self.body.append(f'<aside class="notes" data-minutes="{minutes}">')
    unit = "minute" if minutes == "1" else "minutes"
    self.body.append(f"<p><strong>{minutes} {unit}.</strong></p>\n")


def end_note(self, node):
    self.body.append("</aside>\n")


def add_title(app, doctree):
    """A slide before the first: the chapter, its part, authors, licence."""
    number = app.env.docname[:2]
    if not number.isdigit():
        return
    pages = [ROOT / "docs" / f"{page}.md" for page in ("start", "index")]
    for page in pages:
        app.env.note_dependency(str(page))
    start, index = (page.read_text(encoding="utf-8") for page in pages)
    [chapter] = re.findall(rf"(?m)^\| {number} \[(.*?)\]", start)
    parts = re.findall(r":caption: (.*)\n\n((?:notebooks/.*\n)+)", index)
    [(colour, part)] = (
        (colour, part)
        for colour, (part, chapters) in zip(COLOURS, parts, strict=True)
        if f"/{number}_" in chapters
    )
    heading = nodes.title()
    heading += nodes.inline("", number, classes=["number"])
    heading += nodes.Text(f" {chapter}")
    look = revealjs_section()
    look.attributes["data-timing"] = 0
    look.attributes["data-background-color"] = colour
    lines = (nodes.paragraph("", text) for text in (part, app.config.copyright))
    opening = nodes.section(ids=["opening"])
    [deck] = doctree.children
    end = deck.first_child_matching_class(nodes.section)
    opening += deck[:end]
    deck[:end] = [heading, look, *lines, opening]


def lay_out_questions(app, doctree):
    """A question and what follows are one block: the style puts its top."""
    for ask in list(doctree.findall(nodes.container)):
        if "ask" in ask["classes"]:
            slide, asked = ask.parent, nodes.container(classes=["asked"])
            start = slide.index(ask)
            end = slide.first_child_matching_class(revealjs_section, start)
            asked += slide[start:end]
            slide[start:end] = [asked]


def setup(app):
    app.add_node(speaker_note, revealjs=(begin_note, end_note))
    # The title is there when Sphinx looks for the name of the page.
    app.connect("doctree-read", add_title, priority=100)
    app.connect("doctree-read", lay_out_questions)
    app.add_directive("drawing", Drawing)
    app.add_directive("notebook-figure", NotebookFigure)
    app.add_directive("speaker-note", SpeakerNote)
    return {"parallel_read_safe": False}
