"""Built pages in Chromium, from a server of this machine and nowhere else."""

from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
import shutil
from threading import Thread

import numpy as np
import pytest

NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


class Quiet(SimpleHTTPRequestHandler):
    # Some servers call a notebook JSON, which a browser shows and not saves.
    extensions_map = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".ipynb": "application/json",
    }

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, *args):
        """A browser that leaves a page hangs up."""


@contextmanager
def served(folder):
    """The address under which a folder is served."""
    serve = partial(Quiet, directory=folder)
    with Server(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def chromium():
    """Chromium without a network; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", NETWORK]
        )
        yield browser
        browser.close()


@contextmanager
def visits(browser, address, *allowed):
    """A function that opens a page; in the end nothing may have gone wrong.

    A page may ask for what begins with the address, for its own data, and for
    what begins with one of `allowed`.
    """
    contexts, wrong = [], []
    allowed = (address, "data:", "blob:", *allowed)

    def hear(request):
        if not request.url.startswith(allowed):
            wrong.append(request.url)

    def visit(name, width=1280, height=900, **options):
        size = {"width": width, "height": height}
        contexts.append(browser.new_context(viewport=size, **options))
        contexts[-1].on("request", hear)
        contexts[-1].on("weberror", lambda error: wrong.append(error.error))
        contexts[-1].on(
            "console",
            lambda said: said.type == "error" and wrong.append(said.text),
        )
        page = contexts[-1].new_page()
        page.goto(address + name)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not wrong


class Opened:
    """A page that is open, what it asked for, and what went wrong in it."""

    def __init__(self, page):
        self.page, self.asked, self.errors = page, [], []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        page.on("console", self._hear)

    def _hear(self, said):
        """What the page's own policy refuses is told on the console."""
        if said.type == "error" and "ERR_FAILED" not in said.text:
            self.errors.append(said.text)


@contextmanager
def offline(browser, folder, kind=Opened):
    """A function that opens HTML as a file; all else it asks for is refused."""
    contexts = []

    def open_page(text, **options):
        options = {"viewport": {"width": 1280, "height": 1000}} | options
        contexts.append(browser.new_context(**options))
        path = folder / f"page{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        opened = kind(contexts[-1].new_page())

        def refuse(route):
            if route.request.url == path.as_uri():
                return route.continue_()
            opened.asked.append(route.request.url)
            return route.abort()

        opened.page.route("**/*", refuse)
        opened.page.goto(path.as_uri(), wait_until="domcontentloaded")
        return opened

    yield open_page
    for context in contexts:
        context.close()


def rgb(colour):
    """The three levels of a colour as `getComputedStyle` writes it."""
    return [float(part) for part in colour[4:-1].split(",")][:3]


def contrast(one, other):
    """Contrast of two colours as WCAG defines it."""

    def luminance(colour):
        part = np.array(colour) / 255
        part = np.where(
            part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4
        )
        return part @ [0.2126, 0.7152, 0.0722] + 0.05

    first, second = luminance(one), luminance(other)
    return max(first, second) / min(first, second)
