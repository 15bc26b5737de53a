import base64
import io
import re
import time

from d2l_attention.heatmaps import (
    AttentionMaps,
    animate_attention,
    attention_entropy,
    describe_attention,
    display_figure,
    plot_alignment,
    plot_attention,
    plot_attention_grid,
    plot_entropy,
    plot_learning_curves,
    show_heatmaps,
)
from d2l_attention.heatmaps.notebook_figures import pack, to_png
from d2l_attention.heatmaps.palette import contrast
import matplotlib
from matplotlib.collections import QuadMesh
from matplotlib.legend import Legend
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


def test_a_hidden_key_that_does_not_exist_yet_has_no_share():
    joined = np.where(np.tri(3, dtype=bool), 1 / 3, np.nan)
    ax = plot_attention(joined[:2], hide_keys=[2])
    assert "0% of the weight" in ax.get_xlabel()


def test_even_looks_at_the_keys_that_exist_have_all_entropy():
    joined = np.tri(4) / np.arange(1, 5)[:, None]
    joined[np.triu_indices(4, 1)] = np.nan
    assert np.allclose(attention_entropy(joined, normalize=True), [0, 1, 1, 1])
    with pytest.raises(ValueError, match="names.*typo"):
        plot_entropy({"a": joined[None]}, mask={"typo": joined > 0})


def test_a_grid_of_a_thousand_maps_points_to_the_overview():
    with pytest.raises(ValueError, match="1024.*overview.*layers="):
        plot_attention_grid(np.ones((1024, 2, 2)))


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
    axes = plot_attention(WEIGHTS, query_tokens=QUERIES, key_tokens=KEYS)
    assert [text.get_text() for text in axes.get_yticklabels()] == QUERIES
    assert [text.get_text() for text in axes.get_xticklabels()] == KEYS
    (image,) = axes.images
    np.testing.assert_allclose(image.get_array(), WEIGHTS)
    assert image.get_clim() == (0.0, WEIGHTS.max())
    draw(axes.figure)


def test_masked_cells_are_hatched_and_have_no_colour():
    mask = np.tri(3, 5, 1, dtype=bool)
    axes = plot_attention(
        WEIGHTS, query_tokens=QUERIES, key_tokens=KEYS, mask=mask
    )
    np.testing.assert_array_equal(axes.images[0].get_array().mask, ~mask)
    assert [patch.get_hatch() for patch in axes.patches] == ["////"]
    assert axes.images[0].get_clim()[1] == WEIGHTS[mask].max()
    assert not plot_attention(WEIGHTS, mask=np.ones((3, 5))).patches


def test_a_map_of_zeros_has_a_scale():
    image = plot_attention(np.zeros((3, 5))).images[0]
    assert image.get_clim() == (0.0, 1.0)


SINK = np.array([[0.8, 0.1, 0.1], [0.6, 0.3, 0.1]])


def colour_of_cell(ax, query, key):
    """What is drawn in the middle of a cell, as RGB from 0 to 255."""
    draw(ax.figure)
    x, y = ax.transData.transform((key, query))
    pixels = np.asarray(ax.figure.canvas.buffer_rgba())
    return tuple(pixels[len(pixels) - round(y), round(x), :3].tolist())


def test_a_hidden_key_is_grey_and_the_colours_follow_the_rest():
    mask = np.array([[True, True, False], [False, True, True]])
    tokens = {"query_tokens": QUERIES[:2], "key_tokens": ["<s>", "$a$", "b"]}
    ax = plot_attention(SINK, **tokens, mask=mask, hide_keys=[0])
    (image,) = ax.images
    shown = image.get_array()
    assert shown.mask[:, 0].all() and image.get_clim() == (0.0, 0.3)
    np.testing.assert_array_equal(shown.data, SINK), "none is divided"
    assert [t.get_text() for t in ax.texts] == ["0.10", "0.30", "0.10"]
    grey = {colour_of_cell(ax, query, 0) for query in (0, 1)}
    assert grey == {(191, 191, 191)}, "where it is forbidden, too"
    hatched = [patch.get_hatch() for patch in ax.patches]
    assert hatched == ["////", None]
    assert ax.get_xlabel() == (
        "keys\n(hidden: key 0 “<s>”, 62% of the weight)"
    ), "0.8 of 1.3 that may be attended"
    ax = plot_attention(SINK, **tokens, hide_keys=(1, 0))
    assert ax.get_xlabel().endswith(
        "(hidden: keys 0 “<s>” and 1 “$a$”, 90% of the weight)"
    )
    assert plot_attention(SINK).get_xlabel() == "keys"
    ax = plot_attention(np.eye(5), hide_keys=range(5))
    assert ax.get_xlabel().endswith("(hidden: 5 keys, 100% of the weight)")
    ax = plot_attention([[-3.0, 1.0], [0.0, 0.0]], hide_keys=[0])
    assert ax.get_xlabel().endswith("75% of the weight)"), "of what has signs"


