"""The map in Chromium: mouse, keys, touch, zoom, scales and filters."""

from d2l_attention.heatmaps import view_attention, viewer
import matplotlib
import numpy as np
import pytest

QUERIES, KEYS = ["le", "chat"], ["the", "black", "cat"]
TOKENS = {"query_tokens": QUERIES, "key_tokens": KEYS}
MAPS = {
    f"block_{i}": np.random.default_rng(i).dirichlet(np.ones(3), (1, 2, 2))
    for i in range(2)
}
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True}


def reads(weight):
    return f": {weight:.4f}"


def viridis(share):
    return tuple(matplotlib.colormaps["viridis"](share, bytes=True)[:3])


def causal(size):
    """Softmax of random scores of a causal map."""
    scores = np.random.default_rng(0).normal(size=(1, size, size))
    weights = np.exp(scores) * np.tri(size)
    return weights / weights.sum(-1, keepdims=True)


def test_a_cell_and_a_token_are_read_under_the_mouse(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS))
    page, weights = viewer.page, MAPS["block_0"][0, 0]
    page.mouse.move(*viewer.cell(1, 2))
    assert viewer.status().startswith(
        f"chat (1) looks at cat (2){reads(weights[1, 2])}"
    )
    page.hover("#keys bdi:nth-child(2)")
    best = weights[1].argmax()
    assert best != 1
    assert viewer.status() == (
        f"chat (1) looks at black (1): {weights[1, 1]:.4f} "
        f"and most at {KEYS[best]} ({best}): {weights[1, best]:.4f}"
    )
    page.hover("#queries bdi:nth-child(1)")
    assert viewer.status().startswith("le (0) looks at black (1)")
    most = max(weights.max() for weights in MAPS.values())
    for t, s in np.ndindex(2, 3):
        level = int(255 * weights[t, s] / most + 0.5)
        assert viewer.colour(t, s) == viridis(level)
    viewer.asserts_innocence()


def test_the_keyboard_reads_every_cell_and_changes_the_head(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS))
    page, weights = viewer.page, MAPS["block_0"][0]
    page.focus("#map")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
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
        assert viewer.status().startswith(
            f"{QUERIES[t]} ({t}) looks at {KEYS[s]} ({s})"
            f"{reads(weights[head, t, s])}"
        ), key
    page.keyboard.press("PageDown")
    assert page.locator("#head option:checked").inner_text() == "mean"
    mean = weights[:, 0, weights[1, 0].argmax()].mean()
    assert reads(mean) in viewer.status()
    name = page.get_attribute("#map", "aria-label")
    assert name == "Heatmap of 2 queries by 3 keys, block_0"
    assert page.get_attribute("#status", "aria-live") == "polite"


def test_a_click_or_the_space_bar_holds_the_cell(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS))
    page = viewer.page
    page.mouse.move(*viewer.cell(1, 1))
    page.mouse.click(*viewer.cell(1, 1))
    page.mouse.move(*viewer.cell(0, 2))
    assert viewer.status().startswith("chat (1) looks at black (1)")
    assert ", held" in viewer.status()
    page.mouse.click(*viewer.cell(0, 2))
    assert ", held" not in viewer.status()
    page.mouse.move(*viewer.cell(0, 0))
    assert viewer.status().startswith("le (0) looks at the (0)")
    page.focus("#map")
    page.keyboard.press("Space")
    page.mouse.move(*viewer.cell(1, 2))
    assert viewer.status().startswith("le (0) looks at the (0)")
    page.keyboard.press("ArrowRight")
    assert viewer.status().startswith("le (0) looks at black (1)")
    page.keyboard.press("Escape")
    page.mouse.move(*viewer.cell(1, 2))
    assert viewer.status().startswith("chat (1) looks at cat (2)")


def test_a_tap_holds_the_cell_and_a_drag_moves_it(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS), **PHONE)
    page = viewer.page
    page.touchscreen.tap(*viewer.cell(1, 2))
    assert viewer.status().startswith("chat (1) looks at cat (2)")
    assert ", held" in viewer.status()
    page.touchscreen.tap(*viewer.cell(0, 1))
    assert viewer.status().startswith("le (0) looks at black (1)")
    assert ", held" in viewer.status()
    page.touchscreen.tap(*viewer.cell(0, 1))
    assert ", held" not in viewer.status()
    page.tap("#keys bdi:nth-child(1)")
    assert viewer.status().startswith("le (0) looks at the (0)")
    drag_finger(page, viewer.cell(0, 0), viewer.cell(1, 2))
    assert viewer.status().startswith("chat (1) looks at cat (2)")
    assert ", held" not in viewer.status()


