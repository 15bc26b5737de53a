"""The training loop: log, validate, save, and go on from a checkpoint."""

import sys
import time

from d2l_attention.translator.cluster import check_same, from_chief
from d2l_attention.translator.epochs import (
    COLUMNS,
    best_epoch,
    epoch_loss,
    keep_epoch,
    out_of_patience,
)
from d2l_attention.translator.progress import Progress
from d2l_attention.translator.report import Report
from d2l_attention.translator.run_folder import RunError
import numpy as np


class ToldToLeave(Exception):
    """A worker was told to leave. All have stopped; the chief has saved."""


def train(trainer, folder, *, chief, checkpoint_every, log_every, samples=0):
    """Train from the last checkpoint, or from the beginning, to the end.

    Args:
        trainer: `Trainer`.
        folder: `RunFolder`; only the chief writes to it.
        chief: Whether this worker is the first.
        checkpoint_every: Int, steps between two checkpoints.
        log_every: Int, steps between two rows of the history. A row holds
            the mean loss since the row before.
        samples: Int, sentences of the validation split that are translated
            and shown after each epoch.

    Returns:
        List of the rows of `history.csv`, in the order of `COLUMNS`.

    Raises:
        RunError: If the loss or a weight becomes NaN or infinite. The last
            checkpoint before that is kept.
        ToldToLeave: If a worker was told to leave, after a checkpoint.
    """
    corpus, epochs = trainer.corpus, trainer.settings.epochs
    per_epoch = corpus.steps_per_epoch
    last = epochs * per_epoch
    position = {"step": 0, "losses": [], "history": []}
    found = folder.load_checkpoint()
    if found is not None:
        arrays, position = found
        trainer.restore(arrays)
    first, losses = position["step"], position["losses"]
    history = position["history"]
    check_same(trainer.strategy, first)
    if chief and first:
        folder.write_csv("history.csv", COLUMNS, history)
        print(
            f"Going on from step {first:,} of {last:,}."
            if first < last
            else f"This training is finished: it has {last:,} steps."
        )
    warmup = trainer.settings.warmup(last)
    if chief and first < last <= warmup:
        print(
            f"The training has {last:,} steps, and ends within its warm-up of "
            f"{warmup:,}. Lower --warmup-steps, or raise --epochs.",
            file=sys.stderr,
        )
    tokens, started = 0, time.perf_counter()
    saved, report = first, Report(folder, trainer, samples)

    def stop(where, what):
        """All workers stop here: they see the same loss and weights."""
        kept = (
            f"The checkpoint of step {saved} is kept"
            if saved
            else "There is no checkpoint yet"
        )
        raise RunError(
            f"The training broke {where}. Received: {what}. {kept}. Start "
            "another run with a lower --learning-rate or more --warmup-steps."
        )

    def save(step):
        nonlocal saved
        if not trainer.is_finite():
            stop(f"after step {step}", "a weight that is NaN or infinite")
        saved = step
        if chief:
            folder.save_checkpoint(
                {name: v.numpy() for name, v in trainer.variables().items()},
                {"step": step, "losses": losses, "history": history},
            )
            folder.write_csv("history.csv", COLUMNS, history)

    end = first if out_of_patience(trainer.settings, history) else last
    with Progress(first, last, quiet=not chief) as progress:
        for step, (source, target) in corpus.batches(first, end):
            done = step + 1
            loss = trainer.step(source, target)
            if not np.isfinite(loss):
                stop(f"in step {done}", f"loss={loss}")
            losses.append(loss)
            tokens += int((target[:, 1:] != 0).sum())
            epoch_ends = done % per_epoch == 0
            if len(losses) >= log_every or epoch_ends:
                seconds = time.perf_counter() - started
                mean, speed = float(np.mean(losses)), round(tokens / seconds)
                rate = trainer.learning_rate()
                progress.log(done, mean, rate, speed)
                epoch, validation = 1 + step // per_epoch, ""
                if epoch_ends:
                    validation = from_chief(
                        trainer.strategy,
                        trainer.validation_loss() if chief else None,
                    )
                history.append([epoch, done, mean, validation, rate, speed])
                if epoch_ends and chief:
                    keep_epoch(folder, trainer, history)
                    report.draw(history)
                    progress.write(
                        f"Epoch {epoch} of {epochs}: "
                        f"loss {epoch_loss(history):.3f}, "
                        f"validation loss {validation:.3f}",
                        *report.samples(),
                    )
                losses.clear()
                tokens, started = 0, time.perf_counter()
            enough = epoch_ends and out_of_patience(trainer.settings, history)
            due = done % checkpoint_every == 0 or done == last
            if due or enough or trainer.leaving:
                save(done)
            if enough:
                progress.write(
                    "The validation loss was lowest in epoch "
                    f"{best_epoch(history)}. Stopped early."
                )
                break
            if trainer.leaving:
                raise ToldToLeave(
                    f"Stopped: saved after step {done:,} of {last:,}. "
                    "The same command goes on from there."
                )
    return history
