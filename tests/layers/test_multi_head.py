"""Multi-head attention against NumPy and against Keras's own layer."""

from contract import (
    assert_all_close,
    attention_inputs,
    check_layer,
    dense_attention,
    draw,
    give_to_keras,
    needs_sliding_window,
    needs_use_gate,
    to_numpy,
)
from d2l_attention import (
    MultiHeadAttention,
    multi_head_attention,
    window_mask,
)
from d2l_attention.layers import multi_head
from d2l_attention.layers.multi_head import einsum
import keras
import numpy as np
import pytest

SIZES = {"num_heads": 3, "key_dim": 4, "value_dim": 5, "output_dim": 11}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "options",
    [
        {"num_heads": 3, "key_dim": 4},
        SIZES,
        {**SIZES, "use_bias": True},
        {**SIZES, "dropout": 0.3},
    ],
)
def test_contract(options):
    check_layer(
        lambda **kwargs: MultiHeadAttention(**options, **kwargs),
        attention_inputs(),
        # One constant for all keys cancels in the softmax.
        no_gradient=("W_k/bias",),
        num_heads=3,
        output_dim=options.get("output_dim", 7),
    )


def softmax(x):
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


MASKS = {
    "(T, S)": draw(5, 7) > 0,
    "(B, 1, S)": draw(2, 1, 7) > 0,
    "(B, T, S)": draw(2, 5, 7) > 0,
    "(B, H, T, S)": draw(2, 3, 5, 7) > 0,
}


@pytest.mark.parametrize("name", MASKS)
def test_the_function_is_dense_attention_in_each_head(name):
    query, key = draw(2, 5, 3, 4), draw(2, 7, 3, 4)
    value, mask = draw(2, 7, 3, 2), MASKS[name]
    output, weights = multi_head_attention(query, key, value, mask)
    wide = mask[:, None] if mask.ndim == 3 else mask
    expected = dense_attention(query, key, value, wide)
    np.testing.assert_allclose(to_numpy(output), expected, atol=1e-6)
    hidden = ~np.broadcast_to(wide, (2, 3, 5, 7))
    assert (to_numpy(weights)[hidden] == 0).all()
    every_key = np.tile(np.eye(7, dtype="float32")[:, None], (2, 1, 3, 1))
    rows, _ = multi_head_attention(query, key, every_key, mask)
    np.testing.assert_allclose(  # values of one key each: rows of the weights
        to_numpy(weights).swapaxes(1, 2), to_numpy(rows), atol=1e-6
    )


def test_the_function_drops_weights_and_returns_them_whole():
    query, key, value = draw(2, 5, 3, 4), draw(2, 7, 3, 4), draw(2, 7, 3, 2)
    _, weights = multi_head_attention(query, key, value)
    kept = draw(2, 3, 5, 7)  # of each weight, so that no order is the same
    output, same = multi_head_attention(
        query, key, value, dropout=lambda weights: kept * weights
    )
    np.testing.assert_array_equal(to_numpy(weights), to_numpy(same))
    expected = np.einsum("bhts,bshv->bthv", kept * to_numpy(weights), value)
    np.testing.assert_allclose(to_numpy(output), expected, atol=1e-6)


def test_each_head_is_an_attention_of_its_own():
    inputs = attention_inputs()
    layer = MultiHeadAttention(**SIZES)
    output, weights = layer(
        inputs["query"],
        key=inputs["key"],
        value=inputs["value"],
        return_attention_scores=True,
    )
    w_q, w_k, w_v, w_o = map(to_numpy, layer.get_weights())
    heads = []
    for h in range(3):
        keys, values = slice(4 * h, 4 * h + 4), slice(5 * h, 5 * h + 5)
        q = inputs["query"] @ w_q[:, keys]
        k = inputs["key"] @ w_k[:, keys]
        expected = softmax(q @ k.transpose(0, 2, 1) / 2)
        np.testing.assert_allclose(to_numpy(weights)[:, h], expected, atol=1e-6)
        heads.append(expected @ (inputs["value"] @ w_v[:, values]))
    np.testing.assert_allclose(
        to_numpy(output), np.concatenate(heads, -1) @ w_o, atol=1e-5
    )


