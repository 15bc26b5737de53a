from contract import (
    attention_inputs,
    check_layer,
    draw,
    gradients,
    input_gradients,
    needs_padding_mask,
    to_numpy,
)
from d2l_attention import (
    AdditiveAttention,
    BilinearAttention,
    ConcatAttention,
    DotProductAttention,
)
from d2l_attention.layers.scoring import (
    additive_scores,
    bilinear_scores,
    concat_scores,
    dot_product_scores,
    gaussian_scores,
    scaled_dot_product_scores,
)
import keras
from keras import ops
import numpy as np
import pytest

QUERY, KEY = draw(2, 3, 7), draw(2, 5, 7)
SHORT_KEY = draw(2, 5, 11)


def by_hand(score, query, key):
    """Scores pair by pair, in float64."""
    scores = np.zeros((*query.shape[:2], key.shape[1]))
    for b, t, s in np.ndindex(scores.shape):
        scores[b, t, s] = score(
            query[b, t].astype("float64"), key[b, s].astype("float64")
        )
    return scores


W_Q, W_K, W, V, BIAS = (
    draw(7, 13),
    draw(11, 13),
    draw(7, 11),
    draw(13),
    draw(13, seed=9),
)


@pytest.mark.parametrize(
    ("scores", "key", "score"),
    [
        (dot_product_scores, KEY, lambda q, k: q @ k),
        (scaled_dot_product_scores, KEY, lambda q, k: q @ k / 7**0.5),
        (gaussian_scores, KEY, lambda q, k: -((q - k) ** 2).sum() / 2),
        (
            lambda q, k: bilinear_scores(q, k, W),
            SHORT_KEY,
            lambda q, k: q @ W.astype("float64") @ k,
        ),
        (
            lambda q, k: additive_scores(q, k, W_Q, W_K, V, BIAS),
            SHORT_KEY,
            lambda q, k: V @ np.tanh(q @ W_Q + k @ W_K + BIAS),
        ),
        (
            lambda q, k: concat_scores(q, k, np.concatenate([W_Q, W_K]), V),
            SHORT_KEY,
            lambda q, k: V @ np.tanh(np.r_[q, k] @ np.r_[W_Q, W_K]),
        ),
    ],
    ids=["dot", "scaled", "gaussian", "bilinear", "additive", "concat"],
)
def test_scores_equal_a_loop_over_pairs(scores, key, score):
    np.testing.assert_allclose(
        to_numpy(scores(QUERY, key)), by_hand(score, QUERY, key), atol=2e-5
    )


@pytest.mark.parametrize("scores", [dot_product_scores, gaussian_scores])
def test_sizes_that_cannot_match_are_named(scores):
    with pytest.raises(ValueError, match=r"\(2, 3, 7\), key \(2, 5, 11\)"):
        scores(QUERY, SHORT_KEY)


LAYERS = {
    "dot": (DotProductAttention, {}, 7),
    "unscaled": (DotProductAttention, {"scale": 1.0, "dropout": 0.3}, 7),
    "additive": (AdditiveAttention, {"units": 17}, 5),
    "biased": (AdditiveAttention, {"units": 17, "use_bias": True}, 5),
    "bilinear": (BilinearAttention, {"dropout": 0.2}, 5),
    "concat": (ConcatAttention, {"units": 17}, 5),
}


@pytest.mark.every_backend
@pytest.mark.parametrize("name", LAYERS)
def test_the_contract_holds(name):
    layer, arguments, key_size = LAYERS[name]
    check_layer(
        lambda **kwargs: layer(**arguments, **kwargs),
        attention_inputs(key_size=key_size),
    )


@pytest.mark.parametrize("name", LAYERS)
def test_permuting_keys_with_their_values_changes_nothing(name):
    layer, arguments, key_size = LAYERS[name]
    layer = layer(**arguments)
    inputs = attention_inputs(key_size=key_size)
    query = inputs.pop("query")
    order = np.random.default_rng(3).permutation(13)
    permuted = {name: array[:, order] for name, array in inputs.items()}
    np.testing.assert_allclose(
        to_numpy(layer(query, **inputs)),
        to_numpy(layer(query, **permuted)),
        atol=1e-6,
    )


