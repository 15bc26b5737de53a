"""One softmax over a window and the global tokens."""

from contract import (
    dense_attention,
    draw,
    give_to_keras,
    needs_sliding_window,
    to_numpy,
)
from d2l_attention import (
    LongformerAttention,
    MultiHeadAttention,
    longformer_attention,
)
from d2l_attention.layers.longformer import longformer_mask
import keras
import numpy as np
import pytest

T, H = 70, 3  # more than two pages
MASK = np.arange(T) < np.array([[43], [T]])
MASK[0, :9] = False


def inputs():
    query, key = draw(2, T, H, 4), draw(2, T, H, 4, seed=1)
    return query, key, draw(2, T, H, 5)


def test_the_mask():
    expected = [
        [1, 1, 0, 1, 0],
        [1, 1, 1, 1, 0],
        [0, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1],
    ]
    found = to_numpy(longformer_mask(5, 1, [3]))
    np.testing.assert_array_equal(found, expected)
    causal = to_numpy(longformer_mask(5, 1, [3], use_causal_mask=True))
    np.testing.assert_array_equal(causal, np.tril(expected))


@pytest.mark.parametrize("positions", [None, [0, 37], [[69, 5], [12, 0]]])
@pytest.mark.parametrize(
    ("window", "causal"),
    [
        (1, True),
        (3, False),
        pytest.param(3, True, marks=pytest.mark.every_backend),
        (32, False),
        (40, True),
        (100, False),
    ],
)
def test_equals_dense_attention_under_the_mask(window, positions, causal):
    query, key, value = inputs()
    found = longformer_attention(
        query,
        key,
        value,
        window,
        global_positions=positions,
        key_mask=MASK,
        use_causal_mask=causal,
    )
    of_each = np.broadcast_to([-1] if positions is None else positions, (2, 2))
    mask = np.stack(
        [to_numpy(longformer_mask(T, window, p, causal)) for p in of_each]
    )
    expected = dense_attention(
        query, key, value, (mask & MASK[:, None])[:, None]
    )
    np.testing.assert_allclose(to_numpy(found), expected, atol=2e-6)


def test_a_window_over_everything_is_attention():
    query, key, value = inputs()
    found = longformer_attention(query, key, value, T)
    expected = dense_attention(query, key, value, np.ones((T, T), bool))
    np.testing.assert_allclose(to_numpy(found), expected, atol=2e-6)


@pytest.mark.parametrize("positions", [None, [3], [0, 1, 50]])
def test_values_of_one_give_one(positions):
    """A window's attention and a global one, added, would give 2."""
    query, key, _ = inputs()
    ones = np.ones((2, T, H, 1), "float32")
    found = longformer_attention(
        query, key, ones, 4, global_positions=positions
    )
    np.testing.assert_allclose(to_numpy(found), 1, atol=1e-6)


def test_repeated_and_absent_positions_count_once_and_not():
    query, key, value = inputs()
    plain, same = (
        longformer_attention(query, key, value, 4, global_positions=p)
        for p in ([5, 20], [5, -1, 20, 5, 20])
    )
    np.testing.assert_allclose(to_numpy(plain), to_numpy(same), atol=1e-6)
    none, absent = (
        longformer_attention(query, key, value, 4, global_positions=p)
        for p in (None, [-1, -1])
    )
    np.testing.assert_allclose(to_numpy(none), to_numpy(absent), atol=1e-6)


@pytest.mark.every_backend
def test_global_rows_have_projections_of_their_own():
    query, key, value = inputs()
    own_query = draw(2, 2, H, 4, seed=7)
    own_key, own_value = draw(2, T, H, 4, seed=8), draw(2, T, H, 5, seed=9)
    positions = [0, 37]
    found = to_numpy(
        longformer_attention(
            query,
            key,
            value,
            4,
            global_positions=positions,
            global_query=own_query,
            global_key=own_key,
            global_value=own_value,
            key_mask=MASK,
        )
    )
    rows = dense_attention(own_query, own_key, own_value, MASK[:, None, None])
    np.testing.assert_allclose(found[:, positions], rows, atol=2e-6)
    plain = to_numpy(
        longformer_attention(
            query, key, value, 4, global_positions=positions, key_mask=MASK
        )
    )
    rest = np.delete(np.arange(T), positions)
    np.testing.assert_array_equal(found[:, rest], plain[:, rest])