def in_keras(layer, query_shape, key_shape, value_shape, dtype=None, **options):
    """`keras.layers.MultiHeadAttention` with the weights of `layer`."""
    theirs = keras.layers.MultiHeadAttention(
        layer.num_heads,
        layer.key_dim,
        layer.value_dim,
        use_bias=layer.use_bias,
        output_shape=layer.output_dim,
        dtype=dtype,
        **options,
    )
    theirs.build(query_shape, value_shape, key_shape)
    give_to_keras(theirs, layer)
    return theirs


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize(
    "dtype",
    [pytest.param("float32", marks=pytest.mark.every_backend), "float16"],
)
def test_equals_the_layer_of_keras(use_bias, dtype):
    inputs = attention_inputs()
    mask = np.random.default_rng(1).random((2, 11, 13)) < 0.7
    mask[:, :, 0] = True  # Keras has no zeros for empty rows
    ours = MultiHeadAttention(**SIZES, use_bias=use_bias, dtype=dtype)
    query, key, value = shapes = [x.shape for x in inputs.values()]
    ours.build(query, value, key)
    if use_bias:  # they start at 0, where an exchange would not show
        for i, weight in enumerate(ours.weights):
            weight.assign(0.3 * draw(*weight.shape, seed=i))
    theirs = in_keras(ours, *shapes, dtype=dtype)
    arguments = {"attention_mask": mask, "return_attention_scores": True}
    found = ours(
        inputs["query"], key=inputs["key"], value=inputs["value"], **arguments
    )
    expected = theirs(
        inputs["query"], key=inputs["key"], value=inputs["value"], **arguments
    )
    tolerance = {"float32": 1e-5, "float16": 1e-2}[dtype]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            to_numpy(a), to_numpy(b), atol=tolerance, rtol=tolerance
        )


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="uses tf.GradientTape"
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gradients_equal_those_of_keras(dtype):
    import tensorflow as tf

    inputs = attention_inputs()
    mask = np.random.default_rng(1).random((2, 11, 13)) < 0.7
    mask[:, :, 0] = True  # Keras has no zeros for empty rows
    ours = MultiHeadAttention(**SIZES, use_bias=True, dtype=dtype)
    query, key, value = shapes = [x.shape for x in inputs.values()]
    ours.build(query, value, key)
    theirs = in_keras(ours, *shapes, dtype=dtype)
    direction = draw(2, 11, 11).astype(dtype)
    found = []
    for layer in (ours, theirs):
        with tf.GradientTape() as tape:
            output = layer(
                inputs["query"],
                key=inputs["key"],
                value=inputs["value"],
                attention_mask=mask,
            )
            total = tf.reduce_sum(tf.cast(output * direction, "float32"))
        weights = {
            "/".join(w.path.split("/")[-2:]): w.value for w in layer.weights
        }
        gradients = tape.gradient(total, list(weights.values()))
        found.append(dict(zip(weights, gradients, strict=True)))
    ours, theirs = found
    for name, gradient in theirs.items():
        for long, short in (
            ("query", "W_q"),
            ("key", "W_k"),
            ("value", "W_v"),
            ("attention_output", "W_o"),
        ):
            if name.startswith(long + "/"):
                name = short + name[len(long) :]
        expected = to_numpy(gradient)
        np.testing.assert_allclose(
            to_numpy(ours[name]).reshape(expected.shape),
            expected,
            atol={"float32": 1e-4, "float16": 3e-2}[dtype],
            rtol={"float32": 0, "float16": 3e-2}[dtype],
            err_msg=name,
        )


@needs_sliding_window
@pytest.mark.parametrize("window", [1, 4, 13])
@pytest.mark.parametrize("causal", [False, True])
def test_a_window_of_keras_is_a_mask(window, causal):
    """Keras counts the token itself: w − 1 keys back, and as many ahead."""
    x = draw(2, 11, 7)
    ours = MultiHeadAttention(3, 4)
    ours.build(x.shape)
    theirs = in_keras(ours, *3 * [x.shape], sliding_window=window)
    more = np.random.default_rng(1).random((2, 11, 11)) < 0.7
    more |= np.eye(11, dtype="bool")  # Keras has no zeros for empty rows
    near = to_numpy(window_mask(11, 11, window - 1, window - 1))
    for mask in (None, more):
        arguments = {"use_causal_mask": causal, "return_attention_scores": True}
        found = ours(
            x, attention_mask=near if mask is None else near & mask, **arguments
        )
        assert_all_close(found, theirs(x, x, attention_mask=mask, **arguments))
        # Without weights, Keras calls the operation of its backend.
        fused = theirs(x, x, attention_mask=mask, use_causal_mask=causal)
        assert_all_close(found[:1], [fused])


