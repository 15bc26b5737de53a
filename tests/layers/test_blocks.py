"""The blocks of the Transformer against NumPy."""

from contract import draw, to_numpy
from d2l_attention import (
    AddNorm,
    PositionWiseFFN,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
import keras
import numpy as np
import pytest

BLOCKS = [TransformerEncoderBlock, TransformerDecoderBlock]


def make(block, **options):
    keras.utils.set_random_seed(0)
    options = {"num_heads": 3, "dim": 12, "ffn_dim": 5, **options}
    return block(**options)


def norm(x, epsilon=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + epsilon)


def attend(layer, query, key, mask, drop=lambda x: x):
    """Multi-head attention, a loop over heads."""
    projections = [
        getattr(layer, f"{name}_layer")
        for name in ("query", "key", "value", "output")
    ]
    (w_q, *b_q), (w_k, *b_k), (w_v, *b_v), (w_o, *b_o) = (
        map(to_numpy, one.get_weights()) for one in projections
    )
    size, heads = layer.key_dim, []
    queries, keys, values = (
        x @ w + sum(b)
        for x, w, b in ((query, w_q, b_q), (key, w_k, b_k), (key, w_v, b_v))
    )
    for h in range(layer.num_heads):
        of_head = slice(h * size, (h + 1) * size)
        q, k, v = queries[..., of_head], keys[..., of_head], values
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(size)
        exponentials = np.exp(np.where(mask, scores, -np.inf))
        weights = exponentials / exponentials.sum(-1, keepdims=True)
        heads.append(drop(weights) @ v[..., of_head])
    return np.concatenate(heads, -1) @ w_o + sum(b_o)


def feed_forward(layer, x):
    w_1, b_1, w_2, b_2 = map(to_numpy, layer.get_weights())
    return np.maximum(x @ w_1 + b_1, 0) @ w_2 + b_2


def give_biases(block, *inputs):
    """Biases begin as zeros, so one that was left out would not be seen."""
    block(*inputs)
    for weight in block.weights:
        if weight.path.endswith("/bias"):
            weight.assign(draw(*weight.shape))


def test_the_position_wise_net_treats_every_position_alike():
    x = draw(2, 11, 7)
    layer = PositionWiseFFN(5, 3)
    whole = to_numpy(layer(x))
    assert whole.shape == (2, 11, 3)
    for weight in layer.weights:
        weight.assign(draw(*weight.shape))
    expected = feed_forward(layer, x)
    np.testing.assert_allclose(to_numpy(layer(x)), expected, atol=1e-5)
    shuffled = to_numpy(layer(x[:, ::-1]))
    np.testing.assert_allclose(shuffled[:, ::-1], expected, atol=1e-5)
    assert PositionWiseFFN(5)(x).shape == (2, 11, 7)


def test_add_norm_adds_then_normalizes():
    x, y = draw(2, 3, 7), draw(2, 3, 7, seed=1)
    output = to_numpy(AddNorm(dropout=0.5)(x, y, training=False))
    np.testing.assert_allclose(output, norm(x + y), atol=1e-5)
    dropped = to_numpy(AddNorm(dropout=0.5)(x, y, training=True))
    assert not np.allclose(dropped, output)
    with pytest.raises(ValueError, match=r"x \(2, 3, 7\), y \(2, 3, 5\)"):
        AddNorm()(x, draw(2, 3, 5))


def thinned(x):
    """What a dropout of 1/2 may leave: every other feature, or key."""
    kept = (2.0 * (np.arange(x.shape[-1]) % 2)).astype("float32")
    return x * (kept if isinstance(x, np.ndarray) else keras.ops.array(kept))


@pytest.mark.parametrize(
    "training", [False, pytest.param(True, marks=pytest.mark.every_backend)]
)
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("options", [{}, {"use_bias": True, "epsilon": 0.01}])
def test_blocks_equal_numpy(options, normalize_first, training, monkeypatch):
    """Dropout, which stands wherever it should, drops what is known."""

    def call(_, x, training=False):
        return thinned(x) if training else x

    monkeypatch.setattr(keras.layers.Dropout, "call", call)
    drop = thinned if training else lambda x: x

    def normalized(x):
        return norm(x, options.get("epsilon", 1e-5))

    def add(x, sublayer):
        if normalize_first:
            return x + drop(sublayer(normalized(x)))
        return normalized(x + drop(sublayer(x)))

    x, encoded = draw(2, 7, 12), draw(2, 11, 12)
    mask = (np.arange(7) < np.array([[4], [7]]))[:, None]
    seen = (np.arange(11) < np.array([[4], [11]]))[:, None]
    options = {**options, "normalize_first": normalize_first, "dropout": 0.5}

    block = make(TransformerEncoderBlock, **options)
    give_biases(block, x)
    found = block(x, attention_mask=mask, training=training)
    y = add(x, lambda y: attend(block.self_attention, y, y, mask, drop))
    expected = add(y, lambda y: feed_forward(block.ffn, y))
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-5)

    block = make(TransformerDecoderBlock, **options)
    give_biases(block, x, encoded)
    found = block(x, key=encoded, key_mask=seen[:, 0], training=training)
    past = np.tril(np.full((7, 7), True))
    y = add(x, lambda y: attend(block.self_attention, y, y, past, drop))
    z = add(y, lambda y: attend(block.cross_attention, y, encoded, seen, drop))
    expected = add(z, lambda z: feed_forward(block.ffn, z))
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-5)


