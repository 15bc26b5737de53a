"""What the Transformer must do beyond what every model must."""

from contract import draw, to_numpy
from d2l_attention import (
    BeamDecoder,
    GreedyDecoder,
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)
import keras
import numpy as np
import pytest

SOURCE = np.array([[5, 3, 9, 2, 0, 0], [7, 1, 4, 8, 6, 2]], "int32")
TARGET = np.array([[2, 9, 4, 7, 3], [2, 5, 8, 6, 1]], "int32")
INPUTS = {"source": SOURCE, "target": TARGET}


def make(**options):
    keras.utils.set_random_seed(0)
    options = {"dim": 12, "num_layers": 2, "num_heads": 3, **options}
    return Transformer(source_vocab_size=11, target_vocab_size=13, **options)


def test_every_layer_and_head_has_weights_by_name():
    _, maps = make()(INPUTS, return_attention_scores=True)
    assert {name: tuple(w.shape) for name, w in maps.items()} == {
        f"{stack}/block_{i}/{attention}": (2, 3, t, s)
        for i in range(2)
        for stack, attention, t, s in (
            ("encoder", "self_attention", 6, 6),
            ("decoder", "self_attention", 5, 5),
            ("decoder", "cross_attention", 5, 6),
        )
    }
    for name, weights in maps.items():
        weights = to_numpy(weights)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
        if name.startswith("decoder") and name.endswith("self_attention"):
            assert (np.triu(weights, k=1) == 0).all(), "sees the future"
        else:
            assert (weights[0, ..., 4:] == 0).all(), "attends to padding"


def test_a_position_forgotten_while_decoding_shows():
    """The bug of other tutorials: every step at position 0."""
    model = make()
    logits = to_numpy(model(INPUTS))
    state = model.start(SOURCE)
    _, state = model.step(TARGET[:, 0], state)
    right, _ = model.step(TARGET[:, 1], state)
    np.testing.assert_allclose(to_numpy(right), logits[:, 1], atol=1e-5)
    model.decoder.positions.table[:] = model.decoder.positions.table[0]
    wrong, _ = model.step(TARGET[:, 1], state)
    assert np.abs(to_numpy(wrong) - logits[:, 1]).max() > 1e-2


def test_embedded_tokens_are_as_large_as_their_positions():
    """Times √D: else D = 64 numbers of 1/8 drown in sines of 0.7."""
    model = make(dim=64, num_heads=4)
    model(INPUTS)
    embedded = model.embed(SOURCE, model.source_embedding)
    assert 0.8 < np.std(to_numpy(embedded)) < 1.2


def test_the_stacks_serve_alone():
    """An encoder over vectors, for whoever needs no translator."""
    x, encoded = draw(2, 7, 12), draw(2, 5, 12)
    options = {"dim": 12, "num_layers": 2, "num_heads": 3, "ffn_dim": 8}
    encoder, decoder = (
        stack(**options) for stack in (TransformerEncoder, TransformerDecoder)
    )
    mask = np.arange(7) < np.array([[3], [7]])
    output, maps = encoder(x, key_mask=mask, return_attention_scores=True)
    assert output.shape == (2, 7, 12)
    assert list(maps) == ["block_0/self_attention", "block_1/self_attention"]
    assert (to_numpy(maps["block_1/self_attention"])[0, ..., 3:] == 0).all()
    np.testing.assert_array_equal(
        to_numpy(output), to_numpy(encoder(x, key_mask=mask))
    )
    assert decoder(x, key=encoded).shape == (2, 7, 12)
    for stack in (encoder, decoder):
        config = stack.get_config()
        assert type(stack).from_config(config).get_config() == config


def test_stacks_do_without_positions_and_normalize_first():
    x, encoded = draw(2, 7, 12), draw(2, 5, 12)
    options = {"dim": 12, "num_layers": 2, "num_heads": 3, "ffn_dim": 8}
    for stack, more in (
        (TransformerEncoder, {}),
        (TransformerDecoder, {"key": encoded}),
    ):
        bare = stack(
            **options, max_length=None, normalize_first=True, epsilon=0.1
        )
        expected = x
        output = bare(x, **more)
        for block in bare.blocks:
            assert block.normalize_first
            expected = block(expected, **more)
        expected = to_numpy(expected)
        centred = expected - expected.mean(-1, keepdims=True)
        expected = centred / np.sqrt(expected.var(-1, keepdims=True) + 0.1)
        np.testing.assert_allclose(to_numpy(output), expected, atol=1e-5)
        config = bare.get_config()
        assert stack.from_config(config).get_config() == config
        assert config["max_length"] is None
        placed = stack(**options, max_length=9)
        assert placed.norm is None
        placed(x, **more)
        assert len(placed.weights) == len(bare.weights) - 2
    with pytest.raises(ValueError, match="max_length=None"):
        bare.start(encoded)


