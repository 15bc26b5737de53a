"""A translator is loaded from plain files, and says what is wrong with them."""

import json
import re
import shutil

from contract import draw, to_numpy
from d2l_attention import BahdanauSeq2Seq, BeamDecoder, Transformer
from d2l_attention.datasets import END, START, make_vectorizer
from d2l_attention.translator import Translator, load_translator
import numpy as np
import pytest

ENGLISH = ["the", "cat", "sleeps"]
FRENCH = [START, END, "le", "chat", "dort"]
MAX_LENGTH = 5
TEXTS = ["The cat sleeps", "the cat"]


@pytest.fixture(scope="module")
def translator():
    """An untrained model, made to choose clearly and never to end."""
    model = BahdanauSeq2Seq(5, 7, dim=4, num_layers=1)
    model.build({"source": (None, None), "target": (None, None)})
    for i, weight in enumerate(model.weights, 10):  # writes several words
        weight.assign(draw(*weight.shape, seed=i))
    kernel, bias = model.output_layer.get_weights()
    bias[2:4] = -100  # of [start] and [end]
    model.output_layer.set_weights([kernel, bias])
    vectorizers = make_vectorizer(ENGLISH), make_vectorizer(FRENCH)
    return Translator(model, vectorizers, MAX_LENGTH)


@pytest.fixture(scope="module")
def finished(translator, tmp_path_factory):
    """The files of a finished run, written by hand."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    run.mkdir()
    (run / "settings.json").write_text(json.dumps({"max_length": MAX_LENGTH}))
    (run / "source_vocabulary.txt").write_text("\n".join(ENGLISH))
    (run / "target_vocabulary.txt").write_text("\n".join(FRENCH))
    translator.model.save(run / "model.keras")
    return run


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the run, to be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


def test_what_was_saved_translates_as_before(translator, finished):
    found = load_translator(finished).translate(TEXTS)
    assert found == translator.translate(TEXTS)
    assert all(len(text.split()) == MAX_LENGTH + 8 for text in found)
    assert found[0] != found[1]  # the source matters


def test_weights_have_a_row_for_each_target_token(translator):
    weights, source, target = translator.attention("The CAT.", "le chat")
    assert source == ["the", "cat", "."]
    assert target == ["le", "chat", END]
    assert weights.shape == (3, 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)


def test_the_alignment_is_the_mean_of_the_last_block_s_heads(translator):
    vectorizers = translator.vectorizers
    model = Transformer(5, 7, dim=6, num_layers=2, num_heads=3)
    weights, *_ = Translator(model, vectorizers, 3).attention(
        "the cat sleeps", "le chat"
    )
    ids = {"source": np.array([[2, 3, 4]]), "target": np.array([[2, 4, 5]])}
    _, maps = model(ids, return_attention_scores=True)
    heads = to_numpy(maps["decoder/block_1/cross_attention"])[0]
    np.testing.assert_allclose(weights, heads.mean(0), atol=1e-6)
    assert np.ptp(heads, axis=0).max() > 0.01  # they differ


def test_chinese_is_written_without_spaces_and_has_its_map(translator):
    words = [START, END, "汤", "姆", "ok"]
    vectorizers = make_vectorizer(ENGLISH), make_vectorizer(words)
    chinese = Translator(translator.model, vectorizers, MAX_LENGTH)
    (text,) = chinese.translate(["the cat"])
    (before,) = translator.translate(["the cat"])
    names = dict(zip(FRENCH, words, strict=True))
    same = [names.get(word, word) for word in before.split()]
    assert {"汤", "姆"} & {*same}
    assert text.replace(" ", "") == "".join(same)
    assert "汤 " not in text and " 姆" not in text
    weights, _, target = chinese.attention("the cat", text)
    expected, _, _ = translator.attention("the cat", before)
    np.testing.assert_array_equal(weights, expected)
    assert target == [*same, END]


def test_half_a_surrogate_pair_is_named(translator):
    for ask in (translator.tokens, lambda x: translator.translate([x])):
        with pytest.raises(ValueError, match=r"\\ud800.*half a surrogate"):
            ask("the \ud800 cat")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "nowhere"
    words = f"{re.escape(str(path))} is no run folder"
    with pytest.raises(ValueError, match=words):
        load_translator(path)


def test_a_run_that_has_not_finished_is_named(run):
    (run / "model.keras").unlink()
    words = f"{re.escape(str(run))} has no trained model yet"
    with pytest.raises(ValueError, match=words):
        load_translator(str(run))


def test_a_vocabulary_of_another_size_is_named(run):
    path = run / "target_vocabulary.txt"
    path.write_text("\n".join([*FRENCH, "chien"]))
    words = r"run is damaged: .* \[5, 8\] ids, its model \[5, 7\]"
    with pytest.raises(ValueError, match=words):
        load_translator(run)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("settings.json", b"{"),
        ("settings.json", b"{}"),
        ("settings.json", b"[5]"),
        ("settings.json", b'{"max_length": "\xff"}'),
        ("target_vocabulary.txt", b"[start]\n\xff"),
        ("source_vocabulary.txt", None),
        ("model.keras", b"PK"),
    ],
)
def test_a_damaged_run_is_named(name, content, run):
    (run / name).unlink()
    if content is not None:
        (run / name).write_bytes(content)
    words = f"{re.escape(str(run))} is damaged: ."
    with pytest.raises(ValueError, match=words):
        load_translator(run)


def test_a_model_that_was_cut_short_is_named(run):
    whole = (run / "model.keras").read_bytes()
    (run / "model.keras").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="model.keras was cut short"):
        load_translator(run)


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), (" \n", 0), ("the cat sleeps. The cat", 6)]
)
def test_a_text_without_tokens_or_with_too_many_is_named(
    text, length, translator
):
    words = re.escape(f"1 to 5 tokens. Received {length}: {text!r}")
    with pytest.raises(ValueError, match=words):
        translator.translate(["the cat", text])
    with pytest.raises(ValueError, match=words):
        translator.attention(text, "le chat")


def test_a_beam_has_its_width_and_its_length_penalty(translator, monkeypatch):
    made = []

    class Recorder(BeamDecoder):
        def __init__(self, *words, **named):
            made.append(named)
            super().__init__(*words, **named)

    monkeypatch.setattr(
        "d2l_attention.translator.translator.BeamDecoder", Recorder
    )
    monkeypatch.setattr(translator, "_decoders", {})
    for options in ({}, {"length_penalty": 0.0}) * 2:
        assert len(translator.translate(TEXTS, 3, **options)) == 2
    assert made == [
        {"width": 3, "length_penalty": penalty} for penalty in (1.0, 0.0)
    ]