def test_reach_is_layers_times_window():
    """What stands one token farther moves nothing, bit for bit."""
    layers = [LongformerAttention(2, 3, window=4) for _ in range(3)]

    def run(x):
        for layer in layers:
            x = x + layer(x)
        return to_numpy(x)[0, 40]

    x = draw(1, T, 6)
    before = run(x)
    for distance, moves in ((12, True), (13, False)):
        for place in (40 - distance, 40 + distance):
            changed = x.copy()
            changed[0, place] += 1
            assert (run(changed) != before).any() == moves


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("positions", [None, [0, 37]])
def test_the_layer_begins_as_multi_head_attention_under_the_mask(
    causal, positions
):
    x = draw(2, T, 7)
    layer = LongformerAttention(H, 4, window=5)
    plain = MultiHeadAttention(H, 4)
    for one in (layer, plain):
        one.build(x.shape)
    for name in ("query", "key", "value", "output"):
        weights = getattr(layer, f"{name}_layer").get_weights()
        getattr(plain, f"{name}_layer").set_weights(weights)
    mask = to_numpy(longformer_mask(T, 5, positions or [-1], causal))
    found = layer(
        x,
        global_positions=positions,
        key_mask=MASK,
        use_causal_mask=causal,
    )
    np.testing.assert_allclose(
        to_numpy(found),
        to_numpy(plain(x, attention_mask=mask, key_mask=MASK)),
        atol=2e-6,
    )


@needs_sliding_window
@pytest.mark.parametrize("window", [2, 6, 41])
@pytest.mark.parametrize("causal", [False, True])
def test_the_window_of_keras_is_one_more(window, causal):
    """Keras counts the token itself, and so has w − 1 tokens on each side."""
    x = draw(2, T, 7)
    layer = LongformerAttention(H, 4, window=window - 1)
    layer.build(x.shape)
    theirs = keras.layers.MultiHeadAttention(
        H, 4, use_bias=False, sliding_window=window
    )
    theirs.build(x.shape, x.shape)
    give_to_keras(theirs, layer)
    mask = np.arange(T) % 3 != 1  # each token sees one: itself or the last
    found = layer(
        x,
        key_mask=np.broadcast_to(mask, (2, T)),
        use_causal_mask=causal,
    )
    expected = theirs(x, x, attention_mask=mask[None], use_causal_mask=causal)
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), atol=2e-6)


def test_the_global_projections_matter_to_global_rows_only():
    x = draw(2, T, 7)
    layer = LongformerAttention(H, 4, window=5)
    before = to_numpy(layer(x, global_positions=[0]))
    for name in ("query", "key", "value"):
        dense_layer = getattr(layer, f"global_{name}_layer")
        dense_layer.kernel.assign(draw(*dense_layer.kernel.shape))
        after = to_numpy(layer(x, global_positions=[0]))
        assert np.abs(after[:, 0] - before[:, 0]).max() > 1e-3, name
        np.testing.assert_array_equal(after[:, 1:], before[:, 1:])
        before = after


def test_later_tokens_move_nothing_in_causal_use():
    query, key, value = inputs()
    before, after = (
        to_numpy(
            longformer_attention(
                query, key, v, 3, global_positions=[2, 50], use_causal_mask=True
            )
        )
        for v in (value, np.concatenate([value[:, :45], -value[:, 45:]], 1))
    )
    np.testing.assert_array_equal(before[:, :45], after[:, :45])
    assert np.abs(before[:, 45:] - after[:, 45:]).max() > 0.1


def test_the_window_is_checked():
    with pytest.raises(ValueError, match="window=0"):
        LongformerAttention(H, 4, window=0)