@pytest.mark.parametrize("keys", [[3], [-1], 0, "0", [0.0]])
def test_a_key_that_is_not_there_cannot_be_hidden(keys):
    for hide in (
        lambda: plot_attention(SINK, hide_keys=keys),
        lambda: plot_attention_grid({"a": SINK[None]}, hide_keys=keys),
        lambda: animate_attention(SINK[None], hide_keys=keys),
    ):
        with pytest.raises(ValueError, match="there are 0 to 2 in the") as told:
            hide()
        assert repr(keys) in str(told.value)


def test_a_grid_tells_how_much_of_each_panel_is_hidden():
    other = SINK[:, ::-1]
    maps = {"one": np.stack([SINK, other]), "two": other[None]}
    figure = plot_attention_grid(maps, key_tokens=["<s>", "a", "b"])
    assert figure.get_supxlabel() == "keys"
    figure = plot_attention_grid(
        maps, key_tokens=["<s>", "a", "b"], hide_keys=[0], annotate=True
    )
    draw(figure)
    panels = [ax for ax in figure.axes if ax.images]
    assert [ax.get_xlabel() for ax in panels] == [
        "70% hidden",
        "10% hidden",
        "10% hidden",
    ]
    assert figure.get_supxlabel() == "keys\n(grey: hidden key 0 “<s>”)"
    assert {ax.images[0].get_clim()[1] for ax in panels} == {0.8}
    assert [len(ax.texts) for ax in panels] == [4, 4, 4]
    figure = plot_attention_grid(maps, hide_keys={"t*": [2, 1]})
    panels = [ax for ax in figure.axes if ax.images]
    found = [ax.get_xlabel() for ax in panels]
    assert found == ["", "", "90% hidden"]
    assert figure.get_supxlabel() == "keys\n(grey: hidden keys 1 and 2)"
    with pytest.raises(ValueError, match="`hide_keys` names.*'three'"):
        plot_attention_grid(maps, hide_keys={"three": [0]})


def test_an_animation_tells_of_each_frame_how_much_is_hidden():
    frames = np.stack([SINK, SINK[:, ::-1]])
    animation = animate_attention(frames, hide_keys=[0], annotate=True)
    ax = plt.gca()
    assert ax.images[0].get_clim() == (0.0, 0.8)
    for i, share in enumerate(("70%", "10%")):
        animation._func(i)
        assert ax.images[0].get_array().mask[:, 0].all()
        assert len(ax.texts) == 4 and f"{share} of the" in ax.get_xlabel()
    display_figure(animation, "two frames")
    animation = animate_attention(
        [{"a": frame[None]} for frame in frames], hide_keys=[0]
    )
    ax = plt.gcf().axes[0]
    for i, share in enumerate(("70%", "10%")):
        animation._func(i)
        assert ax.images[0].get_array().mask[:, 0].all()
        assert ax.get_xlabel() == f"{share} hidden"
    display_figure(animation, "two frames")


@pytest.mark.parametrize("token", [r"$\frac$", "$x_1$", "a$b$c", "_", "^{"])
def test_tokens_are_not_mathematics(token):
    axes = plot_attention(
        np.eye(1), query_tokens=[token], key_tokens=[token], title=token
    )
    draw(axes.figure)
    assert axes.get_yticklabels()[0].get_text() == token


def test_tokens_that_no_font_has_or_no_figure_holds_are_drawn_as_signs():
    tokens = ["\n", "\t", "\0", "\ud800", "x" * 10_000]
    ax = plot_attention(WEIGHTS, query_tokens=QUERIES, key_tokens=tokens)
    draw(ax.figure)
    labels = [t.get_text() for t in ax.get_xticklabels()]
    assert labels == ["↵", "→", "\ufffd", "\ufffd", "x" * 49 + "…"]


def test_many_ticks_are_thinned_and_stay_with_their_cells():
    tokens = [f"t{i}" for i in range(130)]
    axes = plot_attention(
        np.eye(130), query_tokens=tokens, key_tokens=tokens, max_ticks=20
    )
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert len(labels) <= 20
    assert labels == [tokens[int(x)] for x in axes.get_xticks()]


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
        plot_attention(WEIGHTS, query_tokens=["a", "b"])
    with pytest.raises(ValueError, match=r"2 axes.*\(1, 3, 5\)"):
        plot_attention(WEIGHTS[None])


