"""One process: what a step computes, and what a checkpoint brings back."""

from collections import Counter
import dataclasses
import io
import re
import sys

from d2l_attention.datasets import SubwordVectorizer, tokenize
from d2l_attention.translator import Translator
from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import RunError, Settings
from d2l_attention.translator.training_corpus import Corpus
from d2l_attention.translator.training_loop import train
from d2l_attention.translator.training_step import (
    Trainer,
    _by_length,
    _optimizer,
    by_name,
)
import keras
import numpy as np
from PIL import Image
import pytest
import tensorflow as tf

pytestmark = pytest.mark.ci
SETTINGS = Settings(
    dim=16,
    num_layers=1,
    num_heads=2,
    ffn_dim=32,
    dropout=0.3,
    max_length=8,
    num_pairs=700,
    num_validation=20,
    num_test=20,
    epochs=2,
    batch_size=50,
    warmup_steps=3,
)


@pytest.fixture(scope="module")
def corpus():
    return Corpus(SETTINGS)


def make(corpus, **changed):
    settings = dataclasses.replace(SETTINGS, **changed)
    return Trainer(settings, corpus, tf.distribute.get_strategy())


def steps(trainer, corpus, first, last):
    return [trainer.step(*ids) for _, ids in corpus.batches(first, last)]


def test_reverse_trains_the_other_direction():
    back = Corpus(dataclasses.replace(SETTINGS, reverse=True))
    columns = Corpus(dataclasses.replace(SETTINGS, columns=[2, 1]))
    assert back.pairs == columns.pairs
    vocabularies = [v.get_vocabulary() for v in back.vectorizers]
    assert "vache" in vocabularies[0] and "cow" in vocabularies[1]


def test_every_epoch_sees_each_pair_once_in_its_own_order(corpus):
    per_epoch = corpus.steps_per_epoch
    assert per_epoch == len(corpus.pairs.train) // 50
    epochs = [
        [
            ids[0]
            for _, ids in corpus.batches(e * per_epoch, (e + 1) * per_epoch)
        ]
        for e in (0, 1)
    ]
    first, second = (np.concatenate(epoch) for epoch in epochs)
    assert (first != second).any()
    there = Counter(row.tobytes() for row in corpus.train[0])
    for rows in (first, second):
        seen = Counter(row.tobytes() for row in rows)
        assert seen.total() == per_epoch * 50
        assert seen <= there  # none more often than it is there
    in_the_middle = next(corpus.batches(per_epoch + 1, per_epoch + 2))
    assert in_the_middle[0] == per_epoch + 1
    np.testing.assert_array_equal(in_the_middle[1][0], epochs[1][1])


def test_groups_by_length_have_less_padding_and_learn_the_same(corpus):
    corpus = Corpus(
        dataclasses.replace(SETTINGS, batch_size=128, max_length=16)
    )
    options = {"dropout": 0.0, "batch_size": 128}
    trainers = grouped, whole = [make(corpus, **options) for _ in range(2)]
    assert grouped.num_groups == 4
    whole.num_groups = 1
    _, (source, target) = next(corpus.batches(0, 1))
    order = _by_length(source, target)
    part = source[order], target[order, :-1], target[order, 1:]
    sizes, tokens = [], []
    for trainer in trainers:
        groups = [(g[0], g[2]) for g in trainer._groups(*part)]
        found = [ids.numpy() for group in groups for ids in group]
        sizes.append(sum(ids.size for ids in found))
        tokens.append(sum(np.count_nonzero(ids) for ids in found))
    assert sizes[0] < 0.8 * sizes[1] and tokens[0] == tokens[1]
    losses = [steps(trainer, corpus, 0, 3) for trainer in trainers]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    for one, other in zip(
        grouped.model.trainable_variables,
        whole.model.trainable_variables,
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=2e-4)


@pytest.mark.parametrize(
    ("changed", "number"),
    [
        ({"batch_size": 50}, 1),
        ({"batch_size": 64}, 2),
        ({"batch_size": 96}, 3),
        ({"batch_size": 101}, 1),
        ({"batch_size": 64, "xla": True}, 1),
    ],
)
def test_groups_are_alike_and_not_small(changed, number, corpus):
    assert make(corpus, **changed).num_groups == number


