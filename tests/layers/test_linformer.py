"""Mixtures of keys: dense attention where there are as many as keys."""

from contract import dense_attention, draw, to_numpy
from d2l_attention import (
    LinformerAttention,
    MultiHeadAttention,
    causal_mask,
    linformer_attention,
    multi_head_attention,
)
import keras
from keras import ops
import numpy as np
import pytest

T, S, H = 7, 11, 3
MASK = np.arange(S) < np.array([[6], [11]])
MASK[0, 2] = False


def inputs():
    return draw(2, T, H, 4), draw(2, S, H, 4), draw(2, S, H, 5)


def test_with_every_key_its_own_mixture_it_is_dense_attention():
    query, key, value = inputs()
    found = linformer_attention(query, key, value, np.eye(S), np.eye(S))
    expected = dense_attention(query, key, value, True)
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)


def test_any_order_of_the_mixtures_is_the_same():
    query, key, value = inputs()
    mixing = np.eye(S, dtype="float32")[np.random.default_rng(0).permutation(S)]
    found = linformer_attention(query, key, value, mixing, mixing)
    expected = linformer_attention(query, key, value, np.eye(S), np.eye(S))
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), atol=1e-6)


@pytest.mark.every_backend
def test_the_equation():
    query, key, value = inputs()
    e, f = draw(5, S), draw(5, S, seed=1)
    found = to_numpy(linformer_attention(query, key, value, e, f))
    for b in range(2):
        for h in range(H):
            scores = query[b, :, h] @ (e @ key[b, :, h]).T / 2
            weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
            expected = weights @ (f @ value[b, :, h])
            np.testing.assert_allclose(found[b, :, h], expected, atol=1e-5)


def test_padding_is_zero_before_it_is_mixed():
    """Whatever stands there; and mixtures of fewer columns are the same."""
    query, key, value = inputs()
    e, f = draw(5, S), draw(5, S, seed=1)
    before = linformer_attention(query, key, value, e, f, key_mask=MASK)
    key[~MASK], value[~MASK] = 50, -70
    after = linformer_attention(query, key, value, e, f, key_mask=MASK)
    np.testing.assert_array_equal(to_numpy(before), to_numpy(after))
    short = linformer_attention(
        query,
        key[:, :6],
        value[:, :6],
        e[:, :6],
        f[:, :6],
        key_mask=MASK[:, :6],
    )
    np.testing.assert_allclose(
        to_numpy(short)[0], to_numpy(after)[0], atol=1e-6
    )


def test_nothing_to_attend_to_gives_zeros():
    query, key, value = inputs()
    nothing = np.array([[False] * S, [True] * S])
    found = linformer_attention(
        query, key, value, draw(5, S), draw(5, S), key_mask=nothing
    )
    assert (to_numpy(found)[0] == 0).all()
    assert np.abs(to_numpy(found)[1]).min() > 0


@pytest.mark.parametrize("use_bias", [False, True])
def test_the_layer_against_multi_head_attention(use_bias):
    x, mask = draw(2, S, 7), MASK
    layer = LinformerAttention(H, 4, max_length=S, rank=S, use_bias=use_bias)
    plain = MultiHeadAttention(H, 4, use_bias=use_bias)
    for one in (layer, plain):
        one.build(x.shape)
    for name in ("query", "key", "value", "output"):
        weights = getattr(plain, f"{name}_layer").get_weights()
        if use_bias:
            weights[1] = draw(*weights[1].shape)
        for one in (layer, plain):
            getattr(one, f"{name}_layer").set_weights(weights)
    layer.key_mixing.assign(np.eye(S))
    layer.value_mixing.assign(np.eye(S))
    np.testing.assert_allclose(
        to_numpy(layer(x)), to_numpy(plain(x)), atol=1e-6
    )
    # Behind the mask nothing moves the output, not even by a bias.
    changed = np.where(mask[..., None], x, 9).astype("float32")
    np.testing.assert_array_equal(
        to_numpy(layer(x, key=changed, key_mask=mask)),
        to_numpy(layer(x, key=x, key_mask=mask)),
    )


def test_masks_that_differ_between_queries_are_refused():
    layer = LinformerAttention(H, 4, max_length=9, rank=2)
    with pytest.raises(ValueError, match=r"causal.*\(5, 5\)"):
        layer(draw(2, 5, 7), attention_mask=causal_mask(5))
    with pytest.raises(ValueError, match=r"\(2, 5, 5\)"):
        layer(draw(2, 5, 7), attention_mask=np.ones((2, 5, 5), bool))
    x = draw(2, 5, 7)
    same = layer(x, attention_mask=np.ones((2, 1, 5), bool))
    also = layer(x, attention_mask=np.ones((1, 5), bool))
    np.testing.assert_array_equal(to_numpy(same), to_numpy(also))
    np.testing.assert_array_equal(to_numpy(same), to_numpy(layer(x)))


@pytest.mark.parametrize("wrong", [{"rank": 0}, {"max_length": 2.5}])
def test_sizes_are_checked(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        LinformerAttention(H, 4, **{"max_length": 9, "rank": 2, **wrong})


def test_more_keys_than_mixed_are_refused():
    layer = LinformerAttention(H, 4, max_length=9, rank=2)
    with pytest.raises(ValueError, match=r"max_length=9.*10 keys"):
        layer(draw(2, 10, 7))


def test_error_is_no_less_than_a_projection_of_that_rank_must_have():
    """Of all weights of rank R, a truncated SVD is the nearest."""
    query, key, _ = inputs()
    value = np.tile(np.eye(S, dtype="float32")[None, :, None], (2, 1, H, 1))
    weights = to_numpy(multi_head_attention(query, key, value)[1])
    for rank in (1, 2, 4):
        e, f = draw(rank, S), draw(rank, S, seed=1)
        found = to_numpy(linformer_attention(query, key, value, e, f))
        error = np.linalg.norm(
            found.transpose(0, 2, 1, 3) - weights, axis=(2, 3)
        )
        lost = np.linalg.svd(weights, compute_uv=False)[..., rank:]
        assert (error >= np.linalg.norm(lost, axis=-1) - 1e-6).all()


def test_gradients_reach_both_mixings():
    layer = LinformerAttention(H, 4, max_length=9, rank=2)
    model = keras.Sequential([keras.Input((9, 7)), layer])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    before = [to_numpy(layer.key_mixing), to_numpy(layer.value_mixing)]
    model.fit(draw(8, 9, 7), draw(8, 9, 7, seed=1), verbose=0)
    for old, new in zip(
        before, (layer.key_mixing, layer.value_mixing), strict=True
    ):
        assert np.abs(old - to_numpy(new)).max() > 0
    assert to_numpy(ops.isfinite(layer.key_mixing)).all()
