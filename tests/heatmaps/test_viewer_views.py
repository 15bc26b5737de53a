"""Overview and lines in Chromium, the filters, and what a view is first."""

from collections import namedtuple

from d2l_attention.heatmaps import view_attention
import numpy as np

QUERIES, KEYS = ["le", "chat"], ["the", "black", "cat"]
TOKENS = {"query_tokens": QUERIES, "key_tokens": KEYS}
MAPS = {
    f"block_{i}": np.random.default_rng(i).dirichlet(np.ones(3), (1, 2, 2))
    for i in range(2)
}
PHONE = {
    "viewport": {"width": 390, "height": 800},
    "has_touch": True,
    "is_mobile": True,
}


def reads(weight):
    return f": {weight:.4f}"


def test_the_overview_shows_all_heads_and_opens_one(open_view):
    draw = np.random.default_rng(0)
    maps = {
        f"block_{i}": draw.dirichlet(np.ones(5), (12, 5)) for i in range(12)
    }
    viewer = open_view(view_attention(maps, view="overview"))
    page = viewer.page
    assert page.locator("[role=gridcell]").count() == 144
    assert page.locator("[role=grid] [role=row]").count() == 13
    cell = page.get_by_role("gridcell", name="block_7, head 3,")
    colours = cell.locator("canvas").evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, 5, 5).data]"
    )
    assert len({tuple(colours[i : i + 3]) for i in range(0, 100, 4)}) > 9
    cell.click()
    assert page.get_attribute("[data-view=map]", "aria-pressed") == "true"
    assert page.locator("#layer option:checked").inner_text() == "block_7"
    assert page.locator("#head option:checked").inner_text() == "3"
    opened = maps["block_7"][3] * (1 - np.eye(5))
    assert reads(opened.max()) in viewer.status()
    viewer.asserts_innocence()


def test_arrow_keys_move_in_the_overview(open_view):
    maps = {
        "small": np.ones((2, 2, 3)) / 3,
        "large": np.ones((5, 70, 90)) / 90,
        "one": np.ones((1, 1, 4)) / 4,
    }
    viewer = open_view(view_attention(maps, view="overview"))
    page = viewer.page
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1
    page.focus("[role=gridcell][tabindex='0']")
    for key, name in {
        "ArrowRight": "small, head 1",
        "ArrowDown": "large, head 1",
        "End": "large, head 4",
        "ArrowLeft": "large, head 3",
        "ArrowUp": "small, head 1",
        "PageDown": "one, head 0",
        "PageUp": "small, head 0",
        "Home": "small, head 0",
    }.items():
        page.keyboard.press(key)
        assert page.evaluate(focused).startswith(name), key
        assert viewer.status().startswith(name)
        ring = "getComputedStyle(document.activeElement).outlineWidth"
        assert page.evaluate(ring) == "2px"
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    name = page.get_attribute("#map", "aria-label")
    assert name == "Heatmap of 70 queries by 90 keys, large"
    assert page.evaluate("document.activeElement.id") == "map"


def test_the_focused_thumbnail_is_seen_whole_on_a_phone(open_view):
    view = view_attention(np.ones((12, 2, 2)) / 2, view="overview")
    page = open_view(view, **PHONE).page
    page.focus("[role=gridcell][tabindex='0']")
    for key in [*["ArrowRight"] * 11, *["ArrowLeft"] * 11]:
        page.keyboard.press(key)
        # Scrolling may end a frame later. The focus ring is 2 pixels wide, and
        # 2 pixels away.
        page.wait_for_function(
            """() => {
                const cell = document.activeElement.getBoundingClientRect();
                const grid = element("grid").getBoundingClientRect();
                const names = document.querySelectorAll(
                    "[role=rowheader]")[1].getBoundingClientRect();
                return Math.min(
                    cell.left - names.right, grid.right - cell.right) >= 4;
            }""",
            timeout=5000,
        )


