"""The training loop: log, validate, save, and go on from a checkpoint.

It is not Keras's `fit` with `BackupAndRestore` (3.15.1), because that brings
back neither the random state of dropout nor the place within an epoch, so a
resumed run would differ from one that was never interrupted. And `fit` takes
the mean of the losses of the workers, whose parts of a batch have different
numbers of tokens. `ModelCheckpoint` overwrites the last weights in their place,
so that a full disk loses both, and `CSVLogger` writes an epoch twice if a run
goes on from within it.
"""

import sys
import time

from d2l_attention.translator.settings import RunError
from d2l_attention.translator.translator import Translator
from d2l_attention.translator.workers import check_same, from_chief
import numpy as np
from tqdm import tqdm


class ToldToLeave(Exception):
    """A worker was told to leave. All have stopped; the chief has saved."""


def train(trainer, run, *, chief, checkpoint_every, log_every, samples=0):
    """Train from the last checkpoint, or from the beginning, to the end.

    Only the chief writes to the folder of the `Run`. There are
    `checkpoint_every` steps between two checkpoints, and `log_every` between
    two rows of the history, each with the mean loss since the row before.
    `samples` sentences of the validation split, the same ones each time, are
    translated and shown after each epoch. If the loss or a parameter becomes
    NaN or infinite, the last checkpoint before that is kept.
    """
    corpus, settings = trainer.corpus, trainer.settings
    epochs, per_epoch = settings.epochs, corpus.steps_per_epoch
    last = epochs * per_epoch
    first, losses = 0, []
    checkpoint = run.load_checkpoint()
    if checkpoint is not None:
        arrays, position = checkpoint
        trainer.restore(arrays)
        first, losses = position["step"], position["losses"]
    check_same(trainer.strategy, first)
    if chief and first:
        run.write_history()
        print(
            f"Going on from step {first:,} of {last:,}."
            if first < last
            else f"This training is finished: it has {last:,} steps."
        )
    warmup = settings.warmup(last)
    if chief and first < last <= warmup:
        print(
            f"The training has {last:,} steps, and ends within its warm-up of "
            f"{warmup:,}. Lower --warmup-steps, or raise --epochs.",
            file=sys.stderr,
        )
    translator = Translator(
        trainer.model, corpus.vectorizers, settings.longest()
    )
    shown = corpus.pairs.validation[:samples]
    tokens, started, saved = 0, time.perf_counter(), first

    def stop(where, what):
        """All workers stop here: they see the same loss and parameters."""
        advice = (
            f"The checkpoint of step {saved} is kept"
            if saved
            else "There is no checkpoint yet"
        )
        raise RunError(
            f"The training broke {where}. Received: {what}. {advice}. Start "
            "another run with a lower --learning-rate or more --warmup-steps."
        )

    def save(step):
        nonlocal saved
        if not trainer.is_finite():
            stop(f"after step {step}", "a weight that is NaN or infinite")
        saved = step
        if chief:
            run.save_checkpoint(
                {name: v.numpy() for name, v in trainer.variables().items()},
                {"step": step, "losses": losses},
            )

    end = first if run.is_out_of_patience(settings.patience) else last
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
                run.history.append([epoch, done, mean, validation, rate, speed])
                if epoch_ends and chief:
                    run.save_epoch(trainer.model, settings)
                    run.draw_curves()
                    progress.write(
                        f"Epoch {epoch} of {epochs}: "
                        f"loss {run.epoch_loss():.3f}, "
                        f"validation loss {validation:.3f}",
                        *_translations(translator, shown),
                    )
                losses.clear()
                tokens, started = 0, time.perf_counter()
            enough = epoch_ends and run.is_out_of_patience(settings.patience)
            due = done % checkpoint_every == 0 or done == last
            if due or enough or trainer.leaving:
                save(done)
            if enough:
                progress.write(
                    "The validation loss was lowest in epoch "
                    f"{run.best_epoch()}. Stopped early."
                )
                break
            if trainer.leaving:
                raise ToldToLeave(
                    f"Stopped: saved after step {done:,} of {last:,}. "
                    "The same command goes on from there."
                )
    return run.history


def _translations(translator, pairs):
    """List of str: `source → translation [reference]`."""
    if not pairs:
        return []
    translations = translator.translate([source for source, _ in pairs])
    written = translator.as_written
    return [
        f"  {written(source)} → {text} [{written(target)}]"
        for (source, target), text in zip(pairs, translations, strict=True)
    ]


class Progress:
    """How far a training is: a bar in a terminal, plain lines in a log."""

    def __init__(self, first, last, quiet=False):
        self.last, self.quiet = last, quiet
        self.bar = tqdm(
            total=last,
            initial=first,
            unit=" steps",
            file=sys.stdout,
            dynamic_ncols=True,
            disable=quiet or not sys.stdout.isatty(),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bar.close()

    def log(self, step, loss, rate, speed):
        """Show a step, the mean loss, the learning rate, and the speed."""
        shown = f"loss {loss:.3f}, rate {rate:.2g}, {speed:,} tokens/s"
        if self.bar.disable:
            self.write(f"Step {step:,} of {self.last:,}: {shown}")
        self.bar.set_postfix_str(shown, refresh=False)
        self.bar.update(step - self.bar.n)

    def write(self, *lines):
        """Write lines, above the bar if there is one."""
        if not self.quiet:
            tqdm.write("\n".join(lines), file=sys.stdout)
            sys.stdout.flush()
