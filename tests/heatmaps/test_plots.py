import io
import re
import time

from d2l_attention.heatmaps import (
    animate_attention,
    attention_entropy,
    describe_attention,
    display_figure,
    plot_alignment,
    plot_attention,
    plot_attention_grid,
    plot_entropy,
    show_heatmaps,
)
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageSequence
import pytest

matplotlib.use("agg")
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
QUERIES, KEYS = ["a", "b", "c"], ["v", "w", "x", "y", "z"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def images(figure):
    return [image for axes in figure.axes for image in axes.images]


def draw(figure):
    figure.canvas.draw()  # an error in a label shows itself only here


def test_the_colour_bar_is_true_for_every_panel():
    """In the documents' version each panel has its own scale."""
    flat, sharp = np.full((4, 4), 0.25), np.eye(4)
    figure = show_heatmaps(np.stack([flat, sharp])[None], "keys", "queries")
    bar = figure.axes[-1]
    assert {image.get_clim() for image in images(figure)} == {(0.0, 1.0)}
    assert bar.get_ylim() == (0.0, 1.0)


def test_the_grid_is_labelled_at_its_edges():
    figure = show_heatmaps(
        np.random.default_rng(0).random((2, 3, 5, 7)),
        "Keys",
        "Queries",
        titles=["one", "two", "three"],
        figsize=(2, 1),
    )
    grid = np.array(figure.axes[:6]).reshape(2, 3)
    assert [axes.get_xlabel() for axes in grid[1]] == ["Keys"] * 3
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["Queries"] * 2
    assert [axes.get_title() for axes in grid[0]] == ["one", "two", "three"]
    assert not any(axes.get_xlabel() for axes in grid[0])
    draw(figure)


def test_a_grid_of_another_rank_or_with_too_few_titles_is_refused():
    with pytest.raises(ValueError, match=r"4 axes.*\(3, 5\)"):
        show_heatmaps(WEIGHTS, "k", "q")
    with pytest.raises(ValueError, match="each of 2 columns"):
        show_heatmaps(np.zeros((1, 2, 3, 3)), "k", "q", titles=["one"])


def test_tokens_label_rows_and_columns():
    axes = plot_attention(WEIGHTS, QUERIES, KEYS)
    assert [text.get_text() for text in axes.get_yticklabels()] == QUERIES
    assert [text.get_text() for text in axes.get_xticklabels()] == KEYS
    (image,) = axes.images
    np.testing.assert_allclose(image.get_array(), WEIGHTS)
    assert image.get_clim() == (0.0, WEIGHTS.max())
    draw(axes.figure)


def test_masked_cells_are_hatched_and_have_no_colour():
    mask = np.tri(3, 5, 1, dtype=bool)
    axes = plot_attention(WEIGHTS, QUERIES, KEYS, mask=mask)
    np.testing.assert_array_equal(axes.images[0].get_array().mask, ~mask)
    assert [patch.get_hatch() for patch in axes.patches] == ["////"]
    assert axes.images[0].get_clim()[1] == WEIGHTS[mask].max()
    assert not plot_attention(WEIGHTS, mask=np.ones((3, 5))).patches


@pytest.mark.parametrize("token", [r"$\frac$", "$x_1$", "a$b$c", "_", "^{"])
def test_tokens_are_not_mathematics(token):
    axes = plot_attention(np.eye(1), [token], [token], title=token)
    draw(axes.figure)
    assert axes.get_yticklabels()[0].get_text() == token


def test_tokens_that_no_font_has_or_no_figure_holds_are_drawn_as_signs():
    tokens = ["\n", "\t", "\0", "\ud800", "x" * 10_000]
    ax = plot_attention(WEIGHTS, QUERIES, tokens)
    draw(ax.figure)
    labels = [t.get_text() for t in ax.get_xticklabels()]
    assert labels == ["↵", "→", "\ufffd", "\ufffd", "x" * 49 + "…"]


def test_many_ticks_are_thinned_and_stay_with_their_cells():
    tokens = [f"t{i}" for i in range(130)]
    axes = plot_attention(np.eye(130), tokens, tokens, max_ticks=20)
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert len(labels) <= 20
    assert labels == [tokens[int(x)] for x in axes.get_xticks()]


def test_chinese_tokens_take_a_font_that_has_them_or_say_so(recwarn):
    axes = plot_attention(np.eye(2), ["注意", "力"], ["注意", "力"])
    families = axes.get_xticklabels()[0].get_fontfamily()
    known = {font.name for font in matplotlib.font_manager.fontManager.ttflist}
    if any("CJK" in name for name in known):
        assert any("CJK" in name for name in families)
    else:
        assert "No font for Chinese" in str(recwarn[0].message)


def test_it_draws_where_it_is_told():
    _, (left, right) = plt.subplots(1, 2)
    assert plot_attention(WEIGHTS, ax=right, colorbar=False) is right
    assert not left.images and len(right.images) == 1


def test_ticks_that_somebody_set_stay():
    _, axes = plt.subplots(1, 2, sharey=True)
    axes[0].set_yticks([1])
    plot_attention(WEIGHTS, ax=axes[1])
    assert axes[1].get_yticks().tolist() == [1]


def test_tokens_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="query token.*3 rows.*2 tokens"):
        plot_attention(WEIGHTS, ["a", "b"])
    with pytest.raises(ValueError, match=r"2 axes.*\(1, 3, 5\)"):
        plot_attention(WEIGHTS[None])