def test_the_overview_opens_at_a_tap(open_view):
    viewer = open_view(view_attention(MAPS, view="overview"), **PHONE)
    viewer.page.get_by_role("gridcell", name="block_1, head 1,").tap()
    assert reads(MAPS["block_1"][0, 1].max()) in viewer.status()


Score = namedtuple("Score", "path head kind score chance null")


def scores_of(kind, *numbers):
    """Scores of the heads 0 and 1 of both layers; None leaves one out."""
    heads = [(path, head) for path in MAPS for head in (0, 1)]
    return [
        Score(*at, kind, score, 0.2, 0.4)
        for at, score in zip(heads, numbers, strict=True)
        if score is not None
    ]


def test_the_overview_is_sorted_by_a_score(open_view):
    nan = float("nan")
    scores = scores_of("induction", 0.1, 0.4012, None, 0.9)
    scores += scores_of("first token", nan, 0.2, 0.3, 0.1)
    for options in ({}, PHONE):
        view = view_attention(MAPS, scores=scores, view="overview")
        viewer = open_view(view, **options)
        page = viewer.page
        assert page.locator("#order option").all_inner_texts() == [
            "as in the model",
            "induction",
            "first token",
        ]
        page.select_option("#order", "induction")
        names = page.locator("[role=rowheader]").all_inner_texts()
        assert names == [
            "block_1, head 1: 0.90 (95 % of shuffles: below 0.40)",
            "block_0, head 1: 0.4012 (95 % of shuffles: below 0.4000)",
            "block_0, head 0: 0.10 (95 % of shuffles: below 0.40)",
            "block_1, head 0: no score",
        ]
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width == page.viewport_size["width"]
        page.select_option("#order", "first token")
        names = page.locator("[role=rowheader]").all_inner_texts()
        assert names[0].startswith("block_1, head 0: 0.30")
        assert names[-1] == "block_0, head 0: no score"
    page = open_view(view).page
    page.select_option("#order", "induction")
    page.focus("[role=gridcell][tabindex='0']")
    page.keyboard.press("PageUp")
    focused = page.evaluate("document.activeElement.ariaLabel")
    assert focused.startswith("block_1, head 1, largest")
    assert "induction: 0.90 (95 % of" in focused
    page.keyboard.press("Enter")
    assert page.locator("#layer option:checked").inner_text() == "block_1"
    assert page.locator("#head option:checked").inner_text() == "1"
    assert page.is_hidden("#order")
    page.click("[data-view=overview]")
    page.select_option("#order", "")
    assert page.locator("[role=rowheader]").all_inner_texts()[1:] == [*MAPS]
    without = open_view(view_attention(MAPS, view="overview")).page
    assert without.is_hidden("#order")


def test_a_score_stays_with_the_number_of_its_head(open_view):
    scores = scores_of("induction", 0.1, 0.8, 0.3, 0.9)
    view = view_attention(MAPS, scores=scores, heads=[1], view="overview")
    page = open_view(view).page
    page.select_option("#order", "induction")
    names = page.locator("[role=rowheader]").all_inner_texts()
    assert [name.split(" (")[0] for name in names] == [
        "block_1, head 1: 0.90",
        "block_0, head 1: 0.80",
    ]


def lines_drawn(page):
    return page.evaluate("lines.found.length")


def test_lines_show_the_heads_that_are_on(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS, view="lines"))
    page = viewer.page
    weights = MAPS["block_0"][0]
    most = max(w.max() for w in MAPS.values())
    visible = (weights / most >= 0.03).sum(axis=(1, 2))
    assert lines_drawn(page) == visible.sum()
    page.click("[aria-label='head 0']")
    assert (
        page.get_attribute("[aria-label='head 0']", "aria-pressed") == "false"
    )
    assert lines_drawn(page) == visible[1]
    page.click("[aria-label='head 0']")
    page.dblclick("[aria-label='head 0']")
    assert lines_drawn(page) == visible[0]
    page.dblclick("[aria-label='head 0']")
    assert lines_drawn(page) == visible.sum()
    page.focus("[aria-label='head 1']")
    page.keyboard.press("Shift+Enter")
    assert lines_drawn(page) == visible[1]
    page.keyboard.press("Enter")
    assert lines_drawn(page) == 0
    page.check("#alone")
    page.click("[aria-label='head mean']")
    assert page.evaluate("lines.found.every(link => link.head === MEAN)")
    assert lines_drawn(page) > 0
    viewer.asserts_innocence()


