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


def attend(layer, query, key, mask):
    """Multi-head attention, a loop over heads."""
    w_q, w_k, w_v, w_o = map(to_numpy, layer.get_weights())
    size, heads = layer.key_dim, []
    for h in range(layer.num_heads):
        of_head = slice(h * size, (h + 1) * size)
        q, k, v = query @ w_q[:, of_head], key @ w_k[:, of_head], key @ w_v
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(size)
        exponentials = np.exp(np.where(mask, scores, -np.inf))
        weights = exponentials / exponentials.sum(-1, keepdims=True)
        heads.append(weights @ v[..., of_head])
    return np.concatenate(heads, -1) @ w_o


def feed_forward(layer, x):
    w_1, b_1, w_2, b_2 = map(to_numpy, layer.get_weights())
    return np.maximum(x @ w_1 + b_1, 0) @ w_2 + b_2


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


def test_the_encoder_block_equals_numpy():
    x = draw(2, 11, 12)
    mask = np.arange(11) < np.array([[4], [11]])
    block = make(TransformerEncoderBlock)
    found = block(x, attention_mask=mask[:, None])
    y = norm(x + attend(block.self_attention, x, x, mask[:, None]))
    expected = norm(y + feed_forward(block.ffn, y))
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-5)


def test_the_decoder_block_equals_numpy():
    x, encoded = draw(2, 7, 12), draw(2, 11, 12)
    mask = np.arange(11) < np.array([[4], [11]])
    block = make(TransformerDecoderBlock)
    found = block(x, encoded, mask)
    past = np.tril(np.full((7, 7), True))
    y = norm(x + attend(block.self_attention, x, x, past))
    z = norm(y + attend(block.cross_attention, y, encoded, mask[:, None]))
    expected = norm(z + feed_forward(block.ffn, z))
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-5)


def test_the_weights_asked_for_are_of_this_pass():
    x, encoded = draw(2, 7, 12), draw(2, 11, 12)
    encoder = make(TransformerEncoderBlock)
    output, weights = encoder(x, return_attention_scores=True)
    np.testing.assert_array_equal(to_numpy(output), to_numpy(encoder(x)))
    assert weights.shape == (2, 3, 7, 7)
    decoder = make(TransformerDecoderBlock)
    output, weights = decoder(x, encoded, return_attention_scores=True)
    np.testing.assert_array_equal(
        to_numpy(output), to_numpy(decoder(x, encoded))
    )
    assert {k: tuple(w.shape) for k, w in weights.items()} == {
        "self_attention": (2, 3, 7, 7),
        "cross_attention": (2, 3, 7, 11),
    }


@pytest.mark.backend_free
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
    inputs = [draw(2, 3, 11)] * (1 + (block is TransformerDecoderBlock))
    with pytest.raises(ValueError, match=r"dim=12.*\(2, 3, 11\)"):
        make(block)(*inputs)


@pytest.mark.backend_free
@pytest.mark.parametrize("block", BLOCKS)
def test_saved_and_loaded_it_is_the_same(block, tmp_path):
    inputs = [keras.Input((None, 12)) for _ in range(BLOCKS.index(block) + 1)]
    layer = make(block, activation="gelu", use_bias=True, dropout=0.2)
    model = keras.Model(inputs, layer(*inputs))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.layers[-1].get_config() == model.layers[-1].get_config()
    data = [draw(2, 7, 12), draw(2, 11, 12)][: len(inputs)]
    np.testing.assert_array_equal(to_numpy(model(data)), to_numpy(again(data)))