def test_an_alignment_frames_its_links_and_drops_padding():
    axes = plot_alignment(
        WEIGHTS,
        query_tokens=QUERIES[:2],
        key_tokens=KEYS[:4],
        sure={(0, 1)},
        possible=[(3, 0)],
    )
    assert axes.images[0].get_array().shape == (2, 4)
    frames = {patch.get_xy(): patch.get_linestyle() for patch in axes.patches}
    assert frames == {(-0.5, 0.5): "solid", (2.5, -0.5): "dotted"}
    assert [t.get_text() for t in axes.get_yticklabels()] == QUERIES[:2]
    assert [t.get_text() for t in axes.get_xticklabels()] == KEYS[:4]
    assert axes.get_ylabel() == "target"
    assert axes.get_xlabel() == (
        "source\n(solid frame: gold link, dotted frame: possible link)"
    )
    draw(axes.figure)


@pytest.mark.parametrize("kind", ["sure", "possible"])
def test_a_frame_stands_out_from_every_colour_of_the_map(kind):
    """Each colour has 3 : 1 against one of the two lines of a frame."""
    axes = plot_alignment(
        [[0.5]], query_tokens=["a"], key_tokens=["b"], **{kind: {(0, 0)}}
    )
    axes.set_axis_off()
    axes.figure.set_dpi(300)  # so that each line has whole pixels
    draw(axes.figure)
    pixels = np.asarray(axes.figure.canvas.buffer_rgba())[..., :3]
    box = axes.get_window_extent()
    left, middle = round(box.x0), round(len(pixels) - (box.y0 + box.y1) / 2)
    strip = pixels[middle - 100 : middle + 100, left : left + 10]
    white, black = (255, 255, 255), (0, 0, 0)
    assert {white, black} <= set(map(tuple, strip.reshape(-1, 3).tolist()))
    for level in axes.images[0].cmap(range(256)):
        assert max(contrast(level, "white"), contrast(level, "black")) >= 3


def test_a_link_outside_or_too_many_tokens_are_refused():
    tokens = {"query_tokens": QUERIES, "key_tokens": KEYS}
    with pytest.raises(ValueError, match="link 5-0"):
        plot_alignment(WEIGHTS, **tokens, sure={(5, 0)})
    tokens["query_tokens"] = [*QUERIES, "d"]
    with pytest.raises(ValueError, match="4 target and 5 source"):
        plot_alignment(WEIGHTS, **tokens)


@pytest.mark.parametrize(
    "function",
    [
        plot_attention,
        plot_attention_grid,
        plot_alignment,
        animate_attention,
        describe_attention,
    ],
)
def test_tokens_are_given_by_name(function):
    """By place, queries and keys were mistaken for each other in silence."""
    with pytest.raises(TypeError, match="positional argument"):
        function(np.eye(3)[None], list("abc"), list("def"))


def test_small_maps_carry_their_numbers_and_large_ones_do_not():
    small, large = np.full((8, 8), 0.125), np.full((3, 9), 0.5)
    assert len(plot_attention(small).texts) == 64
    assert not plot_attention(large).texts
    assert not plot_attention(small, annotate=False).texts
    assert len(plot_attention(large, annotate=True).texts) == 27
    grid = small[None]
    assert not plot_attention_grid(grid).axes[0].texts
    assert plot_attention_grid(grid, annotate=True).axes[0].texts
    panels = np.stack([small, small])[None]
    assert show_heatmaps(panels, "keys", "queries").axes[1].texts
    with pytest.raises(ValueError, match="annotate.*'yes'"):
        plot_attention(small, annotate="yes")


@pytest.mark.parametrize("inches", [1.6, 6.0])
def test_a_number_fits_its_cell(inches):
    figure, ax = plt.subplots(figsize=(inches, inches))
    plot_attention(np.full((8, 8), 0.125), ax=ax, annotate=True)
    draw(figure)
    cell = ax.get_window_extent().width / 8
    boxes = [text.get_window_extent() for text in ax.texts]
    assert max(box.width for box in boxes) < 0.9 * cell
    assert all(text.get_fontsize() <= 9 for text in ax.texts)


def test_numbers_too_small_to_read_are_drawn_only_where_asked_for():
    drawn = {}
    for annotate in (False, "auto", True):
        figure, ax = plt.subplots(figsize=(1.6, 1.6))
        options = {"ax": ax, "annotate": annotate, "colorbar": False}
        plot_attention(np.full((8, 8), 0.125), **options)
        draw(figure)
        drawn[annotate] = np.asarray(figure.canvas.buffer_rgba()).copy()
    np.testing.assert_array_equal(drawn["auto"], drawn[False])
    assert (drawn[True] != drawn[False]).any()


