"""One process: what a step computes, and what a checkpoint brings back."""

from collections import Counter
import dataclasses

from d2l_attention.train import loop
from d2l_attention.train.corpus import Corpus
from d2l_attention.train.run_folder import RunError, RunFolder
from d2l_attention.train.settings import Settings
import keras
import numpy as np
import pytest
import tensorflow as tf

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
    return loop.Trainer(settings, corpus, tf.distribute.get_strategy())


def steps(trainer, corpus, first, last):
    return [trainer.step(*ids) for _, ids in corpus.batches(first, last)]


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


@pytest.mark.parametrize("changed", [{}, {"model": "bahdanau"}, {"xla": True}])
def test_a_checkpoint_goes_on_bit_for_bit(changed, corpus, tmp_path):
    folder, calm = RunFolder(tmp_path), make(corpus, **changed)
    expected = steps(calm, corpus, 0, 5)
    arrays = {k: v.numpy() for k, v in calm.variables().items()}
    folder.save_checkpoint(arrays, {})
    expected += steps(calm, corpus, 5, 8)
    again = make(corpus, **changed)
    again.restore(folder.load_checkpoint()[0])
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
    with pytest.raises(RunError, match="make no batch of 100000"):
        Corpus(dataclasses.replace(SETTINGS, batch_size=100_000))


@pytest.mark.parametrize("every", [3, 100])
def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(
    every, corpus, tmp_path
):
    """The weights break in step 5, and step 6 is the first to notice."""
    folder, trainer = RunFolder(tmp_path), make(corpus, dropout=0.0)
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
        loop.train(
            trainer, folder, chief=True, checkpoint_every=every, log_every=1
        )
    if every > 5:
        assert folder.load_checkpoint() is None
        assert "no checkpoint" in str(raised.value)
        return
    arrays, position = folder.load_checkpoint()
    assert position["step"] == 3
    assert "of step 3 is kept" in str(raised.value)
    assert all(np.isfinite(x).all() for x in arrays.values())


def test_weights_that_are_no_numbers_are_not_saved(corpus, tmp_path):
    """They break in the very step after which a checkpoint is due."""
    folder, trainer = RunFolder(tmp_path), make(corpus, dropout=0.0)
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
        loop.train(trainer, folder, chief=True, checkpoint_every=3, log_every=1)
    assert folder.load_checkpoint()[1]["step"] == 3


def test_the_history_has_a_row_for_so_many_steps(corpus, tmp_path):
    folder, trainer = RunFolder(tmp_path), make(corpus)
    done = loop.train(
        trainer, folder, chief=True, checkpoint_every=4, log_every=3
    )
    last = 2 * corpus.steps_per_epoch
    assert done == last
    _, position = folder.load_checkpoint()
    assert position["step"] == last
    assert position["losses"] == []
    history = position["history"]
    assert history[-1][:2] == [2, last]
    validated = [row[1] for row in history if row[3] != ""]
    assert validated == [corpus.steps_per_epoch, last]
    assert (tmp_path / "history.csv").read_text().count("\n") == 1 + len(
        history
    )
    # As after a kill between the two writes.
    text = (tmp_path / "history.csv").read_text()
    (tmp_path / "history.csv").unlink()
    again = loop.train(
        make(corpus), folder, chief=True, checkpoint_every=4, log_every=3
    )
    assert again == 0
    assert (tmp_path / "history.csv").read_text() == text
