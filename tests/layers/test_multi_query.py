"""Heads that share keys and values, against NumPy, Keras and our own."""

from contract import (
    assert_all_close,
    attention_inputs,
    check_layer,
    draw,
    give_to_keras,
    gradients,
    needs_fewer_key_heads,
    needs_sliding_window,
    needs_use_gate,
    to_numpy,
)
from d2l_attention import (
    ALiBiAttention,
    GroupedQueryAttention,
    MultiHeadAttention,
    MultiQueryAttention,
    grouped_query_attention,
    multi_head_attention,
    window_mask,
)
from d2l_attention.layers.multi_query import share_heads
import keras
from keras import ops
import numpy as np
import pytest

SIZES = {"num_heads": 6, "key_dim": 4, "value_dim": 5, "output_dim": 11}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "make",
    [
        lambda **k: GroupedQueryAttention(num_kv_heads=2, **SIZES, **k),
        lambda **k: GroupedQueryAttention(6, 3, 4, output_dim=11, **k),
        lambda **k: MultiQueryAttention(dropout=0.3, **SIZES, **k),
        lambda **k: MultiQueryAttention(use_bias=True, **SIZES, **k),
    ],
)
def test_contract(make):
    check_layer(
        make,
        attention_inputs(),
        # One constant for all keys cancels in the softmax.
        no_gradient=("W_k/bias",),
        num_heads=6,
        output_dim=11,
    )


def softmax(x):
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_head_h_uses_the_keys_of_its_group(groups):
    inputs = attention_inputs()
    layer = GroupedQueryAttention(num_kv_heads=groups, **SIZES)
    output, weights = layer(
        inputs["query"],
        key=inputs["key"],
        value=inputs["value"],
        return_attention_scores=True,
    )
    w_q, w_k, w_v, w_o = map(to_numpy, layer.get_weights())
    assert w_k.shape[1] == 4 * groups and w_v.shape[1] == 5 * groups
    heads = []
    for h in range(6):
        g = h // (6 // groups)
        q = inputs["query"] @ w_q[:, 4 * h : 4 * h + 4]
        k = inputs["key"] @ w_k[:, 4 * g : 4 * g + 4]
        expected = softmax(q @ k.transpose(0, 2, 1) / 2)
        np.testing.assert_allclose(to_numpy(weights)[:, h], expected, atol=1e-6)
        heads.append(expected @ (inputs["value"] @ w_v[:, 5 * g : 5 * g + 5]))
    np.testing.assert_allclose(
        to_numpy(output), np.concatenate(heads, -1) @ w_o, atol=1e-5
    )


@pytest.mark.parametrize("num_queries", [1, 11])
def test_as_many_groups_as_heads_is_multi_head_attention(num_queries):
    query, key = draw(2, num_queries, 7), draw(2, 13, 5)
    grouped = GroupedQueryAttention(num_kv_heads=6, **SIZES)
    plain = MultiHeadAttention(**SIZES)
    for layer in (grouped, plain):
        layer.build(query.shape, key.shape)
    plain.set_weights(grouped.get_weights())
    np.testing.assert_allclose(
        to_numpy(grouped(query, key=key)),
        to_numpy(plain(query, key=key)),
        atol=1e-6,
    )


def in_keras(layer, query_shape, key_shape, **options):
    """`keras.layers.GroupQueryAttention` with the weights of `layer`."""
    theirs = keras.layers.GroupQueryAttention(
        layer.key_dim,
        layer.num_heads,
        layer.num_kv_heads,
        use_bias=layer.use_bias,
        **options,
    )
    layer.build(query_shape, key_shape)
    for i, weight in enumerate(layer.weights):  # biases start at 0
        weight.assign(0.3 * draw(*weight.shape, seed=i))
    theirs.build(query_shape, key_shape)
    give_to_keras(theirs, layer)
    return theirs


def random_mask(num_queries, num_keys):
    shape = (2, num_queries, num_keys)
    mask = np.random.default_rng(1).random(shape) < 0.7
    mask[:, :, 0] = True  # Keras has no zeros for empty rows
    return mask


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_equals_the_layer_of_keras(groups, use_bias):
    x, y, mask = draw(2, 11, 7), draw(2, 13, 7), random_mask(11, 13)
    ours = GroupedQueryAttention(6, groups, 4, use_bias=use_bias)
    theirs = in_keras(ours, x.shape, y.shape)
    arguments = {"attention_mask": mask, "return_attention_scores": True}
    assert_all_close(ours(x, key=y, **arguments), theirs(x, y, **arguments))


@pytest.mark.parametrize("mask", [None, random_mask(11, 11)])
def test_equals_the_causal_layer_of_keras(mask):
    x = draw(2, 11, 7)
    ours = GroupedQueryAttention(6, 2, 4)
    theirs = in_keras(ours, x.shape, x.shape)
    arguments = {"attention_mask": mask, "use_causal_mask": True}
    # Without weights, Keras calls the operation of its backend.
    assert_all_close([ours(x, **arguments)], [theirs(x, x, **arguments)])
    arguments["return_attention_scores"] = True
    assert_all_close(ours(x, **arguments), theirs(x, x, **arguments))


@pytest.mark.every_backend
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_gradients_equal_those_of_keras(groups):
    x, y = draw(2, 11, 7), draw(2, 13, 7)
    ours = GroupedQueryAttention(6, groups, 4, use_bias=True)
    theirs = in_keras(ours, x.shape, y.shape)
    arguments = {"key": y, "value": y, "attention_mask": random_mask(11, 13)}
    direction = draw(2, 11, 7, seed=5)
    for variable, found, expected in zip(
        ours.trainable_variables,  # both in the order of Q, K, V and output
        gradients(ours, x, arguments, direction),
        gradients(theirs, x, arguments, direction),
        strict=True,
    ):
        expected = to_numpy(expected).reshape(variable.shape)
        np.testing.assert_allclose(
            to_numpy(found), expected, atol=1e-4, err_msg=variable.path
        )


