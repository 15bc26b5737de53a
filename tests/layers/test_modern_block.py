"""The modern block: what each change computes, and where it is the old."""

from pathlib import Path

import contract
from contract import (
    attention_inputs,
    check_layer,
    draw,
    needs_use_gate,
    on_every_backend,
    to_numpy,
)
from d2l_attention import (
    BlockLanguageModel,
    ModernAttention,
    ModernBlock,
    ModernLanguageModel,
    RotaryAttention,
    SinkAttention,
    SwiGLU,
    WindowAttention,
    attend_over_depth,
    causal_mask,
    masked_softmax,
    rotate,
    sigmoid_weights,
    soft_cap,
    sparsemax,
)
import keras
from keras import ops
import numpy as np
import pytest

ORACLES = Path(__file__).parents[1] / "oracles"
SIZES = {"num_heads": 6, "key_dim": 4, "value_dim": 5, "output_dim": 11}
ALL = {
    "window": 7,
    "use_sinks": True,
    "use_gate": True,
    "soft_cap": 0.7,
    "epsilon": 0.3,
}
KINDS = {"plain": {}, "all": {"num_kv_heads": 3, **ALL}}


def assert_close(found, expected, atol=1e-6):
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), 0, atol)


@pytest.mark.parametrize("kind", on_every_backend({k: k for k in KINDS}, "all"))
def test_contract(kind, monkeypatch):
    # Always causal: a row may see no key, or sum to less than 1.
    monkeypatch.setattr(contract, "_check_weights", lambda *_: None)
    check_layer(
        lambda **k: ModernAttention(**SIZES, **KINDS[kind], **k),
        attention_inputs(),
        num_heads=6,
        output_dim=11,
        by_position=True,
    )


def rms(x, gain, epsilon=1e-6):
    return gain * x / np.sqrt(np.mean(x**2, -1, keepdims=True) + epsilon)


def one_by_one(layer, x):
    """A whole layer with all options: one query of one head at a time."""
    w = {v.path.split("/", 1)[1]: to_numpy(v) for v in layer.weights}
    w = {name: value.astype("float64") for name, value in w.items()}
    h, g = layer.num_heads, layer.num_kv_heads
    q, k, v, gate = (
        (x @ w[f"{name}/kernel"]).reshape(*x.shape[:2], n, -1)
        for name, n in (("W_q", h), ("W_k", g), ("W_v", g), ("W_g", h))
    )
    q = rms(q, w["query_norm/scale"], layer.epsilon)
    k = rms(k, w["key_norm/scale"], layer.epsilon)
    q, k = (to_numpy(rotate(z, layer.frequencies)) for z in (q, k))
    heads = np.zeros((*q.shape[:3], v.shape[-1]))
    for b, i, j in np.ndindex(q.shape[:3]):
        seen = range(max(0, i + 1 - layer.window), i + 1)
        of = j * g // h
        z = (
            np.array([q[b, i, j] @ k[b, s, of] for s in seen])
            / k.shape[-1] ** 0.5
        )
        e = np.exp(layer.soft_cap * np.tanh(z / layer.soft_cap))
        share = e / (e.sum() + np.exp(w["sinks"][j]))
        heads[b, i, j] = share @ v[b, list(seen), of]
        heads[b, i, j] /= 1 + np.exp(-gate[b, i, j])
    return heads.reshape(*x.shape[:2], -1) @ w["W_o/kernel"]


def randomized(layer, shape):
    layer.build(shape)
    for i, weight in enumerate(layer.weights):
        weight.assign(0.5 + draw(*weight.shape, seed=i))
    return layer


@pytest.mark.every_backend
def test_all_parts_together_as_their_formulas_say():
    x = draw(2, 11, 5)
    layer = randomized(ModernAttention(**SIZES, **KINDS["all"]), x.shape)
    expected = one_by_one(layer, x.astype("float64"))
    scale = np.abs(expected).max()
    assert_close(to_numpy(layer(x)) / scale, expected / scale, 1e-5)


