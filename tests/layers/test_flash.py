"""Attention in blocks is attention: outputs, gradients, and their memory."""

from contract import CAN_COMPILE, attention_inputs, check_layer, draw, to_numpy
from d2l_attention import (
    FlashAttention,
    MultiHeadAttention,
    causal_mask,
    flash_attention,
    padding_mask,
)
from d2l_attention.layers import flash
import keras
from keras import ops
import numpy as np
import pytest


def softmax_attention(query, key, value, mask=None):
    """In float64, with `(B, T, H, K)`: output and log-sum-exp."""
    query, key, value = (np.asarray(x, "float64") for x in (query, key, value))
    scores = np.einsum("bthk,bshk->bhts", query, key) / key.shape[-1] ** 0.5
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    highest[np.isinf(highest)] = 0
    exponentials = np.exp(scores - highest)
    total = exponentials.sum(-1, keepdims=True)
    weights = exponentials / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        log_sum_exp = (highest + np.log(total))[..., 0]
    return np.einsum("bhts,bshv->bthv", weights, value), log_sum_exp


def inputs(t=11, s=13, seed=0):
    return (
        draw(2, t, 3, 8, seed=seed),
        draw(2, s, 3, 8, seed=seed + 1),
        draw(2, s, 3, 5, seed=seed + 2),
    )


def some_mask(t, s):
    mask = np.random.default_rng(1).random((2, 3, t, s)) < 0.5
    mask[0, :, t // 3] = False  # a query with nothing to attend to
    mask[:, :, :5, :6] = False  # blocks without anything
    return mask


SIZES = [(11, 13), (13, 11), (1, 13), (12, 12)]
EACH_PAIR = [  # of two of the four arguments
    (block_size, bool((i ^ j) & 1), bool((i ^ j) & 2), sizes)
    for i, block_size in enumerate([1, 4, 7, 512])
    for j, sizes in enumerate(SIZES)
]


@pytest.mark.parametrize(("block_size", "masked", "causal", "sizes"), EACH_PAIR)
def test_equals_attention_for_any_block_size(block_size, masked, causal, sizes):
    query, key, value = inputs(*sizes)
    mask = some_mask(*sizes) if masked else np.full((1, 1, *sizes), True)
    allowed = mask & to_numpy(causal_mask(*sizes)) if causal else mask
    expected = softmax_attention(query, key, value, allowed)
    found = flash_attention(
        query,
        key,
        value,
        attention_mask=mask if masked else None,
        use_causal_mask=causal,
        block_size=block_size,
        return_log_sum_exp=True,
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), b, atol=2e-6)
    empty = ~np.broadcast_to(allowed, (2, 3, *sizes)).any(-1)
    assert (to_numpy(found[0]).transpose(0, 2, 1, 3)[empty] == 0).all()


# Tiles as for long sequences, of inputs of 11 queries and 13 keys: of one head
# and a few queries; of several heads.
LIMITS = {
    "queries": {"SCORES": 52, "SCORES_OF_HEADS": 52},
    "heads": {"SCORES_OF_HEADS": 600},
    "rows": {"QUERIES": 5, "CAUSAL_QUERIES": 3, "SCORES_OF_HEADS": 1},
    "squares": {"SQUARE": 5},  # where slices cannot grow
}


@pytest.fixture(params=LIMITS)
def small_blocks(request, monkeypatch):
    if (keras.backend.backend() == "tensorflow") == (
        request.param == "squares"
    ):
        pytest.skip("TensorFlow has tiles, other backends have squares")
    for name, value in LIMITS[request.param].items():
        monkeypatch.setattr(flash, name, value)
    return request.param


