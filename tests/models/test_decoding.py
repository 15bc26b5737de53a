import itertools

from contract import CAN_COMPILE, draw, to_numpy
from d2l_attention import (
    BahdanauSeq2Seq,
    BeamDecoder,
    GreedyDecoder,
    LanguageModel,
    Transformer,
)
import keras
from keras import ops
import numpy as np
import pytest
from test_seq2seq import MODELS, SOURCE, make

START, END = 2, 3


def score(model, source, tokens):
    """log p of a sentence, by teacher forcing; padding is not a choice."""
    target = np.array([[START, *tokens[:-1]]], "int32")
    logits = to_numpy(model({"source": source, "target": target})).copy()
    logits[..., 0] = -np.inf
    log_p = to_numpy(ops.log_softmax(logits, axis=-1))[0]
    return sum(log_p[t, token] for t, token in enumerate(tokens))


def sharpen(model, factor=8.0):
    """Untrained logits are flat; make the choices differ clearly."""
    kernel, bias = model.output_layer.get_weights()
    model.output_layer.set_weights([kernel * factor, bias])
    return model


@pytest.mark.parametrize("model", MODELS)
def test_greedy_takes_the_likeliest_token_each_time(model):
    model = sharpen(make(model))
    ids = to_numpy(GreedyDecoder(model, START, END, 9)(SOURCE))
    assert ids.shape == (2, 9) and ids.dtype == np.int32
    for row, source in zip(ids, SOURCE, strict=True):
        state, token, wanted = model.start(source[None]), START, []
        while len(wanted) < 9 and token != END:
            logits, state = model.step(np.array([token]), state)
            token = int(to_numpy(logits)[0, 1:].argmax()) + 1
            wanted.append(token)
        np.testing.assert_array_equal(row, wanted + [0] * (9 - len(wanted)))


@pytest.mark.parametrize("model", MODELS)
def test_a_model_of_half_precision_decodes_as_it_was_taught(model):
    model = sharpen(make(model, dtype="mixed_bfloat16"))
    ids = to_numpy(GreedyDecoder(model, START, END, 9)(SOURCE))
    target = np.insert(ids[:, :-1], 0, START, axis=1)
    logits = to_numpy(model({"source": SOURCE, "target": target}))
    best = logits[..., 1:].max(-1)
    chosen = np.take_along_axis(logits, ids[..., None], -1)[..., 0]
    np.testing.assert_allclose(chosen[ids != 0], best[ids != 0], atol=0.5)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("model", "decoder"),
    [
        (BahdanauSeq2Seq, GreedyDecoder),
        (Transformer, GreedyDecoder),
        (Transformer, BeamDecoder),
    ],
)
def test_predict_is_batched_and_compiled_and_says_the_same(model, decoder):
    xla = model is BahdanauSeq2Seq or decoder is BeamDecoder
    model = sharpen(make(model, num_layers=1))
    decoder = decoder(model, START, END, 9)
    decoder.compile(jit_compile=xla and CAN_COMPILE)
    sources = np.concatenate([SOURCE, SOURCE[::-1], SOURCE])
    eager = to_numpy(decoder(sources))
    np.testing.assert_array_equal(
        decoder.predict(sources, batch_size=4, verbose=0), eager
    )
    # A sentence's translation does not depend on its neighbours.
    for row, source in zip(eager, sources, strict=True):
        np.testing.assert_array_equal(to_numpy(decoder(source[None]))[0], row)


@pytest.mark.parametrize("model", MODELS)
def test_a_beam_of_one_is_greedy(model):
    model = sharpen(make(model))
    np.testing.assert_array_equal(
        to_numpy(BeamDecoder(model, START, END, 9, width=1)(SOURCE)),
        to_numpy(GreedyDecoder(model, START, END, 9)(SOURCE)),
    )


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_as_wide_as_the_space_finds_the_best_sentence(length_penalty):
    keras.utils.set_random_seed(1)
    model = MODELS[1](11, 5, 7, 1)
    model.build({"source": (None, None), "target": (None, None)})
    sharpen(model, 20.0)
    length = 3
    sentences = []
    for n in range(1, length + 1):
        for tokens in itertools.product(range(1, 5), repeat=n):
            ends = END in tokens
            if ends and tokens.index(END) == n - 1 or not ends and n == length:
                sentences.append(tokens)
    decoder = BeamDecoder(
        model, START, END, length, width=64, length_penalty=length_penalty
    )
    for source, found in zip(SOURCE, to_numpy(decoder(SOURCE)), strict=True):
        best = max(
            sentences,
            key=lambda tokens: (
                score(model, source[None], tokens)
                / len(tokens) ** length_penalty
            ),
        )
        np.testing.assert_array_equal(
            found, list(best) + [0] * (length - len(best))
        )


def test_a_wider_beam_does_not_find_a_less_likely_sentence():
    model = sharpen(make(MODELS[1]), 3.0)
    likelihood = []
    for width in (1, 4, 16):
        decoder = BeamDecoder(
            model, START, END, 7, width=width, length_penalty=0.0
        )
        rows = to_numpy(decoder(SOURCE))
        likelihood.append(
            [
                score(model, source[None], [t for t in row if t])
                for source, row in zip(SOURCE, rows, strict=True)
            ]
        )
    assert (np.diff(likelihood, axis=0) > -1e-5).all()