def test_with_unit_norms_it_is_the_attention_it_derives_from():
    """Queries and keys with a mean square of 1 pass QK-norm unchanged."""
    x = draw(2, 11, 5)
    query, key = (rms(draw(2, 11, n, 4, seed=n), 1) for n in (6, 3))
    value = draw(2, 11, 3, 4)
    for options, parent in (
        ({}, RotaryAttention(6, 4, num_kv_heads=3)),
        ({"window": 5}, WindowAttention(6, 4, 5, num_kv_heads=3)),
        ({"use_sinks": True}, SinkAttention(6, 4, num_kv_heads=3)),
        ({"soft_cap": 1e4}, RotaryAttention(6, 4, num_kv_heads=3)),
    ):
        layer = ModernAttention(6, 4, num_kv_heads=3, **options)
        layer.build(x.shape)
        parent.build(x.shape)
        parent.output_layer.set_weights(layer.output_layer.get_weights())
        found = layer.attend(
            layer.rotate(layer.query_norm(query), 0),
            layer.rotate(layer.key_norm(key), 0),
            value,
        )
        rotated = parent.rotate(query, 0), parent.rotate(key, 0)
        expected = parent.attend(*rotated, value, use_causal_mask=True)
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, 1e-5)


def test_the_largest_weight_that_qk_norm_allows():
    """1 / (1 + (n − 1) e^(−2√K)), if one key is the query, and others −."""
    for k, expected in ((8, 0.2186), (16, 0.7445)):
        n = 1024
        bound = 1 / (1 + (n - 1) * np.exp(-2 * k**0.5))
        assert abs(bound - expected) < 5e-5
        layer = ModernAttention(1, k, frequencies=[])
        x = np.full((1, n, k), -7.0, "float32")
        x[0, -1] = 7
        layer.build(x.shape)
        for dense in (layer.query_layer, layer.key_layer):
            dense.kernel.assign(np.eye(k))
        _, weights = layer(x, return_attention_scores=True)
        assert abs(to_numpy(weights)[0, 0, -1, -1] - bound) < 1e-4


def test_norm_and_rotation_commute_for_one_gain_and_not_for_many():
    x = draw(2, 7, 3, 6)
    equal, many = np.full(6, 1.7), np.linspace(0.5, 2, 6)
    turns = [1.0, 0.3, 0.1]
    for gain, agree in ((equal, True), (many, False)):
        before = to_numpy(rotate(rms(x, gain).astype("float32"), turns))
        after = rms(to_numpy(rotate(x, turns)), gain)
        assert bool(np.abs(before - after).max() < 1e-5) == agree


@pytest.mark.parametrize("window", on_every_backend({"all": None, "3": 3}, "3"))
def test_decoding_equals_the_whole_pass(window):
    """Whole model, prompts of two lengths, beyond the ring of a window."""
    model = ModernLanguageModel(
        13, 12, 2, 6, 17, num_kv_heads=3, use_gate=True, use_sinks=True,
        window=window, soft_cap=2.0, tie_embeddings=True, max_length=11,
    )  # fmt: skip
    ids = np.array([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 0, 0]])
    whole = to_numpy(model(ids))
    state = model.start(np.array([[3, 1, 4, 1], [2, 7, 0, 0]]))
    for t in range(4):
        tokens = np.array([ids[0, 4 + t], ids[1, 2 + t]])
        logits, state = model.step(tokens, state)
        assert_close(to_numpy(logits)[0], whole[0, 4 + t], 1e-5)
        assert_close(to_numpy(logits)[1], whole[1, 2 + t], 1e-5)


def test_a_model_trains_and_comes_back_from_a_file(tmp_path):
    keras.utils.set_random_seed(0)
    model = ModernLanguageModel(13, 8, 1, 2, 17, use_gate=True, soft_cap=9.0)
    ids = np.tile(np.array([[3, 5, 7, 9]]), (4, 3))
    loss = keras.losses.SparseCategoricalCrossentropy(True)
    model.compile(keras.optimizers.Adam(0.05), loss, jit_compile=False)
    before = model.evaluate(ids[:, :-1], ids[:, 1:], verbose=0)
    model.fit(ids[:, :-1], ids[:, 1:], epochs=20, verbose=0)
    assert model.evaluate(ids[:, :-1], ids[:, 1:], verbose=0) < before / 4
    path = tmp_path / "model.keras"
    model.save(path)
    again = keras.models.load_model(path)
    assert_close(again(ids), model(ids))
    _, maps = model(ids, return_attention_scores=True)
    assert maps["block_0/self_attention"].shape == (4, 2, 12, 12)


def test_embeddings_begin_as_large_as_what_is_made_of_them():
    """1, as after a norm; 1/√D where they make the logits, too."""
    for tied, size in ((False, 1), (True, 1 / 8)):
        model = ModernLanguageModel(500, 64, 1, 2, 17, tie_embeddings=tied)
        model.build((None, None))
        found = to_numpy(model.embedding.embeddings).std()
        assert abs(found / size - 1) < 0.02