def test_a_token_shows_only_its_lines_with_numbers(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS, view="lines"))
    page, weights = viewer.page, MAPS["block_0"][0]
    largest = [f"{w:.4f}" for w in weights[:, 1].max(0)]

    def numbers(side):
        return page.locator(f"#{side} .number").all_inner_texts()

    page.hover("#from button:nth-child(2)")
    assert numbers("to") == largest and numbers("from") == ["", ""]
    assert page.evaluate("lines.found.every(link => link.t === 1)")
    head, key = np.unravel_index(weights[:, 1].argmax(), (2, 3))
    assert viewer.status().startswith(
        f"chat (1) looks at {KEYS[key]} ({key}): {max(largest)} in head {head}"
    )
    page.mouse.move(600, 900)
    assert numbers("to") == ["", "", ""]
    page.focus("#from button:nth-child(1)")
    page.keyboard.press("ArrowDown")
    assert numbers("to") == largest
    page.keyboard.press("ArrowRight")
    assert numbers("from") == [f"{w:.4f}" for w in weights[:, :, 1].max(0)]
    assert viewer.status().startswith("black (1) is looked at by ")
    page.keyboard.press("Enter")
    page.hover("#from button:nth-child(1)")
    page.mouse.move(600, 900)
    assert numbers("from") != ["", ""], "a chosen token stays"
    page.focus("#to button:nth-child(2)")
    page.keyboard.press("Escape")
    assert numbers("from") == ["", ""]


def test_lines_by_touch(open_view):
    viewer = open_view(view_attention(MAPS, **TOKENS, view="lines"), **PHONE)
    page, weights = viewer.page, MAPS["block_0"][0]
    page.tap("#from button:nth-child(2)")
    shown = page.locator("#to .number").all_inner_texts()
    assert shown == [f"{w:.4f}" for w in weights[:, 1].max(0)]
    page.tap("#from button:nth-child(2)")
    assert page.locator("#to .number").all_inner_texts() == ["", "", ""]
    page.tap("#alone")
    page.tap("[aria-label='head 1']")
    assert page.evaluate("[...lines.heads]") == [1]


def test_lines_join_the_tokens_of_their_weight(open_view):
    weights = np.zeros((1, 5, 5))
    weights[0, 0, 3] = 1
    page = open_view(view_attention(weights, view="lines")).page
    pairs = page.evaluate("lines.found.map(({t, s}) => [t, s])")
    assert pairs == [[0, 3]]
    found = page.evaluate(
        """() => {
            const box = id => element(id).getBoundingClientRect();
            const middle = (side, at) => {
                const b = element(side).children[at].getBoundingClientRect();
                return b.y + b.height / 2 - box("links").y;
            };
            const canvas = element("links"), pen = canvas.getContext("2d");
            const ratio = canvas.height / box("links").height;
            const painted = (x, y) => pen.getImageData(
                x, Math.round(y * ratio), 1, 1).data[3];
            return [middle("from", 0), middle("to", 3)].map(
                (y, i) => painted(i ? canvas.width - 5 : 4, y));
        }"""
    )
    assert min(found) > 100


