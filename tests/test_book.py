"""The web book as a reader has it: built, in Chromium, without a network.

It is tested where it was built: python -m sphinx -b html docs docs/_build/html
"""

from collections import Counter
from html.parser import HTMLParser
import importlib
from importlib.resources import files
import inspect
import io
from pathlib import Path
import re
from urllib.parse import unquote, urljoin, urlsplit

from browsing import served, visits
from course import lists
import pytest

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "docs/_build/html"
PAGES = sorted(
    path.relative_to(BOOK).as_posix()
    for path in BOOK.rglob("*.html")
    if not {"_static", "slides"} & {*path.relative_to(BOOK).parts}
)
CHAPTER = "notebooks/06_multi_head.html"
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(not PAGES, reason="the book is not built"),
]


@pytest.fixture(scope="module")
def address():
    with served(BOOK) as address:
        yield address


@pytest.fixture
def visit(browser, address):
    with visits(browser, address) as visit:
        yield visit


class Links(HTMLParser):
    """The ids of a page, and the addresses that it names."""

    def __init__(self, name):
        super().__init__()
        self.ids, self.addresses = [], []
        self.feed((BOOK / name).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            elif key in ("href", "src") and value is not None:
                self.addresses.append(value)


@pytest.fixture(scope="module")
def links():
    return {name: Links(name) for name in PAGES}


def test_every_link_within_the_book_leads_somewhere(links):
    broken = set()
    for name, page in links.items():
        for address in page.addresses:
            path, anchor = urlsplit(urljoin(f"//book/{name}", address))[2::2]
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            path, anchor = unquote(path[1:]), unquote(anchor)
            wanted = links.get(path)
            there = (BOOK / path).is_file()
            if not there or wanted and anchor not in ("", *wanted.ids):
                broken.add((name, address))
    assert not broken


def test_every_public_name_has_its_entry(links):
    ids = {x for name in PAGES if "reference/" in name for x in links[name].ids}
    for room in ("", ".heatmaps", ".datasets", ".translator", ".explorables"):
        module = importlib.import_module(f"d2l_attention{room}")
        names = {
            name
            for name, thing in vars(module).items()
            if (inspect.isclass(thing) or inspect.isfunction(thing))
            and not name.startswith("_")
            and thing.__module__.startswith(module.__name__)
            and "_quiet" not in thing.__module__
        }
        assert len(names) >= 4
        missing = {x for x in names if f"{module.__name__}.{x}" not in ids}
        assert not missing


def test_no_two_places_of_a_page_have_one_address(links):
    for name, page in links.items():
        twice = [key for key, n in Counter(page.ids).items() if n > 1]
        assert not twice, name


def test_each_picture_has_an_address_that_says_what_it_shows(links):
    names = [key for key in links[CHAPTER].ids if key.startswith("figure-")]
    assert "figure-one-head-each-word-asks-offers-and-hands" in names
    assert len(names) == 6
    assert {f"#{key}" for key in names} <= set(links[CHAPTER].addresses)


def test_every_page_opens_offline_and_fits_the_screen(visit):
    page, wide = visit("index.html"), []
    for name in PAGES:
        page.goto(urljoin(page.url, f"/{name}"))
        for width in 1280, 390:
            page.set_viewport_size({"width": width, "height": 900})
            size = page.evaluate("document.documentElement.scrollWidth")
            if size > width:
                wide.append((name, size))
    assert not wide


@pytest.mark.parametrize(
    "word, found",
    [
        ("padding", "notebooks/03_masked_softmax"),
        ("padded", "notebooks/03_masked_softmax"),
        ("Linformer", "notebooks/19_linformer"),
        ("评分", "glossary"),
        ("注意力", "glossary"),
        ("多头注意力", "glossary"),
        ("因果掩码", "glossary"),
        ("多头注意力", "notebooks/06_multi_head"),
        ("因果掩码", "notebooks/03_masked_softmax"),
        ("缓存", "notebooks/15_cross_and_causal"),
        ("池化", "notebooks/12_hierarchical_attention"),
    ],
)
def test_search_finds_english_and_chinese(visit, word, found):
    page = visit(f"search.html?q={word}")
    page.wait_for_selector("text=Search finished")
    addresses = page.eval_on_selector_all(
        "ul.search li a", "links => links.map(link => link.href)"
    )
    assert any(f"/{found}." in address for address in addresses[:12])


def test_search_shows_where_a_word_stands_in_an_article(visit):
    page = visit("search.html?q=padding")
    page.wait_for_selector("text=Search finished")
    page.wait_for_selector("ul.search p.context")
    shown = page.locator("ul.search p.context").all_inner_texts()
    assert "padding" in shown[0].lower()
    assert not any("Other ways to attend" in text for text in shown)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", [CHAPTER, "heatmaps.html"])
def test_a_figure_opens_large_by_key_and_by_mouse(visit, name, width):
    page = visit(name, width)
    button = page.locator(".enlarge").first
    dialog = page.locator("dialog.large")
    image = page.locator(":is(figure, .picture) img").first
    before = image.bounding_box()["width"]
    button.focus()
    page.keyboard.press("Enter")
    large = dialog.locator("img")
    assert large.get_attribute("alt") == image.get_attribute("alt")
    assert large.bounding_box()["width"] > 1.1 * before
    assert dialog.bounding_box()["width"] <= width
    page.keyboard.press("Escape")
    assert dialog.is_hidden()
    assert button.evaluate("button => button == document.activeElement")
    image.click()
    assert dialog.is_visible()
    large.click(position={"x": 5, "y": 5})
    assert dialog.is_hidden()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_boxes_of_the_graph_are_links_by_key_and_by_mouse(visit, width):
    page = visit("start.html", width)
    graph = page.get_by_role("group", name="Which chapter comes before which")
    assert graph.evaluate("x => x.querySelector('desc').textContent").endswith(
        "18 leads to 21. 20 leads to 30. 27 leads to 32."
    )
    links = graph.get_by_role("link")
    rows = page.locator("tr:has(a[href^='notebooks/']) td:first-child")
    assert rows.count() == links.count() == len(lists.read_chapters())
    for link, row in zip(links.all(), rows.all(), strict=True):
        name = row.inner_text()
        assert graph.get_by_role("link", name=name, exact=True).count() == 1
        address = row.locator("a").get_attribute("href")
        assert link.get_attribute("href") == address
        box = link.bounding_box()
        assert min(box["width"], box["height"]) >= 24
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    second = links.nth(1)
    edge = "x => getComputedStyle(x.querySelector('path')).strokeWidth"
    before = second.evaluate(edge)
    links.first.focus()
    page.keyboard.press("Tab")
    assert second.evaluate("link => link == document.activeElement")
    assert second.evaluate(edge) == "3px" != before
    page.keyboard.press("Enter")
    page.wait_for_url("**/notebooks/02_kernel_regression.html")
    page.go_back()
    links.nth(3).click()  # on its words
    page.wait_for_url("**/notebooks/04_scoring.html")


@pytest.mark.parametrize("width, wide", [(390, False), (1280, True)])
def test_a_drawing_is_narrow_on_a_phone_and_whole_when_enlarged(
    visit, width, wide
):
    page = visit(CHAPTER, width)
    image = page.locator("picture img").first
    shown = "image => image.naturalWidth"
    assert image.evaluate(shown) == (960 if wide else 480)  # points
    image.click()
    assert page.locator("dialog.large img").evaluate(shown) == 960


def test_folded_parts_are_printed_and_folded_again(visit):
    pypdf = pytest.importorskip("pypdf")
    page = visit(CHAPTER)
    folded = page.locator(".bd-article details:not([open])")
    before = folded.count()
    pdf = pypdf.PdfReader(io.BytesIO(page.pdf()))
    text = " ".join(" ".join(p.extract_text() for p in pdf.pages).split())
    assert before > 15 and folded.count() == before
    assert len(text.split()) / len(pdf.pages) > 280, "half-empty pages"
    assert "the only key like it is its own" in text  # an answer
    solution = page.locator("details.solution pre").last
    for cell in solution, page.locator(".tag_check pre").last:
        line = max(cell.text_content().splitlines(), key=len)
        assert "".join(line.split()) not in "".join(text.split())
    assert "Attention in large models" not in text, "the sidebar"


def test_a_download_is_the_notebook_as_committed(visit, tmp_path):
    page = visit(CHAPTER, 390)
    page.click("[aria-label='Download this page']")
    with page.expect_download() as started:
        page.click("text=.ipynb")
    started.value.save_as(tmp_path / "saved")
    name = started.value.suggested_filename
    assert name == "06_multi_head.ipynb"
    committed = (ROOT / "notebooks" / name).read_bytes()
    assert (tmp_path / "saved").read_bytes() == committed


@pytest.mark.parametrize("width, stacked", [(390, True), (1280, False)])
def test_panels_and_wide_tables_are_stacked_on_a_phone(visit, width, stacked):
    page = visit("notebooks/04_scoring.html", width)
    image = page.locator("img[data-panels]").first
    stack = page.locator(".panels").first
    stack.wait_for(state="attached")
    assert stack.is_visible() is stacked
    assert (image.bounding_box()["width"] > 100) is not stacked
    if stacked:
        first, second = (x.bounding_box() for x in stack.locator("*").all())
        assert first["y"] + first["height"] <= second["y"] + 1
        assert max(first["width"], second["width"]) > 250
        assert image.get_attribute("alt")
        stack.click()
        assert page.locator("dialog.large").is_visible()
    page = visit("figures.html", width)
    tables = page.locator("table.stacked")
    assert (tables.count() > 0) is stacked
    if stacked:
        cell = tables.first.locator("td").nth(1)
        said = cell.evaluate("x => getComputedStyle(x, '::before').content")
        assert "Ours" in said
    wide = "document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(wide) <= 0


def test_no_line_of_code_is_cut_on_a_desktop(visit):
    page = visit("index.html")
    cut = """[...document.querySelectorAll('.cell_input pre')].filter(
        x => x.checkVisibility() && x.scrollWidth > x.clientWidth).length"""
    for name in PAGES:
        if name.startswith("notebooks/"):
            page.goto(urljoin(page.url, f"/{name}"))
            assert page.evaluate(cut) == 0, name


def test_a_chapter_shows_its_kinds_of_cells_by_name(visit):
    page = visit(CHAPTER)
    prompts = page.locator("details.hide > summary").all_inner_texts()
    names = {"Imports", "Code of this figure", "Check my answer"}
    assert names <= {*map(str.strip, prompts)}
    assert "Claims" not in page.locator("article").inner_text()
    card = page.locator(".predict").first
    assert card.evaluate("x => getComputedStyle(x).backgroundColor") == (
        "rgb(220, 233, 251)"
    )
    summary = card.locator("summary")
    assert summary.bounding_box()["height"] >= 44
    answer = card.locator("details > p").first
    assert not answer.is_visible()
    summary.click()
    assert answer.is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_interactive_map_works_in_the_book(visit, width):
    page = visit("heatmaps.html", width)
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frames[1]
    frame.wait_for_selector("main[aria-busy=false]")
    frame.press("[data-view=map]", "Enter")
    frame.focus("#map")
    page.keyboard.press("ArrowDown")
    assert "looks at" in frame.inner_text("#status")
    inside = "document.documentElement.scrollWidth - innerWidth"
    assert frame.evaluate(inside) <= 0


def test_the_interactive_map_is_dark_where_the_book_is(visit):
    page = visit("heatmaps.html", color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    page.locator("iframe").scroll_into_view_if_needed()
    page.frames[1].wait_for_selector("main[aria-busy=false]")
    light = page.frames[1].evaluate(paper)
    page.click(".theme-switch-button >> visible=true")
    page.click(".theme-change-button[data-mode=dark] >> visible=true")
    page.wait_for_timeout(300)
    page.frames[1].wait_for_selector("main[aria-busy=false]")
    assert page.frames[1].evaluate(paper) != light


@pytest.mark.parametrize(
    ("title", "chapter"),
    [
        ("Which width?", "02_kernel_regression"),
        ("What does a mask do to its row?", "03_masked_softmax"),
        ("Carry the output", "17_flash_attention"),
    ],
)
def test_an_explorable_opens_in_its_chapter_and_alone(title, chapter, visit):
    page = visit("explorables.html")
    with page.expect_navigation():  # until its script has run
        page.click(f"text=Open {title}")
    page.click("#bet")
    alone = page.inner_text("#result")
    assert re.match(r"You bet on \d\.\d", alone)
    page = visit(f"notebooks/{chapter}.html", width=390)
    page.locator("iframe").scroll_into_view_if_needed()
    inside = page.frame_locator("iframe")
    # By the keyboard: a frame that comes into view may lose a click.
    inside.locator("#bet").press("Enter")
    assert inside.locator("#result").inner_text() == alone
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390


def test_the_skip_link_is_first_and_leads_to_the_text(visit):
    page = visit("start.html")
    page.keyboard.press("Tab")
    link = page.locator("#pst-skip-link a")
    assert link.evaluate("link => link == document.activeElement")
    page.wait_for_timeout(300)
    assert link.bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#main-content")
    page.keyboard.press("Tab")
    assert page.evaluate("!!document.activeElement.closest('#main-content')")


@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        "start.html",
        "reference/layers.html",
        "errors.html",
        CHAPTER,
    ],
)
def test_axe_finds_nothing_serious(visit, name):
    """Colours do not depend on the width, nor the rest on light and dark.

    Contrast is slow: of a section of the reference, one entry is looked at.
    """
    pytest.importorskip("axe_playwright_python")
    axe = files("axe_playwright_python") / "axe.min.js"
    page = visit(name)
    page.evaluate(axe.read_text(encoding="utf-8"))

    def serious(**options):
        found = page.evaluate(
            """options => axe.run(
                {exclude: [["section > dl.py ~ dl.py"]]}, options)""",
            {"resultTypes": ["violations"], "preload": False, **options},
        )
        return [
            (one["id"], [node["target"] for node in one["nodes"]])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    contrast = "color-contrast"
    assert not serious()
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]", state="attached")
    page.wait_for_timeout(500)  # Colours fade.
    assert not serious(runOnly=[contrast])
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_timeout(1000)  # The theme looks for what scrolls, later.
    assert not serious(rules={contrast: {"enabled": False}})
