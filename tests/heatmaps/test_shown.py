"""What is shown is what is there: masks, windows, names, rows and signs."""

from contract import draw
from d2l_attention.heatmaps import (
    animate_attention,
    attention_distance,
    attention_entropy,
    attention_rollout,
    check_attention_masks,
    get_attention_weights,
    plot_attention,
    plot_attention_grid,
    plot_entropy,
    show_heatmaps,
    view_attention,
)
import keras
from keras import ops
import matplotlib.pyplot as plt
import numpy as np
import pytest
from zoo import known


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def shown_by(weights, **options):
    """The masked arrays `(T, S)` that a grid draws, head by head."""
    figure = plot_attention_grid(weights, **options)
    arrays = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    plt.close("all")
    return arrays[: weights["a"].shape[-3]]


def test_a_mask_of_three_axes_is_a_batch_and_never_heads():
    rng = np.random.default_rng(0)
    weights = {"a": rng.dirichlet(np.ones(5), (3, 3, 5))}
    allowed = np.stack([np.tri(5, k=k, dtype=bool) for k in range(3)])
    for head in shown_by(weights, sample=1, mask=allowed):
        np.testing.assert_array_equal(head.mask, ~allowed[1])
    heads = np.broadcast_to(allowed, (3, 3, 5, 5))
    for h, head in enumerate(shown_by(weights, sample=1, mask=heads)):
        np.testing.assert_array_equal(head.mask, ~allowed[h])
    few = {"a": weights["a"][:, :2]}
    for head in shown_by(few, sample=2, mask={"a": allowed}):
        np.testing.assert_array_equal(head.mask, ~allowed[2])
    words = {"query_tokens": ["a", "b", "c"]}
    for mask in (allowed, allowed[1, :3]):
        for head in shown_by(few, sample=1, mask=mask, **words):
            np.testing.assert_array_equal(head.mask, ~allowed[1, :3])
    with pytest.raises(ValueError, match=r"\(3, 5, 5\).*shape \(2, 5, 5\)"):
        plot_attention_grid(few, mask=allowed[:2])


@pytest.mark.parametrize("show", [plot_attention_grid, view_attention])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tokens": {"typo": ("ab", "ab")}}, "`tokens` names .'typo'."),
        ({"mask": {"typo": np.ones((2, 2))}}, "`mask` names .'typo'."),
        ({"heads": [0, 9]}, r"0 to 2, the heads of .*\[9\]"),
        ({"sample": 7}, "one of the 4 sentences .*Received: 7"),
    ],
)
def test_what_is_not_there_is_told_by_its_name(show, options, said):
    weights = np.ones((4, 3, 2, 2)) / 2
    maps = {"multi_head_attention_2": weights, "decoder/self": weights}
    with pytest.raises(ValueError, match=said):
        show(maps, **options)


def test_a_pattern_names_layers_whose_number_changes():
    weights = np.ones((1, 1, 2, 3)) / 3
    maps = {"multi_head_attention_7": weights, "other": weights}
    pair = (["to", "be"], ["or", "not", "so"])
    figure = plot_attention_grid(maps, tokens={"multi_head_attention*": pair})
    first, second = figure.axes[:2]
    assert [x.get_text() for x in first.get_xticklabels()] == pair[1]
    assert pair[1][0] not in [x.get_text() for x in second.get_xticklabels()]


class Windows(keras.Model):
    """Two windows of each picture are the batch of its attention, as Swin's."""

    def __init__(self):
        super().__init__()
        self.attention = known()

    def call(self, x):
        windows = ops.reshape(x, (-1, 3, 8))
        return ops.reshape(self.attention(windows, windows), (-1, 6, 8))


def test_windows_are_counted_by_a_name_of_their_own(tmp_path):
    _, maps = get_attention_weights(Windows(), draw(2, 6, 8))
    assert maps["known"].shape == (4, 2, 3, 3)
    for show in (plot_attention_grid, view_attention):
        for options in ({}, {"sample": 1}, {"window": 4}):
            with pytest.raises(ValueError, match="4 for 2 inputs .*0 to 3"):
                show(maps, **options)
    figure = plot_attention_grid(maps.select("known"), window=3)
    drawn = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(drawn, maps["known"][3, 0])
    x = draw(2, 5, 8)
    _, plain = get_attention_weights(known(), x, x)
    with pytest.raises(ValueError, match="No layer has windows"):
        plot_attention_grid(plain, window=0)


