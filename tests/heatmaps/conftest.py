"""Pages in Chromium, without a network; and operations that are not heard."""

from browsing import Opened, offline
import pytest


class Viewer(Opened):
    """A page of the viewer, and what a test wants to know of it."""

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
    with offline(browser, tmp_path, Viewer) as open_page:

        def open_view(view, **options):
            if isinstance(view, str):
                return open_page(view, **options)
            viewer = open_page(view.to_html(), **options)
            viewer.page.wait_for_selector("main[aria-busy=false]")
            return viewer

        yield open_view