def test_zeros_and_ones_get_two_colours_and_not_a_continuous_bar():
    ax = plot_attention(np.eye(9))
    bar = ax.figure.axes[-1]
    assert [t.get_text() for t in bar.get_yticklabels()] == ["0", "1"]
    (mesh,) = [c for c in bar.collections if isinstance(c, QuadMesh)]
    low, high = mesh.to_rgba([0, 1])
    np.testing.assert_allclose(low, ax.images[0].cmap(0.0))
    np.testing.assert_allclose(high, ax.images[0].cmap(1.0))
    assert [t.get_text() for t in plot_attention(np.eye(1)).texts] == ["1"]
    figure = show_heatmaps(np.eye(9)[None, None], "keys", "queries")
    ticks = [t.get_text() for t in figure.axes[-1].get_yticklabels()]
    assert ticks == ["0", "1"]


def test_every_scale_is_labelled_and_all_weights_have_one_map():
    figures = [
        show_heatmaps(WEIGHTS[None, None], "keys", "queries"),
        plot_attention(WEIGHTS).figure,
        plot_attention_grid(WEIGHTS[None]),
    ]
    for figure in figures:
        assert figure.axes[-1].get_ylabel() == "weight"
        assert images(figure)[0].get_cmap().name == "viridis"
    ends = contrast(matplotlib.colormaps["viridis"](0), "white")
    assert ends > contrast(matplotlib.colormaps["viridis"](255), "white")


def test_panels_hatch_what_is_forbidden():
    mask = np.tri(3, 5, 1, dtype=bool)
    figure = show_heatmaps(WEIGHTS[None, None], "k", "q", mask=mask)
    assert [p.get_hatch() for p in figure.axes[0].patches] == ["////"]
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_array_equal(shown.mask, ~mask)


def png_of(picture):
    """The picture in the HTML, as PIL reads it."""
    found = re.search('base64,([^"]+)"', picture.data)
    return Image.open(io.BytesIO(base64.b64decode(found[1])))


def test_a_displayed_figure_has_its_text_and_is_closed():
    axes = plot_attention(WEIGHTS)
    picture = display_figure(axes, 'rows "a" & <b>').data
    assert re.fullmatch(
        r'<figure style="margin:0">'
        r'<img alt="rows &quot;a&quot; &amp; &lt;b&gt;" width="\d+" '
        r'style="max-width:100%;height:auto" '
        r'src="data:image/png;base64,[A-Za-z0-9+/=]{500,}"></figure>',
        picture,
    )
    assert not plt.get_fignums()
    with pytest.raises(ValueError, match="alt"):
        display_figure(plt.figure(), " ")


def test_a_caption_stands_below_the_picture():
    picture = display_figure(plot_attention(WEIGHTS), "x", "a < b").data
    assert picture.endswith("><figcaption>a &lt; b</figcaption></figure>")
    for caption in (None, ""):
        picture = display_figure(plot_attention(WEIGHTS), "x", caption).data
        assert "figcaption" not in picture


def test_a_picture_has_more_pixels_than_it_is_shown_with():
    figure = plt.figure(figsize=(4, 3))
    figure.add_axes((0, 0, 1, 1)).set_xticks([])
    picture = display_figure(figure, "an empty frame")
    shown = int(re.search(r'width="(\d+)"', picture.data)[1])
    assert abs(png_of(picture).width - 2 * shown) <= 1
    assert 400 < shown < 460


def panels_of(figure):
    """Shares of the width: for each panel its parts, each (start, end)."""
    picture = display_figure(figure, "x").data
    found = re.search('data-panels="([^"]+)"', picture)
    return found and [
        [tuple(map(float, part.split("-"))) for part in panel.split("+")]
        for panel in found[1].split(" ")
    ]


def test_a_picture_says_where_its_panels_lie():
    figure, axes = plt.subplots(1, 3, sharey=True, layout="constrained")
    axes[0].set_ylabel("loss")
    figure.colorbar(axes[0].imshow(WEIGHTS), ax=axes[2], label="weight")
    first, second, third = panels_of(figure)
    [(begin, until)] = first
    assert 0 <= begin < 0.1 < until
    labels, (start, end) = second
    assert labels[0] == begin and until <= start < end <= third[1][0]
    assert labels == third[0] and third[1][1] > 0.97, "the bar is the last's"
    figure, axes = plt.subplots(2, 2)
    assert len(panels_of(figure)) == 2
    figure, axes = plt.subplots(1, 2)
    figure.suptitle("over both")
    assert panels_of(figure) is None and panels_of(plt.figure()) is None