def test_rows_that_do_not_sum_to_one_say_so():
    weights = np.array([[[0.2, 0.3, 0.0], [0.1, 0.4, 0.4], [0.0, 0.0, 0.0]]])
    note = "(rows sum to 0.50 – 0.90)"
    assert plot_attention(weights[0]).get_title() == note
    assert plot_attention_grid(weights).get_suptitle() == note
    assert note in view_attention(weights).to_html().replace("\\u2013", "–")
    for whole in (np.eye(3), np.array([[5.0, 1.0]])):
        assert plot_attention(whole).get_title() == ""
    shares = np.array([[0.4, 0.6, 0.0], [1 / 9, 4 / 9, 4 / 9]])
    for statistic in (attention_entropy, attention_distance):
        np.testing.assert_allclose(
            statistic(weights[0])[:2], statistic([*shares, [0, 0, 0]])[:2]
        )
        assert np.isnan(statistic(weights[0])[2])


def test_the_wrong_kind_of_argument_is_told():
    weights = np.ones((2, 2)) / 2
    with pytest.raises(TypeError, match="plot_attention_grid.*'layer'"):
        plot_attention({"layer": weights})
    with pytest.raises(TypeError, match="query_tokens.*Received: list"):
        plot_attention_grid({"layer": weights[None]}, tokens=["a", "b"])
    with pytest.raises(TypeError, match="a layer of Keras 3.*function"):
        get_attention_weights(lambda x: x, weights)


def test_weights_of_both_signs_say_so_and_rounding_does_not():
    weights = np.array([[[0.7, -0.2], [0.4, 0.3]]])
    note = "(signed; rows sum to 0.50 – 0.70)"
    assert plot_attention(weights[0]).get_title() == note
    assert plot_attention_grid(weights).get_suptitle() == note
    weights = np.array([[[0.7, -1e-7], [0.4, 0.3]]])
    assert plot_attention_grid(weights).get_suptitle() == ""


def test_infinity_is_not_shown_as_a_cell_that_may_not_be_seen():
    weights = np.array([[[[0.5, np.inf]]]])
    shown = (
        lambda: plot_attention_grid(weights),
        lambda: view_attention(weights),
        lambda: plot_attention(weights[0, 0]),
        lambda: show_heatmaps(weights, "keys", "queries"),
        lambda: animate_attention(weights[0]),
        lambda: attention_entropy(weights),
        lambda: attention_entropy(-weights),
    )
    for show in shown:
        with pytest.raises(ValueError, match="weights must be finite"):
            show()
    scores = plot_attention([[0.5, -np.inf]]).images[0].get_array()
    assert scores.mask.tolist() == [[False, True]]


@pytest.mark.every_backend
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_pictures_and_statistics_take_what_a_layer_returns(dtype):
    """A tensor that may have a gradient, of any dtype."""
    layer = keras.layers.MultiHeadAttention(2, 4, dtype=dtype)
    x = draw(2, 5, 8)
    _, weights = layer(x, x, return_attention_scores=True)
    map_of_one = weights[0, 0]
    view_attention({"attention": weights})
    plot_attention(map_of_one)
    animate_attention([map_of_one, map_of_one])
    plot_attention_grid({"attention": weights})
    plot_entropy({"attention": weights})
    show_heatmaps(weights, "Keys", "Queries")
    mask = ops.ones((5, 5), "bool")
    assert attention_entropy(weights, mask=mask, normalize=True).shape == (
        *(2, 2, 5),
    )
    assert attention_distance(weights).shape == (2, 2, 5)
    assert attention_rollout([weights]).shape[-2:] == (5, 5)
    tokens = np.ones((2, 5), "bool")
    assert not check_attention_masks({"attention": weights}, key_mask=tokens)
