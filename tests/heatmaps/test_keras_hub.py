"""Weights of keras-hub's backbones: tiny ones, of random weights."""

from d2l_attention.heatmaps import (
    adapters,
    check_attention_masks,
    get_attention_weights,
    register_attention_adapter,
)
import keras
from keras import tree
import numpy as np
import pytest
import tensorflow as tf

models = pytest.importorskip("keras_hub").models

pytestmark = [
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="uses tf.function"
    ),
    # other people's layers
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

IDS = np.array([[1, 5, 3, 0], [2, 4, 6, 7]], "int32")
MASK = IDS > 0
TOKENS = {"token_ids": IDS, "padding_mask": MASK}
PAIRS = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in TOKENS.items()
}
SIZES = {"vocabulary_size": 11, "hidden_dim": 8, "intermediate_dim": 16}
HEADS = {"num_layers": 2, "num_heads": 2}
GROUPS = {"num_layers": 2, "num_query_heads": 4, "num_key_value_heads": 2}
SHORT = {"max_sequence_length": 8}


def bert():
    model = models.BertBackbone(**SIZES, **HEADS, **SHORT)
    return model, TOKENS | {"segment_ids": np.zeros_like(IDS)}


def albert():
    model = models.AlbertBackbone(
        **SIZES, **HEADS, **SHORT, embedding_dim=8, num_inner_repetitions=1
    )
    return model, TOKENS | {"segment_ids": np.zeros_like(IDS)}


def gpt2():
    return models.GPT2Backbone(**SIZES, **HEADS, **SHORT), TOKENS


def bart():
    return models.BartBackbone(**SIZES, **HEADS, **SHORT), PAIRS


def t5():
    return models.T5Backbone(**SIZES, **HEADS), PAIRS


def llama():
    return models.LlamaBackbone(**SIZES, **GROUPS), TOKENS


def gemma():
    return models.GemmaBackbone(**SIZES, **GROUPS, head_dim=4), TOKENS


def vit():
    model = models.ViTBackbone((16, 16, 3), 8, 2, 2, 8, 16)
    images = np.random.default_rng(0).random((2, 16, 16, 3), "float32")
    return model, images


def t5_adapter(layer, record):
    """T5's weights go through dropout; that layer's input is what we want."""
    dropout = layer.dropout_layer
    original = dropout.call

    def call(weights, training=False):
        record(weights)
        return original(weights, training=training)

    return [(dropout, "call", call)]


# Maps, heads, and whether each is causal, padded.
KINDS = {
    bert: (2, 2, False, True),
    albert: (2, 2, False, True),
    gpt2: (2, 2, True, True),
    bart: (6, 2, False, True),
    t5: (6, 2, False, True),
    llama: (2, 4, True, True),
    gemma: (2, 4, True, True),
    vit: (2, 2, False, False),
}


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_backbone_shows_its_weights_and_answers_as_ever(
    kind, mode, monkeypatch
):
    num_maps, num_heads, causal, padded = KINDS[kind]
    keras.utils.set_random_seed(0)
    model, inputs = kind()
    if kind is t5:
        monkeypatch.setattr(adapters, "_ADAPTERS", list(adapters._ADAPTERS))
        (layer_class,) = {
            type(layer)
            for layer in model._flatten_layers()
            if type(layer).__name__ == "T5MultiHeadAttention"
        }
        register_attention_adapter(layer_class, t5_adapter)

    def plain():
        return model(inputs)

    def asking():
        outputs, maps = get_attention_weights(model, inputs)
        return outputs, dict(maps)

    if mode != "eager":
        plain, asking = (
            tf.function(f, jit_compile=mode == "xla") for f in (plain, asking)
        )
    outputs, maps = asking()
    for found, expected in zip(
        tree.flatten(outputs), tree.flatten(plain()), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert len(maps) == num_maps
    for weights in maps.values():
        assert weights.shape[:2] == (2, num_heads)
        np.testing.assert_allclose(np.sum(weights, -1), 1, atol=1e-5)
    mask = MASK if padded else None
    assert check_attention_masks(maps, mask, causal=causal) == []


def test_t5_is_not_known_before_it_is_taught():
    model, inputs = t5()
    with pytest.raises(ValueError, match="register_attention_adapter"):
        get_attention_weights(model, inputs)


def test_a_fused_operation_says_that_it_has_no_weights(monkeypatch):
    model, inputs = llama()
    for layer in model._flatten_layers():
        if type(layer).__name__ == "LlamaAttention":
            monkeypatch.setattr(
                layer, "_compute_attention", lambda query, *rest: query
            )
    with pytest.raises(ValueError, match="self_attention.*fused"):
        get_attention_weights(model, inputs)