def test_rms_norm_is_layer_norm_of_centred_inputs():
    x = draw(3, 5, 7)
    centred = x - x.mean(-1, keepdims=True)
    theirs = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    ours = keras.layers.RMSNormalization(epsilon=1e-6)
    assert_close(ours(centred), theirs, 1e-5)
    assert_close(ours(x), rms(x, 1), 1e-5)
    assert np.abs(to_numpy(ours(x)) - to_numpy(theirs)).max() > 0.1


def test_a_block_is_its_equation_and_with_zero_branches_the_identity():
    x = draw(2, 7, 12)
    block = ModernBlock(12, 3, 17, use_gate=True)
    found = block(x)
    attention, ffn = block.self_attention, block.ffn
    y = x + to_numpy(attention(block.self_attention_norm.norm(x)))
    assert_close(found, y + to_numpy(ffn(block.ffn_norm.norm(y))), 1e-5)
    for layer in (attention, ffn):
        kernel = layer.output_layer.kernel
        kernel.assign(ops.zeros_like(kernel))
    assert_close(block(x), x, 0)
    model = ModernLanguageModel(7, 12, 1, 3, 17)
    model.build((None, None))
    kernel = to_numpy(model.output_layer.kernel)
    assert_close(model.logits(x), rms(x, 1) @ kernel, 1e-5)
    given = BlockLanguageModel(7, 12, [ModernBlock(12, 3, 17)])
    assert given(np.array([[1, 2, 3]])).shape == (1, 3, 7)


def test_swiglu_as_its_formula_says():
    x = draw(3, 7).astype("float64")
    layer = SwiGLU(11, 5, dtype="float64")
    layer.build(x.shape)
    w, u, out = map(to_numpy, layer.weights)
    gate = x @ w
    expected = (gate / (1 + np.exp(-gate)) * (x @ u)) @ out
    assert_close(layer(x), expected, 1e-12)
    silu = keras.ops.silu
    assert_close(silu(x) - silu(-x), x, 1e-12)


def test_soft_cap_has_limits_and_a_mask_comes_after_it():
    z = draw(5, 7)
    assert_close(soft_cap(z, 1e4), z, 1e-5)
    assert_close(soft_cap(z, None), z, 0)
    assert np.abs(to_numpy(soft_cap(9 * z, 0.5))).max() <= 0.5
    for cap in (0, -1.0, float("inf")):
        with pytest.raises(ValueError, match=f"positive and finite.*{cap}"):
            soft_cap(z, cap)
    zeros, seen = np.zeros((16, 16), "float32"), to_numpy(causal_mask(16))
    right = to_numpy(masked_softmax(soft_cap(zeros, 1.0), seen))
    assert right[0, 1:].sum() == 0
    masked = np.where(seen, zeros, -np.inf)
    wrong = to_numpy(masked_softmax(soft_cap(masked, 1.0)))
    assert abs(wrong[0, 1:].sum() - 0.8466) < 1e-4
    assert abs(wrong[0, 1:].sum() - 15 / (np.e + 15)) < 1e-5


@pytest.mark.every_backend
def test_sparsemax_as_entmax_computes_it():
    with np.load(ORACLES / "entmax.npz") as file:
        scores, expected = file["scores"], file["sparsemax"]
    assert_close(sparsemax(scores), expected)
    a, b = np.array([0.3, 2.0, -5]), np.array([0.0, 0.5, 0.0])
    pair = to_numpy(sparsemax(np.stack([a, b], -1)))
    assert_close(pair[:, 0], np.clip((1 + a - b) / 2, 0, 1))
    # A masked key is as none, also where it has the highest score.
    mask = np.arange(11) % 3 != 1
    scores[:, 1] = 50
    found = to_numpy(sparsemax(scores, mask))
    assert_close(found[:, mask], sparsemax(scores[:, mask]))
    assert (found[:, ~mask] == 0).all()
    empty = to_numpy(sparsemax(scores, np.zeros((1, 11), bool)))
    assert (empty == 0).all()
    half = to_numpy(sparsemax(ops.cast(scores, "float16"), mask))
    assert_close(half, found, 2e-3)


