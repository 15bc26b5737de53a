from d2l_attention.heatmaps import (
    attention_rollout,
    get_attention_weights,
    join_windows,
    plot_attention,
    plot_attention_on_image,
)
import keras
from keras import ops
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

matplotlib.use("agg")
GRID = ROWS, COLUMNS = 3, 5
TOKENS = 2  # before the patches: [CLS] and a register
PICTURE = np.random.default_rng(1).integers(0, 256, (33, 70, 3), "uint8")


def draw_weights(*shape, seed=0):
    scores = np.random.default_rng(seed).normal(size=shape)
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


WEIGHTS = draw_weights(2, 3, 17, 17)  # B, H, and 2 tokens with 15 patches


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def plot(weights=WEIGHTS, image=PICTURE, **options):
    options = {"first_patch": TOKENS, "grid": GRID} | options
    return plot_attention_on_image(weights, image, **options)


def layer_of(ax):
    picture, layer = ax.images
    return layer


def test_a_row_lies_on_the_grid_row_by_row_over_the_whole_picture():
    ax = plot(query=7, head=1, sample=1)
    picture, layer = ax.images
    for row, column in np.ndindex(GRID):
        weight = WEIGHTS[1, 1, 7, TOKENS + row * COLUMNS + column]
        assert layer.get_array()[row, column] == pytest.approx(weight)
    assert picture.get_extent() == layer.get_extent() == [-0.5, 4.5, 2.5, -0.5]
    assert picture.origin == layer.origin == "upper"
    assert layer.get_interpolation() == "nearest"
    assert ax.get_title().startswith("query 7, head 1\n")


def test_the_cell_of_a_patch_hides_the_pixels_of_this_patch():
    """Seen in the drawn figure: one patch is bright, and has all weight."""
    place = np.zeros(GRID)
    place[2, 1] = 1
    ax = plot(
        place.reshape(1, -1),
        np.kron(place, np.ones((11, 14))),
        first_patch=0,
        alpha=0.5,
        cmap="gray",
    )
    ax.figure.canvas.draw()
    drawn = np.asarray(ax.figure.canvas.buffer_rgba())[::-1, :, 0]
    for cell in np.ndindex(GRID):
        x, y = ax.transData.transform(cell[::-1]).astype(int)
        assert drawn[y, x] == (255 if place[cell] else 0)
    box = ax.get_window_extent()
    assert box.width / box.height == pytest.approx(70 / 33)  # square pixels


def test_heads_are_averaged_and_the_title_says_so():
    ax = plot(title="[CLS]")
    expected = WEIGHTS[0, :, 0, TOKENS:].mean(0).reshape(GRID)
    np.testing.assert_allclose(layer_of(ax).get_array(), expected)
    first, second, third = ax.get_title().splitlines()
    assert (first, second) == ("[CLS]", "query 0, mean of 3 heads")
    share = 100 * WEIGHTS[0, :, 0, :TOKENS].mean(0).sum()
    rest = "of the weight on the 2 tokens before the patches"
    assert third == f"{share:.1f} % {rest}"


@pytest.mark.parametrize("axes", [0, 1, 2])
def test_a_learned_query_looks_at_patches_only(axes):
    weights = draw_weights(1, 15)[(None,) * axes]
    ax = plot(weights, first_patch=0)
    np.testing.assert_allclose(
        layer_of(ax).get_array(), weights.reshape(GRID), rtol=1e-6
    )
    assert ax.get_title() == "query 0" and not ax.patches


def test_sixteen_patches_after_one_token_are_a_square():
    ax = plot_attention_on_image(np.full((1, 17), 1 / 17), PICTURE)
    assert layer_of(ax).get_array().shape == (4, 4)


def test_patches_are_squares_of_a_picture_that_is_none():
    for size, grid in (((8, 32), (2, 8)), ((32, 8), (8, 2)), ((8, 24), (4, 4))):
        weights = np.full((1, 17), 1 / 17)
        ax = plot_attention_on_image(weights, np.zeros(size))
        assert layer_of(ax).get_array().shape == grid


