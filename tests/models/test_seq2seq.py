"""What every sequence-to-sequence model must do; each model is a parameter."""

from collections import Counter

from contract import compile_for_training, note_dropout, to_numpy
from d2l_attention import (
    BahdanauSeq2Seq,
    FixedContextSeq2Seq,
    RNNSearch,
    Transformer,
)
import keras
from keras import ops
import numpy as np
import pytest

MODELS = [FixedContextSeq2Seq, BahdanauSeq2Seq, RNNSearch, Transformer]
SOURCE = np.array([[5, 3, 9, 2, 0, 0], [7, 1, 4, 8, 6, 2]], "int32")
TARGET = np.array([[2, 9, 4, 7, 3], [2, 5, 8, 0, 0]], "int32")
INPUTS = {"source": SOURCE, "target": TARGET}


def make(model, **options):
    keras.utils.set_random_seed(0)
    num_layers = 1 if model is RNNSearch else 2
    options = {"dim": 8, "num_layers": num_layers, **options}
    model = model(source_vocab_size=11, target_vocab_size=13, **options)
    model.build({"source": (None, None), "target": (None, None)})
    return model


@pytest.mark.parametrize("model", MODELS)
def test_dropout_of_everything_is_refused(model):
    with pytest.raises(ValueError, match="dropout=1.0"):
        make(model, dropout=1.0)


S, T = (2, 6, 8), (2, 5, 8)  # states of the source and of the target
MAPS = {(2, 4, 6, 6): 2, (2, 4, 5, 5): 2, (2, 4, 5, 6): 2}  # of two blocks
DROPPED = {  # embedded tokens and what is read out; a Transformer's sublayers
    FixedContextSeq2Seq: {S: 1, T: 2},
    BahdanauSeq2Seq: {S: 1, T: 2},
    RNNSearch: {S: 1, T: 1, (2, 5, 4): 1},
    Transformer: {S: 1 + 2 * 2, T: 1 + 2 * 3, **MAPS},
}


@pytest.mark.parametrize("model", MODELS)
def test_dropout_acts_in_every_place_and_while_training_only(
    model, monkeypatch
):
    shapes = note_dropout(monkeypatch)
    model = make(model, dropout=0.1)
    model(INPUTS)
    assert shapes == []
    model(INPUTS, training=True)
    assert Counter(shapes) == DROPPED[type(model)]


@pytest.mark.every_backend
@pytest.mark.parametrize("model", MODELS)
def test_step_by_step_equals_teacher_forcing(model):
    model = make(model)
    logits = to_numpy(model(INPUTS))
    state = model.start(SOURCE)
    for t in range(TARGET.shape[1]):
        stepped, state = model.step(TARGET[:, t], state)
        np.testing.assert_allclose(to_numpy(stepped), logits[:, t], atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_the_padding_embedding_moves_no_real_token_by_a_bit(model):
    model = make(model)
    before = to_numpy(model(INPUTS))
    for embedding in (model.source_embedding, model.target_embedding):
        table = to_numpy(embedding.embeddings).copy()
        table[0] = 1e3
        embedding.embeddings.assign(table)
    after = to_numpy(model(INPUTS))
    real = TARGET != 0
    np.testing.assert_array_equal(before[real], after[real])
    assert not np.array_equal(before, after)  # the test does look


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("padding", [(0, 3), (3, 0)])
def test_more_padding_changes_nothing(model, padding):
    """Wherever it stands."""
    model = make(model)
    wider = np.pad(SOURCE, ((0, 0), padding))
    expected = to_numpy(model(INPUTS))
    found = to_numpy(model({"source": wider, "target": TARGET}))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    first, _ = model.step(TARGET[:, 0], model.start(wider))
    np.testing.assert_allclose(to_numpy(first), expected[:, 0], atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_future_tokens_do_not_change_the_past(model):
    model = make(model)
    changed = TARGET.copy()
    changed[:, 3:] = 12
    np.testing.assert_array_equal(
        to_numpy(model(INPUTS))[:, :3],
        to_numpy(model({"source": SOURCE, "target": changed}))[:, :3],
    )


@pytest.mark.parametrize("model", MODELS)
def test_the_source_matters(model):
    model = make(model)
    other = SOURCE.copy()
    other[0, 0] = 10
    difference = np.abs(
        to_numpy(model(INPUTS))
        - to_numpy(model({"source": other, "target": TARGET}))
    )
    assert (difference[0].max(-1) > 0).all() and difference[1].max() == 0


@pytest.mark.parametrize("model", MODELS)
def test_a_source_of_padding_alone_is_defined(model):
    model = make(model)
    logits = model({"source": np.zeros((2, 6), "int32"), "target": TARGET})
    assert np.isfinite(to_numpy(logits)).all()


@pytest.mark.parametrize("model", MODELS)
def test_asking_for_weights_never_changes_the_logits(model):
    model = make(model)
    logits, _ = model(INPUTS, return_attention_scores=True)
    np.testing.assert_array_equal(to_numpy(logits), to_numpy(model(INPUTS)))


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        (FixedContextSeq2Seq, "float32"),
        (RNNSearch, "float32"),
        *(
            pytest.param(x, "mixed_float16", marks=pytest.mark.every_backend)
            for x in (BahdanauSeq2Seq, Transformer)
        ),
    ],
)
def test_it_trains_compiled_and_every_weight_moves(model, policy):
    """With one layer: most of the time is the compiler's."""
    model = make(model, dtype=policy, dropout=0.1, num_layers=1)
    before = [to_numpy(w) for w in model.trainable_weights]
    compile_for_training(
        model,
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        xla=isinstance(model, BahdanauSeq2Seq),
    )
    history = model.fit(INPUTS, TARGET, epochs=20, verbose=0).history["loss"]
    assert np.isfinite(history).all() and history[-1] < 0.7 * history[0]
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert not np.array_equal(to_numpy(weight), old), weight.path


@pytest.mark.parametrize("model", MODELS)
def test_saved_and_loaded_it_is_the_same(model, tmp_path):
    model = make(model, dropout=0.25)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    np.testing.assert_array_equal(
        to_numpy(model(INPUTS)), to_numpy(again(INPUTS))
    )


@pytest.mark.parametrize("model", MODELS)
def test_unknown_batch_and_lengths_build(model):
    model = make(model)
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name) for name in INPUTS
    }
    logits = model(inputs)
    assert logits.shape == (None, None, 13)
    assert logits.dtype == "float32"
    functional = keras.Model(inputs, logits)
    np.testing.assert_allclose(
        functional.predict(INPUTS, verbose=0),
        to_numpy(model(INPUTS)),
        atol=1e-5,
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["dim", "num_layers"])
def test_sizes_must_be_positive(model, name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        make(model, **{name: 0})


def test_without_attention_there_are_no_weights():
    _, maps = make(FixedContextSeq2Seq)(INPUTS, return_attention_scores=True)
    assert maps == {}


def test_the_fixed_context_is_the_last_encoder_state():
    model = make(FixedContextSeq2Seq)
    memory, state = model.encode(ops.convert_to_tensor(SOURCE))
    np.testing.assert_array_equal(
        to_numpy(memory), to_numpy(state["hidden"][-1])
    )
    # … that of the last token, not of the padding behind it.
    alone, _ = model.encode(ops.convert_to_tensor(SOURCE[:1, :4]))
    np.testing.assert_allclose(to_numpy(memory)[:1], to_numpy(alone), atol=1e-6)