def test_pieces_are_those_that_the_run_has_kept(corpus, tmp_path, capsys):
    settings = dataclasses.replace(SETTINGS, subwords=500)
    first, run = Corpus(settings), Run(tmp_path)
    again = Corpus(settings, run)  # the folder is empty
    for one, other in zip(first.train, again.train, strict=True):
        np.testing.assert_array_equal(one, other)
    assert first.vectorizers[0].vocabulary_size() == 500
    assert first.train[0].shape[1] == 2 * settings.max_length
    texts = [source for source, _ in first.pairs.train]
    kept = [SubwordVectorizer.learn(texts, n) for n in (320, 330)]
    run.write_vocabularies(kept)
    others = Corpus(settings, run, verbose=1)
    sizes = [v.vocabulary_size() for v in others.vectorizers]
    assert sizes == [320, 330]
    shown = capsys.readouterr().out
    assert "source vocabulary has 320 ids. It knows 100.0%" in shown
    found = re.search(r"these, (\d+), (\d+) and (\d+) have at most 16", shown)
    left = sum(map(int, found.groups()))
    long = [
        pair
        for pairs in corpus.pairs[:3]
        for pair in pairs
        if max(map(len, map(tokenize, pair, kept))) > 16
    ]
    whole = sum(map(len, corpus.pairs[:3]))
    assert 0 < len(long) == whole - left
    assert not {*long} & {*others.pairs.train}


def test_words_and_pieces_exclude_each_other():
    settings = dataclasses.replace(SETTINGS, subwords=500, vocab_size=400)
    with pytest.raises(RunError, match="only one. Received: 400 and 500"):
        Corpus(settings)


@pytest.mark.parametrize("xla", [False, True])
def test_padding_is_not_computed(xla, corpus, monkeypatch):
    trainer = make(corpus, dropout=0.0, xla=xla)
    source = np.array([[5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0]] * 50, "int32")
    target = np.zeros((50, 14), "int32")
    target[:, :4] = 5  # start, two tokens, end
    seen, of_model = [], trainer.model.call

    def call(inputs, **options):
        seen.append(tf.stack([tf.shape(x)[1] for x in inputs.values()]))
        return of_model(inputs, **options)

    monkeypatch.setattr(trainer.model, "call", call)
    tf.config.run_functions_eagerly(True)
    try:
        trainer.step(source, target)
    finally:
        tf.config.run_functions_eagerly(False)
    assert [list(x.numpy()) for x in seen] == [[8, 8] if xla else [3, 3]]


def test_a_smoothed_label_is_shared_by_all_tokens(corpus):
    trainer = make(corpus, dropout=0.0, label_smoothing=0.2)
    _, (source, target) = next(corpus.batches(0, 1))
    before = trainer.validation_loss()
    logits = trainer.model({"source": source, "target": target[:, :-1]})
    log_p, labels = np.asarray(keras.ops.log_softmax(logits)), target[:, 1:]
    smooth = np.eye(log_p.shape[-1])[labels] * 0.8 + 0.2 / log_p.shape[-1]
    expected = -(smooth * log_p).sum(-1)[labels != 0].mean()
    found = trainer.step(source, target)
    assert found == pytest.approx(expected, rel=1e-5)
    plain = make(corpus, dropout=0.0)
    assert plain.validation_loss() == pytest.approx(before, rel=1e-6)


@pytest.mark.parametrize(
    ("changed", "peak"), [({}, 3), ({"warmup_share": 0.5}, 10)]
)
def test_the_rate_rises_to_its_peak(changed, peak):
    settings = dataclasses.replace(SETTINGS, **changed)
    rate = _optimizer(settings, steps_per_epoch=10)._learning_rate
    rates = [float(rate(step)) for step in range(21)]
    assert rates[peak] == max(rates) == pytest.approx(2e-3)
    assert rates[:peak] == sorted(rates[:peak])