@pytest.mark.parametrize("block", BLOCKS)
def test_heads_may_share_keys_in_every_block(block):
    """As if the heads of a group had equal keys and values."""
    x, encoded = draw(2, 7, 12), draw(2, 11, 12)
    inputs = (x, encoded)[: 1 + BLOCKS.index(block)]
    shared, dense = make(block, num_kv_heads=1), make(block)
    shared(*inputs), dense(*inputs)
    for of_shared, of_dense in zip(shared.weights, dense.weights, strict=True):
        repeats = of_dense.shape[-1] // of_shared.shape[-1]
        assert repeats == 3 if "W_k" in of_dense.path else repeats in (1, 3)
        columns = np.tile(to_numpy(of_shared.value), repeats)
        of_dense.assign(columns)
    expected = to_numpy(dense(*inputs))
    np.testing.assert_allclose(to_numpy(shared(*inputs)), expected, atol=1e-5)
    if block is TransformerDecoderBlock:
        cache, memory = shared.make_cache(2, 7), shared.memorize(encoded)
        for t in range(7):
            at = np.full((2, 1), t)
            y, cache = shared.step(x[:, t : t + 1], at, cache, memory)
            np.testing.assert_allclose(
                to_numpy(y)[:, 0], expected[:, t], atol=1e-5
            )


@pytest.mark.parametrize("block", BLOCKS)
def test_use_bias_is_attention_s_and_the_net_has_its_own(block):
    x = draw(2, 3, 12)
    source = {"key": x} if block is TransformerDecoderBlock else {}
    for use_bias in (False, True):
        layer = make(block, use_bias=use_bias)
        layer(x, **source)
        biases = [w.path for w in layer.weights if w.path.endswith("/bias")]
        attentions = 1 + len(source)
        assert len(biases) == 2 + (4 * attentions if use_bias else 0)
        assert len(layer.ffn.weights) == 4


def test_the_activation_is_that_of_the_net():
    x = draw(2, 3, 12)
    one, other = (
        make(TransformerEncoderBlock),
        make(TransformerEncoderBlock, activation="tanh"),
    )
    one(x), other(x)
    other.set_weights(one.get_weights())
    y = norm(x + attend(one.self_attention, x, x, True))
    w_1, _, w_2, _ = map(to_numpy, other.ffn.get_weights())
    expected = norm(y + np.tanh(y @ w_1) @ w_2)
    np.testing.assert_allclose(to_numpy(other(x)), expected, atol=1e-5)
    assert np.abs(to_numpy(one(x)) - expected).max() > 0.01