@needs_sliding_window
@pytest.mark.parametrize("causal", [False, True])
def test_a_window_of_keras_is_a_mask(causal):
    """Keras counts the token itself: w − 1 keys back, and as many ahead."""
    x = draw(2, 11, 7)
    ours = GroupedQueryAttention(6, 2, 4)
    theirs = in_keras(ours, x.shape, x.shape, sliding_window=4)
    arguments = {"use_causal_mask": causal, "return_attention_scores": True}
    found = ours(x, attention_mask=window_mask(11, 11, 3, 3), **arguments)
    assert_all_close(found, theirs(x, x, **arguments))


@needs_use_gate
def test_a_gate_of_keras_scales_each_query_head():
    """output = [σ(Q W_g,1) ⊙ head_1; …; σ(Q W_g,H) ⊙ head_H] W_o."""
    x, y, mask = draw(2, 11, 7), draw(2, 13, 7), random_mask(11, 13)
    ours = GroupedQueryAttention(6, 2, 4)
    theirs = in_keras(ours, x.shape, y.shape, use_gate=True)
    (gate,) = (w for w in theirs.weights if "/gate/" in w.path)
    gate.assign(draw(7, 6, 4))
    heads, weights = grouped_query_attention(
        ours.project_query(x), ours.project_key(y), ours.project_value(y), mask
    )
    gate = ops.sigmoid(ops.einsum("btd,dhv->bthv", x, gate))
    assert_all_close(
        [ours.join_heads(gate * heads), weights],
        theirs(x, y, attention_mask=mask, return_attention_scores=True),
    )


@needs_fewer_key_heads
@pytest.mark.parametrize("groups", [2, 3, 6])
def test_the_function_equals_the_operation_of_keras(groups):
    query, mask = draw(2, 11, 6, 4), random_mask(11, 13)
    key, value = draw(2, 13, groups, 4), draw(2, 13, groups, 4, seed=1)
    found, _ = grouped_query_attention(query, key, value, mask)
    expected = ops.dot_product_attention(query, key, value, mask=mask[:, None])
    assert_all_close([found], [expected])


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_the_function_is_multi_head_attention_to_repeated_heads(groups):
    query, mask = draw(2, 5, 6, 4), draw(2, 5, 7) > 0
    key, value = draw(2, 7, groups, 4), draw(2, 7, groups, 3)
    kept = draw(2, 6, 5, 7)  # of each weight, so that no order is the same
    dropout = {"dropout": lambda weights: kept * weights}
    found = grouped_query_attention(query, key, value, mask, **dropout)
    key, value = (x.repeat(6 // groups, axis=2) for x in (key, value))
    expected = multi_head_attention(query, key, value, mask, **dropout)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_numpy(one), to_numpy(other), atol=1e-6)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a fault of one backend"
)
def test_keras_has_no_operation_for_one_key_head_on_tensorflow():
    """Why `grouped_scores` is ours. If this fails, Keras has mended it."""
    import tensorflow as tf

    query, key = draw(1, 5, 3, 8), draw(1, 5, 1, 8)
    with pytest.raises(tf.errors.InvalidArgumentError):
        ops.dot_product_attention(query, key, key)


def test_shared_heads_that_were_equal_change_nothing():
    x = draw(2, 11, 7)
    layer = MultiHeadAttention(6, 4, value_dim=5, use_bias=True)
    layer.build(x.shape)
    for i, weight in enumerate(layer.weights):
        weight.assign(0.3 * draw(*weight.shape, seed=i))
    for dense, size in ((layer.key_layer, 4), (layer.value_layer, 5)):
        for weight in dense.weights:
            one = to_numpy(weight).reshape(*weight.shape[:-1], 2, 3, size)
            weight.assign(one[..., :1, :].repeat(3, -2).reshape(weight.shape))
    shared = share_heads(layer, 2)
    assert (shared.num_heads, shared.num_kv_heads) == (6, 2)
    np.testing.assert_allclose(
        to_numpy(shared(x)), to_numpy(layer(x)), atol=1e-5
    )


def test_shared_heads_are_means_of_their_group():
    layer = MultiHeadAttention(6, 4, value_dim=5)
    layer.build((None, None, 7))
    w_q, w_k, w_v, w_o = layer.get_weights()
    shared = share_heads(layer, 3).get_weights()
    np.testing.assert_array_equal(shared[0], w_q)
    np.testing.assert_array_equal(shared[3], w_o)
    for found, heads, size in ((shared[1], w_k, 4), (shared[2], w_v, 5)):
        for g in range(3):
            pair = heads[:, 2 * g * size : (2 * g + 2) * size]
            mean = (pair[:, :size] + pair[:, size:]) / 2
            np.testing.assert_allclose(
                found[:, g * size : (g + 1) * size], mean, atol=1e-6
            )


def test_only_a_built_layer_can_share():
    with pytest.raises(ValueError, match="not built"):
        share_heads(MultiHeadAttention(6, 4), 2)


def test_a_layer_that_does_more_cannot_share():
    """Its bias would be lost, without a word."""
    layer = ALiBiAttention(6, 4)
    layer.build((None, None, 5))
    with pytest.raises(ValueError, match="none of its subclasses.*ALiBi"):
        share_heads(layer, 2)


@pytest.mark.parametrize("groups", [0, 4, 12, 1.5])
def test_the_number_of_groups_must_divide_that_of_heads(groups):
    with pytest.raises(ValueError, match=f"num_kv_heads={groups}"):
        GroupedQueryAttention(6, groups, 4)
