"""A page of HTML that works alone: offline, and in the frame of a notebook.

What Python puts into a page enters as data, never as markup or script, and
the page's own policy forbids every network request.
"""

import html
from importlib import resources
import json

from d2l_attention._atomic import write_whole


class Page:
    """A page of files and data; a notebook shows it below a still picture.

    Subclasses have `_still`, which returns what `display_figure` returns or
    None, and `_height`, the height of the frame in a notebook, in CSS. Where
    frames are taken out (on GitHub, in print, in a notebook that is not
    trusted), the picture stays.

    The files lie in the folders of `package`. Its styles and scripts come
    after those that all pages have, and the scripts read `data`.
    """

    still_folds = False  # where it shows no more than the page does at first

    def __init__(self, title, *, package, body, styles, scripts, data):
        self._title, self._package, self._body = title, package, body
        self._styles, self._scripts, self._data = styles, scripts, data

    def to_html(self):
        """The whole page, as a str."""
        files = {
            "@TITLE@": html.escape(self._title),
            "@STYLE@": _read(__package__, "page.css")
            + "".join(_read(self._package, name) for name in self._styles),
            "@BODY@": _read(self._package, self._body),
            "@SCRIPTS@": "".join(
                f"<script>\n{script}</script>\n"
                for script in (
                    _read(__package__, "page.js"),
                    *(_read(self._package, name) for name in self._scripts),
                )
            ),
        }
        page = _read(__package__, "page.html")
        for place, text in files.items():
            page = page.replace(place, text)
        data = json.dumps(self._data, allow_nan=False)  # all ASCII
        for char in "<>&":
            data = data.replace(char, f"\\u{ord(char):04x}")
        # The data comes last: a token may be the very sign of a place.
        before, after = page.split("@DATA@")
        return before + data + after

    def save(self, path):
        """Write the page; it replaces an old file only when complete."""
        write_whole(path, self.to_html().encode())

    def _repr_html_(self):
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, include=None, exclude=None):
        text = {"text/html": self._frame(), "text/plain": repr(self)}
        still = self._still()
        if still is None:
            return text
        bundle = still._repr_mimebundle_()
        picture = bundle["text/html"]
        if self.still_folds:
            picture = (
                "<details open><summary>Still picture</summary>"
                f"{picture}</details>"
            )
        return {**bundle, **text, "text/html": picture + text["text/html"]}

    def _frame(self):
        page = html.escape(self.to_html(), quote=True)
        return (
            '<iframe sandbox="allow-scripts allow-downloads" '
            'allow="clipboard-write" '
            f'title="{html.escape(self._title)}, to explore" '
            f'style="width:100%;height:{self._height()};border:0" '
            f'srcdoc="{page}"></iframe>'
        )


def _read(package, name):
    file = resources.files(package).joinpath(*name.split("/"))
    return file.read_text(encoding="utf-8")
