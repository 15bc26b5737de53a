"""The page: what it holds, what it refuses, and that tokens stay data."""

import base64
import html
from html.parser import HTMLParser
import json
import os
import re

from d2l_attention.heatmaps import view_attention
from hostile import HOSTILE
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

matplotlib.use("agg")
QUERIES, KEYS = ["le", "chat"], ["the", "black", "cat"]
MAPS = {
    f"block_{i}": np.random.default_rng(i).dirichlet(np.ones(3), (1, 2, 2))
    for i in range(2)
}


def data_of(view):
    """What the page's script reads."""
    page = view.to_html()
    found = re.search(r'id="data">(.*?)</script>', page, re.S)
    return json.loads(found[1])


def weights_of(layer, most):
    cells = np.frombuffer(base64.b64decode(layer["weights"]), "<u2")
    shape = len(layer["heads"]), len(layer["queries"]), len(layer["keys"])
    return np.where(cells == 65535, np.nan, cells / 65534 * most).reshape(shape)


def test_the_page_holds_the_weights_and_names():
    data = data_of(view_attention(MAPS, QUERIES, KEYS))
    assert [layer["path"] for layer in data["layers"]] == list(MAPS)
    assert data["most"] == max(w.max() for w in MAPS.values())
    for layer, weights in zip(data["layers"], MAPS.values(), strict=True):
        found = weights_of(layer, data["most"])
        np.testing.assert_allclose(found, weights[0], atol=1e-5)
        assert (layer["queries"], layer["keys"]) == (QUERIES, KEYS)
        assert layer["heads"] == [0, 1]
    colours = base64.b64decode(data["colours"])
    first, last = (
        np.frombuffer(colours, "u1").reshape(256, 3)[i] for i in (0, 255)
    )
    viridis = matplotlib.colormaps["viridis"]
    np.testing.assert_array_equal(first, viridis(0.0, bytes=True)[:3])
    np.testing.assert_array_equal(last, viridis(1.0, bytes=True)[:3])


def test_layers_heads_tokens_and_masks_are_chosen():
    own = {"block_1": (QUERIES, ["שלום", "עולם", "!"])}
    mask = np.array([True, True, False])
    data = data_of(
        view_attention(
            MAPS, QUERIES, KEYS, tokens=own, heads=[1], mask={"block_0": mask}
        )
    )
    first, second = data["layers"]
    assert first["heads"] == [1]
    assert (first["backward"], second["backward"]) == (False, True)
    assert second["keys"] == own["block_1"][1]
    found = weights_of(first, data["most"])
    assert np.isnan(found[..., 2]).all() and not np.isnan(found[..., :2]).any()
    np.testing.assert_allclose(
        found[0, :, :2], MAPS["block_0"][0, 1, :, :2], atol=1e-5
    )
    assert not np.isnan(weights_of(second, data["most"])).any()
    (only,) = data_of(view_attention(MAPS, layers="*_1"))["layers"]
    assert only["path"] == "block_1" and only["keys"] == ["0", "1", "2"]


def test_a_picture_stands_first_and_says_what_it_shows():
    view = view_attention(MAPS, QUERIES, KEYS)
    text = view._repr_html_()
    picture, frame = text.index("<img alt="), text.index("<iframe")
    assert picture < frame
    assert "block_0 first head. Heatmap of 2 queries by 3 keys" in text[:frame]
    assert 'sandbox="allow-scripts"' in text
    inside = re.search(r'srcdoc="([^"]*)"', text)[1]
    assert (
        html.unescape(inside) == view_attention(MAPS, QUERIES, KEYS).to_html()
    )
    assert not plt.get_fignums()


class Tags(HTMLParser):
    """What a browser takes for markup."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs).get("id")))


def test_no_token_becomes_markup():
    def tags(tokens):
        parser = Tags()
        parser.feed(
            view_attention(np.eye(len(tokens))[None], tokens, tokens).to_html()
        )
        return parser.found

    assert tags(HOSTILE) == tags(["a"] * len(HOSTILE))
    view = view_attention(np.eye(len(HOSTILE))[None], HOSTILE, HOSTILE)
    (layer,) = data_of(view)["layers"]
    kept = [
        re.sub("[\ud800\u2028\u2029\0]", "\ufffd", text) for text in HOSTILE
    ]
    assert layer["keys"] == layer["queries"] == kept
    view._repr_html_()


def test_nothing_in_the_page_asks_the_network():
    page = view_attention(MAPS).to_html()
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|//\w+\.|\bsrc=|@import|url\(|fetch\(", page)


def test_a_large_page_is_refused_before_it_is_made_and_a_usual_one_is_not():
    with pytest.raises(ValueError, match=r"11\.1 MB.*10 MB.*layers=.*heads="):
        view_attention(np.zeros((4, 1, 1020, 1020))[:, 0])
    usual = np.random.default_rng(0).dirichlet(np.ones(512), (12, 512))
    assert len(view_attention(usual).to_html()) < 10_000_000


def test_bad_weights_are_refused():
    with pytest.raises(ValueError, match="negative.*-0.5"):
        view_attention(np.full((1, 2, 2), -0.5))
    with pytest.raises(ValueError, match="no layer.*block_9"):
        view_attention(MAPS, layers=["block_9"])
    with pytest.raises(ValueError, match="3 query"):
        view_attention(MAPS, ["a", "b", "c"])
    for empty in (np.zeros((1, 2, 2)), np.full((1, 2, 2), np.nan)):
        assert data_of(view_attention(empty))["most"] == 1.0


def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "attention.html"
    view = view_attention(MAPS)
    view.save(path)
    assert path.read_text(encoding="utf-8") == view.to_html()

    def fail(descriptor):
        written = [file.name for file in tmp_path.iterdir()]
        assert len(written) == 2, "the new page is written beside the old one"
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        view_attention({"other": MAPS["block_0"]}).save(path)
    assert path.read_text(encoding="utf-8") == view.to_html()
    assert [file.name for file in tmp_path.iterdir()] == ["attention.html"]