def drag_finger(page, start, end):
    """A finger from one point to another, through the browser's own input."""
    session = page.context.new_cdp_session(page)
    for kind, points in (
        ("touchStart", [start]),
        ("touchMove", [np.add(start, end) / 2]),
        ("touchMove", [end]),
        ("touchEnd", []),
    ):
        session.send(
            "Input.dispatchTouchEvent",
            {
                "type": kind,
                "touchPoints": [
                    {"x": float(x), "y": float(y)} for x, y in points
                ],
            },
        )


def test_layer_head_and_scale_are_picked(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS))
    page = viewer.page
    most = max(weights.max() for weights in MAPS.values())
    page.select_option("#layer", label="block_1")
    page.select_option("#head", label="1")
    weights = MAPS["block_1"][0, 1]
    t, s = page.evaluate("[state.query, state.key]")
    assert reads(weights[t, s]) in viewer.status()
    assert float(page.inner_text("#most")) == pytest.approx(most, rel=1e-2)
    page.select_option("#reference", "map")
    top = weights.max()
    assert float(page.inner_text("#most")) == pytest.approx(top, rel=1e-2)
    for scale, share in {
        "linear": weights[1, 2] / top,
        "root": np.sqrt(weights[1, 2] / top),
        "row": weights[1, 2] / weights[1].max(),
    }.items():
        page.select_option("#scale", scale)
        assert viewer.colour(1, 2) == viridis(int(255 * share + 0.5)), scale
        name = page.get_attribute("#bar", "aria-label")
        assert ("row's largest" in name) == (scale == "row")
    assert page.is_disabled("#reference"), "a row needs no other reference"


def test_every_control_of_the_toolbar_works_by_touch(open_view):
    viewer = open_view(
        view_attention({**MAPS, "wide": causal(60)[None]}),
        permissions=["clipboard-read", "clipboard-write"],
        **PHONE,
    )
    page = viewer.page
    for view, shown in {
        "overview": "#overview",
        "lines": "#lines",
        "map": "#map-view",
    }.items():
        page.tap(f"[data-view={view}]")
        assert page.is_visible(shown), view
    assert page.is_hidden("#scale")
    page.tap("#more")
    # A tap opens the phone's own list, whose choice is a change.
    for control, choice in {
        "#layer": {"label": "wide"},
        "#scale": {"value": "row"},
    }.items():
        page.tap(control)
        assert page.evaluate("document.activeElement.id") == control[1:]
        page.select_option(control, **choice)
    assert "row's largest" in page.get_attribute("#bar", "aria-label")
    fit = page.evaluate("painted.map.cell")
    page.tap("#larger")
    assert page.evaluate("painted.map.cell") > fit
    page.tap("#smaller")
    assert page.evaluate("painted.map.cell") == fit
    page.tap("#larger")
    page.tap("#fit")
    assert page.evaluate("painted.map.cell") == fit
    for kind in ("png", "svg"):
        with page.expect_download() as started:
            page.tap(f"#{kind}")
        assert started.value.suggested_filename.endswith(f".{kind}")
    page.tap("#csv")
    page.wait_for_function(
        "() => element('said').textContent.startsWith('Copied wide')"
    )
    for control in page.locator("#toolbar :is(button, select)").all():
        if control.is_visible():
            box = control.bounding_box()
            assert min(box["width"], box["height"]) >= 24  # WCAG 2.2, 2.5.8
    viewer.asserts_innocence()


def test_a_long_causal_map_is_bright_to_its_end(open_view):
    weights = causal(300)
    viewer = open_view(view_attention(weights))
    best = int(weights[0, 299].argmax())
    viewer.page.select_option("#scale", "row")
    assert viewer.colour(299, best, 0) == viridis(1.0)
    viewer.page.select_option("#scale", "linear")
    red, green, _ = viewer.colour(299, best, 0)
    assert red + green < 150, "dark as long as all share a scale"
    viewer.page.select_option("#scale", "root")
    assert sum(viewer.colour(299, best, 0)[:2]) > red + green


SINK = np.array(
    [
        [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1]],
        [[0.1, 0.5, 0.4], [0.3, 0.2, 0.5]],
    ]
)
HIDDEN = (150, 150, 150)


def told(viewer):
    return " ".join(viewer.page.inner_text("#told").split())


