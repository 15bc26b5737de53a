"""The slides as a speaker has them: built, in Chromium, without a network.

They are tested where they were built:

    python -m sphinx -W -b revealjs docs/slides docs/_build/slides
"""

from html.parser import HTMLParser
import io
import json
from pathlib import Path
import re
import subprocess
import sys

from browsing import served, visits
from d2l_attention.heatmaps.palette import contrast
import pytest

ROOT = Path(__file__).parents[1]
SLIDES, BUILT = ROOT / "docs/slides", ROOT / "docs/_build/slides"
DECKS = sorted(path.stem for path in SLIDES.glob("[0-9]*.md"))
MOST_WORDS, MOST_LINES = 40, 8
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(
        not (BUILT / "index.html").is_file(), reason="the slides are not built"
    ),
]
every_deck = pytest.mark.parametrize("name", DECKS)


class Slide:
    """What stands on a slide, formulas left out, and what is said to it."""

    def __init__(self, seconds, colour):
        self.title, self.text, self.code, self.notes = "", "", "", ""
        self.minutes, self.pictures = [], []
        self.seconds, self.colour = float(seconds), colour


class Deck(HTMLParser):
    """The slides of a deck, from its page."""

    KINDS = {"h1": "title", "h2": "title", "pre": "code", "aside": "notes"}
    DATA = ("timing", "background-color")

    def __init__(self, name):
        super().__init__()
        self.slides, self.depth, self.within, self.formula = [], 0, [], 0
        page = (BUILT / f"{name}.html").read_text(encoding="utf-8")
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        kinds = (attributes.get("class") or "").split()
        if tag == "section":
            self.depth += 1
            if self.depth == 2:
                data = (attributes.get(f"data-{x}") for x in self.DATA)
                self.slides.append(Slide(*data))
        elif self.depth == 2 and tag in self.KINDS:
            self.within.append(tag)
        elif self.depth == 2 and tag == "img":
            self.slides[-1].pictures.append(attributes)
        if tag in ("span", "div") and (self.formula or "math" in kinds):
            self.formula += 1
        if tag == "aside" and self.depth == 2:
            minutes = float(attributes["data-minutes"])
            self.slides[-1].minutes.append(minutes)

    def handle_endtag(self, tag):
        if tag == "section":
            self.depth -= 1
        elif self.within[-1:] == [tag]:
            self.within.pop()
        if tag in ("span", "div") and self.formula:
            self.formula -= 1

    def handle_data(self, data):
        if self.depth == 2 and not self.formula:
            kind = self.KINDS[self.within[-1]] if self.within else "text"
            slide = self.slides[-1]
            setattr(slide, kind, getattr(slide, kind) + data)


def title_of(name):
    return Deck(name).slides[0]


def slides_of(name):
    """Those after the title slide."""
    return Deck(name).slides[1:]


def source_of(name):
    """A chapter's source, and what it says about the documents."""
    paths = [ROOT / f"course/{x}/{name}.md" for x in ("source", "errors")]
    texts = [x.read_text(encoding="utf-8") for x in paths if x.exists()]
    return "\n".join(texts)


def cells_of(name):
    """The cells of a chapter, and of its part of the page of errors."""
    paths = ROOT / f"notebooks/{name}.ipynb", ROOT / "docs/errors.ipynb"
    chapter, errors = (
        json.loads(path.read_text(encoding="utf-8"))["cells"] for path in paths
    )
    yield from chapter
    inside = False
    for cell in errors:
        if "".join(cell["source"]).startswith("## "):
            inside = "".join(cell["source"]).startswith(f"## {name[:2]}.")
        if inside:
            yield cell


def notebook_of(name):
    """All text that is committed for a chapter: prose, code and outputs."""
    texts = []
    for cell in cells_of(name):
        texts.append("".join(cell["source"]))
        for output in cell.get("outputs", []):
            texts.append("".join(output.get("text", "")))
            for kind in ("text/plain", "text/html"):
                texts.append("".join(output.get("data", {}).get(kind, "")))
    return re.sub(r"data:[\w/+.-]+;base64,[\w+/=]*", "", "\n".join(texts))


