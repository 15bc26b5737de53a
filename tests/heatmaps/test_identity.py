"""A layer that forms no weights is read by identity values, if it is named."""

from d2l_attention import (
    FlashAttention,
    LinformerAttention,
    LongformerAttention,
    MultiHeadAttention,
    PageLocalAttention,
    PerformerAttention,
    ReformerAttention,
)
from d2l_attention.heatmaps import get_attention_weights
from d2l_attention.layers.longformer import longformer_mask
import keras
from keras import ops
import numpy as np
import pytest

pytestmark = pytest.mark.every_backend

X = np.random.default_rng(0).normal(size=(2, 16, 8)).astype("float32")
REAL = np.arange(16) < np.array([[16], [11]])


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


def dense_like(layer):
    dense = MultiHeadAttention(2, 4)
    dense(X)
    layer(X)
    dense.set_weights(layer.get_weights()[:4])
    return dense


@pytest.mark.parametrize("options", [{}, {"use_causal_mask": True}])
def test_flash_gives_the_weights_of_dense_attention(options):
    layer = FlashAttention(2, 4, name="flash", block_size=4)
    dense = dense_like(layer)
    options |= {"key_mask": REAL}
    plain = layer(X, X, **options)
    output, maps = get_attention_weights(
        layer, X, X, layers=["flash"], **options
    )
    _, weights = dense(X, X, return_attention_scores=True, **options)
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (output, plain)))
    np.testing.assert_allclose(maps["flash"], weights, atol=1e-6)


def test_a_window_gives_the_weights_of_its_mask():
    layer = LongformerAttention(2, 4, window=2)
    dense = dense_like(layer)
    mask = longformer_mask(16, 2)
    _, weights = dense(X, attention_mask=mask, return_attention_scores=True)
    _, maps = get_attention_weights(layer, X, layers="*")
    [found] = maps.values()
    np.testing.assert_allclose(found, weights, atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        LinformerAttention(2, 4, max_length=16, rank=4),
        PerformerAttention(2, 4, num_features=8),
        ReformerAttention(2, 4, chunk_size=4, num_buckets=4),
        PageLocalAttention(2, 4, page_size=4),
    ],
)
def test_the_weights_times_the_values_are_the_output(layer):
    output, maps = get_attention_weights(layer, X, layers="*")
    [weights] = maps.values()
    value = ops.convert_to_numpy(layer.project_value(X))
    heads = np.einsum("bhts,bshv->bthv", weights, value).astype("float32")
    np.testing.assert_allclose(layer.join_heads(heads), output, atol=1e-5)


def test_nobody_who_did_not_ask_waits_for_it():
    model = keras.Sequential(
        [FlashAttention(2, 4, name="flash"), MultiHeadAttention(2, 4, name="a")]
    )
    model(X)
    with pytest.warns(UserWarning, match="Named by `layers=`"):
        _, maps = get_attention_weights(model, X)
    assert list(maps) == ["a"] and list(maps.skipped) == ["flash"]


def test_what_it_cannot_read_is_named():
    layer = FlashAttention(1, 2)
    long = np.zeros((1, 1025, 2), "float32")
    with pytest.raises(ValueError, match="1025 keys; up to 1024"):
        get_attention_weights(layer, long, layers="*")

    class Squared(FlashAttention):
        def attend(self, query, key, value, mask=None, **options):
            return super().attend(query, key, value**2, mask, **options)

    with pytest.raises(ValueError, match="not a weighted sum"):
        get_attention_weights(Squared(2, 4), X, layers="*")
    layer = LongformerAttention(2, 4, window=1)  # has values of two kinds
    with pytest.raises(ValueError, match="does not run with identity"):
        get_attention_weights(layer, X, layers="*", global_positions=[0])