def test_an_alignment_frames_its_links_and_drops_padding():
    axes = plot_alignment(
        WEIGHTS, KEYS[:4], QUERIES[:2], sure={(0, 1)}, possible=[(3, 0)]
    )
    assert axes.images[0].get_array().shape == (2, 4)
    frames = {patch.get_xy(): patch.get_linestyle() for patch in axes.patches}
    assert frames == {(-0.5, 0.5): "-", (2.5, -0.5): ":"}
    assert axes.get_ylabel() == "target"
    assert axes.get_xlabel() == (
        "source\n(red frame: gold link, dotted frame: possible link)"
    )
    draw(axes.figure)


def test_a_link_outside_or_too_many_tokens_are_refused():
    with pytest.raises(ValueError, match="link 5-0"):
        plot_alignment(WEIGHTS, KEYS, QUERIES, sure={(5, 0)})
    with pytest.raises(ValueError, match="4 target and 5 source"):
        plot_alignment(WEIGHTS, KEYS, [*QUERIES, "d"])


def test_a_displayed_figure_has_its_text_and_is_closed():
    axes = plot_attention(WEIGHTS)
    picture = display_figure(axes, 'rows "a" & <b>')._repr_html_()
    assert re.match(
        r'<img alt="rows &quot;a&quot; &amp; &lt;b&gt;" '
        r'src="data:image/png;base64,[A-Za-z0-9+/=]{500,}">$',
        picture,
    )
    assert not plt.get_fignums()
    with pytest.raises(ValueError, match="alt"):
        display_figure(plt.figure(), " ")


def test_a_missing_character_is_not_a_line_of_warnings_each():
    figure = plt.figure()
    figure.text(0.5, 0.5, "\ue123\ue124")  # of private use: no font has them
    with pytest.warns(UserWarning, match="Glyph"):
        draw(figure)
    display_figure(figure, "two boxes")  # a warning would be an error here


def test_the_same_figure_is_the_same_bytes():
    pictures = {
        display_figure(plot_attention(WEIGHTS), "x").data for _ in range(2)
    }
    assert len(pictures) == 1


def maps_of_two_layers():
    rng = np.random.default_rng(1)
    maps = {
        "decoder/block_0/self_attention": rng.dirichlet(np.ones(3), (2, 4, 3)),
        "decoder/block_0/cross_attention": rng.dirichlet(np.ones(5), (2, 4, 3)),
        "decoder/block_1/cross_attention": rng.dirichlet(np.ones(5), (2, 4, 3)),
    }
    maps["decoder/block_1/cross_attention"][1, 2, 0] = [1, 0, 0, 0, 0]
    return maps