def test_each_chapter_has_a_deck():
    sources = (ROOT / "course/source").glob("[0-9]*.md")
    assert DECKS == sorted(path.stem for path in sources)
    index = (BUILT / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{name}.html"' in index for name in DECKS)


def part_of(name):
    """The row of the README's map, and the part's name in it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [row] = re.findall(rf"^\| .*notebooks/{name}\..*$", readme, re.MULTILINE)
    return row.split(" | ")[0].strip("| ")


@every_deck
def test_the_title_slide_names_chapter_part_authors_and_licence(name):
    title = title_of(name)
    start = (ROOT / "docs/start.md").read_text(encoding="utf-8")
    chapter = rf"^\| ({name[:2]}) \[(.*?)\]\(../notebooks/{name}.ipynb\)"
    [named] = re.findall(chapter, start, re.MULTILINE)
    assert title.title == " ".join(named)
    assert title.text.strip().splitlines() == [
        part_of(name),
        "the d2l_attention contributors; "
        "text and figures CC BY 4.0, code Apache 2.0",
    ]
    assert title.seconds == 0 and not title.minutes


def test_each_part_has_a_colour():
    looks = {(part_of(name), title_of(name).colour) for name in DECKS}
    colours = {colour for part, colour in looks}
    assert len({part for part, colour in looks}) == len(colours) == len(looks)
    assert all(contrast(colour, "#ffffff") >= 4.5 for colour in colours)


@every_deck
def test_a_deck_fills_a_lecture(name):
    slides = slides_of(name)
    assert 10 <= len(slides) <= 15
    assert all(len(slide.minutes) == 1 for slide in slides)
    assert all(len(slide.notes.split()) > 15 for slide in slides)
    assert all(slide.seconds == 60 * slide.minutes[0] for slide in slides)
    assert 40 <= sum(slide.minutes[0] for slide in slides) <= 45


@every_deck
def test_a_deck_asks_before_it_answers(name):
    slides = slides_of(name)
    assert slides[0].title.endswith("?")
    assert sum(slide.title.endswith("?") for slide in slides) >= 3
    assert slides[-1].title == "Three things to remember"


@every_deck
def test_a_slide_is_no_page_of_a_book(name):
    for slide in slides_of(name):
        words = re.findall(r"\w[\w’.,-]*", slide.text)
        assert len(words) <= MOST_WORDS, slide.title
        lines = slide.code.strip().splitlines()
        assert len(lines) <= MOST_LINES, slide.title


@every_deck
def test_code_on_a_slide_stands_in_the_notebook(name):
    notebook = {line.strip() for line in notebook_of(name).splitlines()}
    for slide in slides_of(name):
        code = {line.strip() for line in slide.code.splitlines()}
        assert code - {""} <= notebook, slide.title


@every_deck
def test_numbers_on_a_slide_stand_in_the_notebook(name):
    """Those of two digits or more, in what is shown and what is said."""
    number = r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)"
    there = set(re.findall(number, notebook_of(name)))
    for slide in slides_of(name):
        text = f"{slide.title} {slide.text} {slide.notes}"
        text = re.sub(r"[Cc]hapters? \d+( to \d+)?", "", text)
        found = [n for n in re.findall(number, text) if len(n) > 1]
        assert set(found) <= there, slide.title


@every_deck
def test_the_sections_and_exercises_that_a_deck_names_exist(name):
    source, slides = source_of(name), slides_of(name)
    headings = set(re.findall(r"^#+ (.*)$", source, re.MULTILINE))
    notes = " ".join(slide.notes for slide in slides)
    demos = re.findall(r"Demo: section “([^”]*?),?”", notes)
    assert 1 <= len(demos) == notes.count("Demo:") <= 2
    assert set(demos) <= headings
    last = slides[-1].text
    [[number, title]] = re.findall(r"Try: exercise (\d+), (.*?)\.?\n", last)
    exercises = {h.rstrip(" ●").replace(". ", ": ", 1) for h in headings}
    assert f"Exercise {number}: {title}" in exercises


@every_deck
def test_each_picture_says_what_it_shows(name):
    slides = slides_of(name)
    pictures = [one for slide in slides for one in slide.pictures]
    assert len(pictures) >= 3
    for picture in pictures:
        assert len(picture["alt"].split()) >= 8
        assert (BUILT / picture["src"]).is_file()


def test_pictures_and_libraries_are_not_copied_and_colours_are_the_courses():
    kinds = {path.suffix for path in SLIDES.rglob("*") if path.is_file()}
    assert kinds <= {".md", ".py", ".css", ".pyc"}
    colour = r"#[0-9a-f]{6}"
    known = set()
    for path in (
        ROOT / "d2l_attention/heatmaps/palette.py",
        ROOT / "course/sheet.py",
    ):
        known |= set(re.findall(colour, path.read_text(encoding="utf-8")))
    style = (SLIDES / "_static/slides.css").read_text(encoding="utf-8")
    used = set(re.findall(r"#[0-9a-fA-F]+\b", style))
    used |= {title_of(name).colour for name in DECKS}
    assert used <= known


@pytest.mark.parametrize(
    "slide, said",
    [
        (
            "{notebook-figure} 06_multi_head.ipynb a cat",
            "One head and two heads of",
        ),
        ("{notebook-figure} 06_multi_head.ipynb signs", "2 figures of"),
        ("{drawing} 06_cat", "06_one_head"),
    ],
)
def test_an_unknown_picture_is_refused_with_those_there_are(
    tmp_path, slide, said
):
    pytest.importorskip("sphinx_revealjs")
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text(f"# Title\n\n:::{slide}\n:::\n")
    build = [sys.executable, "-m", "sphinx", "-W", "-b", "revealjs"]
    build += ["-c", str(SLIDES), str(source), str(tmp_path / "built")]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode and said in done.stderr


@pytest.fixture(scope="module")
def address():
    with served(BUILT) as address:
        yield address


READY = """async () => {
    if (!Reveal.isReady())
        await new Promise(done => Reveal.on("ready", done));
    if (document.querySelector(".math"))
        await MathJax.startup.promise;
    await document.fonts.ready;
    await Promise.all([...document.images].map(image => image.decode()));
}"""


@pytest.fixture
def show(browser, address):
    """Opens a deck; in the end nothing may have gone wrong."""
    with visits(browser, address, "about:") as visit:  # the notes' window

        def show(name, width=1280, height=720):
            page = visit(name, width, height)
            page.evaluate(READY)
            return page

        yield show


def over_all(page, measure):
    """What `measure` finds wrong, slide by slide, all fragments shown."""
    found = {}
    for number in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate("at => Reveal.slide(at, 0, 99)", number)
        wrong = page.evaluate(measure)
        if wrong:
            found[number + 1] = wrong
    return found


# Everything but notes and what only screen readers get, within the slide.
OVERFLOWS = """() => {
    const wrong = [];
    for (const node of Reveal.getCurrentSlide().querySelectorAll("*")) {
        if (node.closest("aside, mjx-assistive-mml")) continue;
        const box = node.getBoundingClientRect();
        if (!box.width || !box.height) continue;
        if (box.left < 0 || box.top < 0 || box.right > innerWidth
            || box.bottom > innerHeight - 16)
            wrong.push([node.tagName, box.right, box.bottom]);
        if (node instanceof HTMLElement && getComputedStyle(node).overflowX
            != "visible" && node.scrollWidth > node.clientWidth + 1)
            wrong.push([node.tagName, "is cut off"]);
    }
    return wrong;
}"""


# Text that is shown: not in notes, and not in what MathJax has drawn.
TEXTS = """() => {
    const walk = document.createTreeWalker(
        Reveal.getCurrentSlide(), NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walk.nextNode()) {
        const parent = walk.currentNode.parentElement;
        if (walk.currentNode.data.trim()
            && !parent.closest("aside, mjx-container"))
            texts.push([walk.currentNode.data, parent.closest("pre") != null,
                        parseFloat(getComputedStyle(parent).fontSize)]);
    }
    return texts;
}"""


@every_deck
def test_everything_is_on_the_slide_and_typeset_and_large(show, name):
    page = show(f"{name}.html")
    assert not over_all(page, OVERFLOWS)
    drawn = page.eval_on_selector_all(
        ".math", "all => all.map(one => !!one.querySelector('mjx-container'))"
    )
    assert all(drawn)
    assert page.locator("[data-mml-node=merror]").count() == 0
    for slide in over_all(page, TEXTS).values():
        for text, is_code, size in slide:
            assert size >= (26 if is_code else 28), text
            assert is_code or not re.search(r"\$|\\[(\[a-z]|\*\*|:::", text)
    assert "$" not in page.eval_on_selector_all(
        "aside.notes", "all => all.map(one => one.textContent).join()"
    )


@every_deck
def test_pictures_are_sharp_and_take_the_room_there_is(show, name):
    page = show(f"{name}.html")
    wrong = """() => {
        const slide = Reveal.getCurrentSlide();
        const shown = [...slide.querySelectorAll(":not(aside, aside *)")];
        const lowest = Math.max(
            ...shown.map(node => node.getBoundingClientRect().bottom));
        return [...slide.querySelectorAll("img")].filter(image => {
            const {width, height} = image.getBoundingClientRect();
            const [w, h] = [image.naturalWidth, image.naturalHeight];
            const bent = Math.abs(width / height / (w / h) - 1) > 0.02;
            const dots = image.src.endsWith(".svg") ? Infinity : w;
            const wide = width > Math.min(dots, 1240) - 6;
            const full = wide || lowest > 720 - 50;
            const small = width * height < 1280 * 720 / 4;
            return bent || width > dots || small
                || !full && !image.closest(".beside");
        }).map(image => image.src);
    }"""
    assert page.locator("img").count() >= 3
    assert not over_all(page, wrong)


@every_deck
def test_questions_stand_at_one_height(show, name):
    """At 360 pixels, or where a full slide has no room for that."""
    page = show(f"{name}.html")
    elsewhere = """() => [...Reveal.getCurrentSlide()
        .querySelectorAll(".ask")].map(ask => {
            const block = ask.parentElement;
            const top = ask.getBoundingClientRect().top;
            const room = parseFloat(getComputedStyle(block).marginTop);
            return [top, room, block.offsetHeight];
        }).filter(([top]) => Math.abs(top - 360) > 1)"""
    found = over_all(page, elsewhere)
    for [[top, room, height]] in found.values():
        assert room < 1 if top > 360 else height > 361
    assert len(found) <= 2 < page.locator(".ask").count()


@pytest.mark.parametrize("name", DECKS[::9])  # seconds each
def test_a_deck_prints_one_page_a_slide(show, name):
    pypdf = pytest.importorskip("pypdf")
    count = len(slides_of(name))
    for query, pages in (("", 1), ("&showNotes=separate-page", 2)):
        page = show(f"{name}.html?print-pdf{query}")
        page.wait_for_selector(".pdf-page >> nth=-1")
        printed = page.pdf(prefer_css_page_size=True)
        texts = [
            "".join(one.extract_text().split())
            for one in pypdf.PdfReader(io.BytesIO(printed)).pages
        ]
        assert len(texts) == 1 + pages * count  # a title has no notes
        assert texts[0].startswith(part_of(name).replace(" ", ""))
        assert "Threethingstoremember" in texts[-pages]
        assert pages == 1 or "minutes." in texts[2]


def test_the_notes_open_in_a_window_that_watches_the_time(show):
    name = "06_multi_head"
    page = show(f"{name}.html#/3")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    window = opened.value
    notes = window.locator(".speaker-controls-notes .value")
    first, second = slides_of(name)[2:4]
    window.wait_for_selector("text=Give them two minutes")
    assert first.notes.split()[-3:] == notes.inner_text().split()[-3:]
    assert "pacing" in window.inner_text("#speaker-controls").lower()
    page.keyboard.press("ArrowRight")
    window.wait_for_selector("text=Follow the drawing")
    assert second.notes.split()[-3:] == notes.inner_text().split()[-3:]


def test_the_index_leads_to_every_deck(show):
    page = show("index.html")
    assert not over_all(page, OVERFLOWS)
    for name in DECKS:
        page.click(f"a[href='{name}.html']")
        page.wait_for_url(re.compile(name))
        assert page.title() == title_of(name).title
        page.go_back()