@pytest.mark.every_backend
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("max_length", [None, 9])
def test_a_stack_decodes_step_by_step_as_all_at_once(
    normalize_first, max_length
):
    x, encoded = draw(2, 7, 12), draw(2, 5, 12)
    mask = np.arange(5) < np.array([[3], [5]])
    decoder = TransformerDecoder(
        12, 2, 3, 8, normalize_first=normalize_first, max_length=max_length
    )
    expected = to_numpy(decoder(x, key=encoded, key_mask=mask))
    state = decoder.start(encoded, mask, max_length=9)
    found = []
    for t in range(7):
        output, state = decoder.step(x[:, t : t + 1], state)
        found.append(to_numpy(output))
    np.testing.assert_allclose(
        np.concatenate(found, axis=1), expected, atol=1e-5
    )


def test_a_model_that_normalizes_first(tmp_path):
    model = make(normalize_first=True, dropout=0.1)
    assert model.encoder.norm is not None and model.decoder.norm is not None
    assert all(b.normalize_first for b in model.encoder.blocks)
    logits = to_numpy(model(INPUTS))
    assert np.abs(logits - to_numpy(make()(INPUTS))).max() > 0.01
    state, found = model.start(SOURCE), []
    for token in TARGET.T:
        one, state = model.step(token, state)
        found.append(to_numpy(one))
    np.testing.assert_allclose(np.stack(found, 1), logits, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(loaded(INPUTS)), logits)


@pytest.mark.parametrize("stack", [TransformerEncoder, TransformerDecoder])
def test_positions_of_a_stack_count_from_the_first_token(stack):
    stack, x = stack(4, 2, 2, 8, max_length=9), draw(2, 5, 4)
    inputs = {"key": draw(2, 3, 4)} if hasattr(stack, "step") else {}
    alone = to_numpy(stack(x, **inputs))
    wider = np.concatenate([draw(2, 3, 4), x], 1)
    mask = np.arange(8)[None].repeat(2, 0) >= 3
    found = to_numpy(stack(wider, query_mask=mask, **inputs))
    np.testing.assert_allclose(found[:, 3:], alone, atol=1e-5)


def test_word_order_matters():
    model = make()
    swapped = SOURCE[:, [1, 0, 2, 3, 4, 5]]
    difference = to_numpy(model(INPUTS)) - to_numpy(
        model({"source": swapped, "target": TARGET})
    )
    assert np.abs(difference).max() > 1e-3


def test_the_memory_is_projected_once_and_the_cache_is_reserved():
    model = make(max_length=7)
    model(INPUTS)
    state = model.start(SOURCE)
    shapes = keras.tree.map_structure(lambda x: tuple(x.shape), state)
    of_cache = {"key": (2, 7, 3, 4), "value": (2, 7, 3, 4)}
    of_memory = {"key": (2, 6, 3, 4), "value": (2, 6, 3, 4)}
    assert shapes == {
        "position": (2,),
        "caches": [of_cache] * 2,
        "memory": [of_memory] * 2,
        "mask": (2, 6),
    }


def test_saved_and_loaded_it_translates_alike(tmp_path):
    model = make(max_length=9)
    model(INPUTS)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    first, second = (
        GreedyDecoder(m, 1, 2, max_length=9).predict(SOURCE, verbose=0)
        for m in (model, again)
    )
    assert first.any()
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("decoder", [GreedyDecoder, BeamDecoder])
def test_more_tokens_than_positions_are_refused(decoder):
    with pytest.raises(ValueError, match="10 tokens.*9 positions"):
        decoder(make(max_length=9), 1, 2, max_length=10)


def test_a_source_longer_than_the_positions_is_refused():
    model = make(max_length=5)
    with pytest.raises(ValueError, match="5 positions.*positions 0 … 5"):
        model(INPUTS)
    with pytest.raises(ValueError, match="5 positions.*positions 0 … 5"):
        model.start(SOURCE)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX clamps or gives NaN"
)
def test_ids_outside_the_vocabulary_are_refused():
    wrong = SOURCE.copy()
    wrong[0, 0] = 99
    with pytest.raises(Exception, match="99 is not in"):
        make()({"source": wrong, "target": TARGET})


def test_heads_must_divide_the_features():
    with pytest.raises(ValueError, match="num_heads=5, dim=12"):
        make(num_heads=5)
