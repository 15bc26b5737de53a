"""The page as people meet it: phone, dark, contrast theme, notebook, hostile.

Every view is looked at, for what a reader sees and not only for what is there.
"""

from collections import namedtuple
import statistics

from browsing import contrast, rgb
from d2l_attention.heatmaps import view_attention
from hostile_tokens import HOSTILE
import numpy as np
import pytest

VIEWS = ("overview", "map", "lines")
PHONE = {
    "viewport": {"width": 390, "height": 800},
    "has_touch": True,
    "is_mobile": True,
}
Score = namedtuple("Score", "path head kind score chance null")
TOKENS = [f"token{i}" for i in range(12)]
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(12), (12, 12))


# Boxes with one stop each, from which the arrow keys lead on.
BOXES = {
    "overview": ["#grid"],
    "map": ["#map-view"],
    "lines": ["#from", "#to"],
}


def view_of(view="map", **asked):
    maps = {"encoder/block_1/attention": WEIGHTS, "decoder": WEIGHTS[:3]}
    scores = [Score(path, 0, "induction", 0.5, 0.2, 0.4) for path in maps]
    return view_attention(
        maps,
        query_tokens=TOKENS,
        key_tokens=TOKENS,
        sentence_b=5,
        hide_keys=[0],
        scores=scores,
        view=view,
        **asked,
    )


LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced": {"forced_colors": "active"},
    "forced and dark": {"forced_colors": "active", "color_scheme": "dark"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_labels_and_cells_are_seen_in_every_theme(open_view, look):
    mask = np.tri(12, dtype=bool)
    viewer = open_view(view_of(mask=mask), **LOOKS[look])
    page = viewer.page
    colours = page.evaluate(
        """() => {
            const map = element("map"), pen = map.getContext("2d");
            const {left} = painted.map;
            const at = (x, y, w, h) => [...pen.getImageData(
                x * painted.ratio, y * painted.ratio, w, h).data];
            return {
                theme: painted.colours,
                body: getComputedStyle(document.body).backgroundColor,
                labels: at(0, 30, left - 4, 200),
                cells: at(left, PAD, 300, 300),
            };
        }"""
    )
    paper = rgb(colours["body"])
    assert (sum(paper) < 384) == ("dark" in look)
    labels = np.reshape(colours["labels"], (-1, 4))
    strongest = labels[labels[:, 3] == 255][:, :3]
    assert max(contrast(ink, paper) for ink in strongest) > 7
    cells = np.reshape(colours["cells"], (-1, 4))[:, :3]
    assert len(np.unique(cells, axis=0)) > 40, "cells keep their colours"
    assert contrast(rgb(colours["theme"]["hatch"]), paper) > 2.5
    page.click("#ask")
    for text in ("#precision", "#status", "#toolbar label", "#tokens h2"):
        style = page.evaluate(
            f"getComputedStyle(document.querySelector('{text}')).color"
        )
        assert contrast(rgb(style), paper) > 4.5, text
    viewer.asserts_innocence()


def test_a_change_of_theme_paints_anew(open_view):
    page = open_view(view_of(), color_scheme="light").page
    assert page.evaluate("painted.colours.dark") is False
    for dark in (True, False):
        page.click("#theme")
        assert page.evaluate("painted.colours.dark") is dark
    page.evaluate("document.documentElement.style.colorScheme = ''")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => painted.colours.dark === true")
    page.emulate_media(color_scheme="light", forced_colors="active")
    page.wait_for_function(
        "() => painted.colours.hatch === painted.colours.ink"
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("options", [PHONE, {}], ids=["390", "1280"])
def test_the_page_is_as_wide_as_the_screen(open_view, options, view):
    viewer = open_view(view_of(view=view), **options)
    page = viewer.page
    width = (options or {"viewport": {"width": 1280}})["viewport"]["width"]
    assert page.evaluate("innerWidth") == width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if options:
        controls = page.locator("button, select, label:has([type=checkbox])")
        small = [
            control.get_attribute("id") or control.inner_text()
            for control in controls.all()
            if control.is_visible() and control.bounding_box()["height"] < 40
        ]
        assert not small


@pytest.mark.parametrize("width", [899, 900])
def test_the_readout_stands_at_the_right_of_wide_maps(open_view, width):
    size = {"width": width, "height": 800}
    page = open_view(view_of(), viewport=size).page
    shown = page.locator("#map").bounding_box()
    readout = page.locator("#readout").bounding_box()
    right, below = (
        readout[axis] >= shown[axis] + shown[side]
        for axis, side in (("x", "width"), ("y", "height"))
    )
    assert (right, below) == ((True, False) if width == 900 else (False, True))


def test_help_and_rare_controls_open_on_demand(open_view):
    page = open_view(view_of(), **PHONE).page
    for control, folded in {"#more": "#csv", "#ask": "#precision"}.items():
        for is_open in (False, True, False):
            assert page.is_visible(folded) is is_open
            state = page.get_attribute(control, "aria-expanded")
            assert state == str(is_open).lower()
            page.tap(control)
    page = open_view(view_of()).page
    assert page.is_hidden("#more") and page.is_visible("#csv")


@pytest.mark.parametrize("view", VIEWS)
def test_every_control_has_a_name(open_view, view):
    page = open_view(view_of(view=view)).page
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(
            "button, select, input, canvas[role], [tabindex], [role=group]")]
            .filter(node => node.checkVisibility()
                && !(node.getAttribute("aria-label") || node.labels?.length
                || (node.tagName === "BUTTON" && node.innerText)))
            .map(node => node.outerHTML)"""
    )
    assert not nameless


@pytest.mark.parametrize("view", VIEWS)
def test_every_control_is_reached_by_the_tabulator(open_view, view):
    page = open_view(view_of(view=view)).page
    wanted = set(
        page.evaluate(
            """() => [...document.querySelectorAll("button, select, input, "
                + "[tabindex='0']")].filter(node => node.checkVisibility()
                && node.tabIndex === 0 && !node.disabled)
                .map((node, i) => node.dataset.stop = i)"""
        )
    )
    assert len(wanted) > 10
    for box in BOXES[view]:
        assert page.locator(f"{box} [tabindex='0']").count() == 1, box
    reached = set()
    for _ in range(len(wanted) + 2):
        page.keyboard.press("Tab")
        stop = page.evaluate("document.activeElement.dataset.stop")
        reached.add(None if stop is None else int(stop))
        clipped = page.evaluate(
            """() => {
                const ring = document.activeElement.getBoundingClientRect();
                const offset = parseFloat(getComputedStyle(
                    document.activeElement).outlineOffset) + 2;
                for (let box = document.activeElement.parentElement; box;
                        box = box.parentElement) {
                    if (getComputedStyle(box).overflowX === "visible") continue;
                    const frame = box.getBoundingClientRect();
                    if (ring.left - offset < frame.left - 0.5) return box.id;
                }
                return null;
            }"""
        )
        assert clipped is None, "the focus ring is cut off"
    assert wanted <= reached


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_tokens_change_nothing_on_any_layer(open_view, view):
    size = len(HOSTILE)
    long = [*HOSTILE, *map(str, range(70))]
    maps = {
        "<b>one</b>": np.eye(size)[None],
        "__proto__": np.eye(size)[None],
        "long": np.eye(size + 70)[None],
    }
    viewer = open_view(
        view_attention(
            maps,
            query_tokens=HOSTILE,
            key_tokens=HOSTILE,
            tokens={"long": (long, long)},
            view=view,
        )
    )
    page = viewer.page
    for layer in maps:
        page.select_option("#layer", label=layer)
        if view == "map":
            page.focus("#map")
            for _ in HOSTILE:
                page.keyboard.press("ArrowDown")
                page.keyboard.press("ArrowRight")
            assert page.inner_text("#keys bdi:nth-child(6)") == r"$\frac$"
        if view == "lines":
            page.focus("#from button")
            for _ in HOSTILE:
                page.keyboard.press("ArrowDown")
            shown = page.inner_text("#to button:nth-child(6) bdi")
            assert shown == r"$\frac$"
        assert page.locator("img, b, script[src]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        tall = page.evaluate(
            """Math.max(0, ...[...document.querySelectorAll(".tokens bdi")]
                .map(node => node.getBoundingClientRect().height))"""
        )
        assert tall < 40, "300 marks stay in their cell"
    viewer.asserts_innocence()


def test_no_sign_is_cut_in_two(open_view):
    page = open_view(view_of()).page
    family = "👩‍👩‍👧‍👧"
    assert page.evaluate(f"short('{family}'.repeat(20), 3)") == family * 2 + "…"
    assert (
        page.evaluate("short('e\\u0301'.repeat(9), 4)") == "e\u0301" * 3 + "…"
    )
    assert page.evaluate(f"short('{family}', 14)") == family


def test_a_key_is_answered_at_once_at_512_tokens(open_view):
    weights = np.random.default_rng(0).dirichlet(np.ones(512), (12, 512))
    tokens = [f"t{i}" for i in range(512)]
    viewer = open_view(
        view_attention(weights, query_tokens=tokens, key_tokens=tokens)
    )
    took = viewer.page.evaluate(
        """async () => {
            const took = [];
            Object.assign(state, {query: 0, key: 0});
            for (const key of [...Array(9).fill("ArrowDown"),
                    ...Array(9).fill("ArrowRight"), "Enter", "End",
                    ...Array(3).fill("PageDown")]) {
                const start = performance.now();
                element("map").dispatchEvent(
                    new KeyboardEvent("keydown", {key, bubbles: true}));
                await new Promise(requestAnimationFrame);
                took.push(performance.now() - start);
            }
            return took;
        }"""
    )
    print(f"median {statistics.median(took):.0f} ms, most {max(took):.0f} ms")
    moves, heads = took[:-3], took[-3:]
    assert statistics.median(moves) < 200 and statistics.median(heads) < 200
    assert "t9 (9) looks at t511 (511)" in viewer.status()
    shown = float(viewer.status().split(": ")[1].split()[0])
    assert shown == pytest.approx(weights[3, 9, 511], abs=1e-3)
