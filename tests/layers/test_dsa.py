"""DSA: an indexer that chooses tokens, and what teaches it."""

import contract
from contract import attention_inputs, check_layer, check_steps, draw, to_numpy
from d2l_attention import (
    IndexedAttention,
    RotaryAttention,
    causal_mask,
    index_scores,
    masked_softmax,
)
from d2l_attention.layers.dsa import index_loss
import keras
import numpy as np
import pytest

SIZES = {
    "num_heads": 6,
    "num_kv_heads": 2,
    "key_dim": 4,
    "value_dim": 5,
    "output_dim": 11,
}


def make_layer(top=3, **options):
    return IndexedAttention(
        top=top, index_heads=2, index_dim=3, **SIZES, **options
    )


def assert_close(found, expected, atol=1e-6):
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), 0, atol)


@pytest.mark.every_backend
def test_contract(monkeypatch):
    # No gradient of the output reaches the indexer.
    monkeypatch.setattr(contract, "_check_gradients", lambda *_: None)
    check_layer(
        make_layer,
        attention_inputs(),
        num_heads=6,
        output_dim=11,
        by_position=True,
    )


def test_all_tokens_are_dense_attention():
    layer, x = make_layer(top=13), draw(2, 13, 7)
    layer.build(x.shape)
    rotary = RotaryAttention(**SIZES)
    rotary.build(x.shape)
    rotary.set_weights(layer.get_weights()[: len(rotary.weights)])
    dense = to_numpy(rotary(x, use_causal_mask=True))
    assert np.array_equal(to_numpy(layer(x)), dense)


def test_index_scores_and_their_loss_as_formulas():
    query, key, weights = draw(2, 5, 3, 4), draw(2, 7, 4), draw(2, 5, 3)
    products = np.maximum(np.einsum("btji,bsi->btjs", query, key), 0)
    scores = np.einsum("btj,btjs->bts", weights, products)
    assert_close(index_scores(query, key, weights), scores, atol=1e-5)
    mask = to_numpy(causal_mask(5, 7)) & np.ones((2, 1, 1), bool)
    mask[1, 3] = False
    attention = to_numpy(masked_softmax(draw(2, 6, 5, 7), mask[:, None]))
    target, share = attention.mean(1), to_numpy(masked_softmax(scores, mask))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(target > 0, target * np.log(target / share), 0)
    found = float(index_loss(scores, attention, mask))
    assert abs(found - terms.sum() / 9) < 1e-5  # one of ten queries sees none
    # None where both are the same, and far apart it is finite.
    same = np.log(np.maximum(target, 1e-9))
    assert abs(float(index_loss(same, attention, mask))) < 1e-6
    assert np.isfinite(float(index_loss(300 * scores, attention, mask)))


@pytest.mark.parametrize("padding", [2, 6, 26])
def test_padding_teaches_the_indexer_nothing(padding):
    layer, x = make_layer(), draw(2, 9, 7)
    lengths = np.arange(9) < [[9], [6]]

    def loss(x, mask):
        layer(x, key_mask=mask, training=True)
        (found,) = layer.losses
        return float(to_numpy(found))

    expected = loss(x, lengths)
    # As a mean over the tokens, wherever the sentences are cut.
    alone = loss(x[:1], None), loss(x[1:, :6], None)
    assert abs(expected - (9 * alone[0] + 6 * alone[1]) / 15) < 1e-5
    more = np.concatenate([x, 5 * draw(2, padding, 7)], 1)
    mask = np.pad(lengths, ((0, 0), (0, padding)))
    assert abs(loss(more, mask) - expected) < 1e-5


@pytest.mark.every_backend
def test_the_loss_teaches_the_indexer_alone():
    keras.utils.set_random_seed(0)
    layer, x = make_layer(), draw(8, 13, 7)
    below = keras.layers.Dense(7, name="below")
    model = keras.Sequential([keras.Input((13, 7)), below, layer])
    before = {w.path: to_numpy(w) for w in model.weights}
    model.compile("sgd", lambda y, output: 0 * output, jit_compile=False)
    model.optimizer.learning_rate = 0.5
    history = model.fit(x, x, epochs=5, verbose=0).history["loss"]
    moved = {
        w.path.split("/")[-2]
        for w in model.weights
        if np.abs(to_numpy(w) - before[w.path]).max() > 1e-4
    }
    assert moved == {"W_iq", "W_ik", "W_iw"}
    assert history[-1] < history[0]
    layer(x)
    assert layer.losses == []  # outside of training


def test_steps_of_any_size_equal_the_whole():
    check_steps(make_layer())


@pytest.mark.parametrize("name", ["index_heads", "index_dim"])
def test_what_cannot_be_is_refused(name):
    options = {"index_heads": 2, "index_dim": 3, name: 0}
    with pytest.raises(ValueError, match=f"{name}=0"):
        IndexedAttention(2, 4, 3, **options)
