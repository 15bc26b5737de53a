"""Weights of keras-hub's backbones: tiny ones, of random weights."""

import functools

from d2l_attention.heatmaps import (
    check_attention_masks,
    get_attention_weights,
)
import keras
from keras import tree
import numpy as np
import pytest
from recorded_softmaxes import (
    IDS,
    MARKS,
    MASK,
    PAIRS,
    TOKENS,
    sides,
    softmaxes_of,
)

models = pytest.importorskip("keras_hub").models

pytestmark = MARKS

SEGMENTS = TOKENS | {"segment_ids": np.zeros_like(IDS)}
IMAGES = np.random.default_rng(0).random((2, 32, 32, 3), "float32")
FEATURES = np.random.default_rng(0).random((2, 8, 5), "float32")

WIDE = {"vocabulary_size": 11, "hidden_dim": 8, "intermediate_dim": 16}
HEADS = {"num_layers": 2, "num_heads": 2}
TEXT = WIDE | HEADS
GROUPS = WIDE | {
    "num_layers": 2,
    "num_query_heads": 4,
    "num_key_value_heads": 2,
}
SHORT = {"max_sequence_length": 8}
PATCHES = HEADS | {
    "image_shape": (32, 32, 3),
    "patch_size": 16,
    "hidden_dim": 8,
    "intermediate_dim": 16,
}


