"""What leaves the page: PNG, SVG and CSV, of every view."""

import csv
import io
from xml.etree import ElementTree

from d2l_attention.heatmaps import view_attention
from hostile_tokens import HOSTILE
import matplotlib
import numpy as np
from PIL import Image
import pytest

TOKENS = ["=1+1", 'say "x", y', "猫"]
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(3), (1, 2, 3))
VIEWS = ("overview", "map", "lines")


def view_of(weights=WEIGHTS, tokens=TOKENS, **asked):
    return view_attention(
        {"a/b <c>": weights}, query_tokens=tokens, key_tokens=tokens, **asked
    )


def download(viewer, kind, tmp_path):
    with viewer.page.expect_download() as started:
        viewer.page.click(f"#{kind}")
    name = started.value.suggested_filename
    assert name.startswith("attention-") and name.endswith(f".{kind}")
    assert not set(name) & set("/<> ")
    started.value.save_as(tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("view", VIEWS)
def test_a_png_has_the_colours_of_the_weights(open_view, tmp_path, view):
    viewer = open_view(view_of(view=view), color_scheme="dark")
    picture = Image.open(download(viewer, "png", tmp_path)).convert("RGB")
    counts = {colour: n for n, colour in picture.getcolors(1 << 20)}
    assert picture.getpixel((0, 0)) == (255, 255, 255), "on white"
    if view == "lines":
        assert any(max(colour) - min(colour) > 60 for colour in counts)
        return
    shares = WEIGHTS[0, 0] if view == "map" else WEIGHTS[0]
    for share in (shares / WEIGHTS.max()).flat:
        level = int(255 * share + 0.5)
        colour = matplotlib.colormaps["viridis"](level, bytes=True)[:3]
        assert counts[tuple(int(c) for c in colour)] >= 50


@pytest.mark.parametrize("view", VIEWS)
def test_an_svg_is_xml_with_the_tokens_as_text(
    open_view, browser, tmp_path, view
):
    viewer = open_view(view_of(view=view))
    path = download(viewer, "svg", tmp_path)
    root = ElementTree.parse(path).getroot()
    texts = [node.text for node in root.findall(".//{*}text")]
    wanted = ["a/b <c>"] if view == "overview" else TOKENS * 2
    assert set(wanted) <= set(texts)
    assert all(texts.count(text) >= wanted.count(text) for text in wanted)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        colours = {colour for _, colour in shot.getcolors(1 << 20)}
        assert sum(max(c) - min(c) > 60 for c in colours) > 3


@pytest.mark.parametrize("view", VIEWS)
def test_an_svg_says_what_is_hidden(open_view, tmp_path, view):
    viewer = open_view(view_of(hide_keys=[2], view=view))
    root = ElementTree.parse(download(viewer, "svg", tmp_path)).getroot()
    texts = [node.text for node in root.findall(".//{*}text")]
    assert texts[-1].startswith("Hidden: key 猫 (2)")


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_tokens_stay_text_in_an_svg(open_view, tmp_path, view):
    weights = np.eye(len(HOSTILE))[None]
    viewer = open_view(view_of(weights, HOSTILE, view=view))
    root = ElementTree.parse(download(viewer, "svg", tmp_path)).getroot()
    kinds = {node.tag.split("}")[1] for node in root.iter()}
    assert kinds <= {"svg", "title", "rect", "path", "text", "image"}
    viewer.asserts_innocence()


def test_a_large_map_is_a_picture_within_the_svg(open_view, tmp_path):
    weights = np.random.default_rng(0).dirichlet(np.ones(90), (1, 90))
    viewer = open_view(view_attention(weights))
    path = download(viewer, "svg", tmp_path)
    root = ElementTree.parse(path).getroot()
    image, colour_bar = root.findall(".//{*}image")
    assert image.get("href").startswith("data:image/png;base64,")
    assert float(colour_bar.get("height")) == 12
    assert path.stat().st_size < 200_000


def copied(viewer):
    viewer.page.click("#csv")
    viewer.page.wait_for_function("() => element('said').textContent")
    return viewer.page.evaluate("navigator.clipboard.readText()")


def test_csv_gives_back_weights_and_tokens(open_view):
    mask = np.tri(3, dtype=bool)
    viewer = open_view(
        view_of(mask=mask), permissions=["clipboard-read", "clipboard-write"]
    )
    viewer.page.select_option("#head", label="1")
    text = copied(viewer)
    assert "Copied a/b <c>, head 1" in viewer.page.inner_text("#said")
    table = list(csv.reader(io.StringIO(text)))
    assert table[0][1:] == ["'=1+1", 'say "x", y', "猫"], "no formula is run"
    assert [row[0] for row in table[1:]] == table[0][1:]
    found = [[float(x) if x else np.nan for x in row[1:]] for row in table[1:]]
    wanted = np.where(mask, WEIGHTS[0, 1], np.nan)
    np.testing.assert_allclose(found, wanted, atol=WEIGHTS.max() / 131068)


def test_csv_of_a_long_map_is_as_exact_as_the_page(open_view):
    weights = np.random.default_rng(0).dirichlet(np.ones(80), (1, 70))
    viewer = open_view(
        view_attention(weights),
        permissions=["clipboard-read", "clipboard-write"],
    )
    table = list(csv.reader(io.StringIO(copied(viewer))))
    found = np.array([row[1:] for row in table[1:]], dtype=float)
    half = weights[0].max(-1, keepdims=True) / 254 / 2
    assert (np.abs(found - weights[0]) <= half * 1.001).all()


def test_csv_is_copied_where_the_clipboard_is_refused(open_view):
    viewer = open_view(view_of())
    page = viewer.page
    page.evaluate(
        """() => {
            navigator.clipboard.writeText = () => Promise.reject(new Error());
            document.addEventListener("copy", () => {
                window.copied = document.activeElement.value;
            });
        }"""
    )
    page.click("#csv")
    page.wait_for_function("() => element('said').textContent")
    # A text field has no carriage returns.
    text = page.evaluate("mapAsCsv()").replace("\r", "")
    assert page.evaluate("window.copied") == text
    assert page.inner_text("#said").startswith("Copied")
    assert page.locator("textarea").count() == 0
    page.evaluate("document.execCommand = () => false")
    page.click("#csv")
    page.wait_for_function(
        "() => element('said').textContent.includes('refused')"
    )