def test_the_validation_loss_is_the_mean_of_all_tokens(corpus):
    trainer = make(corpus, dropout=0.0)
    source, target = corpus.validation
    total = float(trainer._sum_of_losses(source, target[:, :-1], target[:, 1:]))
    expected = total / (target[:, 1:] != 0).sum()
    for size in (7, 1000):
        found = trainer.validation_loss(batch_size=size)
        assert found == pytest.approx(expected, rel=1e-5)


def test_a_step_is_the_mean_loss_of_a_token(corpus):
    trainer = make(corpus, dropout=0.0)
    _, (source, target) = next(corpus.batches(0, 1))
    logits = trainer.model({"source": source, "target": target[:, :-1]})
    logits, labels = np.asarray(logits), target[:, 1:]
    logits = logits - logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    expected = -chosen[labels != 0].mean()
    assert trainer.step(source, target) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("changed", [{}, {"model": "bahdanau"}])
def test_a_checkpoint_goes_on_bit_for_bit(changed, corpus, tmp_path):
    run, calm = Run(tmp_path), make(corpus, **changed)
    expected = steps(calm, corpus, 0, 5)
    arrays = {k: v.numpy() for k, v in calm.variables().items()}
    run.save_checkpoint(arrays, {})
    expected += steps(calm, corpus, 5, 8)
    again = make(corpus, **changed)
    again.restore(run.load_checkpoint()[0])
    assert steps(again, corpus, 5, 8) == expected[5:]
    assert len(set(expected)) == 8


def test_a_checkpoint_of_another_model_is_refused(corpus):
    trainer, other = make(corpus), make(corpus, dim=8)
    arrays = {k: v.numpy() for k, v in other.variables().items()}
    before = [v.numpy() for v in trainer.variables().values()]
    with pytest.raises(RunError, match="of another model"):
        trainer.restore(arrays)
    after = [v.numpy() for v in trainer.variables().values()]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_trains_in_mixed_precision(precision, corpus):
    policy = keras.mixed_precision.dtype_policy()
    try:
        trainer = make(corpus, mixed_precision=precision, warmup_steps=0)
        losses = steps(trainer, corpus, 0, 10)
    finally:
        keras.mixed_precision.set_dtype_policy(policy)
    assert trainer.model.compute_dtype == precision
    assert {v.dtype for v in trainer.model.trainable_variables} == {"float32"}
    scaled = isinstance(trainer.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled == (precision == "float16")
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]


def test_what_cannot_be_trained_is_refused(corpus):
    with pytest.raises(RunError, match="one layer.*num_layers=3"):
        make(corpus, model="rnnsearch", num_layers=3)
    with pytest.raises(RunError, match="batch of 100000.*--batch-size 512"):
        Corpus(dataclasses.replace(SETTINGS, batch_size=100_000))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_an_error_begins_on_a_line_of_its_own(
    kind, corpus, tmp_path, monkeypatch
):
    trainer = make(corpus)
    losses = iter([1.5, float("nan")])
    trainer.step = lambda *_: next(losses)
    monkeypatch.setattr(sys, "stdout", kind())
    # A bar that nobody holds closes itself; the command still holds the error.
    with pytest.raises(RunError, match="loss=nan") as raised:
        train(
            trainer,
            Run(tmp_path),
            chief=True,
            checkpoint_every=9,
            log_every=1,
        )
    shown = sys.stdout.getvalue()
    assert shown.endswith("\n") and "loss 1.500" in shown
    assert ("\r" in shown) == (kind is Terminal)
    assert ("Step 1 of " in shown) == (kind is io.StringIO)
    assert raised.tb is not None


def test_a_warm_up_that_is_longer_than_the_training_is_told(
    corpus, tmp_path, capsys
):
    trainer = make(corpus, warmup_steps=1000)
    trainer.step = lambda *_: 1.0
    train(
        trainer,
        Run(tmp_path),
        chief=True,
        checkpoint_every=99,
        log_every=50,
    )
    out, err = capsys.readouterr()
    last = 2 * corpus.steps_per_epoch
    assert f"{last} steps, and ends within its warm-up of 1,000" in err
    assert "Epoch 2 of 2: loss 1.000, validation loss " in out


