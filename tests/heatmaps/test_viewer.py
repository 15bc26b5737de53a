"""The page: what it holds, what it refuses, and that tokens stay data."""

import base64
import html
from html.parser import HTMLParser
from importlib.resources import files
import json
import os
import re
import time
import tracemalloc
from typing import NamedTuple
import zlib

from d2l_attention.heatmaps import (
    describe_attention,
    view_attention,
    viewer,
)
from d2l_attention.heatmaps.labels import readable
from d2l_attention.heatmaps.viewer import _SCRIPTS
from hostile_tokens import HOSTILE
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

matplotlib.use("agg")
QUERIES, KEYS = ["le", "chat"], ["the", "black", "cat"]
TOKENS = {"query_tokens": QUERIES, "key_tokens": KEYS}
MAPS = {
    f"block_{i}": np.random.default_rng(i).dirichlet(np.ones(3), (1, 2, 2))
    for i in range(2)
}


def data_of(view):
    """What the page's script reads."""
    page = view.to_html()
    found = re.search(r'id="data">(.*?)</script>', page, re.S)
    return json.loads(found[1])


def inflate(text):
    return zlib.decompress(base64.b64decode(text))


def weights_of(layer, most):
    """The weights as the page's script computes them, NaN where masked."""
    shape = len(layer["heads"]), len(layer["queries"]), len(layer["keys"])
    cells = np.frombuffer(inflate(layer["weights"]), "u1")
    if "peaks" in layer:
        none, top = 255, np.frombuffer(inflate(layer["peaks"]), "<f4")
        top = top.reshape(*shape[:2], 1)
    else:
        low, high = cells.reshape(2, -1).astype(int)
        cells, none, top = low + 256 * high, 65535, most
    cells = cells.reshape(shape)
    return np.where(cells == none, np.nan, cells / layer["levels"] * top)


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def test_the_page_holds_the_weights_and_names():
    data = data_of(view_attention(MAPS, **TOKENS))
    assert [layer["path"] for layer in data["layers"]] == list(MAPS)
    assert data["most"] == max(w.max() for w in MAPS.values())
    for layer, weights in zip(data["layers"], MAPS.values(), strict=True):
        found = weights_of(layer, data["most"])
        np.testing.assert_allclose(found, weights[0], atol=1e-5)
        assert (layer["queries"], layer["keys"]) == (QUERIES, KEYS)
        assert layer["heads"] == [0, 1] and layer["levels"] == 65534
    colours = base64.b64decode(data["colours"])
    first, last = (
        np.frombuffer(colours, "u1").reshape(256, 3)[i] for i in (0, 255)
    )
    viridis = matplotlib.colormaps["viridis"]
    np.testing.assert_array_equal(first, viridis(0.0, bytes=True)[:3])
    np.testing.assert_array_equal(last, viridis(1.0, bytes=True)[:3])


def test_a_row_of_a_long_map_is_as_exact_as_its_largest_weight_allows():
    rows, columns = 67, 71
    weights = softmax(np.random.default_rng(0).normal(size=(2, rows, columns)))
    weights *= 0.9 ** np.arange(rows)[:, None]  # late rows are faint
    weights[1, 3] = 0.0
    mask = np.tri(rows, columns, dtype=bool)
    data = data_of(view_attention(weights, mask=mask))
    (layer,) = data["layers"]
    found = weights_of(layer, data["most"])
    np.testing.assert_array_equal(np.isnan(found[0]), ~mask)
    allowed = np.where(mask, weights, 0)
    half = allowed.max(-1, keepdims=True) / layer["levels"] / 2
    assert (np.abs(np.nan_to_num(found) - allowed) <= half * 1.001).all()
    assert layer["levels"] == 254


def test_twelve_layers_of_twelve_heads_fit_into_2_mb():
    scores = np.random.default_rng(0).normal(size=(12, 12, 64, 64))
    maps = {f"block_{i}": softmax(scores[i]) for i in range(12)}
    view = view_attention(maps)
    assert len(view.to_html()) <= 2_000_000
    layer = data_of(view)["layers"][0]
    assert layer["levels"] == 65534, "64 tokens keep all digits"


def test_512_tokens_fit_into_2_mb():
    scores = np.random.default_rng(0).normal(size=(12, 512, 512))
    view = view_attention(softmax(scores))
    assert len(view.to_html()) <= 2_000_000
    (layer,) = data_of(view)["layers"]
    assert layer["levels"] in (127, 63, 48), "fewer levels, because it was long"


def test_layers_heads_tokens_and_masks_are_chosen():
    own = {"block_1": (QUERIES, ["שלום", "עולם", "!"])}
    mask = np.array([True, True, False])
    data = data_of(
        view_attention(
            MAPS,
            **TOKENS,
            tokens=own,
            heads=[1, 0],
            mask={"block_0": mask},
        )
    )
    first, second = data["layers"]
    assert first["heads"] == [1, 0]
    assert (first["backward"], second["backward"]) == (False, True)
    assert second["keys"] == own["block_1"][1]
    found = weights_of(first, data["most"])
    assert np.isnan(found[..., 2]).all() and not np.isnan(found[..., :2]).any()
    np.testing.assert_allclose(  # the heads in the order asked for
        found[..., :2], MAPS["block_0"][0, [1, 0], :, :2], atol=1e-5
    )
    assert not np.isnan(weights_of(second, data["most"])).any()
    (only,) = data_of(view_attention(MAPS, layers="*_1"))["layers"]
    assert only["path"] == "block_1" and only["keys"] == ["0", "1", "2"]