def test_a_rollout_is_a_map_for_each_picture():
    layers = np.random.default_rng(0).dirichlet(np.ones(17), (2, 3, 4, 17))
    found = attention_rollout(layers)[-1]  # of 3 pictures
    for sample in range(3):
        ax = plot_attention_on_image(found, PICTURE, sample=sample)
        expected = found[sample, 0, 0, 1:].reshape(4, 4)
        np.testing.assert_allclose(layer_of(ax).get_array(), expected)
        assert ax.get_title().startswith("query 0\n")


def test_a_patch_that_queries_has_a_frame():
    ax = plot(query=(1, 3), head=0)
    expected = WEIGHTS[0, 0, TOKENS + 1 * COLUMNS + 3, TOKENS:]
    np.testing.assert_allclose(layer_of(ax).get_array(), expected.reshape(GRID))
    (frame,) = ax.patches
    assert frame.get_xy() == (2.5, 0.5)
    assert ax.get_title().startswith("query: patch (1, 3), head 0\n")
    assert not plot(query=np.int64(10)).patches


def test_colours_run_from_zero_to_the_largest_weight_on_a_patch():
    weights = np.array([[0.7, 0.1, 0.0, 0.0, 0.2]])
    ax = plot_attention_on_image(weights, PICTURE)
    assert layer_of(ax).get_clim() == (0.0, 0.2)
    assert ax.figure.axes[-1].get_ylabel() == "weight"
    ax = plot_attention_on_image(weights, PICTURE, vmax=1.0, ax=ax)
    assert ax.images[-1].get_clim() == (0.0, 1.0)


def test_what_the_row_lacks_is_told():
    cut = np.array([[0.1, 0.1, 0.0, 0.1, 0.1]])  # the rest was cut off
    assert plot_attention_on_image(cut, PICTURE).get_title() == (
        "query 0\n25.0 % of the weight on the 1 token before the patches\n"
        "(the row sums to 0.40)"
    )
    empty = plot_attention_on_image(0 * cut, PICTURE)
    assert empty.get_title() == "query 0\nno weight on any key"


def test_patches_without_a_weight_are_hatched_and_show_the_picture():
    row = np.full((1, 15), np.nan)
    row[0, [3, 7, 8]] = 0.2, 0.3, 0.5
    ax = plot(row, first_patch=0)
    assert layer_of(ax).get_array().compressed().tolist() == [0.2, 0.3, 0.5]
    (hatched,) = ax.patches
    assert hatched.get_hatch() == "////"
    path = hatched.get_path()
    for cell in np.ndindex(GRID):
        is_hatched = path.contains_point(cell[::-1])
        assert is_hatched == (cell not in [(0, 3), (1, 2), (1, 3)])


def test_heads_without_a_weight_are_not_averaged_with_others():
    weights = np.stack([WEIGHTS[0, 0], np.full((17, 17), np.nan)])
    with pytest.raises(ValueError, match="query 0 in 1 of 2 heads"):
        plot(weights)
    assert plot(weights, head=0).get_title().startswith("query 0, head 0\n")
    assert "no weight on any key" in plot(weights, head=1).get_title()