# Class: options, inputs, maps, heads; whether causal; whether padded.
ONE_SIDE = {
    "BertBackbone": (TEXT | SHORT, SEGMENTS, 2, 2, False),
    "AlbertBackbone": (
        TEXT | SHORT | {"embedding_dim": 8, "num_inner_repetitions": 1},
        SEGMENTS,
        2,
        2,
        False,
    ),
    "RobertaBackbone": (TEXT | SHORT, TOKENS, 2, 2, False),
    "XLMRobertaBackbone": (TEXT | SHORT, TOKENS, 2, 2, False),
    "DistilBertBackbone": (TEXT | SHORT, TOKENS, 2, 2, False),
    "DebertaV3Backbone": (
        TEXT | SHORT | {"bucket_size": 4},
        TOKENS,
        2,
        2,
        False,
    ),
    "ElectraBackbone": (
        HEADS
        | SHORT
        | {
            "vocab_size": 11,
            "hidden_dim": 8,
            "embedding_dim": 8,
            "intermediate_dim": 16,
        },
        SEGMENTS,
        2,
        2,
        False,
    ),
    "RoformerV2Backbone": (
        TEXT | {"head_size": 4},
        {"token_ids": IDS, "segment_ids": np.zeros_like(IDS)},
        2,
        2,
        False,
    ),
    "ESMBackbone": (TEXT, {"token_ids": IDS}, 2, 2, False),
    "GPT2Backbone": (TEXT | SHORT, TOKENS, 2, 2, True),
    "OPTBackbone": (TEXT | SHORT, TOKENS, 2, 2, True),
    "BloomBackbone": (TEXT, TOKENS, 2, 2, True),
    "GPTNeoXBackbone": (
        TEXT | SHORT | {"rotary_percentage": 0.5},
        TOKENS,
        2,
        2,
        True,
    ),
    "FalconBackbone": (
        WIDE | {"num_layers": 2, "num_attention_heads": 2},
        TOKENS,
        2,
        2,
        True,
    ),
    "LlamaBackbone": (GROUPS, TOKENS, 2, 4, True),
    "Llama3Backbone": (GROUPS, TOKENS, 2, 4, True),
    "MistralBackbone": (GROUPS, TOKENS, 2, 4, True),
    "MixtralBackbone": (GROUPS | {"num_experts": 2}, TOKENS, 2, 4, True),
    "Phi3Backbone": (GROUPS, TOKENS, 2, 4, True),
    "QwenBackbone": (GROUPS, TOKENS, 2, 4, True),
    "Qwen3Backbone": (GROUPS | {"head_dim": 4}, TOKENS, 2, 4, True),
    "GemmaBackbone": (GROUPS | {"head_dim": 4}, TOKENS, 2, 4, True),
    "Gemma3Backbone": (
        GROUPS | {"head_dim": 4, "image_size": 16},
        TOKENS,
        2,
        4,
        True,
    ),
    "GptOssBackbone": (
        GROUPS | {"num_experts": 2, "head_dim": 4},
        TOKENS,
        2,
        4,
        True,
    ),
    "QwenMoeBackbone": (
        GROUPS
        | {
            "moe_intermediate_dim": 8,
            "shared_expert_intermediate_dim": 8,
            "num_experts": 2,
            "top_k": 1,
        },
        TOKENS,
        2,
        4,
        True,
    ),
    "Qwen3MoeBackbone": (
        GROUPS
        | {
            "moe_intermediate_dim": 8,
            "num_experts": 2,
            "head_dim": 4,
            "top_k": 1,
        },
        TOKENS,
        2,
        4,
        True,
    ),
    "SmolLM3Backbone": (
        WIDE
        | {
            "num_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "rope_layer_enabled_list": [True, True],
            "layer_types": ["full_attention", "full_attention"],
            "mlp_bias": False,
            "layer_norm_epsilon": 1e-6,
            "max_position_embeddings": 8,
            "rope_theta": 10000.0,
            "partial_rotary_factor": 1.0,
        },
        TOKENS,
        2,
        4,
        True,
    ),
}
OTHERS = {
    "BartBackbone": (TEXT | SHORT, PAIRS, 6, 2),
    "T5Backbone": (TEXT, PAIRS, 6, 2),
    "WhisperBackbone": (
        TEXT
        | {
            "num_mels": 5,
            "max_encoder_sequence_length": 8,
            "max_decoder_sequence_length": 8,
        },
        {
            "encoder_features": FEATURES,
            "decoder_token_ids": IDS,
            "decoder_padding_mask": MASK,
        },
        6,
        2,
    ),
    "T5GemmaBackbone": (
        {"vocabulary_size": 11, "sliding_window": 8}
        | sides(
            hidden_dim=8,
            intermediate_dim=16,
            num_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=4,
            layer_types=["full_attention", "full_attention"],
        ),
        PAIRS,
        6,
        4,
    ),
    "ViTBackbone": (
        {
            "image_shape": (32, 32, 3),
            "patch_size": 16,
            "hidden_dim": 8,
            "mlp_dim": 16,
        }
        | HEADS,
        IMAGES,
        2,
        2,
    ),
    "DeiTBackbone": (
        PATCHES,
        IMAGES,
        2,
        2,
    ),
    "DINOV2Backbone": (
        PATCHES | {"position_embedding_shape": (32, 32, 3)},
        IMAGES,
        2,
        2,
    ),
    "DINOV3Backbone": (
        PATCHES,
        IMAGES,
        2,
        2,
    ),
    "XLNetBackbone": (
        TEXT,
        {
            "token_ids": IDS,
            "padding_mask": MASK,
            "segment_ids": np.zeros_like(IDS),
        },
        2,
        2,
    ),
    "SwinTransformerBackbone": (
        {
            "image_shape": (32, 32, 3),
            "embed_dim": 8,
            "depths": (1, 1),
            "num_heads": (2, 2),
            "window_size": 4,
        },
        IMAGES,
        2,
        2,
    ),
    "MiTBackbone": (
        {
            "layerwise_depths": [1, 1],
            "num_layers": 2,
            "layerwise_num_heads": [2, 2],
            "layerwise_sr_ratios": [2, 1],
            "max_drop_path_rate": 0.0,
            "layerwise_patch_sizes": [7, 3],
            "layerwise_strides": [4, 2],
            "image_shape": (32, 32, 3),
            "hidden_dims": [8, 8],
        },
        IMAGES,
        2,
        2,
    ),
}