@needs_sliding_window
@pytest.mark.parametrize("causal", [False, True])
def test_a_window_of_keras_begins_with_the_first_key(causal):
    """Keras aligns the first query and key, and `window_mask` the last."""
    x, y = draw(2, 5, 7), draw(2, 13, 7)
    ours = MultiHeadAttention(3, 4)
    ours.build(x.shape, y.shape)
    theirs = in_keras(ours, x.shape, y.shape, y.shape, sliding_window=3)
    expected = theirs(x, y, use_causal_mask=causal)
    ahead = 0 if causal else 2
    mask = window_mask(13, 13, 2, ahead)[:5]  # of the first 5 of 13 queries
    assert_all_close([ours(x, key=y, attention_mask=mask)], [expected])
    last = ours(x, key=y, attention_mask=window_mask(5, 13, 2, ahead))
    assert np.abs(to_numpy(last) - to_numpy(expected)).max() > 0.1


@needs_use_gate
@pytest.mark.parametrize("use_bias", [False, True])
def test_a_gate_of_keras_scales_the_heads_before_they_are_joined(use_bias):
    """output = [σ(Q W_g,1) ⊙ head_1; …; σ(Q W_g,H) ⊙ head_H] W_o."""
    inputs = attention_inputs()
    query, key, value = inputs.values()
    mask = np.random.default_rng(1).random((2, 11, 13)) < 0.7
    mask[:, :, 0] = True  # Keras has no zeros for empty rows
    ours = MultiHeadAttention(**SIZES, use_bias=use_bias)
    ours.build(query.shape, value.shape, key.shape)
    shapes = [x.shape for x in inputs.values()]
    theirs = in_keras(ours, *shapes, use_gate=True)
    w_g = draw(7, 3, 5)
    b_g = draw(3, 5) if use_bias else 0
    for weight in theirs.weights:
        if "/gate/" in weight.path:
            weight.assign(w_g if weight.name == "kernel" else b_g)
    heads, weights = multi_head_attention(
        ours.project_query(query),
        ours.project_key(key),
        ours.project_value(value),
        mask,
    )
    gate = keras.ops.sigmoid(np.einsum("btd,dhv->bthv", query, w_g) + b_g)
    assert_all_close(
        [ours.join_heads(gate * heads), weights],
        theirs(
            query,
            key=key,
            value=value,
            attention_mask=mask,
            return_attention_scores=True,
        ),
    )


def test_a_mask_without_head_axis_holds_for_every_head():
    """With B = H a mask (B, 1, S) could be read as (H, 1, S)."""
    x = draw(3, 11, 7)  # as many sentences as heads
    layer = MultiHeadAttention(num_heads=3, key_dim=4)
    keys = np.arange(11) < np.array([[4], [7], [11]])
    mask = keys[:, None]
    _, weights = layer(x, attention_mask=mask, return_attention_scores=True)
    _, full = layer(
        x,
        attention_mask=np.broadcast_to(mask[:, None], (3, 3, 11, 11)),
        return_attention_scores=True,
    )
    np.testing.assert_array_equal(to_numpy(weights), to_numpy(full))
    hidden = np.broadcast_to(~mask[:, None], weights.shape)
    assert (to_numpy(weights)[hidden] == 0).all()


def test_every_head_may_have_a_mask_of_its_own():
    x = draw(2, 5, 7)
    mask = np.random.default_rng(2).random((2, 3, 5, 5)) < 0.5
    key_mask = np.arange(5) < np.array([[3], [5]])
    _, weights = MultiHeadAttention(num_heads=3, key_dim=4)(
        x, attention_mask=mask, key_mask=key_mask, return_attention_scores=True
    )
    allowed = mask & key_mask[:, None, None]
    assert (to_numpy(weights)[~allowed] == 0).all()
    rows = to_numpy(weights).sum(-1)
    np.testing.assert_allclose(rows, allowed.any(-1), atol=1e-6)


@pytest.mark.parametrize("size", ["num_heads", "key_dim", "value_dim"])
@pytest.mark.parametrize("value", [0, -1, 2.5])
def test_sizes_must_be_positive_integers(size, value):
    options = {"num_heads": 3, "key_dim": 4, size: value}
    with pytest.raises(ValueError, match=f"{size}={value}"):
        MultiHeadAttention(**options)


@pytest.mark.parametrize("limit", [0, 6_000])
@pytest.mark.parametrize("num_queries", [1, 5])
def test_small_products_are_the_same_as_sums(num_queries, limit, monkeypatch):
    """Both forms of one sum; in float16 the sums may round differently."""
    query, key = draw(2, num_queries, 3, 4), draw(2, 5, 3, 4, seed=1)
    monkeypatch.setattr(multi_head, "SMALL", limit)
    for equation, a in (
        ("bthk,bshk->bhts", query),
        ("bhts,bshv->bthv", draw(2, 3, num_queries, 5)),
    ):
        np.testing.assert_allclose(
            to_numpy(einsum(equation, a, key)),
            np.einsum(equation, a, key),
            atol=1e-6,
        )