def test_the_picture_is_grey_whatever_it_is_made_of():
    picture, _ = plot().images
    grey = PICTURE @ [0.299, 0.587, 0.114] / 255
    for image in (PICTURE / 255, grey, (PICTURE / 255).astype("float32")):
        np.testing.assert_allclose(
            plot(image=image).images[0].get_array(), grey, atol=1e-6
        )
    np.testing.assert_allclose(picture.get_array(), grey)
    assert picture.get_cmap().name == "gray"
    assert picture.get_clim() == (0, 1)
    dark = plot(image=np.full((9, 9), 51, "uint8")).images[0]
    np.testing.assert_allclose(dark.get_array(), 0.2)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (PICTURE[None], r"one picture.*\(1, 33, 70, 3\)"),
        (np.zeros((4, 4, 4), "uint8"), r"one picture.*\(4, 4, 4\)"),
        (PICTURE.astype("float32"), "float32 from 0 to 255.*uint8"),
        (PICTURE / 127.5 - 1, "float64 from -1 to 1. .*before it was norm"),
        (np.full((2, 2), np.nan), "float64 from nan"),
        (PICTURE.astype("int64"), "Received: int64"),
        (np.ones((4, 4), bool), "Received: bool"),
    ],
)
def test_what_is_no_picture_is_told(image, message):
    with pytest.raises(ValueError, match=message):
        plot(image=image)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        (
            (1, 197),
            {"first_patch": 0},
            "197 patches after 0 tokens; 197 keys. `first_patch=1`.* 14 × 14",
        ),
        ((1, 201), {}, "200 patches after 1 token; 201 keys. `first_patch=5`"),
        (
            (1, 197),
            {"grid": (12, 16)},
            r"Received: \(12, 16\), which has 192, for 196 patches after 1 tok",
        ),
        ((1, 7), {"grid": (-2, -3)}, "has 6, for 6 patches"),
        ((1, 5), {"first_patch": 5}, "0 to 4 for 5 keys. Received: 5"),
        ((1, 5), {"first_patch": -4}, "Received: -4"),
        ((3, 5), {"query": 3}, "0 to 2.*Received: 3"),
        ((3, 5), {"query": -1}, "Received: -1"),
        ((4, 5), {"query": (0, 1)}, "4 queries and 5 keys"),
        ((5, 5), {"query": (0, 2)}, r"2 × 2 patches. Received: \(0, 2\)"),
        ((5, 5), {"query": (-1, 0)}, r"Received: \(-1, 0\)"),
        ((3, 5, 5), {"head": 3}, "`head`.*0 to 2.*Received: 3"),
        ((2, 3, 5, 5), {"sample": 2}, "Received: 2"),
        ((5,), {}, r"\(T, S\), .*shape \(5,\)"),
        ((1, 1, 1, 5, 5), {}, r"shape \(1, 1, 1, 5, 5\)"),
    ],
)
def test_what_does_not_fit_is_told_with_its_numbers(shape, options, message):
    with pytest.raises(ValueError, match=message):
        plot_attention_on_image(draw_weights(*shape), PICTURE, **options)


def test_a_mapping_and_negative_weights_are_refused():
    with pytest.raises(TypeError, match="by its path.*'layer'"):
        plot({"layer": WEIGHTS})
    weights = np.array([[0.5, 0.75, -0.25, 0.0, 0.0]])
    with pytest.raises(ValueError, match="-0.25 in the row of query 0"):
        plot_attention_on_image(weights, PICTURE)


W, SWIN_GRID, D = 3, (6, 9), 4  # 6 windows; 2 heads of 2 features


def partition(x):
    """`(B, rows, columns, C)` → `(B · 6, W², C)`, as the authors' code."""
    b, rows, columns, c = x.shape
    x = ops.reshape(x, (b, rows // W, W, columns // W, W, c))
    return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, W * W, c))