def check(name, options, inputs, num_maps, num_heads):
    keras.utils.set_random_seed(0)
    model = getattr(models, name)(**options)
    expected, softmaxes = softmaxes_of(lambda: model(inputs))
    outputs, maps = get_attention_weights(model, inputs)
    for found, wanted in zip(
        tree.flatten(outputs), tree.flatten(expected), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    assert len(maps) == num_maps and not maps.skipped
    for weights in maps.values():
        assert weights.ndim == 4 and weights.shape[1] == num_heads
        rows = weights.sum(-1)
        if name == "GptOssBackbone":  # a sink takes the rest
            assert (rows < 1).all() and (rows > 0.1).all()
        else:
            np.testing.assert_allclose(rows, 1, atol=1e-5)
    # Where a layer had a softmax at all, its map is what that gave.
    if len(softmaxes) == num_maps:
        for weights, softmax in zip(maps.values(), softmaxes, strict=True):
            if name == "GptOssBackbone":
                softmax = softmax.reshape(-1, 5)[:, :-1].reshape(-1)
            np.testing.assert_array_equal(
                weights.reshape(-1), softmax.reshape(-1)
            )
    return model, maps


@pytest.mark.parametrize("name", ONE_SIDE)
def test_a_text_model_shows_its_weights(name):
    *what, causal = ONE_SIDE[name]
    _, maps = check(name, *what)
    mask = MASK if "padding_mask" in what[1] else None
    if causal or mask is not None:
        assert check_attention_masks(maps, mask, use_causal_mask=causal) == []


def test_the_oracle_of_the_softmaxes_is_asked():
    """The comparison within `check` is made for most of the text models."""
    for name in ("LlamaBackbone", "GemmaBackbone", "BloomBackbone"):
        options, inputs, *_ = ONE_SIDE[name]
        model = getattr(models, name)(**options)
        _, found = softmaxes_of(functools.partial(model, inputs))
        assert len(found) == 2


@pytest.mark.parametrize("name", OTHERS)
def test_pairs_sounds_and_images_show_their_weights(name):
    check(name, *OTHERS[name])


def test_a_model_of_fourier_transforms_says_that_it_has_no_attention():
    model = models.FNetBackbone(**WIDE, num_layers=2, **SHORT)
    inputs = {"token_ids": IDS, "segment_ids": np.zeros_like(IDS)}
    with pytest.raises(ValueError, match="no attention whose weights"):
        get_attention_weights(model, inputs)


WRITERS = {
    "GPT2": TEXT | SHORT,
    "Llama": GROUPS,
    "Gemma": GROUPS | {"head_dim": 4, "num_key_value_heads": 1},
    "GptOss": ONE_SIDE["GptOssBackbone"][0],  # with a sink, cut after it
}
PROMPTS = {
    "token_ids": np.array([[3, 4, 5, 0, 0, 0, 0, 0], [5, 6, 7, 8, 0, 0, 0, 0]]),
    "padding_mask": np.arange(8) < np.array([[3], [4]]),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_model_looked_at_while_it_wrote_is_one_map(name):
    backbone = getattr(models, f"{name}Backbone")(**WRITERS[name])
    model = getattr(models, f"{name}CausalLM")(backbone, preprocessor=None)
    model.compile(sampler="greedy", run_eagerly=True)
    write = functools.partial(model.generate, stop_token_ids=None)
    output, maps = get_attention_weights(model, PROMPTS, run=write)
    ids = output["token_ids"]
    whole = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    _, expected = get_attention_weights(model, whole)
    read = np.tri(7, dtype=bool)  # the eighth token was written, not read
    assert len(maps) == len(expected) == 2 and not maps.skipped
    for joined, weights in zip(maps.values(), expected.values(), strict=True):
        weights = np.where(read, weights[..., :7, :7], np.nan)
        np.testing.assert_allclose(joined, weights, atol=1e-6)


def test_generating_in_a_graph_says_how_to_do_without():
    backbone = models.GPT2Backbone(**WRITERS["GPT2"])
    model = models.GPT2CausalLM(backbone, preprocessor=None)
    model.compile(sampler="greedy")
    write = functools.partial(model.generate, stop_token_ids=None)
    with pytest.raises(ValueError, match="run_eagerly=True"):
        get_attention_weights(model, PROMPTS, run=write)
