"""The pages as people meet them: by mouse, finger, key and screen reader."""

import html
from importlib.resources import files
import re

from browsing import contrast, rgb
from d2l_attention import nadaraya_watson
from d2l_attention.explorables import (
    explore_flash_attention,
    explore_kernel_regression,
    explore_masked_softmax,
)
from explorables.pages import PAGES
import nbformat
import numpy as np
import pytest

PHONE = {"has_touch": True, "is_mobile": True}
WIDTHS = (320, 390, 1280)


def screen(width, **options):
    phone = PHONE if width < 500 else {}
    return {"viewport": {"width": width, "height": 900}, **phone, **options}


def open_all(page):
    """Answer the page's question, and show all that it has to show."""
    page.click("#bet")
    for box in page.locator("input[type=checkbox]:visible").all():
        box.check()


def numbers(page):
    """Name → the number that stands in the page's text, for each."""
    return {
        found.get_attribute("id"): float(found.inner_text().replace("−", "-"))
        for found in page.locator(".number:visible").all()
    }


def move(page, name, steps):
    for _ in range(abs(steps)):
        key = "ArrowRight" if steps > 0 else "ArrowLeft"
        page.locator(f"#{name}").press(key)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_small_and_asks_for_nothing(name, open_page):
    text = PAGES[name]().to_html()
    assert len(text.encode()) <= 60_000
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|//\w+\.|\bsrc=|@import|url\(|fetch\(", text)
    open_all(open_page(text))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_screen_and_its_targets_a_finger(
    name, width, open_page
):
    page = open_page(PAGES[name]().to_html(), **screen(width))
    for _ in range(2):
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        controls = page.locator("button, input[type=range], label.check")
        boxes = [x.bounding_box() for x in controls.all() if x.is_visible()]
        assert len(boxes) >= 3
        assert all(b["width"] >= 44 and b["height"] >= 44 for b in boxes)
        for text in page.locator("svg text").all():
            box = text.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
        if page.is_visible("#bet"):
            open_all(page)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_the_frame_is_as_high_as_the_page(name, width, open_page):
    page = open_page(
        "<!doctype html><meta name=viewport content='width=device-width'>"
        + PAGES[name]()._frame(),
        **screen(width),
    )
    inside = page.frames[1]
    for _ in range(2):
        inside.wait_for_function(  # a phone's `innerHeight` is its screen's
            "() => document.documentElement.clientHeight"
            " === document.documentElement.offsetHeight"
        )
        if inside.is_visible("#bet"):
            open_all(inside)