@needs_padding_mask
def test_dot_product_attention_equals_keras_and_its_gradients_do():
    ours, keras_layer = DotProductAttention(scale=1.0), keras.layers.Attention()
    inputs = attention_inputs(query_size=7, key_size=7)
    query, key, value = inputs.values()
    mask = np.arange(13) < np.array([[4], [13]])
    theirs, weights = keras_layer(
        [query, value, key],  # Keras's order
        mask=[None, ops.convert_to_tensor(mask)],
        return_attention_scores=True,
    )
    output, our_weights = ours(
        query,
        key=key,
        value=value,
        key_mask=mask,
        return_attention_scores=True,
    )
    np.testing.assert_allclose(to_numpy(output), to_numpy(theirs), atol=1e-5)
    np.testing.assert_allclose(
        to_numpy(our_weights), to_numpy(weights), atol=1e-5
    )
    direction = draw(*output.shape, seed=1)
    found, expected = (
        input_gradients(function, query, key, value)
        for function in (
            lambda q, k, v: ours(q, key=k, value=v, key_mask=mask) * direction,
            lambda q, k, v: (
                keras_layer([q, v, k], mask=[None, mask]) * direction
            ),
        )
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
        assert np.abs(one).max() > 0.01


def test_scaled_attention_equals_the_fused_operation_of_keras():
    inputs = attention_inputs(query_size=7, key_size=7)
    query, key, value = inputs.values()
    value = draw(2, 13, 7)
    fused = ops.dot_product_attention(
        query[:, :, None], key[:, :, None], value[:, :, None]
    )
    ours = DotProductAttention()(query, key=key, value=value)
    np.testing.assert_allclose(
        to_numpy(ours), to_numpy(fused)[:, :, 0], atol=1e-5
    )


def test_additive_attention_is_keras_s_behind_two_projections():
    ours = AdditiveAttention(17, use_bias=True)
    inputs = attention_inputs()
    query, key, value = inputs.values()
    ours(query, key=key, value=value)
    ours.bias.assign(draw(17))  # zeros would not show where they are added
    theirs = keras.layers.AdditiveAttention()
    projected = (
        ops.matmul(query, ours.query_kernel) + ours.bias,
        ops.matmul(key, ours.key_kernel),
    )
    theirs.build([(2, 11, 17), (2, 13, 3), (2, 13, 17)])
    theirs.scale.assign(ours.score_kernel)
    expected = theirs([projected[0], value, projected[1]])
    np.testing.assert_allclose(
        to_numpy(ours(query, key=key, value=value)),
        to_numpy(expected),
        atol=1e-5,
    )


@pytest.mark.parametrize("layer", [AdditiveAttention, ConcatAttention])
def test_the_score_kernel_is_drawn_as_that_of_a_dense_layer(layer):
    made, dense = layer(1009), keras.layers.Dense(1)
    made.build((2, 3, 5))
    dense.build((2, 1009))
    limits = [
        np.abs(to_numpy(x)).max() for x in (made.score_kernel, dense.kernel)
    ]
    # The largest of 1009 uniform numbers; one of 100 misses by 5 percent.
    np.testing.assert_allclose(*limits, rtol=0.02)


@pytest.mark.every_backend
def test_concat_is_additive_with_joined_kernels_gradients_too():
    additive, concat = AdditiveAttention(17), ConcatAttention(17)
    inputs = attention_inputs()
    query = inputs.pop("query")
    additive(query, **inputs)
    concat(query, **inputs)
    w_q, w_k, v = (to_numpy(w) for w in additive.get_weights())
    concat.set_weights([np.concatenate([w_q, w_k]), v])
    np.testing.assert_allclose(
        to_numpy(concat(query, **inputs)),
        to_numpy(additive(query, **inputs)),
        atol=1e-6,
    )
    direction = draw(2, 11, 3, seed=4)
    d_q, d_k, d_v = gradients(additive, query, inputs, direction)
    d_w, d_v2 = gradients(concat, query, inputs, direction)
    np.testing.assert_allclose(
        to_numpy(d_w),
        np.concatenate([to_numpy(d_q), to_numpy(d_k)]),
        atol=1e-5,
    )
    np.testing.assert_allclose(to_numpy(d_v), to_numpy(d_v2), atol=1e-5)


@pytest.mark.every_backend
def test_dropout_is_off_the_returned_weights_and_off_while_predicting():
    layer = DotProductAttention(dropout=0.5)
    x = draw(2, 11, 7)
    rest = {"key": x, "value": draw(2, 11, 1).repeat(3, axis=2)}
    dropped, weights = layer(
        x, **rest, return_attention_scores=True, training=True
    )
    np.testing.assert_allclose(to_numpy(weights).sum(-1), 1.0, atol=1e-6)
    # Values of equal features show that no feature was dropped.
    one, *others = to_numpy(dropped).transpose(2, 0, 1)
    np.testing.assert_array_equal(others, [one, one])
    calm = to_numpy(layer(x, **rest))
    assert np.abs(one - calm[..., 0]).max() > 0.1
    np.testing.assert_array_equal(
        calm, to_numpy(layer(x, **rest, training=False))
    )


@pytest.mark.parametrize("layer", [AdditiveAttention, ConcatAttention])
@pytest.mark.parametrize("units", [0, -3, 2.5, True])
def test_units_must_be_a_positive_integer(layer, units):
    with pytest.raises(ValueError, match=f"units={units}"):
        layer(units)


def test_dropout_must_be_a_rate():
    with pytest.raises(ValueError, match="dropout=1.0"):
        DotProductAttention(dropout=1.0)


def test_keys_without_as_many_values_are_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"key \(2, 5, 7\).*\(2, 3, 7\)"):
        DotProductAttention()(QUERY, key=KEY, value=QUERY)


def test_inputs_of_another_rank_are_refused():
    with pytest.raises(ValueError, match="three axes"):
        DotProductAttention()(draw(3, 7))


def test_key_and_value_cannot_be_given_by_position():
    with pytest.raises(TypeError):
        DotProductAttention()(QUERY, KEY, KEY)