@pytest.mark.parametrize(
    ("masked", "causal", "sizes"),
    [
        (False, False, (11, 13)),
        (False, True, (12, 12)),
        (True, False, (13, 11)),
        (True, True, (11, 13)),
        (True, True, (13, 11)),
    ],
)
def test_blocks_of_long_sequences(small_blocks, masked, causal, sizes):
    """Outputs, log-sum-exp and gradients, in whatever blocks are chosen."""
    arrays = inputs(*sizes)
    mask = some_mask(*sizes) if masked else np.full((2, 3, *sizes), True)
    allowed = mask & to_numpy(causal_mask(*sizes)) if causal else mask
    directions = [draw(2, sizes[0], 3, 5, seed=9), draw(2, 3, sizes[0], seed=9)]
    directions[1] = directions[1] * allowed.any(-1)  # −inf has no gradient

    def flash(*arrays, return_log_sum_exp=True):
        return flash_attention(
            *arrays,
            attention_mask=mask if masked else None,
            use_causal_mask=causal,
            return_log_sum_exp=return_log_sum_exp,
        )

    expected = softmax_attention(*arrays, allowed)
    for a, b in zip(flash(*arrays), expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), b, atol=2e-6)
    alone = flash(*arrays, return_log_sum_exp=False)
    np.testing.assert_allclose(to_numpy(alone), expected[0], atol=2e-6)
    found = gradients(flash, arrays, directions)
    expected = gradients(lambda *x: dense(*x, allowed), arrays, directions)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-5)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="only TensorFlow has tiles"
)
def test_small_blocks_are_what_they_are_called(small_blocks):
    tiles = flash.Tiles.of((2, 3, 11, 13))
    if small_blocks == "heads":
        assert (tiles.heads, tiles.num_head_blocks) == (3, 2)
    else:
        assert (tiles.heads, tiles.num_query_blocks) == (1, 3)


@pytest.mark.parametrize(
    "num_keys, queries", [(64, 512), (8192, 256), (32_768, 64), (2**20, 2)]
)
def test_more_keys_leave_fewer_queries_in_a_tile(num_keys, queries):
    assert flash.Tiles.of((1, 1, 4096, num_keys)).queries == queries


@pytest.mark.every_backend
def test_blocks_of_long_sequences_compile(small_blocks):
    """Of lengths that are not known, forward and backward.

    XLA has squares on TensorFlow too, whatever the limits of tiles.
    """
    jit_compile = CAN_COMPILE and small_blocks in ("queries", "squares")
    layer = FlashAttention(3, 4)
    x, y = draw(2, 11, 7), draw(2, 11, 7, seed=1)
    inputs = keras.Input((None, 7))
    model = keras.Model(inputs, layer(inputs, use_causal_mask=True))
    plain = MultiHeadAttention(3, 4)
    plain.build(x.shape)
    plain.set_weights(layer.get_weights())
    expected = to_numpy(plain(x, attention_mask=causal_mask(11)))
    model.compile("sgd", "mse", jit_compile=jit_compile)
    found = model.predict(x, verbose=0)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    loss = np.square(expected - y).mean()
    losses = model.fit(x, y, epochs=2, verbose=0).history["loss"]
    assert losses[0] == pytest.approx(loss, rel=1e-4) and losses[1] < loss


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="XLA is all JAX has"
)
def test_only_xla_asks_for_squares(monkeypatch):
    import tensorflow as tf

    def attend(*arrays):
        return flash_attention(*arrays)

    made, in_blocks = [], flash._attend_in_blocks
    monkeypatch.setattr(
        flash,
        "_attend_in_blocks",
        lambda *arrays, **more: made.append(more) or in_blocks(*arrays, **more),
    )
    arrays = inputs()
    attend(*arrays), tf.function(attend)(*arrays)
    assert not made
    tf.function(attend, jit_compile=True)(*arrays)
    tf.function(tf.function(attend), jit_compile=True)(*arrays)
    assert made == 2 * [{"block_size": 512}]


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="counts calls in a loop"
)
@pytest.mark.parametrize("block_size, pairs", [(None, 4), (4, 10)])
def test_keys_that_a_block_of_queries_cannot_see_are_skipped(
    block_size, pairs, monkeypatch
):
    """Of 4 x 4 pairs of blocks 10; or 4 tiles of queries, each by itself."""
    seen, matmul = [], ops.matmul

    def spy(a, b):
        if a.shape[-1] == 3:  # features of queries and keys
            seen.append(b.shape[-1])
        return matmul(a, b)

    monkeypatch.setattr(flash, "CAUSAL_QUERIES", 4)
    monkeypatch.setattr(flash, "SCORES_OF_HEADS", 1)
    monkeypatch.setattr(ops, "matmul", spy)
    arrays = [x[:1, :, :1, :3] for x in inputs(16, 16)]
    flash_attention(*arrays, use_causal_mask=True, block_size=block_size)
    assert len(seen) == pairs
    assert sum(seen) == 40  # of 64