@pytest.mark.parametrize("name", PAGES)
def test_the_bet_stands_above_what_it_is_about(name, open_page):
    page = open_page(PAGES[name]().to_html())

    def filled():
        return page.evaluate(
            "[...document.querySelectorAll('button:not(#grid *)')]"
            ".filter(x => x.offsetParent && getComputedStyle(x)"
            ".backgroundColor !== 'rgba(0, 0, 0, 0)').map(x => x.id)"
        )

    bet = page.locator("#bet").bounding_box()
    for shown in page.locator("svg:visible, #grid").all():
        assert bet["y"] + bet["height"] <= shown.bounding_box()["y"]
    assert filled() == ["bet"]
    page.click("#bet")
    assert not filled()
    result = page.locator("#result").bounding_box()
    assert result["y"] <= bet["y"], "the answer stands where the question did"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(name, scheme, open_page):
    sync = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(PAGES[name]().to_html(), color_scheme=scheme)
    for _ in range(2):
        found = sync.Axe().run(page)
        assert not found.response["violations"], found.generate_report()
        if page.is_visible("#bet"):
            open_all(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_lines_and_their_names_are_seen(name, scheme, open_page):
    """What axe does not look at: the text and the lines of pictures."""
    page = open_page(PAGES[name]().to_html(), color_scheme=scheme)
    style = "getComputedStyle(document.querySelector('%s')).%s"
    paper = rgb(page.evaluate(style % ("body", "backgroundColor")))
    open_all(page)
    seen = {
        "svg text": ("fill", 4.5),
        "svg text.strong": ("fill", 4.5),
        "svg .line.strong": ("stroke", 3),
        "svg .line.wrong": ("stroke", 3),
        "svg .axis": ("stroke", 3),
        "svg .bar.strong": ("fill", 3),
        "svg .bar.faint": ("fill", 3),
        "#said": ("color", 4.5),
        "p .wrong": ("color", 4.5),
    }
    seen = {
        what: how for what, how in seen.items() if page.query_selector(what)
    }
    assert len(seen) >= 5
    for what, (kind, least) in seen.items():
        found = rgb(page.evaluate(style % (what, kind)))
        assert contrast(found, paper) >= least, what


@pytest.mark.parametrize("name", PAGES)
def test_light_and_dark_are_the_hosts_until_the_button_is_pressed(
    name, open_page
):
    page = open_page(PAGES[name]().to_html(), color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    assert page.inner_text("#theme") == "Light"
    page.click("#theme")
    assert page.inner_text("#theme") == "Dark"
    light = page.evaluate(paper)
    assert light == "rgb(255, 255, 255)" != dark
    page.emulate_media(color_scheme="light")
    assert page.evaluate(paper) == light
    page.click("#theme")
    assert page.evaluate(paper) == dark


@pytest.mark.parametrize("name", PAGES)
def test_every_control_is_reached_and_named(name, open_page):
    page = open_page(PAGES[name]().to_html())
    open_all(page)
    expected = page.evaluate(
        "[...document.querySelectorAll('button, input')]"
        ".filter(x => x.offsetParent && x.tabIndex >= 0).map(x => x.id)"
    )
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.mouse.click(1, 1)
    found = []
    for _ in expected:
        page.keyboard.press("Tab")
        found.append(page.evaluate("document.activeElement.id"))
    assert found == expected


@pytest.mark.parametrize("name", PAGES)
def test_extremes_give_numbers(name, open_page):
    page = open_page(PAGES[name]().to_html())
    open_all(page)
    sliders = page.locator("input[type=range]:visible")
    for ends in np.ndindex(*[2] * sliders.count()):
        for slider, end in zip(sliders.all(), ends, strict=True):
            slider.press("End" if end else "Home")
        assert numbers(page)
        text = page.locator("main").inner_html()
        assert not re.search(r"NaN|Infinity|undefined|null", text)


@pytest.mark.parametrize("name", PAGES)
def test_a_screen_reader_hears_each_change_once(name, open_page):
    page = open_page(PAGES[name]().to_html())
    page.wait_for_function("() => element('said').textContent")
    page.evaluate(
        "heard = []; new MutationObserver(() => heard.push("
        "element('said').textContent))"
        ".observe(element('said'), {childList: true})"
    )
    page.evaluate(  # at once, however slow the machine is
        """() => {
            const sliders = document.querySelectorAll("[type=range]");
            const slider = sliders[sliders.length - 1];
            for (const step of [1, 2, 1]) {
                slider.value = Number(slider.value) + step;
                slider.dispatchEvent(new Event("input"));
            }
        }"""
    )
    page.wait_for_function("() => heard.length")
    page.wait_for_timeout(600)
    heard = page.evaluate("heard")
    assert len(heard) == 1
    assert re.search(r"\d", heard[0])
    last = page.locator("input[type=range]").last
    shown = page.text_content(f"#{last.get_attribute('id')}-shown")
    assert last.get_attribute("aria-valuetext") == shown


def test_hosts_without_frames_keep_the_picture():
    page = PAGES["kernel_regression"]()
    bundle = page._repr_mimebundle_()
    before, frame = bundle["text/html"].split("<iframe")
    assert re.search(r'<img alt="Which width\? Heatmap of 20', before)
    assert "allow-same-origin" not in frame and bundle["image/png"]
    alone = PAGES["kernel_regression"](still=False)._repr_mimebundle_()
    assert "<img" not in alone["text/html"] and "image/png" not in alone
    assert "Which width" in repr(page) == bundle["text/plain"]


# Which width?


def error_of(query, key, value, width):
    """RMSE of all predictions of a sine."""
    weights = np.exp(-0.5 * ((query[:, None] - key) / width) ** 2)
    prediction = weights @ value / weights.sum(axis=1)
    return np.sqrt(np.mean((prediction - np.sin(query)) ** 2))


def test_a_page_begins_with_what_it_is_given():
    key = [0, 1, 2, 5]
    found = explore_kernel_regression(key, key, key, width=0.3, start=0)._data
    assert found["query"] == 0
    assert found["widths"][found["width"]] == 0.3
    scores = [0.123, -1.7]
    found = explore_flash_attention(scores, np.ones((2, 1)))._data
    assert [found["choices"][i] for i in found["scores"]] == scores
    found = explore_masked_softmax([[0.123, -1.7]] * 3, query=2)._data
    assert found["scores"] == [scores] * 3 and found["query"] == 2


def test_what_is_shown_is_what_is_computed(open_page):
    """Each width as the page writes it gives the numbers that stand there."""
    view = PAGES["kernel_regression"]()
    data = view._data
    page = open_page(view.to_html())
    key, value = np.array(data["keys"]), np.array(data["values"])
    move(page, "width", -100)
    for _ in data["widths"]:
        query, width = (
            float(page.inner_text(f"#{x}-shown")) for x in ("query", "width")
        )
        weights = np.exp(-0.5 * ((query - key) / width) ** 2)
        weights /= weights.sum()
        expected = {
            "prediction": weights @ value,
            "true": np.sin(query),
            "bias": weights @ np.sin(key) - np.sin(query),
            "noise": weights @ (value - np.sin(key)),
            "effective": 1 / np.sum(weights**2),
            "rmse": error_of(np.array(data["queries"]), key, value, width),
        }
        found = numbers(page)
        for name, number in expected.items():
            digits = 1 if name == "effective" else 2
            assert abs(found[name] - number) <= 0.5001 * 10**-digits, name
        assert page.inner_text("#bet") == (
            f"Bet on width {page.inner_text('#width-shown')}"
        )
        move(page, "width", 1)


def test_a_query_far_from_all_points(open_page):
    view = explore_kernel_regression([0, 5], [1, 2], [2.4], start=2.4)
    page = open_page(view.to_html())
    page.locator("#width").press("Home")
    assert numbers(page) == {"prediction": 1.0, "effective": 1.0}
    assert "NaN" not in page.locator("#picture").inner_html()


def test_points_that_are_all_alike(open_page):
    view = explore_kernel_regression([0, 1, 2], [3, 3, 3], [1.0])
    page = open_page(view.to_html())
    open_all(page)
    assert numbers(page)["prediction"] == 3
    assert "error 0.000" in page.inner_text("#result")
    assert not re.search("NaN|Infinity", page.locator("main").inner_html())


def test_the_mouse_pulls_the_query(open_page):
    page = open_page(PAGES["kernel_regression"]().to_html())
    box = page.locator("#picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    assert page.inner_text("#query-shown") == "2.25"
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 100, steps=4)
    page.mouse.up()
    assert float(page.inner_text("#query-shown")) <= 0.5
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 100)
    assert float(page.inner_text("#query-shown")) <= 0.5, "it was let go"


def swipe(page, x, y, across, along):
    """A finger goes down, moves and comes up."""
    touch = page.context.new_cdp_session(page)

    def send(kind, *points):
        touch.send(
            "Input.dispatchTouchEvent",
            {
                "type": kind,
                "touchPoints": [{"x": a, "y": b} for a, b in points],
            },
        )

    send("touchStart", (x, y))
    for i in range(1, 9):
        send("touchMove", (x + across * i / 8, y + along * i / 8))
    send("touchEnd")


def test_a_finger_taps_and_pulls_sideways_and_scrolls_along(open_page):
    phone = screen(390, viewport={"width": 390, "height": 600})
    page = open_page(PAGES["kernel_regression"]().to_html(), **phone)
    page.locator("#picture").scroll_into_view_if_needed()
    box = page.locator("#picture").bounding_box()
    y = box["y"] + 200

    def query():
        return float(page.inner_text("#query-shown"))

    page.touchscreen.tap(box["x"] + 70, y)
    assert query() <= 0.5
    swipe(page, box["x"] + 70, y, 200, 5)
    assert query() >= 3
    before, top = query(), page.evaluate("scrollY")
    swipe(page, box["x"] + 100, y, 6, -180)
    page.wait_for_function(f"() => scrollY > {top} + 50")  # scrolled instead
    assert query() == before


def test_a_bet_is_settled_and_taken_back(open_page):
    page = open_page(PAGES["kernel_regression"]().to_html())
    assert page.is_hidden("#after") and page.is_hidden("#own")
    move(page, "width", -3)
    chosen = page.inner_text("#width-shown")
    page.click("#bet")
    result = page.inner_text("#result")
    assert result.startswith(f"You bet on {chosen}: error ")
    assert page.evaluate("document.activeElement.id") == "result"
    assert page.is_hidden("#bet")
    best = re.search(r"widths is ([\d.]+): error ([\d.]+)\.", result)
    move(page, "width", -100)
    narrowest = page.inner_text("#width-shown")
    assert page.inner_text("#result") == result, "the bet stays"
    for _ in range(100):
        if page.inner_text("#width-shown") == best[1]:
            break
        move(page, "width", 1)
    assert page.inner_text("#now") == f"Width {best[1]} has error {best[2]}."
    page.check("#own")
    assert f"The best is {narrowest}, the narrowest" in page.inner_text("#now")
    page.click("#again")
    assert page.is_visible("#bet") and page.is_hidden("#after")
    assert page.inner_text("#width-shown") == "1.0"
    page.click("#bet")
    assert not page.is_checked("#own")


CROSSED = """picture => {
    const inside = ({x, y}, box) => x > box.x && x < box.x + box.width
        && y > box.y + 2 && y < box.y + box.height - 2;
    const lines = [...picture.querySelectorAll(".line, .axis, circle")];
    const points = lines.flatMap(line => Array.from(
        {length: line.getTotalLength() / 2 | 0},
        (_, i) => line.getPointAtLength(2 * i)));
    return [...picture.querySelectorAll("text")].filter(text =>
        points.some(point => inside(point, text.getBBox())))
        .map(text => text.textContent);
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_no_curve_and_no_point_runs_through_a_label(width, open_page):
    page = open_page(PAGES["kernel_regression"]().to_html(), **screen(width))

    def crossed():
        pictures = page.locator("svg:visible").all()
        return [found for x in pictures for found in x.evaluate(CROSSED)]

    for end in ("Home", "End"):
        page.locator("#query").press(end)
        assert not crossed()
    for bet in (0, 10, 30):
        page.evaluate(f"width.to({bet})")
        page.click("#bet")
        page.check("#own")
        for place in (0, 10, 20, 30):
            page.evaluate(f"width.to({place})")
            assert not crossed(), (bet, place)
        page.click("#again")


def test_a_dot_marks_the_best_width_after_the_bet(open_page):
    page = open_page(PAGES["kernel_regression"]().to_html())
    assert page.locator("#errors *").count() == 0
    page.click("#bet")
    best = re.search(r"widths is ([\d.]+)", page.inner_text("#result"))[1]
    dot = page.locator("#errors .filled").first
    x, y = (float(dot.get_attribute(name)) for name in ("cx", "cy"))
    curve = page.locator("#errors path.line").first.evaluate(
        "x => { const b = x.getBBox(); return b.y + b.height; }"
    )
    assert y == pytest.approx(curve, abs=0.1), "its lowest point"
    below = page.locator(f"#errors text[x='{dot.get_attribute('cx')}']")
    assert below.inner_html() == best
    assert page.evaluate(f"toWidth({x})") == pytest.approx(float(best))


def test_a_press_on_the_errors_sets_the_width(open_page):
    view = PAGES["kernel_regression"]()
    widths = view._data["widths"]
    page = open_page(view.to_html())
    page.click("#bet")
    box = page.locator("#errors").bounding_box()
    for share in (0, 0.5, 1):
        x = 48 + share * (box["width"] - 64)
        page.click("#errors", position={"x": x, "y": 60})
        wanted = widths[0] * (widths[-1] / widths[0]) ** share
        found = float(page.inner_text("#width-shown"))
        assert abs(np.log(found / wanted)) < 0.06, share
        dot = page.locator("#errors circle.strong").first
        assert float(dot.get_attribute("cx")) == pytest.approx(x, abs=11)


def test_an_error_above_its_picture_says_so(open_page):
    key = np.array([0, 1, 2, 3.0, 4, 5])
    view = explore_kernel_regression(key, 10 * np.sin(3 * key), key)
    page = open_page(view.to_html())
    page.click("#bet")
    words = page.locator("#errors text")
    assert not words.get_by_text("now ↑").count()
    page.evaluate("errorsAt[width.place][0] = 1e6; show()")
    words = page.locator("#errors text").all_text_contents()
    assert "now ↑" in words and "your bet ↑" in words


def test_points_of_ones_own_without_a_known_truth(open_page):
    view = PAGES["kernel_regression"](truth=None)
    page = open_page(view.to_html())
    open_all(page)
    assert numbers(page).keys() == {"prediction", "effective"}
    assert "truth" not in page.inner_text("main")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (([1, 2], [1], [0]), r"\(2,\), value of shape \(1,\)"),
        (([[1, 2]], [1, 2], [0]), r"`key`.*\(1, 2\)"),
        (([1, np.nan], [1, 2], [0]), "`key`.*finite.*nan"),
        (([1, 1], [1, 2], [0]), r"two different keys.*1\. 1\."),
        (([1, 2], [1, 2], []), r"`query`.*\(0,\)"),
        (([1, 2], [1, 2], [0, 1], lambda x: x[:1]), r"each of 2.*\(1,\)"),
        (([1, 2], [1, 2], [0], np.log), "`truth`.*inf"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_points_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        explore_kernel_regression(*asked)


def frame_of(chapter, title):
    """The page in the frame of a committed chapter, and what it printed."""
    path = files("d2l_attention").parent / "notebooks"
    (name,) = path.glob(f"{chapter}_*.ipynb")
    notebook = nbformat.read(name, 4)
    outputs = [
        output for cell in notebook.cells for output in cell.get("outputs", [])
    ]
    printed = "\n".join(
        output.get("text", "") + output.get("data", {}).get("text/plain", "")
        for output in outputs
    )
    (html_of,) = (
        output["data"]["text/html"]
        for output in outputs
        if f'title="{title}, to explore"' in str(output.get("data", {}))
    )
    return html_of, printed


CHAPTERS = {
    "kernel_regression": ("02", "Which width?"),
    "masked_softmax": ("03", "What does a mask do to its row?"),
    "flash_attention": ("17", "Carry the output"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_chapter_has_the_page_of_today(name):
    """A page that has changed since its chapter was built is rebuilt there."""
    data = re.compile(r'(?<=id="data">).*?(?=</script>)', re.DOTALL)
    frame = html.unescape(frame_of(*CHAPTERS[name])[0])
    page = PAGES[name]().to_html()
    assert data.sub("", page) in data.sub("", frame)


def test_the_numbers_of_chapter_02(open_page):
    """By the package's own regression, since the text has other points."""
    page = open_page(frame_of(*CHAPTERS["kernel_regression"])[0]).frames[1]
    data = page.evaluate(
        "JSON.parse(document.getElementById('data').innerText)"
    )
    query, key, value = (
        np.array(data[name])[None, :, None]
        for name in ("queries", "keys", "values")
    )
    others = ~np.eye(key.shape[1], dtype=bool)

    def left_out(width):
        found = nadaraya_watson(key, key, value, width, attention_mask=others)
        return np.mean((found - value) ** 2)

    assert page.inner_text("#query-shown") == "2.5"
    assert page.inner_text("#width-shown") == "1.0"
    middle = np.full((1, 1, 1), 2.5)
    _, weights = nadaraya_watson(
        middle, key, value, return_attention_scores=True
    )
    everywhere = nadaraya_watson(query, key, value)
    truth = 2 * np.sin(query) + query**0.8
    found = numbers(page)
    assert found["effective"] == np.round(1 / np.sum(weights**2), 1)
    rmse = np.sqrt(np.mean((everywhere - truth) ** 2))
    assert found["rmse"] == np.round(rmse, 2)
    page.click("#bet")
    errors = [left_out(width) for width in data["widths"]]
    best = np.argmin(errors)
    assert page.inner_text("#result") == (
        f"You bet on 1.0: error {left_out(1.0):.3f}. The best of these "
        f"{len(errors)} widths is {data['widths'][best]}: "
        f"error {errors[best]:.3f}."
    )


# Carry the output.


def test_the_sums_are_those_of_the_blocks(open_page):
    """At each step and block size, what is shown is what is computed."""
    view = PAGES["flash_attention"]()
    choices, value = np.array(view._data["choices"]), view._data["values"]
    scores, value = choices[view._data["scores"]], np.array(value)
    page = open_page(view.to_html())
    for size in (1, 2, 3, 4):
        move(page, "block", -9)
        move(page, "block", size - 1)
        assert page.inner_text("#block-shown") == str(size)
        move(page, "step", -9)
        m, total, carried = -np.inf, 0.0, np.zeros(2)
        count = -(-4 // size)
        for i in range(count):
            assert page.inner_text("#step-shown") == f"{i + 1} of {count}"
            at = slice(i * size, (i + 1) * size)
            new = max(m, scores[at].max())
            shrink, powers = np.exp(m - new), np.exp(scores[at] - new)
            found = numbers(page)
            expected = {
                "shrink": shrink,
                "total-before": total,
                "total-kept": shrink * total,
                "total-added": powers.sum(),
                "total-now": shrink * total + powers.sum(),
                "carried-0-before": carried[0],
                "carried-1-kept": shrink * carried[1],
            }
            m, total = new, shrink * total + powers.sum()
            carried = shrink * carried + powers @ value[at]
            expected["carried-0-now"], expected["carried-1-now"] = carried
            expected["norm"] = m + np.log(total)
            for name, number in expected.items():
                near = 0.000501 if name == "shrink" else 0.00501
                assert abs(found[name] - number) <= near, (size, i, name)
            assert page.inner_text("#verdict") == "agree"
            x, y = carried / total
            assert page.inner_text("#output") == f"({x:.2f}, {y:.2f})"
            assert page.inner_text("#at-once") == f"({x:.2f}, {y:.2f})"
            assert page.inner_text("#m") == f"ln {round(np.exp(m))}"
            move(page, "step", 1)


@pytest.mark.parametrize("width", WIDTHS)
def test_bars_carry_their_numbers(width, open_page):
    page = open_page(PAGES["flash_attention"]().to_html(), **screen(width))
    move(page, "step", 1)
    texts = page.locator("#picture text").all_text_contents()
    assert texts[texts.index("total") : -3] == [
        *("total", "1.50", "2.00"),
        *("carried 0", "8.00", "10.00"),
        *("carried 1", "4.00", "6.00"),
    ]


def test_a_step_stays_among_the_blocks(open_page):
    page = open_page(PAGES["flash_attention"](block_size=1).to_html())
    move(page, "step", 9)
    assert page.inner_text("#step-shown") == "4 of 4"
    move(page, "block", 2)
    assert page.inner_text("#step-shown") == "2 of 2"
    assert page.get_attribute("#step", "aria-valuetext") == "2 of 2"


def test_a_total_is_guessed(open_page):
    page = open_page(PAGES["flash_attention"]().to_html())
    assert page.inner_text("#total-of-all") == "2.00"
    assert page.inner_text("#guess-shown") == "2.00", "a guess of no change"
    move(page, "guess", -4)
    page.click("#bet")
    assert page.evaluate("document.activeElement.id") == "result"
    result = page.inner_text("#result")
    assert result.startswith("You bet on 1.80. With a last score of ln 16 the ")
    assert "total ends at 1.44, in place of 2.00:" in result
    assert "m ends at ln 16, in place of ln 4" in result
    assert result.endswith("m + ln total rises from 2.08 to 3.14.")
    assert page.inner_text("#score-shown") == "ln 16"
    assert page.inner_text("#step-shown") == "2 of 2"
    assert numbers(page)["total-now"] == 1.44
    assert numbers(page)["shrink"] == 0.125
    page.click("#again")
    assert page.is_visible("#bet") and page.is_hidden("#after")
    assert page.inner_text("#guess-shown") == "2.00"
    move(page, "step", 1)
    assert numbers(page)["total-now"] == 2
    assert page.inner_text("#output") == "(5.00, 3.00)"


def test_without_the_shrink_the_output_is_wrong(open_page):
    page = open_page(PAGES["flash_attention"]().to_html())
    page.click("#bet")
    page.focus("#key")
    page.keyboard.press("End")
    for _ in range(100):
        if page.inner_text("#score-shown") == "ln 1":
            break
        move(page, "score", -1)
    assert page.inner_text("#output") == "(5.00, 3.00)"
    assert page.get_attribute("#output", "class") == "strong"
    page.check("#forgotten")
    expected = [8 * 0.5 + 4 + 2 + 16 * 0.25, 4 + 2 + 8 * 0.25]
    x, y = np.array(expected) / 2.75
    assert page.inner_text("#output") == f"({x:.2f}, {y:.2f})"
    assert page.inner_text("#at-once") == "(5.00, 3.00)"
    for name in ("output", "verdict", "norm"):
        assert "wrong" in page.get_attribute(f"#{name}", "class")
    assert page.inner_text("#verdict") == "differ"
    assert page.is_visible("#left-out")
    shares = page.locator("#picture text").all_text_contents()
    assert {"0.18", "0.36", "0.09", "(8, 0)", "(16, 8)"} <= set(shares)
    assert page.locator("#picture text.strong", has_text="3").count() == 1
    move(page, "step", -1)
    assert page.is_hidden("#left-out"), "there is no sum to shrink yet"
    move(page, "step", 1)
    page.wait_for_function(
        "() => element('said').textContent.includes('wrong: (5.00, 3.00)')"
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (([1, 2], [[1], [2], [3]]), r"\(2,\), value of shape \(3, 1\)"),
        (([[1, 2]], [[1], [2]]), r"`scores`.*one axis.*\(1, 2\)"),
        (([1, np.inf], [[1], [2]]), "`scores`.*finite.*inf"),
        (([1, 2], [1, 2]), r"`value`.*two axes.*\(2,\)"),
        (([1, 2], np.zeros((2, 5))), r"4 features.*\(2, 5\)"),
        ((np.zeros(25), np.zeros((25, 1))), r"24 keys.*\(25, 1\)"),
    ],
)
def test_bad_keys_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        explore_flash_attention(*asked)


@pytest.mark.parametrize("size", [0, 3, 1.5])
def test_a_block_has_keys(size):
    with pytest.raises(ValueError, match=f"1 to 2 keys.*block_size={size}"):
        explore_flash_attention([1, 2], [[1], [2]], block_size=size)


def test_most_keys_and_features_fit_a_phone(open_page):
    rng = np.random.default_rng(5)
    view = explore_flash_attention(
        40 * rng.normal(size=24), 1000 * rng.normal(size=(24, 4))
    )
    page = open_page(view.to_html(), **screen(320))
    open_all(page)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 320


def test_the_numbers_of_chapter_17(open_page):
    text, printed = frame_of(*CHAPTERS["flash_attention"])
    page = open_page(text).frames[1]
    for _ in range(2):
        block = re.findall(
            r"m = (ln \d), total ([\d.]+), carried (.*)", printed
        )
        m, total, carried = block[int(page.inner_text("#step-shown")[0]) - 1]
        found = numbers(page)
        assert page.inner_text("#m") == m
        assert found["total-now"] == float(total)
        now = [found["carried-0-now"], found["carried-1-now"]]
        assert now == [float(x) for x in re.findall(r"[\d.]+", carried)]
        move(page, "step", 1)
    assert page.inner_text("#output") == "(5.00, 3.00)"
    assert "output: [5. 3.]" in printed
    # Without the shrink the powers 1/2, 1 and 1, 1/4 stay side by side.
    shares = np.array([0.5, 1, 1, 0.25]) / 2.75
    page.click("#bet")
    scores = page.evaluate("data.scores.map(place => choices[place])")
    wrong = page.evaluate(f"sharesOf({scores}, 2, false).at(-1)")
    np.testing.assert_allclose(wrong, shares)


# What does a mask do to its row?


def grid(page):
    """The weights as they stand in the cells."""
    cells = page.locator("#grid button").all_inner_texts()
    return np.array(cells, float).reshape(4, 4)


def rule(page, real=4, *, causal=False, left=False):
    page.set_checked("#causal", causal)
    page.set_checked("#left", left)
    move(page, "real", -9)
    move(page, "real", real)


def test_a_weight_is_guessed(open_page):
    page = open_page(PAGES["masked_softmax"](query=1).to_html())
    assert page.inner_text("#asked-row") == "cow"
    assert page.inner_text("#asked-off") == "sleeps"
    assert page.inner_text("#asked-key") == "the"
    assert page.locator("#grid button:enabled").count() == 0
    move(page, "guess", 4)
    page.click("#bet")
    assert page.evaluate("document.activeElement.id") == "result"
    kept = np.exp([2, 1, 0]) / np.exp([2, 1, 0]).sum()
    assert page.inner_text("#result").startswith(
        f"You bet on 0.28. The weight of “the” was 0.24. Without “sleeps” it "
        f"is {kept[0]:.2f},"
    )
    assert np.allclose(grid(page)[1], [*kept[:2], 0, kept[2]], atol=0.00501)
    share = 1 - np.exp(3) / np.exp([2, 1, 3, 0]).sum()
    assert numbers(page)["share"] == pytest.approx(share, abs=0.00501)
    assert numbers(page)["sum"] == 1
    assert page.inner_text("#kept") == "3"
    rule(page, 2, causal=True, left=True)
    page.click("#again")
    assert page.is_visible("#bet") and page.is_hidden("#after")
    first = np.exp([2, 1, 3, 0]) / np.exp([2, 1, 3, 0]).sum()
    assert np.allclose(grid(page)[1], first, atol=0.00501)
    assert page.inner_text("#col-0") == page.inner_text("#row-0") == "the"


def test_cells_are_forbidden_by_mouse_and_key(open_page):
    page = open_page(PAGES["masked_softmax"]().to_html())
    page.click("#bet")
    page.click("#cell-3-3")
    assert page.get_attribute("#cell-3-3", "aria-pressed") == "false"
    label = page.get_attribute("#cell-3-3", "aria-label")
    assert label == ". to ., forbidden, 0"
    assert np.allclose(grid(page)[3], [0.33, 0.33, 0.33, 0])
    for key in ("ArrowLeft", "Space", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    assert np.allclose(grid(page)[3], [1, 0, 0, 0])
    for key in ("ArrowLeft", "ArrowLeft", "Space", "ArrowDown"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.id") == "cell-3-0"
    assert not grid(page)[3].any() and page.is_visible("#nothing")
    assert page.inner_text("#empty") == "row 3 (.)"
    assert "not 0.25 each" in page.inner_text("#nothing")
    page.keyboard.press("ArrowUp")
    assert page.inner_text("#here").startswith("“sleeps” may attend to 4")
    strong = page.locator("#grid th.strong")
    assert strong.all_inner_texts() == ["sleeps"]
    page.wait_for_function(
        "() => element('said').textContent.includes('3 (.)')"
    )


@pytest.mark.parametrize("real", range(5))
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_the_grid_has_the_weights_of_its_mask(real, causal, left, open_page):
    """The bet forbids a cell by hand; order and padding join it."""
    view = PAGES["masked_softmax"]()
    page = open_page(view.to_html())
    page.click("#bet")
    rule(page, real, causal=causal, left=left)
    is_real = np.arange(4) < real
    is_real = is_real[::-1] if left else is_real
    mask = np.tile(is_real, (4, 1)) & (np.tri(4, dtype=bool) if causal else 1)
    mask[0, 0] = False
    powers = np.exp(view._data["scores"]) * mask
    total = powers.sum(axis=1, keepdims=True)
    expected = powers / np.where(total, total, 1)
    assert np.allclose(grid(page), expected, atol=0.00501)
    words = np.where(is_real, ["the", "cow", "sleeps", "."], "<pad>")
    for s in range(4):
        assert page.inner_text(f"#col-{s}") == words[s]
    empty = [f"row {t} ({words[t]})" for t in np.flatnonzero(total == 0)]
    assert page.inner_text("#empty") == (", ".join(empty) or "none")


def test_a_cell_that_order_forbids_stays_forbidden(open_page):
    page = open_page(PAGES["masked_softmax"](query=1).to_html())
    page.click("#bet")
    page.click("#cell-3-0")
    page.check("#causal")
    page.click("#cell-0-1")
    assert page.get_attribute("#cell-0-1", "aria-pressed") == "false"
    page.wait_for_function(
        "() => element('said').textContent.startsWith('Order or padding')"
    )
    page.uncheck("#causal")
    assert np.count_nonzero(grid(page) == 0) == 2, "the two forbidden by hand"
    page.click("#cell-1-2")  # what the bet has forbidden
    assert (grid(page)[1] > 0).all()


def test_a_mask_of_ones_own_and_other_rows_than_columns(open_page):
    mask = np.array([[True, False, False], [True, True, False]])
    view = explore_masked_softmax(np.zeros((2, 3)), mask)
    page = open_page(view.to_html())
    cells = page.locator("#grid button").all_inner_texts()
    assert cells == ["1.00", "0", "0", "0.50", "0.50", "0"]
    assert page.inner_text("#asked-row") == "1", "row 0 has only one key"
    page.click("#bet")
    cells = page.locator("#grid button").all_inner_texts()
    assert cells == ["1.00", "0", "0", "0", "1.00", "0"]


def test_most_queries_and_keys_fit_a_phone(open_page):
    names = [f"a long token {i}" for i in range(12)]
    view = explore_masked_softmax(np.eye(12), key_tokens=names)
    page = open_page(view.to_html(), **screen(320))
    open_all(page)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 320


def test_a_token_stays_text(open_page):
    names = ["<b>x</b>", "</script><script>alert(1)</script>"]
    view = explore_masked_softmax(np.zeros((1, 2)), key_tokens=names)
    page = open_page(view.to_html())
    page.click("#bet")
    assert names[0] in page.inner_text("#result")
    assert page.inner_text("#col-1") == names[1]


@pytest.mark.parametrize(
    ("asked", "more", "message"),
    [
        ([[1, np.nan]], {}, "`scores`.*finite.*nan"),
        ([1, 2], {}, r"`scores`.*two axes.*\(2,\)"),
        (np.zeros((2, 13)), {}, r"12 keys.*\(2, 13\)"),
        (np.zeros((2, 3)), {"mask": np.ones((2, 2), bool)}, r"\(2, 2\)"),
        (np.zeros((2, 3)), {"mask": np.eye(2, 3, dtype=bool)}, r"\[1, 1\]"),
        (np.zeros((2, 1)), {}, r"two keys.*\[1, 1\]"),
        (np.zeros((2, 3)), {"query": 2}, "query=2"),
        (np.zeros((2, 3)), {"key_tokens": ["a"]}, "`key_tokens`.*3.*1.*a"),
        (np.zeros((2, 3)), {"query_tokens": "abc"}, "`query_tokens`.*2.*3"),
    ],
)
def test_bad_rows_are_refused(asked, more, message):
    with pytest.raises(ValueError, match=message):
        explore_masked_softmax(asked, **more)


def test_the_numbers_of_chapter_03(open_page):
    text, printed = frame_of(*CHAPTERS["masked_softmax"])
    page = open_page(text).frames[1]
    keys = "the", "cow", "sleeps", "<pad>"
    rows = [re.search(rf"\n *{key} +([\d. ]+)\n", printed)[1] for key in keys]
    ways = np.array([row.split() for row in rows], float).T
    _, removed, _, too_late = ways  # as the columns of the chapter's table
    assert (grid(page)[1] * [1, 1, 0, 0]).tolist() == too_late.tolist()
    page.click("#bet")
    rule(page, 3, causal=True)
    assert grid(page)[1].tolist() == removed.tolist()
    rule(page, 2, causal=True, left=True)
    # The mask of the left padding, as the chapter prints it.
    meet = re.search(r"\[(\[0 0 0 0\]\s*)+", printed)[0].count("0 0 0 0")
    found = re.findall(r"(\d) \(", page.inner_text("#empty"))
    assert [int(x) for x in found] == list(range(meet)) == [0, 1]
