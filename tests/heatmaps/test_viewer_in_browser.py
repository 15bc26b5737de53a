"""The page in Chromium, without a network: mouse, keys, hostile tokens."""

import shutil
import time

from d2l_attention.heatmaps import view_attention
from hostile import HOSTILE
import nbformat
import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api")

QUERIES, KEYS = ["le", "chat"], ["the", "black", "cat"]
MAPS = {
    f"block_{i}": np.random.default_rng(i).dirichlet(np.ones(3), (1, 2, 2))
    for i in range(2)
}
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_file(browser, tmp_path):
    """Opens HTML as a file; what it asks for is refused and remembered."""
    context = browser.new_context(viewport={"width": 1000, "height": 1200})

    def open_file(text):
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        page = context.new_page()
        page.asked, page.errors = [], []

        def refuse(route):
            if route.request.url == path.as_uri():
                return route.continue_()
            page.asked.append(route.request.url)
            return route.abort()

        page.route("**/*", refuse)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("dialog", lambda dialog: page.errors.append(dialog.message))
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        return page

    yield open_file
    context.close()


def status(page):
    """What a screen reader is told, without signs of direction."""
    return " ".join(page.inner_text("#status").split())


def colours(page):
    """How many different colours the heatmap has."""
    return page.evaluate(
        """() => {
            const map = document.getElementById("map");
            const pixels = map.getContext("2d").getImageData(
                0, 0, map.width, map.height).data;
            const seen = new Set();
            for (let i = 0; i < pixels.length; i += 4)
                seen.add(pixels.slice(i, i + 3).join());
            return seen.size;
        }"""
    )


def middle_of(page, row, column, num_keys):
    """Where a cell is on the screen: cells are at the right end, on top."""
    box = page.locator("#map").bounding_box()
    size = 28
    left = box["width"] - 2 - num_keys * size
    return (
        box["x"] + left + (column + 0.5) * size,
        box["y"] + 8 + (row + 0.5) * size,
    )


def reads(weight):
    return f"weight {weight:.4f}"


def test_a_cell_and_a_token_are_read_under_the_mouse(open_file):
    page = open_file(view_attention(MAPS, QUERIES, KEYS).to_html())
    weights = MAPS["block_0"][0, 0]
    page.mouse.move(*middle_of(page, 1, 2, 3))
    assert status(page).startswith(
        f"query 1 chat to key 2 cat: {reads(weights[1, 2])}"
    )
    best = weights[1].argmax()
    assert status(page).endswith(
        f"key {best} {KEYS[best]} {weights[1, best]:.4f}"
    )
    page.hover("#keys bdi:nth-child(2)")
    assert status(page).startswith(
        f"query 1 chat to key 1 black: {reads(weights[1, 1])}"
    )
    page.hover("#queries bdi:nth-child(1)")
    assert status(page).startswith("query 0 le to key 1 black")
    assert colours(page) > 6
    assert not page.asked and not page.errors


def test_the_keyboard_reads_every_cell_and_changes_the_head(open_file):
    page = open_file(view_attention(MAPS, QUERIES, KEYS).to_html())
    page.focus("#map")
    weights = MAPS["block_0"][0]
    for key, (head, t, s) in {
        "ArrowRight": (0, 0, 1),
        "ArrowDown": (0, 1, 1),
        "End": (0, 1, 2),
        "PageDown": (1, 1, 2),
        "Home": (1, 1, 0),
        "ArrowLeft": (1, 1, 0),
        "ArrowUp": (1, 0, 0),
        "Enter": (1, 0, weights[1, 0].argmax()),
    }.items():
        page.keyboard.press(key)
        assert status(page).startswith(
            f"query {t} {QUERIES[t]} to key {s} {KEYS[s]}: "
            f"{reads(weights[head, t, s])}"
        ), key
    page.keyboard.press("PageDown")
    assert page.input_value("#head") == "mean"
    mean = weights[:, 0, weights[1, 0].argmax()].mean()
    assert reads(mean) in status(page)
    name = page.get_attribute("#map", "aria-label")
    assert name == "Heatmap of 2 queries by 3 keys, block_0"
    assert page.get_attribute("#status", "aria-live") == "polite"


def test_layer_head_and_scale_are_picked(open_file):
    page = open_file(view_attention(MAPS, QUERIES, KEYS).to_html())
    most = max(weights.max() for weights in MAPS.values())
    page.select_option("#layer", "1")
    page.select_option("#head", "1")
    weights = MAPS["block_1"][0, 1]
    assert status(page).startswith(
        f"query 0 le to key 0 the: {reads(weights[0, 0])}"
    )
    assert float(page.inner_text("#most")) == pytest.approx(most, rel=1e-2)
    page.check("#own")
    assert float(page.inner_text("#most")) == pytest.approx(
        weights.max(), rel=1e-2
    )


def test_keys_from_right_to_left_and_hidden_cells(open_file):
    keys = ["אחת", "שתיים", "שלוש"]
    view = view_attention(
        MAPS, QUERIES, keys, mask=np.array([True, True, False])
    )
    page = open_file(view.to_html())
    page.focus("#map")
    page.keyboard.press("ArrowLeft")
    assert status(page).startswith("query 0 le to key 1 שתיים")
    page.keyboard.press("End")
    assert "key 2 שלוש: no weight (masked)" in status(page)
    page.mouse.move(*middle_of(page, 0, 0, 3))
    assert "to key 2 שלוש" in status(page), "the last key is leftmost"


def test_hostile_tokens_change_nothing(open_file):
    view = view_attention(np.eye(len(HOSTILE))[None], HOSTILE, HOSTILE)
    page = open_file(view.to_html())
    page.focus("#map")
    for _ in HOSTILE:
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
    assert page.title() == "Attention"
    assert page.locator("#keys bdi").count() == len(HOSTILE)
    assert page.inner_text("#keys bdi:nth-child(6)") == r"$\frac$"
    assert page.locator("img, svg").count() == 0
    box = page.locator("body").bounding_box()
    assert box["width"] <= 1000, "a long token does not widen the page"
    assert not page.asked and not page.errors


def test_in_a_notebook_turned_into_a_page(open_file):
    """The picture first, then the page in a frame that may do nothing."""
    from nbconvert import HTMLExporter

    view = view_attention(MAPS, QUERIES, [*KEYS[:2], HOSTILE[0]])
    output = nbformat.v4.new_output(
        "display_data", {"text/html": view._repr_html_()}
    )
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("view", outputs=[output])]
    )
    text, _ = HTMLExporter().from_notebook_node(notebook)
    page = open_file(text)
    picture = page.locator("img[alt^='block_0 first head. Heatmap of 2']")
    assert picture.bounding_box()["width"] > 100
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frames[1]
    frame.focus("#map")
    page.keyboard.press("ArrowDown")
    weight = MAPS["block_0"][0, 0, 1, 0]
    found = " ".join(frame.inner_text("#status").split())
    assert found.startswith(f"query 1 chat to key 0 the: {reads(weight)}")
    assert page.title() == "Notebook"
    assert not page.errors


def test_512_tokens_and_twelve_heads_answer_at_once(open_file):
    weights = np.random.default_rng(0).dirichlet(np.ones(512), (12, 512))
    tokens = [f"t{i}" for i in range(512)]
    page = open_file(view_attention(weights, tokens, tokens).to_html())
    page.focus("#map")
    start = time.perf_counter()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("PageDown")
    assert reads(weights[1, 5, 0]) in status(page)
    assert time.perf_counter() - start < 10
    assert colours(page) > 50