@pytest.mark.parametrize(
    "block_size", [pytest.param(4, marks=pytest.mark.every_backend), None]
)
@pytest.mark.parametrize(
    "shape",
    [
        *((13,), (11, 13), (1, 13), (11, 1)),
        *((2, 1, 13), (2, 11, 13), (2, 1, 11, 1)),
    ],
)
def test_masks_of_every_shape(shape, block_size):
    query, key, value = inputs()
    mask = np.random.default_rng(3).random(shape) < 0.6
    found = flash_attention(
        query, key, value, attention_mask=mask, block_size=block_size
    )
    full = mask[:, None] if len(shape) == 3 else mask
    expected, _ = softmax_attention(query, key, value, full)
    np.testing.assert_allclose(to_numpy(found), expected, atol=2e-6)


def gradients(function, arrays, directions):
    """Of the sum of outputs times directions."""

    def total(*arrays):
        pairs = zip(function(*arrays), directions, strict=True)
        return sum(
            ops.sum(ops.where(d == 0, 0.0, ops.multiply(o, d)))
            for o, d in pairs
        )

    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(total, (0, 1, 2))(*arrays)
    if keras.backend.backend() == "torch":
        import torch

        arrays = [torch.tensor(x, requires_grad=True) for x in arrays]
        return torch.autograd.grad(total(*arrays), arrays)
    import tensorflow as tf

    arrays = [tf.constant(x) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        loss = total(*arrays)
    return tape.gradient(loss, arrays)


def dense(query, key, value, mask):
    """Differentiable, with its log-sum-exp, by plain operations."""
    scores = ops.einsum("bthk,bshk->bhts", query, key) / key.shape[-1] ** 0.5
    scores = ops.where(mask, scores, -1e30)
    weights = ops.where(mask, ops.softmax(scores, axis=-1), 0.0)
    output = ops.einsum("bhts,bshv->bthv", weights, value)
    return output, ops.logsumexp(scores, axis=-1)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("block_size", "masked", "causal", "sizes"),
    [
        (3, False, False, (11, 13)),
        (3, True, True, (13, 11)),
        (4, False, True, (11, 13)),
        (4, True, False, (13, 11)),
        (3, True, True, (11, 13)),
    ],
)
def test_gradients_equal_those_of_dense_attention(
    block_size, masked, causal, sizes
):
    """Of the output and of the log-sum-exp, which merges need."""
    arrays = inputs(*sizes)
    mask = some_mask(*sizes) if masked else np.full((2, 3, *sizes), True)
    allowed = mask & to_numpy(causal_mask(*sizes)) if causal else mask
    directions = [draw(2, sizes[0], 3, 5, seed=9), draw(2, 3, sizes[0], seed=9)]
    directions[1] = directions[1] * allowed.any(-1)  # −inf has no gradient

    def flash(*arrays):
        return flash_attention(
            *arrays,
            attention_mask=mask if masked else None,
            use_causal_mask=causal,
            block_size=block_size,
            return_log_sum_exp=True,
        )

    found = gradients(flash, arrays, directions)
    expected = gradients(lambda *x: dense(*x, allowed), arrays, directions)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-5)