def test_a_grid_has_a_panel_for_every_layer_and_head_on_one_scale():
    maps = maps_of_two_layers()
    figure = plot_attention_grid(
        maps, QUERIES, KEYS, layers="*/cross_attention", sample=1
    )
    draw(figure)
    shown = images(figure)
    assert len(shown) == 8
    assert {image.get_clim() for image in shown} == {(0.0, 1.0)}
    np.testing.assert_allclose(
        shown[6].get_array(), maps["decoder/block_1/cross_attention"][1, 2]
    )
    first, below = figure.axes[0], figure.axes[4]
    assert [axes.get_title() for axes in figure.axes[:4]] == [
        f"head {h}" for h in range(4)
    ]
    assert first.get_ylabel() == "decoder\nblock_0\ncross_attention"
    assert below.get_ylabel() == "decoder\nblock_1\ncross_attention"
    for axes in (first, below):
        assert [t.get_text() for t in axes.get_yticklabels()] == QUERIES
    labels = [t.get_text() for t in figure.axes[7].get_xticklabels()]
    assert labels == KEYS
    assert figure.axes[-1].get_ylim() == (0.0, 1.0), "the colour bar"


def test_layers_of_a_grid_may_have_tokens_of_their_own():
    maps = maps_of_two_layers()
    path = "decoder/block_0/self_attention"
    figure = plot_attention_grid(
        maps, QUERIES, KEYS, tokens={path: (QUERIES, QUERIES)}, heads=[1, 3]
    )
    axes = figure.axes
    assert not axes[2].get_xticks().size, "the next layer has the same keys"
    assert [a.get_title() for a in axes[:2]] == ["head 1", "head 3"]
    assert [t.get_text() for t in axes[1].get_xticklabels()] == QUERIES
    assert [t.get_text() for t in axes[5].get_xticklabels()] == KEYS
    np.testing.assert_allclose(axes[1].images[0].get_array(), maps[path][0, 3])


def test_a_grid_leaves_out_padding_but_not_in_silence():
    weights = np.zeros((4, 6, 7))
    weights[:, :3, :5] = WEIGHTS
    figure = plot_attention_grid(weights, QUERIES, KEYS)
    np.testing.assert_allclose(images(figure)[0].get_array(), WEIGHTS)
    weights[2, 1, 6] = 0.25
    with pytest.warns(UserWarning, match="25% .* 2 columns behind the 5 key"):
        plot_attention_grid(weights, QUERIES, KEYS)
    with pytest.raises(ValueError, match=r"7 query and 5 key.*\(6, 7\)"):
        plot_attention_grid(weights, list("abcdefg"), KEYS)


def test_a_grid_of_unknown_layers_names_those_there_are():
    maps = maps_of_two_layers()
    for layers in ("encoder/*", ["decoder/block_0/self_attention", "x"]):
        with pytest.raises(ValueError, match="There are: .*block_1/cross"):
            plot_attention_grid(maps, layers=layers)
    with pytest.raises(ValueError, match=r"3 axes.*\(3, 5\)"):
        plot_attention_grid(WEIGHTS)


HEBREW = ["שלום", "עולם", "!"]


def test_words_from_right_to_left_turn_the_keys_and_the_labels():
    """Before matplotlib 3.11 such words are drawn backwards."""
    ax = plot_attention(WEIGHTS.T[:3], HEBREW, HEBREW)
    draw(ax.figure)
    first, last = ax.get_xlim()
    assert first > last, "the first key is on the right"
    assert ax.yaxis.get_ticks_position() == "right"
    assert [t.get_text() for t in ax.get_xticklabels()] == HEBREW
    ax = plot_attention(WEIGHTS.T[:3], KEYS[:3], HEBREW)
    assert ax.yaxis.get_ticks_position() == "left"
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    ax = plot_attention(WEIGHTS.T[:3], HEBREW, ["a", "b", "שלום"])
    assert ax.get_xlim()[0] < ax.get_xlim()[1], "most are Latin"
    ax = plot_attention(WEIGHTS.T[:3], HEBREW, HEBREW, rtl=False)
    assert ax.get_xlim()[0] < ax.get_xlim()[1]
    assert ax.yaxis.get_ticks_position() == "left"