def test_a_picture_stands_first_and_says_what_it_shows():
    view = view_attention(MAPS, **TOKENS)
    text = view._repr_html_()
    picture, frame = text.index("<img alt="), text.index("<iframe")
    assert picture < frame
    assert "block_0 first head. Heatmap of 2 queries by 3 keys" in text[:frame]
    assert 'sandbox="allow-scripts allow-downloads"' in text
    assert 'allow="clipboard-write"' in text
    inside = re.search(r'srcdoc="([^"]*)"', text)[1]
    assert html.unescape(inside) == view.to_html()
    assert not plt.get_fignums()


class Tags(HTMLParser):
    """What a browser takes for markup."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs).get("id")))


@pytest.mark.filterwarnings("ignore:No installed font")
def test_no_token_becomes_markup():
    def tags(tokens):
        parser = Tags()
        parser.feed(
            view_attention(
                np.eye(len(tokens))[None],
                query_tokens=tokens,
                key_tokens=tokens,
            ).to_html()
        )
        return parser.found

    assert tags(HOSTILE) == tags(["a"] * len(HOSTILE))
    view = view_attention(
        np.eye(len(HOSTILE))[None], query_tokens=HOSTILE, key_tokens=HOSTILE
    )
    (layer,) = data_of(view)["layers"]
    kept = [readable(token) for token in HOSTILE]
    assert layer["keys"] == layer["queries"] == kept
    view._repr_html_()


def test_nothing_in_the_page_asks_the_network():
    page = view_attention(MAPS).to_html()
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|//\w+\.|\bsrc=|@import|url\(|fetch\(", page)


def test_a_page_is_refused_by_the_size_that_it_has(monkeypatch):
    for name, size in (("_ROOM", 50_000), ("_LIMIT", 100_000)):
        monkeypatch.setattr(viewer, name, size)
    noise = np.random.default_rng(0).random((2, 300, 300))
    with pytest.raises(ValueError, match=r"0\.1 MB.*layers=.*heads="):
        view_attention(noise)
    view_attention(noise, heads=[0])
    page = view_attention(np.tile(np.eye(300), (8, 1, 1))).to_html()
    assert len(page) < 100_000, "as large, but of weights that deflate"


def test_a_long_map_is_pooled_and_says_so():
    rng = np.random.default_rng(0)
    weights = rng.random((1, 4100, 7)).astype("float32")
    weights[0, :3, :3] = np.nan
    [layer] = data_of(view_attention({"long": weights}))["layers"]
    assert layer["path"] == "long (largest of 3 × 3)"
    assert layer["keys"] == ["0 … 2", "3 … 5", "6"]
    assert layer["queries"][-1] == "4098 … 4099"
    expected = np.full((1, 1367, 3), np.nan)
    for t, s in np.ndindex(1367, 3):
        block = weights[0, 3 * t : 3 * t + 3, 3 * s : 3 * s + 3]
        if not np.isnan(block).all():
            expected[0, t, s] = np.nanmax(block)
    found = weights_of(layer, 1.0)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, atol=0.5 / 254 + 1e-6)


def test_many_maps_are_pooled_so_that_a_browser_holds_them(monkeypatch):
    monkeypatch.setattr(viewer, "_MOST_CELLS", 4 * 100 * 100)
    maps = {"long": np.ones((16, 100, 100)) / 100, "short": MAPS["block_0"]}
    long, short = data_of(view_attention(maps))["layers"]
    assert long["path"] == "long (largest of 3 × 3)"
    assert short["path"] == "short"


def test_the_page_of_2000_tokens_needs_little_time_and_memory():
    weights = np.tri(2000, dtype="float32")[None, None]
    weights /= weights.sum(-1, keepdims=True)
    view_attention(MAPS)._repr_html_()  # fonts are found once
    tracemalloc.start()
    start = time.process_time()
    view_attention(weights)._repr_html_()
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * weights.nbytes, "about 2.7 times; the picture is 30 MB"
    assert seconds < 5, "about 1"


def test_bad_weights_are_refused():
    with pytest.raises(ValueError, match="negative.*-0.5"):
        view_attention(np.full((1, 2, 2), -0.5))
    with pytest.raises(ValueError, match="no layer.*block_9"):
        view_attention(MAPS, layers=["block_9"])
    with pytest.raises(ValueError, match="3 query"):
        view_attention(MAPS, query_tokens=["a", "b", "c"])
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


def test_the_first_layer_head_and_view_are_asked_for():
    def first(**asked):
        return data_of(view_attention(MAPS, **asked))["first"]

    assert first() == {"layer": 0, "head": None, "view": "map"}
    assert first(scores=[])["view"] == "overview"
    assert first(scores=[], view="lines")["view"] == "lines"
    assert first(layer="block_1", head=1, view="lines") == {
        "layer": 1,
        "head": 1,
        "view": "lines",
    }
    assert first(heads=[1, 0], head=0)["head"] == 1, "its place among the shown"
    assert first(head="mean")["head"] == -1
    still = view_attention(MAPS, layer="block_1", heads=[1, 0], head=0)
    weights = describe_attention(MAPS["block_1"][0, 0])
    assert f"block_1 head 0. {weights}" in still._repr_html_()
    assert (
        "block_0 mean of the heads"
        in view_attention(MAPS, head="mean")._repr_html_()
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"layer": "block_9"}, "block_0.*block_1.*Received: 'block_9'"),
        ({"head": 2}, r"mean.*\[0, 1\].*Received: 2"),
        ({"head": 0, "heads": [1]}, r"\[1\].*Received: 0"),
        ({"view": "grid"}, "overview.*map.*lines.*Received: 'grid'"),
        ({"sentence_b": 2}, "from 1 to 1. Received: 2"),
        ({"sentence_b": 0}, "Received: 0"),
        ({"sentence_b": 1.5}, "Received: 1.5"),
    ],
)
def test_what_is_not_there_cannot_be_shown_first(asked, message):
    with pytest.raises(ValueError, match=message):
        view_attention(MAPS, **asked)


class Score(NamedTuple):
    """What a score of `head_scores` has."""

    path: str
    head: int
    kind: str
    score: float
    chance: float = 0.2
    null: float = 0.3


def test_scores_find_the_places_of_their_heads():
    scores = [
        Score("block_1", 0, "induction", 0.5),
        Score("block_1", 1, "induction", float("nan"), null=float("nan")),
        Score("block_9", 0, "induction", 0.9),
        Score("block_0", 1, "first token", np.float32(0.25), null=None),
    ]
    data = data_of(view_attention(MAPS, scores=scores))
    assert data["scores"] == [
        {"layer": 1, "head": 0, "kind": "induction", "score": 0.5, "null": 0.3},
        {"layer": 1, "head": 1, "kind": "induction", "score": None}
        | {"null": None},
        {"layer": 0, "head": 1, "kind": "first token", "score": 0.25}
        | {"null": None},
    ]
    for heads in ([1], [-1]):
        data = data_of(
            view_attention(MAPS, scores=scores[:2], layers="*_1", heads=heads)
        )
        (score,) = data["scores"]
        assert (score["layer"], score["head"], score["score"]) == (0, 0, None)
    assert data_of(view_attention(MAPS))["scores"] == []
    array = data_of(
        view_attention(MAPS["block_0"], scores=[Score("", 1, "x", 0.5)])
    )
    assert array["scores"][0]["head"] == 1
    for wrong in ([0.5], scores[0], {"block_0": 0.5}):
        with pytest.raises(ValueError, match="`scores` must be a list as"):
            view_attention(MAPS, scores=wrong)


def test_the_keys_that_are_hidden_at_first_are_there():
    def hidden(maps, keys):
        layers = data_of(view_attention(maps, hide_keys=keys))["layers"]
        return [layer["hidden"] for layer in layers]

    assert hidden(MAPS, ()) == [[], []]
    assert hidden(MAPS, [2, 0, 2]) == [[0, 2], [0, 2]]
    assert hidden(MAPS, {"*_1": [1]}) == [[], [1]]
    with pytest.raises(ValueError, match="0 to 2 in the weights of 'block_0'"):
        hidden(MAPS, [3])
    with pytest.raises(ValueError, match="`hide_keys` names.*block_9"):
        hidden(MAPS, {"block_9": [0]})


def test_kinds_come_from_the_path_and_sentences_from_long_layers():
    maps = {
        "encoder/attention": np.ones((1, 5, 5)),
        "decoder/attention": np.ones((1, 3, 3)),
        "Decoder/cross_attention": np.ones((1, 3, 5)),
        "other": np.ones((1, 5, 5)),
    }
    layers = data_of(view_attention(maps, sentence_b=3))["layers"]
    kinds = [layer["kind"] for layer in layers]
    assert kinds == ["encoder", "decoder", "cross", ""]
    starts = [layer["sentence_b"] for layer in layers]
    assert starts == [3, None, None, 3]


def test_the_page_is_made_of_all_its_files():
    folder = files("d2l_attention.heatmaps") / "page"
    names = {file.name for file in folder.iterdir()}
    assert names == {f"{n}.js" for n in _SCRIPTS} | {"body.html", "page.css"}
    page = view_attention(MAPS).to_html()
    for name in names:
        text = (folder / name).read_text(encoding="utf-8")
        assert text in page, name
        if name.endswith(".js"):
            assert text.startswith('"use strict";\n')
        assert len(text.splitlines()) < 200, name


def test_tokens_are_named():
    with pytest.raises(TypeError, match="positional"):
        view_attention(MAPS, QUERIES, KEYS)