def test_many_lines_are_thinned_and_the_page_says_so(open_view):
    scores = np.random.default_rng(0).normal(size=(12, 64, 64))
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    viewer = open_view(view_attention(weights, view="lines"))
    page = viewer.page
    drawn = lines_drawn(page)
    assert 2000 < drawn <= 2500
    text = page.inner_text("#thinned")
    assert text.startswith(f"{drawn} of {12 * 64 * 64} weights are drawn")
    faintest = page.evaluate("lines.found[0].share") * weights.max()
    assert (weights > faintest * 1.03).sum() <= drawn
    page.hover("#from button:nth-child(3)")
    took = page.evaluate(
        """() => Math.min(...[0, 1, 2].map(at => {
            look({side: "from", at});
            const start = performance.now();
            look(null);
            return performance.now() - start;
        }))"""
    )
    assert took < 200


def test_the_first_view_layer_and_head_are_as_asked(open_view):
    asked = {"layer": "block_1", "head": 1}
    viewer = open_view(view_attention(MAPS, **asked))
    assert reads(MAPS["block_1"][0, 1].max()) in viewer.status()
    page = open_view(view_attention(MAPS, **asked, view="lines")).page
    assert page.evaluate("[...lines.heads]") == [1]
    page = open_view(view_attention(MAPS, view="overview")).page
    assert page.locator("#overview").is_visible()
    assert page.locator("#map-view").is_hidden()


def test_a_map_opens_on_its_largest_weight_off_the_diagonal(open_view):
    weights = np.eye(5) * 0.7
    weights[3, 1] = 0.3
    viewer = open_view(view_attention(weights[None]))
    assert viewer.status() == "3 looks at 1: 0.3000 and most at 3: 0.7000"
    cross = np.array([[[0.1, 0.2, 0.7], [0.05, 0.9, 0.05]]])
    viewer = open_view(view_attention(cross))
    assert viewer.status() == "1 looks at 1: 0.9000"
    viewer = open_view(view_attention(np.ones((1, 1, 1))))
    assert viewer.status() == "0 looks at 0: 1.0000"


def test_forbidden_cells_of_a_thumbnail_are_one_grey(open_view):
    mask = np.tri(7, dtype=bool)
    view = view_attention(np.tri(7)[None] / 7, mask=mask, view="overview")
    page = open_view(view).page
    colours = page.locator("#grid canvas").evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, 7, 7).data]"
    )
    colours = np.reshape(colours, (7, 7, 4))
    grey = np.unique(colours[~mask], axis=0)
    assert len(grey) == 1 and len(set(grey[0, :3])) == 1


def test_only_the_chosen_sentence_is_shown(open_view):
    weights = np.random.default_rng(0).dirichlet(np.ones(7), (2, 7))
    maps = {"encoder": weights, "short": weights[:, :3, :3]}
    viewer = open_view(view_attention(maps, sentence_b=4))
    page = viewer.page
    page.select_option("#part", "AB")
    name = page.get_attribute("#map", "aria-label")
    assert name == "Heatmap of 4 queries by 3 keys, encoder"
    page.focus("#map")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    assert reads(weights[0, 0, 4]) in viewer.status()
    best = 4 + weights[0, 0, 4:].argmax()
    assert f"at {best}: {weights[0, 0, best]:.4f}" in viewer.status()
    assert page.locator("#keys bdi").all_inner_texts() == ["4", "5", "6"]
    page.select_option("#layer", label="short")
    assert page.is_disabled("#part")
    assert "3 queries by 3 keys" in page.get_attribute("#map", "aria-label")


def test_layers_are_filtered_by_kind(open_view):
    paths = ["encoder/0", "decoder/0/self", "decoder/0/cross", "other"]
    maps = {path: np.ones((1, 2, 2)) for path in paths}
    page = open_view(view_attention(maps)).page
    assert page.locator("#kind option").all_inner_texts() == [
        "all",
        "cross",
        "decoder",
        "encoder",
    ]
    page.select_option("#kind", "decoder")
    shown = page.locator("#layer option").all_inner_texts()
    assert shown == ["decoder/0/self"]
    assert "decoder/0/self" in page.get_attribute("#map", "aria-label")
    only = open_view(view_attention({"encoder/0": maps["other"]})).page
    assert only.locator("#kinds").is_hidden()
    assert only.locator("#parts").is_hidden()