def test_a_grid_labels_queries_from_right_to_left_at_its_right():
    figure = plot_attention_grid(WEIGHTS.T[None].repeat(2, 0), KEYS, HEBREW)
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert labels == KEYS
    figure = plot_attention_grid(WEIGHTS[None].repeat(2, 0), HEBREW, KEYS)
    first, last = (
        [t.get_text() for t in axes.get_yticklabels()]
        for axes in figure.axes[:2]
    )
    assert not any(first) and last == HEBREW


@pytest.mark.parametrize("size", [(1500, 30), (30, 2501)])
def test_among_many_cells_none_is_lost_and_the_title_says_so(size):
    weights = np.full(size, 1e-4)
    spike = (size[0] - 1, size[1] - 7)
    weights[spike] = 1.0
    mask = np.ones(size, bool)
    mask[:4] = False
    ax = plot_attention(weights, mask=mask, title="much")
    draw(ax.figure)
    shown = ax.images[0].get_array()
    assert max(shown.shape) <= 1000
    assert shown.max() == 1.0 and (shown == 1.0).sum() == 1
    blocks = [-(-n // 1000) for n in size]
    assert ax.get_title() == (
        f"much\n(each cell is the largest of {blocks[0]} × {blocks[1]})"
    )
    row, column = (int(i) for i in np.argwhere(shown == 1.0)[0])
    assert (row, column) == tuple(
        i // n for i, n in zip(spike, blocks, strict=True)
    )
    assert ax.get_xlim() == (-0.5, size[1] - 0.5)
    assert ax.get_ylim() == (size[0] - 0.5, -0.5)
    left, right, bottom, top = ax.images[0].get_extent()
    assert (left, top) == (-0.5, -0.5)
    assert (right + 0.5) / shown.shape[1] == blocks[1], "cells keep their place"
    assert (bottom + 0.5) / shown.shape[0] == blocks[0]
    assert shown.mask[: 4 // blocks[0]].all() and not shown.mask[4:].any()


def test_few_cells_are_drawn_as_they_are():
    ax = plot_attention(np.eye(1000))
    assert ax.images[0].get_array().shape == (1000, 1000)
    assert ax.get_title() == ""


def test_a_grid_shows_every_spike_that_its_panels_have_no_pixels_for():
    weights = np.zeros((12, 1, 512, 512))
    spikes = np.random.default_rng(0).integers(0, 512, (12, 2))
    for head, (t, s) in enumerate(spikes):
        weights[head, 0, t, s] = 1.0
    figure = plot_attention_grid(weights.transpose(1, 0, 2, 3), figsize=(2, 2))
    draw(figure)
    for axes in figure.axes[:12]:
        shown = axes.images[0].get_array()
        assert shown.max() == 1.0
        box = axes.get_window_extent()
        assert shown.shape[0] <= 1.5 * box.height
    assert "largest of 3 × 3" in figure.get_suptitle()


def test_numbers_in_cells_are_readable():
    ax = plot_attention(
        np.array([[0.0, 1.0], [0.25, np.nan]]), annotate=True, fmt="{:.1f}"
    )
    texts = {(*t.get_position(),): t for t in ax.texts}
    found = {place: text.get_text() for place, text in texts.items()}
    assert found == {(0, 0): "0.0", (1, 0): "1.0", (0, 1): "0.2"}
    assert texts[0, 0].get_color() == "white"
    assert texts[1, 0].get_color() == "black"


def test_entropies_have_a_row_for_each_layer_and_a_column_for_each_head():
    maps = maps_of_two_layers()
    maps["small"] = np.eye(3)[None, None].repeat(2, 0)
    mask = np.ones((2, 3, 1), bool)
    mask[1, 2] = False  # a query of padding
    ax = plot_entropy(maps, mask=mask)
    draw(ax.figure)
    table = ax.images[0].get_array()
    assert table.shape == (4, 4)
    first = attention_entropy(next(iter(maps.values())), normalize=True)
    first[1, :, 2] = np.nan
    np.testing.assert_allclose(table[0], np.nanmean(first, axis=(0, 2)))
    assert table[3, 0] == 0 and table.mask[3, 1:].all(), "one head"
    assert [t.get_text() for t in ax.get_yticklabels()] == list(maps)
    assert ax.images[0].get_clim() == (0.0, 1.0)
    ax = plot_entropy(np.full((1, 2, 5, 5), 0.2), normalize=False)
    np.testing.assert_allclose(ax.images[0].get_array(), np.log(5))
    assert ax.figure.axes[-1].get_ylabel() == "entropy (nats)"


def frames_of(picture):
    gif = Image.open(io.BytesIO(picture))
    return [np.asarray(f.convert("RGB")) for f in ImageSequence.Iterator(gif)]


def test_an_animation_keeps_one_scale_and_is_a_gif(tmp_path):
    frames = np.stack([WEIGHTS, np.full((3, 5), 0.2)])
    animation = animate_attention(
        frames, QUERIES, KEYS, titles=["epoch 1", "epoch 2"], interval=200
    )
    path = tmp_path / "a.gif"
    animation.save(path, writer="pillow")
    assert len(frames_of(path.read_bytes())) == 2
    assert Image.open(path).info["duration"] == 200
    ax = plt.gca()
    assert ax.images[0].get_clim() == (0.0, WEIGHTS.max())
    np.testing.assert_array_equal(ax.images[0].get_array(), frames[1])
    assert ax.get_title() == "epoch 2"
    with pytest.raises(ValueError, match="each of 2 frames.*1 titles"):
        animate_attention(frames, titles=["one"])
    with pytest.raises(ValueError, match=r"3 axes.*\(3,\)"):
        animate_attention(WEIGHTS[:, 0])


def test_a_decoder_writes_row_by_row(monkeypatch):
    seen = []
    animation = animate_attention(WEIGHTS, QUERIES, KEYS)
    image, title = plt.gca().images[0], plt.gca().title
    for i in range(3):
        animation._func(i)
        seen.append((title.get_text(), image.get_array().copy()))
    assert [text for text, _ in seen] == ["writes a", "writes b", "writes c"]
    for i, (_, shown) in enumerate(seen):
        np.testing.assert_array_equal(shown[: i + 1], WEIGHTS[: i + 1])
        assert shown.mask[i + 1 :].all()
    picture = display_figure(animation, "three steps").data
    assert picture.startswith('<img alt="three steps" src="data:image/gif')
    assert not plt.get_fignums()


def test_the_description_names_the_largest_weights():
    weights = np.array([[0.9, 0.1], [0.3, 0.7]])
    assert describe_attention(weights, ["le", "chat"], ["the", "cat"]) == (
        "Heatmap of 2 queries by 2 keys, weights from 0.10 to 0.90. Largest: "
        "“le” to “the” 0.90, “chat” to “cat” 0.70, “chat” to “the” 0.30."
    )
    mask = np.array([[False, True], [True, True]])
    assert describe_attention(weights, mask=mask, top=1) == (
        "Heatmap of 2 queries by 2 keys, weights from 0.10 to 0.70. Largest: "
        "“1” to “1” 0.70. 1 cells have no weight."
    )
    assert describe_attention(weights, mask=False) == (
        "Heatmap of 2 queries by 2 keys. 4 cells have no weight."
    )
    with pytest.raises(ValueError, match=r"3 tokens.*\(2, 2\)"):
        describe_attention(weights, ["a", "b", "c"])


def test_twelve_layers_of_twelve_heads_are_drawn_in_seconds():
    tokens = [f"t{i}" for i in range(64)]
    weights = np.random.default_rng(0).dirichlet(np.ones(64), (12, 12, 64))
    maps = dict(zip("abcdefghijkl", weights, strict=True))
    start = time.process_time()
    draw(plot_attention_grid(maps, tokens, tokens))
    assert time.process_time() - start < 20, "under 10 s on a quiet machine"
