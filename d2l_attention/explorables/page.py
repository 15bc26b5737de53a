"""The page of an explorable: something to predict, to move and to watch.

An explorable NAME has four files: `NAME.html`, what it shows;
`NAME.core.js`, functions that compute and know of no page; `NAME.view.js`,
which draws what they compute; and `NAME.py`, which puts the reader's own arrays
in. The page computes all its numbers itself.
"""

from d2l_attention._html_page import Page
from d2l_attention.heatmaps import (
    describe_attention,
    display_figure,
    plot_attention,
)
from d2l_attention.heatmaps.palette import viridis

# A page says how high it is. Its host listens: no page reaches its own frame.
_FIT = """<script>
addEventListener("message", ({data, source}) => {
  for (const frame of document.querySelectorAll("iframe"))
    if (frame.contentWindow === source && data.height > 0)
      frame.style.height = `${data.height}px`;
});
</script>"""


class Explorable(Page):
    """A page to explore one mechanism; a notebook displays it.

    `save(path)` writes it as a file that opens alone, and `to_html()` returns
    it as a str. It asks the network for nothing.
    """

    def __init__(self, name, title, cores, data, weights):
        super().__init__(
            title,
            package=__package__,
            body=f"{name}.html",
            styles=["kit.css"],
            scripts=[
                "kit.js",
                *(f"{core}.core.js" for core in cores),
                f"{name}.view.js",
            ],
            data={"colours": viridis(), **data},
        )
        self._weights = weights

    def _still(self):
        if self._weights is None:
            return None
        ax = plot_attention(self._weights, max_cells=500)
        alt = describe_attention(self._weights)
        return display_figure(ax, f"{self._title} {alt}")

    def _height(self):
        return "900px"  # until the page says it

    def _frame(self):
        return _FIT + super()._frame()

    def __repr__(self):
        return f"Explorable({self._title!r})"