def test_what_follows_the_end_is_padding():
    model = make(MODELS[1])
    kernel, bias = model.output_layer.get_weights()
    bias[END] = 100.0
    model.output_layer.set_weights([kernel, bias])
    for decoder in (GreedyDecoder, BeamDecoder):
        ids = to_numpy(decoder(model, START, END, 5)(SOURCE))
        np.testing.assert_array_equal(ids, [[END, 0, 0, 0, 0]] * 2)


def test_padding_is_never_chosen():
    model = make(MODELS[1])
    kernel, bias = model.output_layer.get_weights()
    bias[0], bias[END] = 100.0, -100.0
    model.output_layer.set_weights([kernel, bias])
    for decoder in (GreedyDecoder, BeamDecoder):
        assert (to_numpy(decoder(model, START, END, 5)(SOURCE)) != 0).all()


@pytest.mark.parametrize("decoder", [GreedyDecoder, BeamDecoder])
def test_saved_and_loaded_it_translates_the_same(decoder, tmp_path):
    decoder = decoder(sharpen(make(MODELS[1])), START, END, 9)
    expected = to_numpy(decoder(SOURCE))
    decoder.save(tmp_path / "decoder.keras")
    again = keras.saving.load_model(tmp_path / "decoder.keras")
    np.testing.assert_array_equal(again.predict(SOURCE, verbose=0), expected)


def test_a_model_without_the_protocol_is_refused():
    with pytest.raises(ValueError, match="`start` and `step`.*Dense"):
        GreedyDecoder(keras.layers.Dense(3), START, END, 9)


@pytest.mark.parametrize(
    "bad", [{"max_length": 0}, {"end_id": 0}, {"width": 0}]
)
def test_numbers_that_make_no_sense_are_named(bad):
    (name, value), *_ = bad.items()
    options = {"start_id": START, "end_id": END, "max_length": 9, **bad}
    with pytest.raises(ValueError, match=f"{name}={value}"):
        BeamDecoder(make(MODELS[1]), **options)


@pytest.mark.parametrize(
    ("kind", "jit_compile"), [(Transformer, False), (LanguageModel, True)]
)
def test_long_caches_are_read_as_far_as_they_are_written(kind, jit_compile):
    """Each of 140 tokens is the likeliest of a pass without a cache."""
    vocabularies = (11,) * (2 if kind is Transformer else 1)
    model = kind(*vocabularies, 8, 1, num_heads=2, max_length=150)
    source = np.array([[5, 3, 9, 2], [7, 1, 4, 8]], "int32")
    model.build({"source": (2, 4), "target": (2, 140)})
    # The same on every backend, of a seed that does not write one word only.
    matrices = [weight for weight in model.weights if len(weight.shape) == 2]
    for i, matrix in enumerate(matrices, 710):
        matrix.assign(draw(*matrix.shape, seed=i))
    decoder = GreedyDecoder(model, START, 10**6, 140)
    decoder.compile(jit_compile=jit_compile)
    ids = decoder.predict(source, verbose=0)
    target = np.insert(ids[:, :-1], 0, START, axis=1)
    if kind is Transformer:
        logits = model({"source": source, "target": target})
    else:
        logits = model(np.concatenate([source, target], axis=1))[:, 4:]
    logits = to_numpy(logits)[..., 1:]
    assert len(np.unique(ids)) > 3  # more than one word again and again
    chosen = np.take_along_axis(logits, ids[..., None] - 1, -1)[..., 0]
    np.testing.assert_allclose(chosen, logits.max(-1), atol=1e-5)


class Bigrams(keras.Model):
    """Logits from a table that a step hands on, and from words so far."""

    def __init__(self, copies):
        super().__init__()
        table = np.random.default_rng(0).normal(size=(1, 7, 7))
        self.table = ops.convert_to_tensor(table, "float32")
        self.copies = copies
        self.built = True

    def start(self, source):
        batch = ops.shape(source)[0]
        return {
            "table": ops.repeat(self.table, batch, axis=0),
            "words": ops.zeros((batch, 7)),
        }

    def step(self, token, state):
        words = state["words"] + ops.one_hot(token, 7)
        logits = ops.einsum("bij,bj->bi", state["table"], words)
        table = state["table"] + 0.0 if self.copies else state["table"]
        return logits, {"table": table, "words": words}


@pytest.mark.every_backend
def test_beams_share_what_a_step_hands_on(monkeypatch):
    """It is not sorted by beams, and the sentences are the same."""
    from d2l_attention.models import decoding

    ranks, take = [], ops.take

    def spy(x, *arguments, **options):
        ranks.append(len(x.shape))
        return take(x, *arguments, **options)

    monkeypatch.setattr(decoding.ops, "take", spy)
    source, answers, tables = np.ones((3, 2), "int32"), [], []
    for copies in (False, True):
        decoder = BeamDecoder(Bigrams(copies), START, END, 5, width=3)
        answers.append(to_numpy(decoder(source)))
        tables.append(ranks.count(3))
    np.testing.assert_array_equal(*answers)
    assert tables[0] == 0 < tables[1]