def test_exporters_that_know_no_html_find_a_picture():
    animation = animate_attention(np.stack([WEIGHTS, WEIGHTS / 2]))
    for shown in (plot_attention(WEIGHTS), animation):
        picture = display_figure(shown, "x")
        bundle = picture._repr_mimebundle_()
        assert set(bundle) == {"text/html", "image/png", "text/plain"}
        assert bundle["text/html"] == picture.data
        beside = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
        assert beside.format == "PNG" and beside.width > 150


def test_a_picture_keeps_its_colours_but_at_the_edges_of_letters():
    few = np.random.default_rng(0).integers(0, 5, (40, 30, 3)) * 51
    noise = np.random.default_rng(0).integers(0, 256, (200, 100, 3))
    figure = plot_attention(WEIGHTS, annotate=True).figure
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    for levels, mode, most in (
        (few, "P", 0),
        (noise, "RGB", 0),
        (drawn, "P", 24),
    ):
        image = Image.fromarray(levels.astype("uint8"))
        packed = Image.open(io.BytesIO(pack(image)))
        assert packed.mode == mode
        error = abs(np.asarray(packed.convert("RGB"), int) - levels).max(-1)
        assert error.max() <= most
        assert (error > 2).mean() < 0.03


def test_missing_characters_are_told_once_and_not_each():
    figure = plt.figure()
    figure.text(0.5, 0.5, "\U0010fff0\U0010fff1")  # no font has them
    with pytest.warns(UserWarning, match="Glyph"):
        draw(figure)
    with pytest.warns(UserWarning) as told:
        display_figure(figure, "two boxes")
    (warning,) = told
    assert "without a name: \U0010fff0 (U+10FFF0), \U0010fff1" in str(
        warning.message
    )


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
        maps,
        query_tokens=QUERIES,
        key_tokens=KEYS,
        layers="*/cross_attention",
        sample=1,
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


def test_a_long_token_does_not_shrink_the_panels_of_a_grid():
    figure = plot_attention_grid(np.eye(2)[None], query_tokens=["a" * 23, "b"])
    label = figure.axes[0].get_yticklabels()[0].get_text()
    assert label == "a" * 15 + "…"


def test_what_is_not_one_map_or_has_a_token_too_many_says_what_to_do():
    with pytest.raises(TypeError, match="second of the pair"):
        plot_attention_grid((WEIGHTS, {"layer": WEIGHTS[None]}))
    for more in (WEIGHTS[None], WEIGHTS[None, None]):
        with pytest.raises(ValueError, match=r"such as `maps\[path\]\[0, 0\]`"):
            plot_attention(more)
    with pytest.raises(ValueError, match="no layer with attention called 'x'"):
        plot_attention_grid({"layer": WEIGHTS[None]}, layers="x")
    unread = "The last token of a generation was never read"
    for queries, keys in ((4, 5), (3, 6), (4, 6)):
        names = {"query_tokens": "q" * queries, "key_tokens": "k" * keys}
        with pytest.raises(ValueError, match=unread):
            plot_attention_grid(WEIGHTS[None], **names)
    with pytest.raises(ValueError, match=r"\(3, 5\)\.$"):
        plot_attention_grid(WEIGHTS[None], query_tokens="q" * 5)


def test_layers_of_a_grid_may_have_tokens_of_their_own():
    maps = maps_of_two_layers()
    path = "decoder/block_0/self_attention"
    figure = plot_attention_grid(
        maps,
        query_tokens=QUERIES,
        key_tokens=KEYS,
        tokens={path: (QUERIES, QUERIES)},
        heads=[3, 1],
    )
    axes = figure.axes
    assert not axes[2].get_xticks().size, "the next layer has the same keys"
    assert [a.get_title() for a in axes[:2]] == ["head 3", "head 1"]
    assert [t.get_text() for t in axes[1].get_xticklabels()] == QUERIES
    assert [t.get_text() for t in axes[5].get_xticklabels()] == KEYS
    for ax, head in zip(axes, (3, 1), strict=False):  # as they were asked for
        np.testing.assert_array_equal(
            ax.images[0].get_array(), maps[path][0, head]
        )


