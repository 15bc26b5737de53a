"""Pooling with a learned query, and documents of sentences of words."""

from contract import compile_for_training, draw, to_numpy
from d2l_attention import AttentionPooling, HierarchicalAttentionNetwork
import keras
import numpy as np
import pytest

IDS = np.array(
    [
        [[3, 5, 2, 0], [7, 1, 0, 0], [0, 0, 0, 0]],
        [[4, 4, 8, 2], [6, 0, 0, 0], [2, 9, 3, 1]],
    ],
    "int32",
)


def make(**options):
    keras.utils.set_random_seed(0)
    model = HierarchicalAttentionNetwork(11, 6, 5, 3, **options)
    model.build((None, None, None))
    for weight in model.weights:  # by biases of 0 nothing empty is read
        weight.assign(draw(*weight.shape))
    return model


def test_pooling_equals_the_equations():
    layer = AttentionPooling(7)
    x = draw(2, 5, 3)
    pooled, weights = layer(x, return_attention_scores=True)
    kernel, bias = layer.hidden.get_weights()
    scores = np.tanh(x @ kernel + bias) @ to_numpy(layer.query)
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(to_numpy(weights), expected, atol=1e-6)
    np.testing.assert_allclose(
        to_numpy(pooled), np.einsum("bt,btd->bd", expected, x), atol=1e-6
    )


def test_pooling_leaves_out_what_is_masked_and_an_empty_row_is_zero():
    layer = AttentionPooling(7)
    x = draw(2, 5, 3)
    mask = np.array([[True, False, True, True, False], [False] * 5])
    pooled, weights = layer(x, mask=mask, return_attention_scores=True)
    assert (to_numpy(weights)[~mask] == 0).all()
    assert (to_numpy(pooled)[1] == 0).all()
    few = to_numpy(layer(x[:1, mask[0]]))
    np.testing.assert_allclose(to_numpy(pooled)[:1], few, atol=1e-6)


def test_pooling_takes_the_mask_of_an_embedding():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(11, 6, mask_zero=True)(ids)
    model = keras.Model(ids, AttentionPooling(5)(x))
    padded = np.pad(IDS[1, :1], ((0, 0), (0, 3)))
    np.testing.assert_allclose(
        to_numpy(model(padded)), to_numpy(model(IDS[1, :1])), atol=1e-6
    )


def test_weights_of_words_and_sentences_leave_out_padding():
    _, maps = make()(IDS, return_attention_scores=True)
    words, sentences = (to_numpy(maps[x]) for x in ("words", "sentences"))
    assert words.shape == (2, 3, 4) and sentences.shape == (2, 3)
    assert (words[IDS == 0] == 0).all() and sentences[0, 2] == 0
    there = IDS.any(-1)
    np.testing.assert_allclose(words.sum(-1)[there], 1, atol=1e-6)
    np.testing.assert_allclose(sentences.sum(-1), 1, atol=1e-6)


def test_padding_words_and_sentences_moves_nothing():
    model = make()
    logits = to_numpy(model(IDS))
    wider = np.pad(IDS, ((0, 0), (0, 2), (0, 3)))
    np.testing.assert_allclose(to_numpy(model(wider)), logits, atol=1e-6)
    table = to_numpy(model.embedding.embeddings).copy()
    table[0] = 1e3
    model.embedding.embeddings.assign(table)
    np.testing.assert_array_equal(to_numpy(model(IDS)), logits)


def test_words_and_sentences_have_an_order():
    model = make()
    logits = to_numpy(model(IDS))[1]
    for axis in (1, 2):
        turned = to_numpy(model(np.flip(IDS, axis)))[1]
        assert np.abs(turned - logits).max() > 1e-5


def test_it_trains_compiled_every_weight_moves_and_it_is_saved(tmp_path):
    model = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compile_for_training(model, "adam", loss)
    before = model.get_weights()
    model.fit(IDS, np.array([0, 2]), verbose=0)
    assert all(
        np.abs(a - b).max() > 0
        for a, b in zip(before, model.get_weights(), strict=True)
    )
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(model(IDS)), to_numpy(again(IDS)))


def test_sizes_must_be_positive():
    for sizes in ((0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)):
        with pytest.raises(ValueError, match="positive.*=0"):
            HierarchicalAttentionNetwork(*sizes)
    with pytest.raises(ValueError, match="units=0"):
        AttentionPooling(0)
