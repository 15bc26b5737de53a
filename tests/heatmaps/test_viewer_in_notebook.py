"""The page in the frame of a notebook."""

from d2l_attention.heatmaps import view_attention
from hostile_tokens import HOSTILE
import nbformat
import numpy as np
import pytest

VIEWS = ("overview", "map", "lines")


def test_in_a_notebook_turned_into_a_page(open_view):
    """The picture first, then the page in a frame that fits it."""
    from nbconvert import HTMLExporter

    weights = np.random.default_rng(0).dirichlet(np.ones(3), (2, 2))
    view = view_attention(
        {"block_0": weights},
        query_tokens=["le", "chat"],
        key_tokens=["the", "black", HOSTILE[0]],
    )
    output = nbformat.v4.new_output(
        "display_data", {"text/html": view._repr_html_()}
    )
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("view", outputs=[output])]
    )
    text, _ = HTMLExporter().from_notebook_node(notebook)
    viewer = open_view(text)
    page = viewer.page
    picture = page.locator("img[alt^='block_0 first head. Heatmap of 2']")
    assert picture.bounding_box()["width"] > 100
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frames[1]
    frame.wait_for_selector("main[aria-busy=false]")
    frame.focus("#map")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    found = " ".join(frame.inner_text("#status").split())
    weight = f"{weights[0, 1, 0]:.4f}"
    assert found.startswith(f"chat (1) looks at the (0): {weight}")
    with page.expect_download() as started:
        frame.click("#png")
    assert started.value.suggested_filename.endswith(".png")
    frame.click("#csv")
    frame.wait_for_function(
        "() => element('said').textContent.includes('Copied')"
    )
    assert page.title() == "Notebook"
    assert not viewer.errors


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("size", [3, 12, 40])
def test_the_frame_of_a_notebook_fits_the_page(open_view, size, view):
    view = view_attention(np.eye(size)[None], view=view)
    frame = view._frame()
    viewer = open_view(f"<body style='width:900px'>{frame}</body>")
    inside = viewer.page.frames[1]
    inside.wait_for_selector("main[aria-busy=false]")
    blank = inside.evaluate(
        "innerHeight - document.body.getBoundingClientRect().bottom"
    )
    assert blank < 60
    if size < 20:
        assert blank > -60, "a small page need not be scrolled"