def test_a_grid_leaves_out_padding_but_not_in_silence():
    weights = np.zeros((4, 6, 7))
    weights[:, :3, :5] = WEIGHTS
    figure = plot_attention_grid(weights, query_tokens=QUERIES, key_tokens=KEYS)
    np.testing.assert_allclose(images(figure)[0].get_array(), WEIGHTS)
    weights[2, 1, 6] = 0.25
    with pytest.warns(UserWarning, match="25% .* 2 columns after the 5 key"):
        plot_attention_grid(weights, query_tokens=QUERIES, key_tokens=KEYS)
    with pytest.raises(ValueError, match=r"7 query and 5 key.*\(6, 7\)"):
        plot_attention_grid(
            weights, query_tokens=list("abcdefg"), key_tokens=KEYS
        )


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
    ax = plot_attention(WEIGHTS.T[:3], query_tokens=HEBREW, key_tokens=HEBREW)
    draw(ax.figure)
    first, last = ax.get_xlim()
    assert first > last, "the first key is on the right"
    assert ax.yaxis.get_ticks_position() == "right"
    assert [t.get_text() for t in ax.get_xticklabels()] == HEBREW
    ax = plot_attention(WEIGHTS.T[:3], query_tokens=KEYS[:3], key_tokens=HEBREW)
    assert ax.yaxis.get_ticks_position() == "left"
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    ax = plot_attention(
        WEIGHTS.T[:3], query_tokens=HEBREW, key_tokens=["a", "b", "שלום"]
    )
    assert ax.get_xlim()[0] < ax.get_xlim()[1], "most are Latin"
    ax = plot_attention(
        WEIGHTS.T[:3], query_tokens=HEBREW, key_tokens=HEBREW, rtl=False
    )
    assert ax.get_xlim()[0] < ax.get_xlim()[1]
    assert ax.yaxis.get_ticks_position() == "left"