@pytest.mark.parametrize("every", [3, 100])
def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(
    every, corpus, tmp_path
):
    """The weights break in step 5, and step 6 is the first to notice."""
    run, trainer = Run(tmp_path), make(corpus, dropout=0.0)
    real_step, number = trainer.step, 0

    def step(source, target):
        nonlocal number
        number += 1
        loss = real_step(source, target)
        if number == 5:
            name = next(iter(trainer.variables()))
            trainer.variables()[name].assign_add(np.float32("nan"))
        return loss

    trainer.step = step
    message = "step 6.*Received: loss=nan.*lower --learning-rate"
    with pytest.raises(RunError, match=message) as raised:
        train(trainer, run, chief=True, checkpoint_every=every, log_every=1)
    if every > 5:
        assert run.load_checkpoint() is None
        assert "no checkpoint" in str(raised.value)
        return
    arrays, position = run.load_checkpoint()
    assert position["step"] == 3
    assert "of step 3 is kept" in str(raised.value)
    assert all(np.isfinite(x).all() for x in arrays.values())


def test_weights_that_are_no_numbers_are_not_saved(corpus, tmp_path):
    """They break in the very step after which a checkpoint is due."""
    run, trainer = Run(tmp_path), make(corpus, dropout=0.0)
    real_step, number = trainer.step, 0

    def step(source, target):
        nonlocal number
        number += 1
        loss = real_step(source, target)
        if number == 6:
            name = next(iter(trainer.variables()))
            trainer.variables()[name].assign_add(np.float32("inf"))
        return loss

    trainer.step = step
    with pytest.raises(RunError, match="after step 6.*of step 3 is kept"):
        train(trainer, run, chief=True, checkpoint_every=3, log_every=1)
    assert run.load_checkpoint()[1]["step"] == 3


def test_the_history_has_a_row_for_so_many_steps(corpus, tmp_path, capsys):
    run, trainer = Run(tmp_path), make(corpus)
    told = train(trainer, run, chief=True, checkpoint_every=4, log_every=3)
    last = 2 * corpus.steps_per_epoch
    _, position = run.load_checkpoint()
    assert position["step"] == last
    assert position["losses"] == []
    history = position["history"]
    assert history == told and history[-1][:2] == [2, last]
    validated = [row[1] for row in history if row[3] != ""]
    assert validated == [corpus.steps_per_epoch, last]
    assert (tmp_path / "history.csv").read_text().count("\n") == 1 + len(
        history
    )
    # As after a kill between the two writes.
    text = (tmp_path / "history.csv").read_text()
    (tmp_path / "history.csv").unlink()
    capsys.readouterr()
    options = {"chief": True, "checkpoint_every": 4, "log_every": 3}
    again = train(make(corpus), run, **options)
    assert f"is finished: it has {last} steps" in capsys.readouterr().out
    assert again == history
    assert (tmp_path / "history.csv").read_text() == text
    # And after a kill between two rows: all but the speed.
    killed, run = make(corpus), Run(tmp_path / "killed")
    run.path.mkdir()
    real_step, steps_made = killed.step, iter(range(5))

    def step(*ids):
        next(steps_made)
        return real_step(*ids)

    killed.step = step
    with pytest.raises(StopIteration):
        train(killed, run, **options)
    again = train(make(corpus), Run(run.path), **options)
    assert [row[:5] for row in again] == [row[:5] for row in told]


def test_after_an_epoch_it_shows_its_curves_and_translations(
    corpus, tmp_path, capsys
):
    """And learns no less for it: the losses are those without."""
    arguments = {"chief": True, "checkpoint_every": 4, "log_every": 3}
    losses, learned = [], {}
    for samples in (0, 2):
        trainer, run = make(corpus), Run(tmp_path / f"{samples}")
        run.path.mkdir()
        history = train(trainer, run, **arguments, samples=samples)
        losses.append([row[:5] for row in history])
        learned[samples] = trainer
        shown = capsys.readouterr().out
        assert shown.count(" → ") == 2 * samples
    assert losses[0] == losses[1]
    pairs = corpus.pairs.validation[:2]
    translator = Translator(
        learned[0].model, corpus.vectorizers, SETTINGS.max_length
    )
    found = translator.translate([source for source, _ in pairs])
    for (source, target), text in zip(pairs, found, strict=True):
        assert f"\n  {source} → {text} [{target}]\n" in shown
    picture = (tmp_path / "2" / "learning_curves.png").read_bytes()
    assert picture == (tmp_path / "0" / "learning_curves.png").read_bytes()
    with Image.open(io.BytesIO(picture)) as image:
        assert image.width > image.height > 300