def test_a_hidden_key_is_grey_and_the_colours_follow_the_rest(open_view):
    maps = {"block_0": SINK, "block_1": SINK / 2, "other": SINK[:, :, :2]}
    tokens = {"other": (QUERIES, ["x", "y"])}
    viewer = open_view(view_attention(maps, **TOKENS, tokens=tokens))
    page = viewer.page
    assert page.is_visible("#hide") and told(viewer) == ""
    page.mouse.click(*viewer.cell(1, 0))
    assert viewer.colour(0, 0) == viridis(1.0)
    page.click("#hide")
    assert told(viewer) == (
        "Hidden: key the (0), 70% of the weight of this head. "
        "The other weights are as they were."
    )
    assert viewer.status().startswith(
        "chat (1) looks at the (0): 0.6000, hidden, held and most at black"
    )
    assert {viewer.colour(t, 0) for t in (0, 1)} == {HIDDEN}
    # In the layer with other keys, 0.8 is not hidden.
    assert viewer.colour(1, 1) == viridis(int(255 * 0.3 / 0.8 + 0.5))
    page.select_option("#reference", "map")
    assert viewer.colour(1, 1) == viridis(1.0)
    page.select_option("#scale", "row")
    assert viewer.colour(0, 2) == viridis(1.0)
    colours = page.locator(".tokens bdi").evaluate_all(
        "all => all.map(node => node.style.background)"
    )
    grey = [f"rgb{HIDDEN}" == colour for colour in colours]
    assert grey == [True, True, True, False, False], "the queries, then keys"
    page.select_option("#head", label="1")
    assert "20% of the weight of this head" in told(viewer)
    page.select_option("#head", label="mean")
    assert "45% of the weight of the mean of the heads" in told(viewer)
    page.select_option("#layer", label="other")
    assert told(viewer) == ""
    page.select_option("#layer", label="block_1")
    assert told(viewer).startswith("Hidden: key the (0), ")
    page.click("#shows button")
    assert told(viewer) == "" and viewer.colour(0, 0) != HIDDEN
    assert page.evaluate("document.activeElement.id") == "hide"
    viewer.asserts_innocence()


def test_the_keyboard_hides_keys_and_shows_them_again(open_view):
    maps = {"block_0": SINK, "block_1": SINK / 2}
    viewer = open_view(view_attention(maps, **TOKENS, hide_keys=[0]))
    page = viewer.page
    assert viewer.status().startswith("chat (1) looks at black (1): 0.3000")
    assert told(viewer).startswith("Hidden: key the (0), 70%")
    assert viewer.colour(1, 1) == viridis(int(255 * 0.3 / 0.5 + 0.5))
    page.focus("#map")
    page.keyboard.press("h")
    assert told(viewer).startswith("Hidden: key the (0) and black (1), 90%")
    page.keyboard.press("Enter")
    assert viewer.status().startswith("chat (1) looks at cat (2)")
    page.keyboard.press("Home")
    assert page.inner_text("#hide") == "Show this key"
    page.keyboard.press("H")
    assert told(viewer).startswith("Hidden: key black (1), 20%")
    page.focus("#shows button")
    page.keyboard.press("Enter")
    assert told(viewer) == "" and page.locator("#shows button").count() == 0
    for _ in KEYS:
        page.focus("#map")
        page.keyboard.press("h")
        page.keyboard.press("ArrowRight")
    assert "100% of the weight" in told(viewer)
    assert "most at" not in viewer.status()
    viewer.asserts_innocence()


def test_a_hidden_block_of_keys_has_no_share(open_view, monkeypatch):
    monkeypatch.setattr(viewer, "_MOST_CELLS", 50 * 50)
    opened = open_view(view_attention(causal(100), hide_keys=[3]))
    assert told(opened) == (
        "Hidden: key 2 … 3 (1). The other weights are as they were."
    ), "a cell is the largest of its block, and these do not add up"


def test_many_hidden_keys_are_shown_again_by_one_button(open_view):
    viewer = open_view(view_attention(causal(9), hide_keys=range(7)))
    page = viewer.page
    assert told(viewer).startswith("Hidden: 7 keys, ")
    assert page.inner_text("#shows") == "Show all 7 keys"
    page.click("#shows button")
    assert told(viewer) == ""