def test_sigmoid_weights_of_the_keys_that_are_seen():
    n = 9
    mask = to_numpy(causal_mask(n))
    found = to_numpy(sigmoid_weights(np.zeros((n, n), "float32"), mask))
    count = np.arange(1, n + 1)
    assert_close(found.sum(-1), count / (count + 1))
    z = draw(5, n)
    some = draw(5, n, seed=1) > 0
    some[2] = False
    expected = some / (
        1 + np.maximum(some.sum(-1, keepdims=True), 1) / np.exp(z)
    )
    assert_close(sigmoid_weights(z, some), expected)
    low = np.where(some, z, -np.inf)  # a score of −∞ masks, too
    assert_close(sigmoid_weights(low), expected)
    assert_close(sparsemax(low), sparsemax(z, some))
    whole = np.array([[2, 0]])  # integers are numbers, too
    for weights_of in (sparsemax, sigmoid_weights):
        assert_close(weights_of(whole), weights_of(whole.astype("float32")))


def test_attention_over_depth():
    outputs = draw(2, 3, 5, 7)
    even, weights = attend_over_depth(np.zeros(7), outputs)
    assert_close(even, outputs.mean(2))
    assert_close(weights, np.full((2, 3, 5), 0.2))
    query, mask = draw(7), np.arange(5) != 2
    found, weights = attend_over_depth(query, outputs, mask)
    scores = rms(outputs, 1) @ query
    share = np.exp(scores) * mask
    share /= share.sum(-1, keepdims=True)
    assert_close(weights, share, 1e-5)
    assert_close(found, np.einsum("btl,btld->btd", share, outputs), 1e-5)
    outputs[:, :, 2] = np.inf  # what may not be read may hold anything
    again, _ = attend_over_depth(query, outputs, mask)
    assert_close(again, found)
    nothing, _ = attend_over_depth(query, outputs, np.zeros(5, bool))
    assert (to_numpy(nothing) == 0).all()


def test_outputs_whose_squares_float16_does_not_hold():
    """What is read is as if they were 256 times smaller."""
    outputs = 3 * draw(2, 3, 5, 7)
    query = draw(7).astype("float16")
    _, expected = attend_over_depth(query.astype("float32"), outputs)
    large = (256 * outputs).astype("float16")
    assert np.abs(large).max() > 256
    _, weights = attend_over_depth(query, large)
    assert_close(weights, expected, 5e-3)


@needs_use_gate
def test_the_gate_is_that_of_keras():
    """A gate over heads without QK-norm and positions, and Keras's."""
    x = draw(2, 7, 5)
    theirs = keras.layers.MultiHeadAttention(
        3, 4, use_bias=False, use_gate=True
    )
    plain = keras.layers.MultiHeadAttention(3, 4, use_bias=False)
    expected = to_numpy(theirs(x, x))
    plain(x, x)
    kept = {v.path.split("/", 1)[1]: v for v in theirs.weights}
    for weight in plain.weights:
        weight.assign(kept[weight.path.split("/", 1)[1]])
    layer = ModernAttention(3, 4, use_gate=True)
    layer.build(x.shape)
    for name, dense in (
        ("query", layer.query_layer),
        ("key", layer.key_layer),
        ("value", layer.value_layer),
        ("attention_output", layer.output_layer),
        ("gate", layer.gate_layer),
    ):
        kernel = dense.kernel
        kernel.assign(ops.reshape(kept[f"{name}/kernel"], kernel.shape))
    # The gate alone: what ours reads, from projections without norms.
    query = ops.reshape(layer.query_layer(x), (2, 7, 3, 4))
    gate = ops.reshape(layer.gate_layer(x), (2, 7, 3, 4))
    key = ops.reshape(layer.key_layer(x), (2, 7, 3, 4))
    heads, _ = layer.equation(
        ops.concatenate([query, gate], axis=-1),
        key,
        layer.project_value(x),
        None,
        lambda weights: weights,
    )
    assert_close(layer.join_heads(heads), expected, 1e-5)
    assert np.abs(to_numpy(plain(x, x)) - expected).max() > 1e-2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ModernAttention(2, 4, soft_cap=0.0), "soft_cap.*0.0"),
        (lambda: ModernAttention(2, 4, window=0), "window"),
        (lambda: ModernBlock(8, 3, 16), "num_heads=3, dim=8"),
        (lambda: ModernBlock(8, 2, 16, num_kv_heads=3), "num_kv_heads=3"),
        (lambda: soft_cap([1.0], -1), "positive"),
        (lambda: sparsemax([[1.0]], [[1]]), "boolean"),
        (lambda: SwiGLU(0), "ffn_dim"),
    ],
)
def test_errors_name_what_was_received(make, message):
    with pytest.raises(ValueError, match=message):
        make()