def test_the_loss_of_an_epoch_is_that_of_all_its_steps(
    corpus, tmp_path, capsys
):
    """Also where its last row of the history is of a single step."""
    trainer, per_epoch = make(corpus), corpus.steps_per_epoch
    losses = iter(range(2 * per_epoch))
    trainer.step = lambda *_: float(next(losses))
    assert per_epoch > 4
    train(
        trainer,
        Run(tmp_path),
        chief=True,
        checkpoint_every=99,
        log_every=per_epoch - 1,
    )
    out = capsys.readouterr().out
    for epoch in (0, 1):
        mean = epoch * per_epoch + (per_epoch - 1) / 2
        assert f"Epoch {epoch + 1} of 2: loss {mean:.3f}, valid" in out


def test_the_history_tells_the_learning_rate(corpus, tmp_path):
    trainer = make(corpus, warmup_steps=4)

    def step(source, target):
        trainer.optimizer.iterations.assign_add(1)
        return 1.0

    trainer.step = step
    history = train(
        trainer,
        Run(tmp_path),
        chief=True,
        checkpoint_every=99,
        log_every=2,
    )
    rates = [row[4] for row in history]
    assert rates[:2] == pytest.approx([1e-3, 2e-3])  # steps 2 and 4
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] == pytest.approx(0.01 * 2e-3)


@pytest.mark.parametrize(
    ("final", "epochs"),
    [("last", [4]), ("best", [2]), ("average", [2, 3, 4])],
)
def test_a_run_out_of_patience_stops_and_ends_with_its_choice(
    final, epochs, corpus, tmp_path, monkeypatch
):
    """The validation loss is lowest in epoch 2; two worse ones are enough."""
    options = {"patience": 2, "final": final, "average": 3, "epochs": 9}
    trainer, run = make(corpus, **options), Run(tmp_path)
    losses = iter([3.0, 2.0, 2.5, 2.1])
    trainer.validation_loss = lambda: next(losses)
    kernel, after = trainer.model.trainable_variables[0], []

    def step(source, target):
        kernel.assign_add(np.ones(kernel.shape, "float32"))
        after.append(kernel.numpy())
        return 1.0

    trainer.step = step
    arguments = {"chief": True, "checkpoint_every": 10**6, "log_every": 5}
    history = train(trainer, run, **arguments)
    per_epoch = corpus.steps_per_epoch
    assert history[-1][:2] == [4, 4 * per_epoch] and len(after) == 4 * per_epoch
    weights, where = run.final_parameters(trainer.settings)
    expected = [after[i * per_epoch - 1] for i in epochs]
    names = by_name(trainer.model.variables)
    (name,) = (name for name, x in names.items() if x is kernel)
    np.testing.assert_allclose(weights[name], np.mean(expected, 0), rtol=1e-6)
    assert [int(x) for x in re.findall("[0-9]+", where)] == (
        epochs if len(epochs) == 1 else [epochs[0], epochs[-1]]
    )
    dtypes = {name: x.dtype for name, x in names.items()}
    assert {name: str(x.dtype) for name, x in weights.items()} == dtypes
    files = sorted(path.name for path in tmp_path.glob("epoch_*"))
    assert files == [f"epoch_000{i}" for i in (2, 3, 4)]
    again = make(corpus, **options)
    again.step = None  # is not called
    assert train(again, run, **arguments) == history
    (tmp_path / f"epoch_000{epochs[0]}").unlink()
    with pytest.raises(RunError, match=f"epoch_000{epochs[0]}.* missing"):
        run.final_parameters(trainer.settings)