def test_a_hidden_key_has_no_lines_and_no_colour_in_the_overview(open_view):
    viewer = open_view(
        view_attention(SINK, **TOKENS, hide_keys=[0], view="lines")
    )
    page = viewer.page
    assert page.evaluate("lines.found.every(link => link.s !== 0)")
    assert page.evaluate("lines.found.length") == 8
    page.hover("#to button:nth-child(1)")
    assert viewer.status() == "the (0) is hidden"
    viewer.show("overview")
    cell = page.locator("[role=gridcell]").first
    name = cell.get_attribute("aria-label")
    assert name.endswith("largest weight 0.30, 70% of the weight hidden")
    colours = cell.locator("canvas").evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, 3, 2).data]"
    )
    colours = np.reshape(colours, (2, 3, 4))[..., :3]
    assert (colours[:, 0] == HIDDEN).all()
    assert not (colours[:, 1:] == HIDDEN).all(-1).any()
    page.click("#shows button")
    assert page.is_hidden("#hiding")
    assert page.evaluate("document.activeElement.dataset.view") == "overview"
    viewer.asserts_innocence()


def test_the_map_is_zoomed_by_buttons_keys_and_wheel(open_view):
    weights = causal(100)
    viewer = open_view(view_attention(weights))
    page = viewer.page

    def cell():
        return page.evaluate("painted.map.cell")

    fit = cell()
    assert page.is_disabled("#smaller") and page.is_disabled("#fit")
    page.click("#larger")
    assert cell() > fit
    page.click("#smaller")
    page.click("#larger")
    page.click("#fit")
    assert cell() == fit
    page.focus("#map")
    for _ in range(20):
        page.keyboard.press("+")
    assert cell() == 64 and page.is_disabled("#larger")
    for _ in range(34 - page.evaluate("state.query")):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert viewer.status().startswith("34 looks at 99")
    box = page.locator("#map").bounding_box()
    x, y = viewer.cell(34, 99)
    assert box["x"] < x < box["x"] + box["width"], "the window follows"
    assert box["y"] < y < box["y"] + box["height"]
    page.keyboard.press("-")
    assert cell() < 64
    page.keyboard.press("0")
    assert cell() == fit
    before = viewer.cell(20, 30)
    page.mouse.move(*before)
    page.keyboard.down("Control")
    for _ in range(4):
        page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function("() => painted.map.cell > 15")
    # Sideways the map grows to the right as long as all of it fits.
    assert abs(viewer.cell(20, 30)[1] - before[1]) < cell()
    page.mouse.move(*viewer.cell(20, 30))
    assert viewer.status().startswith("20 looks at 30")
    assert reads(weights[0, 20, 30])[:6] in viewer.status()


def test_a_zoomed_map_is_dragged(open_view):
    for options in ({}, PHONE):
        viewer = open_view(view_attention(causal(100)), **options)
        page = viewer.page
        if options:
            page.click("#more")
        for _ in range(5):
            page.click("#larger")
        start, end = viewer.cell(4, 3), viewer.cell(1, 2)
        if options:
            drag_finger(page, start, end)
        else:
            page.mouse.move(*start)
            page.mouse.down()
            page.mouse.move(*end)
            page.mouse.up()
        np.testing.assert_allclose(viewer.cell(4, 3), end, atol=1)
        assert ", held" not in viewer.status()


def test_keys_from_right_to_left_and_hidden_cells(open_view):
    keys = ["אחת", "שתיים", "שלוש"]
    mask = np.array([True, True, False])
    viewer = open_view(
        view_attention(MAPS, query_tokens=QUERIES, key_tokens=keys, mask=mask)
    )
    page = viewer.page
    page.focus("#map")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert viewer.status().startswith("le (0) looks at שתיים (1)")
    page.keyboard.press("End")
    assert viewer.status().startswith("le (0) may not look at שלוש (2)")
    assert viewer.cell(0, 2)[0] < viewer.cell(0, 0)[0]
    shades = {
        viewer.colour(0, 2, beside) for beside in np.linspace(-0.2, 0.2, 25)
    }
    assert len(shades) > 1, "hatched"
    assert all(max(shade) - min(shade) < 9 for shade in shades), "in grey"
    first = page.locator("#keys bdi").first.bounding_box()
    readout = page.locator("#readout").bounding_box()
    assert first["x"] + first["width"] < readout["x"] + 300


def test_a_map_drawn_too_early_fits_its_room_later(open_view):
    tokens = [f"t{i}" for i in range(12)]
    page = open_view(
        view_attention(causal(12), query_tokens=tokens, key_tokens=tokens),
        viewport={"width": 100, "height": 800},
    ).page
    early = page.evaluate("painted.map.cell")
    # As in a frame that had its width, and no layout yet.
    page.evaluate(
        "() => { Object.defineProperty(window, 'innerWidth', {value: 100}); }"
    )
    page.set_viewport_size({"width": 390, "height": 800})
    page.evaluate(
        "() => new Promise(done =>"
        " requestAnimationFrame(() => setTimeout(done, 100)))"
    )
    assert page.evaluate("painted.map.cell") > 2 * early