def reverse(windows):
    rows, columns = SWIN_GRID
    x = ops.reshape(windows, (-1, rows // W, columns // W, W, W, D))
    x = ops.transpose(x, (0, 1, 3, 2, 4, 5))
    return ops.reshape(x, (-1, rows, columns, D))


class WindowAttention(keras.layers.Layer):
    """Each head attends with two features of the input as they are."""

    def call(self, x, regions):
        heads = ops.reshape(x, (*x.shape[:2], 2, D // 2))
        scores = ops.einsum("wthk,wshk->whts", heads, heads)
        apart = regions != ops.transpose(regions, (0, 2, 1))  # (B · 6, W², W²)
        weights = ops.softmax(
            scores - 100.0 * ops.cast(apart, "float32")[:, None]
        )
        output = ops.einsum("whts,wshk->wthk", weights, heads)
        return ops.reshape(output, x.shape)


class SwinLayer(keras.Model):
    def __init__(self, shift):
        super().__init__()
        self.shift = shift
        self.attention = WindowAttention(name="attention")

    def call(self, x):
        regions = np.zeros((len(x), *SWIN_GRID, 1), "int32")
        if self.shift:
            ends = (
                slice(0, -W),
                slice(-W, -self.shift),
                slice(-self.shift, None),
            )
            for i, j in np.ndindex(3, 3):
                regions[:, ends[i], ends[j]] = 3 * i + j
        back = self.shift, self.shift
        x = ops.roll(x, (-self.shift, -self.shift), axis=(1, 2))
        x = self.attention(
            partition(x), partition(ops.convert_to_tensor(regions))
        )
        return ops.roll(reverse(x), back, axis=(1, 2))


def run_swin(shift):
    x = np.random.default_rng(2).normal(size=(2, *SWIN_GRID, D))
    x = x.astype("float32")
    output, maps = get_attention_weights(SwinLayer(shift), x)
    assert maps["attention"].shape == (2 * 6, 2, W * W, W * W)
    return x, np.asarray(output), maps["attention"]


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_joined_map_on_values_in_the_order_of_the_picture_is_the_layer(shift):
    x, output, weights = run_swin(shift)
    joined = join_windows(weights, SWIN_GRID, W, shift=shift)
    assert joined.shape == (2, 2, 54, 54) and joined.dtype == "float32"
    values = x.reshape(2, 54, 2, D // 2)  # (B, N, H, K)
    expected = np.einsum("bhts,bshk->bthk", np.nan_to_num(joined), values)
    np.testing.assert_allclose(
        output.reshape(expected.shape), expected, atol=1e-6
    )


@pytest.mark.parametrize("shift", [0, 1])
def test_only_pairs_of_one_window_have_a_weight(shift):
    joined = join_windows(run_swin(shift)[2], SWIN_GRID, W, shift=shift)
    for t, s in np.ndindex(54, 54):
        places = np.array([divmod(t, 9), divmod(s, 9)]) - shift  # (2, 2)
        is_masked = ((places < 0)[0] != (places < 0)[1]).any()
        (high, wide), other = places % SWIN_GRID // W
        if (high, wide) != tuple(other):
            assert np.isnan(joined[..., t, s]).all()
        else:
            assert (joined[..., t, s] < 1e-30).all() == is_masked


def test_joined_maps_are_drawn_with_their_windows():
    weights = run_swin(1)[2]
    joined = join_windows(weights, SWIN_GRID, W, shift=1)
    ax = plot_attention(joined[0, 1])
    assert ax.images[0].get_array().mask.sum() == 54 * 54 - 54 * W * W
    assert not ax.get_title(), "the rows still sum to 1"
    ax = plot(joined, query=(2, 4), first_patch=0, grid=SWIN_GRID)
    hidden = layer_of(ax).get_array().mask
    assert hidden.sum() == 54 - W * W and not hidden[1:4, 4:7].any()
    assert ax.get_title() == "query: patch (2, 4), mean of 2 heads"


def test_another_shift_than_the_layers_is_told():
    for layers, given in ((0, 1), (0, 2), (1, 2), (2, 1)):
        with pytest.warns(UserWarning, match=f"opposite edges.*shift={given}"):
            join_windows(run_swin(layers)[2], SWIN_GRID, W, shift=given)
    with pytest.warns(UserWarning, match="is 1 in Swin. Received: shift=0"):
        join_windows(run_swin(1)[2], SWIN_GRID, W)


@pytest.mark.parametrize(
    ("shape", "grid", "window", "shift", "message"),
    [
        ((6, 2, 9, 9), (6, 8), 3, 0, "Windows of 3 × 3.*a grid of 6 × 8"),
        ((6, 2, 9, 9), (5, 9), 3, 0, "a grid of 5 × 9"),
        ((6, 2, 9, 9), (0, 9), 3, 0, "a grid of 0 × 9"),
        ((6, 2, 9, 9), (6, 9), 0, 0, "Windows of 0 × 0"),
        ((6, 2, 9, 9), (6, 9), 3, 3, "0 to 2.*Received: 3"),
        ((6, 2, 9, 9), (6, 9), 3, -1, "Received: -1"),
        ((7, 2, 9, 9), (6, 9), 3, 0, r"has 6 windows.*B · 6.*\(7, 2, 9, 9\)"),
        ((0, 2, 9, 9), (6, 9), 3, 0, r"\(0, 2, 9, 9\)"),
        ((6, 2, 4, 4), (6, 9), 3, 0, r"H, 9, 9\).*\(6, 2, 4, 4\)"),
        ((6, 2, 9, 10), (6, 9), 3, 0, r"\(6, 2, 9, 10\)"),
        ((6, 9, 9), (6, 9), 3, 0, r"\(6, 9, 9\)"),
    ],
)
def test_windows_that_do_not_fill_the_grid_are_told(
    shape, grid, window, shift, message
):
    with pytest.raises(ValueError, match=message):
        join_windows(np.ones(shape), grid, window, shift=shift)
