"""Built pages in Chromium, from a server of this machine and nowhere else."""

from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
import shutil
from threading import Thread

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