def test_a_grid_labels_queries_from_right_to_left_at_its_right():
    figure = plot_attention_grid(
        WEIGHTS.T[None].repeat(2, 0), query_tokens=KEYS, key_tokens=HEBREW
    )
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert labels == KEYS
    figure = plot_attention_grid(
        WEIGHTS[None].repeat(2, 0), query_tokens=HEBREW, key_tokens=KEYS
    )
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
    assert ax.get_title().startswith(
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
    assert ax.get_title() == "", "entropies are no shares of a whole"
    one = plot_entropy(np.full((1, 1, 5, 5), 0.2), normalize=False)
    draw(one.figure)
    inside = [tick for tick in one.get_xticks() if -0.5 < tick < 0.5]
    assert inside == [0.0], "no head has half a number"
    ax = plot_entropy(np.full((1, 2, 5, 5), 0.2), normalize=False)
    np.testing.assert_allclose(ax.images[0].get_array(), np.log(5))
    assert ax.figure.axes[-1].get_ylabel() == "entropy (nats)"


def frames_of(picture):
    gif = Image.open(io.BytesIO(picture))
    return [np.asarray(f.convert("RGB")) for f in ImageSequence.Iterator(gif)]


def test_an_animation_keeps_one_scale_and_is_a_gif(tmp_path):
    frames = np.stack([WEIGHTS, np.full((3, 5), 0.2)])
    animation = animate_attention(
        frames,
        query_tokens=QUERIES,
        key_tokens=KEYS,
        titles=["epoch 1", "epoch 2"],
        interval=200,
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
    with pytest.raises(TypeError, match=r"maps\[path\]\[0, head\].*\['a'\]"):
        animate_attention({"a": WEIGHTS[None]})
    with pytest.raises(ValueError, match=r"maps\[path\]\[0, head\].*\(1, 1"):
        animate_attention(WEIGHTS[None, None])
    with pytest.raises(ValueError, match="query token.*4 tokens.*never read"):
        animate_attention(WEIGHTS, query_tokens=[*QUERIES, "d"])


def test_a_model_reads_a_token_where_no_row_sees_a_later_one():
    square = np.tri(3) / 2
    for above, word in ((0, "reads"), (np.nan, "reads"), (0.1, "writes")):
        square[0, 2] = above
        animate_attention(square, query_tokens=QUERIES)
        assert plt.gca().get_title() == f"{word} a"


def test_a_decoder_writes_row_by_row(monkeypatch):
    seen = []
    animation = animate_attention(
        WEIGHTS, query_tokens=QUERIES, key_tokens=KEYS
    )
    image, title = plt.gca().images[0], plt.gca().title
    for i in range(3):
        animation._func(i)
        seen.append((title.get_text(), image.get_array().copy()))
    assert [text for text, _ in seen] == ["writes a", "writes b", "writes c"]
    for i, (_, shown) in enumerate(seen):
        np.testing.assert_array_equal(shown[: i + 1], WEIGHTS[: i + 1])
        assert shown.mask[i + 1 :].all()
    picture = display_figure(animation, "three steps").data
    assert 'src="data:image/gif;base64,' in picture
    assert not plt.get_fignums()


def test_a_shown_animation_is_large_and_stops(tmp_path):
    animation = animate_attention(np.stack([WEIGHTS, WEIGHTS / 2]))
    width = animation._fig.get_figwidth()
    picture = display_figure(animation, "two steps")
    gif = png_of(picture)
    assert gif.width == pytest.approx(160 * width, abs=1)
    assert "loop" not in gif.info, "the GIF runs once"
    assert gif.n_frames == 2
    assert " width=" not in picture.data
    shown = [np.asarray(f.convert("RGB")) for f in ImageSequence.Iterator(gif)]
    assert (shown[0] != shown[1]).any()


def frames_of_a_recorder():
    later = {path: maps / 2 for path, maps in maps_of_two_layers().items()}
    return [later, maps_of_two_layers()]


def test_recorded_frames_are_grids_one_after_another():
    animation = animate_attention(
        frames_of_a_recorder(),
        query_tokens=QUERIES,
        key_tokens=KEYS,
        layers="*/cross_attention",
        heads=[3, 1],
        sample=1,
        mask=np.tri(3, 5, 2, dtype=bool),
        annotate=True,
        titles=["start", "end"],
    )
    figure = plt.gcf()
    assert [a.get_title() for a in figure.axes[:2]] == ["head 3", "head 1"]
    path = "decoder/block_1/cross_attention"
    for i, maps in enumerate(frames_of_a_recorder()):
        animation._func(i)
        assert figure.get_suptitle() == ["start", "end"][i]
        shown = figure.axes[3].images[0].get_array()
        np.testing.assert_allclose(shown.data, maps[path][1, 1])
        assert shown.mask.sum() == 3
        numbers = {t.get_position(): t for t in figure.axes[3].texts}
        assert len(numbers) == 12
        assert numbers[1, 2].get_text() == f"{maps[path][1, 1, 2, 1]:.2f}"
    most = max(
        np.where(np.tri(3, 5, 2), maps[1, [1, 3]], 0).max()
        for path, maps in frames_of_a_recorder()[1].items()
        if "cross" in path
    )
    assert {image.get_clim() for image in images(figure)} == {(0.0, most)}
    assert figure.axes[-1].get_ylabel() == "weight"
    picture = display_figure(animation, "two epochs").data
    assert 'src="data:image/gif' in picture


def test_recorded_frames_of_different_layers_are_refused():
    frames = frames_of_a_recorder()
    del frames[0]["decoder/block_0/self_attention"]
    with pytest.raises(ValueError, match="self_attention.*frame 0: {'decod"):
        animate_attention(frames)


def test_an_animation_keeps_its_mask_and_its_numbers():
    frames = np.stack([WEIGHTS, WEIGHTS[::-1]])
    mask = np.tri(3, 5, 1, dtype=bool)
    animation = animate_attention(frames, mask=mask, annotate=True)
    ax = plt.gca()
    for i in (0, 1):
        animation._func(i)
        shown = ax.images[0].get_array()
        np.testing.assert_array_equal(shown.mask, ~mask)
        numbers = {t.get_position(): t.get_text() for t in ax.texts}
        assert len(numbers) == mask.sum()
        assert numbers[0, 2] == f"{frames[i, 2, 0]:.2f}"


def test_the_description_names_the_largest_weights():
    weights = np.array([[0.9, 0.1], [0.3, 0.7]])
    assert describe_attention(
        weights, query_tokens=["le", "chat"], key_tokens=["the", "cat"]
    ) == (
        "Heatmap of 2 queries by 2 keys, weights from 0.10 to 0.90. Largest: "
        "“le” to “the” 0.90, “chat” to “cat” 0.70, “chat” to “the” 0.30."
    )
    mask = np.array([[False, True], [True, True]])
    assert describe_attention(weights, mask=mask, top=1) == (
        "Heatmap of 2 queries by 2 keys, weights from 0.10 to 0.70. Largest: "
        "“1” to “1” 0.70. 1 cell is masked."
    )
    assert describe_attention(weights, mask=False) == (
        "Heatmap of 2 queries by 2 keys. 4 cells are masked."
    )
    with pytest.raises(ValueError, match=r"3 tokens.*\(2, 2\)"):
        describe_attention(weights, query_tokens=["a", "b", "c"])


def test_twelve_layers_of_twelve_heads_are_drawn_in_seconds():
    tokens = [f"t{i}" for i in range(64)]
    weights = np.random.default_rng(0).dirichlet(np.ones(64), (12, 12, 64))
    maps = dict(zip("abcdefghijkl", weights, strict=True))
    start = time.process_time()
    draw(plot_attention_grid(maps, query_tokens=tokens, key_tokens=tokens))
    assert time.process_time() - start < 20, "under 10 s on a quiet machine"


CURVES = {
    "training": ([1, 2, 3, 4], [3.0, 2.0, 1.5, 1.2]),
    "validation": ([2, 4], [2.41, 2.56]),
}
RATE = [1, 2, 3, 4], [0.001, 0.002, 0.001, 0.0]


def test_each_curve_is_drawn_as_it_is_and_told_apart():
    ax = plot_learning_curves(CURVES)
    assert len(ax.figure.axes) == 1
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    drawn = {line.get_label(): line for line in ax.lines}
    assert drawn.keys() == CURVES.keys()
    for name, (steps, values) in CURVES.items():
        assert list(drawn[name].get_xdata()) == steps
        assert list(drawn[name].get_ydata()) == values
    looks = {(x.get_color(), x.get_linestyle()) for x in ax.lines}
    assert len(looks) == 2
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [*CURVES]


def test_the_lowest_validation_loss_is_written_at_its_place():
    (note,) = plot_learning_curves(CURVES).texts
    assert note.get_text() == "2.41" and note.xy == (2, 2.41)


def test_the_learning_rate_has_a_panel_of_its_own():
    ax = plot_learning_curves(CURVES, RATE, xlabel="epoch")
    above, below = ax.figure.axes
    assert ax is above and not above.get_xlabel()
    assert below.get_xlabel() == "epoch"
    assert list(below.lines[0].get_ydata()) == RATE[1]
    assert to_png(ax.figure).startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="'training': 2 steps, 1 values"):
        plot_learning_curves({"training": ([1, 2], [3.0])})
    with pytest.raises(ValueError, match="1 to 4 curves. Received: 0"):
        plot_learning_curves({})
    with pytest.raises(ValueError, match="Received: 5"):
        plot_learning_curves({str(i): ([], []) for i in range(5)})


def test_a_legend_is_placed_without_a_search(monkeypatch):
    """Matplotlib warns where its search for the best place takes a second."""

    def search(*_):
        raise AssertionError("the best place was searched for")

    monkeypatch.setattr(Legend, "_find_best_position", search)
    plot_learning_curves(CURVES).figure.canvas.draw()


def test_a_loss_that_is_no_number_leaves_a_gap():
    nan = float("nan")
    curves = {"a": ([1], [nan]), "b": ([1, 2], [nan, 2.0]), "c": ([1], [nan])}
    notes = [text.get_text() for text in plot_learning_curves(curves).texts]
    assert notes == ["2.00"]


SIGNED = np.array([[0.5, -0.25, 0.5], [0.1, -0.9, 0.2]])


@pytest.mark.parametrize(
    "draw",
    [
        plot_attention,
        lambda weights: plot_attention_grid(weights[None]).axes[0],
        lambda weights: show_heatmaps(
            weights[None, None], "keys", "queries"
        ).axes[0],
        lambda weights: animate_attention(weights[None])._fig.axes[0],
    ],
)
def test_negative_weights_are_not_drawn_as_none(draw):
    """A scale from 0 would give them the colour of 0."""
    [image] = draw(SIGNED).images
    assert image.get_clim() == (-0.9, 0.9)
    middle = image.cmap(image.norm(0.0))
    assert min(middle[:3]) > 0.95  # white
    [image] = draw(np.abs(SIGNED)).images
    assert image.get_clim() == (0.0, 0.9)


def test_a_title_says_that_weights_are_signed():
    title = plot_attention(SIGNED, title="a").get_title()
    assert title == "a\n(signed; rows sum to -0.60 – 0.75)"
    figure = plot_attention_grid(SIGNED[None])
    assert "signed; rows sum to -0.60 – 0.75" in figure.get_suptitle()


def test_what_was_asked_of_a_scale_holds_for_signed_weights():
    ax = plot_attention(SIGNED, vmin=0.0, cmap="viridis")
    assert ax.images[0].get_clim() == (0.0, 0.5)
    assert ax.images[0].cmap.name == "viridis"
    assert plot_attention(SIGNED, vmax=0.3).images[0].get_clim() == (-0.3, 0.3)


def test_a_grid_says_what_became_of_a_softmax():
    weights = np.ones((1, 1, 2, 2)) / 2
    told = {"a": "difference of 2 softmaxes"}
    maps = AttentionMaps({"a": weights, "b": weights}, after_softmax=told)
    figure = plot_attention_grid(maps)
    assert figure.get_suptitle() == "a: difference of 2 softmaxes"
    figure = plot_attention_grid(maps, layers=["b"])
    assert not figure.get_suptitle()
