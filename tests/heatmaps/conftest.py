"""Pages in Chromium, without a network."""

import pytest


class Viewer:
    """A page of the viewer, and what a test wants to know of it."""

    def __init__(self, page):
        self.page, self.asked, self.errors = page, [], []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        page.on("console", self._hear)

    def _hear(self, said):
        """What the page's own policy refuses is told on the console."""
        if said.type == "error" and "ERR_FAILED" not in said.text:
            self.errors.append(said.text)

    def status(self):
        """What a screen reader is told."""
        return " ".join(self.page.inner_text("#status").split())

    def cell(self, query, key):
        """Where the middle of a cell is on the screen."""
        return self.page.evaluate(
            """([query, key]) => {
                const box = element("map").getBoundingClientRect();
                const {map} = painted, half = map.cell / 2;
                return [box.x + xOf(map, key) + half,
                        box.y + yOf(map, query) + half];
            }""",
            [query, key],
        )

    def colour(self, query, key, beside=0.25):
        """The colour of a cell on the screen, away from labels and frames."""
        x, y = self.cell(query, key)
        return tuple(
            self.page.evaluate(
                """([x, y]) => {
                    const map = element("map");
                    const box = map.getBoundingClientRect();
                    return [...map.getContext("2d").getImageData(
                        painted.ratio * (x - box.x),
                        painted.ratio * (y - box.y), 1, 1).data.slice(0, 3)];
                }""",
                [x + beside * self.page.evaluate("painted.map.cell"), y],
            )
        )

    def show(self, view):
        self.page.click(f"[data-view={view}]")

    def asserts_innocence(self):
        """Nothing was asked of the network, and nothing failed."""
        assert not self.asked and not self.errors
        assert self.page.title() == "Attention"


@pytest.fixture
def open_view(browser, tmp_path):
    """Opens a view, or HTML, as a file; all it asks for is refused."""
    contexts = []

    def open_view(view, **options):
        options = {"viewport": {"width": 1280, "height": 1000}} | options
        contexts.append(browser.new_context(**options))
        path = tmp_path / f"page{len(contexts)}.html"
        text = view if isinstance(view, str) else view.to_html()
        path.write_text(text, encoding="utf-8")
        viewer = Viewer(contexts[-1].new_page())

        def refuse(route):
            if route.request.url == path.as_uri():
                return route.continue_()
            viewer.asked.append(route.request.url)
            return route.abort()

        viewer.page.route("**/*", refuse)
        viewer.page.goto(path.as_uri(), wait_until="domcontentloaded")
        if not isinstance(view, str):
            viewer.page.wait_for_selector("main[aria-busy=false]")
        return viewer

    yield open_view
    for context in contexts:
        context.close()
