"""Parameters that go into a backbone of keras-hub, and come back."""

from contract import draw, to_numpy
from d2l_attention import ModernLanguageModel, rotary_frequencies
from d2l_attention.models.copying import copy_language_model
import numpy as np
import pytest

models = pytest.importorskip("keras_hub").models
pytestmark = pytest.mark.ci

# keras-hub 0.32 adds 1e-5 in the QK-norm, whatever its argument is.
OURS = {
    "vocab_size": 13,
    "dim": 10,
    "num_layers": 2,
    "num_heads": 6,
    "ffn_dim": 17,
    "num_kv_heads": 3,
    "key_dim": 4,
    "frequencies": rotary_frequencies(4, 100),
    "epsilon": 1e-5,
}
THEIRS = {
    "vocabulary_size": 13,
    "hidden_dim": 10,
    "num_layers": 2,
    "num_query_heads": 6,
    "intermediate_dim": 17,
    "num_key_value_heads": 3,
    "head_dim": 4,
    "rope_max_wavelength": 100,
    "layer_norm_epsilon": 1e-5,
}
IDS = np.array([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 0, 0]])
TOKENS = {"token_ids": IDS, "padding_mask": IDS != 0}


def randomized(model, seed):
    """With no parameter as it began: gains begin at 1."""
    if not model.built:
        model.build((None, None))
    for i, weight in enumerate(model.trainable_weights):
        weight.assign(1 + 0.5 * draw(*weight.shape, seed=seed + i))
    return model


def logits(backbone):
    return backbone.token_embedding(backbone(TOKENS), reverse=True)


@pytest.mark.parametrize(("tied", "slower"), [(True, 1.0), (False, 4.0)])
def test_qwen3_computes_what_our_model_does(tied, slower):
    options = {**OURS, "frequencies": OURS["frequencies"] / slower}
    ours = ModernLanguageModel(**options, tie_embeddings=tied)
    theirs = models.Qwen3Backbone(
        **THEIRS, tie_word_embeddings=tied, rope_scaling_factor=slower
    )
    copy_language_model(theirs, randomized(ours, 0))
    real = IDS != 0
    np.testing.assert_allclose(
        to_numpy(logits(theirs))[real], to_numpy(ours(IDS))[real], 1e-4, 1e-4
    )
    again = ModernLanguageModel(**options, tie_embeddings=tied)
    copy_language_model(again, randomized(theirs, 100))
    np.testing.assert_allclose(
        to_numpy(again(IDS))[real], to_numpy(logits(theirs))[real], 1e-4, 1e-4
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"ffn_dim": 19},
        {"num_kv_heads": 2},
        {"frequencies": [1.0]},
        {"epsilon": 1e-6},
        {"window": 5},
        {"use_sinks": True},
        {"use_gate": True},
        {"soft_cap": 3.0},
        {"tie_embeddings": False},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_model_that_computes_something_else_is_refused(changed):
    options = {**OURS, "tie_embeddings": True, **changed}
    ours = randomized(ModernLanguageModel(**options), 0)
    theirs = models.Qwen3Backbone(**THEIRS)
    before = theirs.get_weights()
    with pytest.raises(ValueError, match=next(iter(changed))):
        copy_language_model(theirs, ours)
    for old, new in zip(before, theirs.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_window_shorter_than_our_texts_is_refused():
    theirs = models.Qwen3Backbone(**THEIRS, sliding_window_size=64)
    short = ModernLanguageModel(**OURS, tie_embeddings=True, max_length=64)
    copy_language_model(short, theirs)
    longer = ModernLanguageModel(**OURS, tie_embeddings=True, max_length=65)
    with pytest.raises(ValueError, match="window None, wanted 64"):
        copy_language_model(longer, theirs)