def test_a_decoder_block_takes_every_mask():
    """Each masks what its name says, and nothing else."""
    x, encoded = draw(2, 7, 12), draw(2, 11, 12)
    block = make(TransformerDecoderBlock)
    real = np.arange(7) >= np.array([[2], [0]])  # padding on the left
    pairs = np.abs(np.arange(7)[:, None] - np.arange(7)) <= 2
    cross = (np.arange(7)[:, None] + np.arange(11)) % 3 > 0
    source = np.arange(11) < np.array([[4], [11]])
    past = np.tril(np.full((7, 7), True))

    def weights(**masks):
        _, found = block(x, key=encoded, return_attention_scores=True, **masks)
        return [to_numpy(w) > 0 for w in found.values()]

    own, seen = weights()
    assert (own == past).all() and seen.all()
    own, seen = weights(query_mask=real)
    assert (own == (past & real[:, None])[:, None]).all() and seen.all()
    own, seen = weights(attention_mask=pairs)
    assert (own == (past & pairs)).all() and seen.all()
    own, seen = weights(key_mask=source)
    assert (own == past).all() and (seen == source[:, None, None]).all()
    own, seen = weights(cross_attention_mask=cross, key_mask=source)
    assert (own == past).all()
    assert (seen == (cross & source[:, None])[:, None]).all()


def test_an_encoder_block_may_be_causal():
    x = draw(2, 7, 12)
    block = make(TransformerEncoderBlock)
    _, weights = block(x, use_causal_mask=True, return_attention_scores=True)
    past = np.tril(np.full((7, 7), True))
    assert ((to_numpy(weights) > 0) == past).all()


def test_the_weights_asked_for_are_of_this_pass():
    x, encoded = draw(2, 7, 12), draw(2, 11, 12)
    encoder = make(TransformerEncoderBlock)
    output, weights = encoder(x, return_attention_scores=True)
    np.testing.assert_array_equal(to_numpy(output), to_numpy(encoder(x)))
    assert weights.shape == (2, 3, 7, 7)
    decoder = make(TransformerDecoderBlock)
    output, weights = decoder(x, key=encoded, return_attention_scores=True)
    np.testing.assert_array_equal(
        to_numpy(output), to_numpy(decoder(x, key=encoded))
    )
    assert {k: tuple(w.shape) for k, w in weights.items()} == {
        "self_attention": (2, 3, 7, 7),
        "cross_attention": (2, 3, 7, 11),
    }


@pytest.mark.parametrize("block", BLOCKS)
def test_bad_sizes_are_refused(block):
    with pytest.raises(ValueError, match="num_heads=5, dim=12"):
        make(block, num_heads=5)
    with pytest.raises(ValueError, match="ffn_dim=0"):
        make(block, ffn_dim=0)
    with pytest.raises(ValueError, match="dim=-12"):
        make(block, dim=-12)
    with pytest.raises(ValueError, match="dropout=1"):
        make(block, dropout=1.0)
    x = draw(2, 3, 11)
    source = {"key": x} if block is TransformerDecoderBlock else {}
    with pytest.raises(ValueError, match=r"dim=12.*\(2, 3, 11\)"):
        make(block)(x, **source)


@pytest.mark.every_backend
@pytest.mark.parametrize("block", BLOCKS)
def test_saved_and_loaded_it_is_the_same(block, tmp_path):
    inputs = [keras.Input((None, 12)) for _ in range(BLOCKS.index(block) + 1)]
    layer = make(block, activation="gelu", use_bias=True, dropout=0.2)
    names = dict(zip(("query", "key"), inputs, strict=False))
    model = keras.Model(inputs, layer(**names))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.layers[-1].get_config() == model.layers[-1].get_config()
    data = [draw(2, 7, 12), draw(2, 11, 12)][: len(inputs)]
    np.testing.assert_array_equal(to_numpy(model(data)), to_numpy(again(data)))