def test_two_sets_of_keys_merge_by_their_log_sum_exp():
    query, key, value = inputs()
    parts = [
        flash_attention(
            query, key[:, part], value[:, part], return_log_sum_exp=True
        )
        for part in (slice(0, 5), slice(5, 13))
    ]
    outputs, norms = ([to_numpy(part[i]) for part in parts] for i in (0, 1))
    shares = np.exp(norms - np.logaddexp(*norms))  # (2, B, H, T)
    merged = sum(
        o * share.transpose(0, 2, 1)[..., None]
        for o, share in zip(outputs, shares, strict=True)
    )
    expected, _ = softmax_attention(query, key, value)
    np.testing.assert_allclose(merged, expected, atol=2e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_no_worse_than_dense(dtype):
    query, key, value = (ops.cast(x, dtype) for x in inputs(29, 31))
    wide = [to_numpy(ops.cast(x, "float32")) for x in (query, key, value)]
    expected, _ = softmax_attention(*wide)
    found = flash_attention(query, key, value, block_size=8)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    plain, _ = dense(query, key, value, np.array(True))
    errors = [
        np.abs(to_numpy(ops.cast(x, "float32")) - expected).max()
        for x in (found, plain)
    ]
    assert errors[0] <= 2 * errors[1]


def test_large_scores_neither_overflow_nor_vanish():
    query, key, value = inputs()
    for scale in (100.0, -100.0):
        found = flash_attention(scale * query, key, value, block_size=3)
        expected, _ = softmax_attention(scale * query, key, value)
        np.testing.assert_allclose(to_numpy(found), expected, atol=2e-5)


def test_what_is_masked_may_hold_anything_finite():
    query, key, value = inputs()
    mask = to_numpy(padding_mask(np.array([5, 9]), 13))
    found = flash_attention(
        query, key, value, attention_mask=mask, block_size=4
    )
    hidden = ~mask[:, 0]
    key[hidden], value[hidden] = 1e9, -1e9
    again = flash_attention(
        query, key, value, attention_mask=mask, block_size=4
    )
    np.testing.assert_array_equal(to_numpy(found), to_numpy(again))


@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("causal", [False, True])
def test_without_queries_or_keys_there_is_nothing(sizes, causal):
    query, key, value = inputs(*sizes)
    output, log_sum_exp = flash_attention(
        query, key, value, use_causal_mask=causal, return_log_sum_exp=True
    )
    assert output.shape == (2, sizes[0], 3, 5)
    assert (to_numpy(output) == 0).all()
    assert log_sum_exp.shape == (2, 3, sizes[0])
    assert np.isneginf(to_numpy(log_sum_exp)).all()


@pytest.mark.every_backend
def test_inputs_of_any_length_compile():
    """Loops and blocks without static bounds."""
    layer, x = FlashAttention(3, 4, block_size=4), draw(2, 11, 7)
    expected = to_numpy(layer(x, use_causal_mask=True))
    inputs = keras.Input((None, 7))
    model = keras.Model(inputs, layer(inputs, use_causal_mask=True))
    for jit_compile in {False, CAN_COMPILE}:
        model.compile(jit_compile=jit_compile)
        found = model.predict(x, verbose=0)
        np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="reads TensorFlow's graph"
)
@pytest.mark.parametrize("causal", [False, True])
def test_no_tensor_of_all_queries_and_keys_is_ever_made(causal):
    import tensorflow as tf

    n = 8192

    @tf.function
    def train(query, key, value):
        with tf.GradientTape() as tape:
            tape.watch((query, key, value))
            output = flash_attention(query, key, value, use_causal_mask=causal)
        return tape.gradient(output, (query, key, value))

    spec = tf.TensorSpec((1, n, 2, 16))
    graph = train.get_concrete_function(spec, spec, spec).graph
    largest = 0
    for function in (graph, *graph._functions.values()):
        body = getattr(function, "graph", function)
        for operation in body.get_operations():
            for tensor in operation.outputs:
                size = tensor.shape.num_elements()
                largest = max(largest, size or 0)
    assert largest <= flash.SCORES < n * n / 30


def check(make_layer, **arguments):
    check_layer(make_layer, attention_inputs(), weights=False, **arguments)


@pytest.mark.every_backend
def test_contract():
    check(
        lambda **kwargs: FlashAttention(3, 4, block_size=5, **kwargs),
        output_dim=7,
    )
    check(
        lambda **kwargs: FlashAttention(
            3, 4, value_dim=5, output_dim=11, use_bias=True, **kwargs
        ),
        no_gradient=("W_k/bias",),
        output_dim=11,
    )


@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_equals_multi_head_attention(causal):
    x, key_mask = draw(2, 13, 7), np.arange(13) < np.array([[5], [13]])
    flash = FlashAttention(3, 4, block_size=4)
    plain = MultiHeadAttention(3, 4)
    for layer in (flash, plain):
        layer.build(x.shape)
    plain.set_weights(flash.get_weights())
    mask = to_numpy(causal_mask(13)) if causal else None
    found = flash(x, key_mask=key_mask, use_causal_mask=causal)
    expected = plain(x, key_mask=key_mask, attention_mask=mask)
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), atol=2e-6)


@pytest.mark.parametrize("block_size", [0, -4, 2.5])
def test_block_sizes_must_be_positive(block_size):
    with pytest.raises(ValueError, match=f"block_size={block_size}"):
        flash_attention(*inputs(), block_size=block_size)
    with pytest.raises(ValueError, match=f"block_size={block_size}"):
        FlashAttention(3, 4, block_size=block_size)


def test_shapes_and_masks_that_do_not_fit_are_named():
    query, key, value = inputs()
    with pytest.raises(ValueError, match=r"key \(2, 13, 3, 8\)"):
        flash_attention(query[..., :5], key, value)
    with pytest.raises(ValueError, match=r"value \(2, 12, 3, 5\)"):
        flash_attention(query, key, value[:, :12])
    with pytest.raises(ValueError, match="boolean"):
        flash_attention(query, key, value, attention_mask=np.ones((11, 13)))
    with pytest.raises(ValueError, match="does not broadcast"):
        flash_attention(
            query, key, value, attention_mask=np.full((3, 13), True)
        )
