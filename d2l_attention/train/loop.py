"""The training loop, with the same losses from one worker or several.

    loss     = Σ over the global batch of −log p(token) / number of tokens
    gradient = Σ over workers of the gradient of the worker's part

Every worker draws the same order of the pairs and takes its part of each
batch. So the number of workers does not change what a run learns.
"""

import re
import time

from d2l_attention.train.cluster import check_same
from d2l_attention.train.run_folder import RunError
import keras
import numpy as np
import tensorflow as tf

COLUMNS = (
    "epoch",
    "step",
    "loss",
    "validation_loss",
    "tokens_per_second",
)


class ToldToLeave(Exception):
    """A worker was told to leave. All have stopped; the chief has saved."""


class Trainer:
    """A model and its optimizer under a strategy, and one step of training.

    Set `told_to_leave` in one worker, and `leaving` is True in all of them
    after the same step.

    Args:
        settings: `Settings`.
        corpus: `Corpus`.
        strategy: A `tf.distribute.Strategy`.

    Raises:
        RunError: If the replicas cannot share a global batch evenly.
    """

    def __init__(self, settings, corpus, strategy):
        self.settings, self.corpus, self.strategy = settings, corpus, strategy
        self.told_to_leave = self.leaving = False
        self.share = settings.share(strategy.num_replicas_in_sync)
        keras.utils.set_random_seed(settings.seed)
        if settings.mixed_precision:
            policy = f"mixed_{settings.mixed_precision}"
            keras.mixed_precision.set_global_policy(policy)
        sizes = [v.vocabulary_size() for v in corpus.vectorizers]
        shape = (None, settings.max_length)
        with strategy.scope():
            try:
                self.model = settings.make_model(*sizes)
            except ValueError as error:
                raise RunError(str(error)) from error
            self.model.build({"source": shape, "target": shape})
            self.optimizer = _optimizer(settings, corpus.steps_per_epoch)
            self.optimizer.build(self.model.trainable_variables)
        self.loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction=None
        )
        self._gradients = tf.function(
            self._gradients_of_part, jit_compile=settings.xla
        )
        self._step = tf.function(self._step_of_all)
        self._validation = tf.function(
            self._sum_of_losses, jit_compile=settings.xla
        )

    def variables(self):
        """Dict of name to variable: the model's and the optimizer's.

        The names lack the numbers that Keras adds to the second model of a
        process. So another process finds the same names.
        """
        both = (*self.model.variables, *self.optimizer.variables)
        return {
            f"{i} {re.sub(r'_[0-9]+(?=[_/]|$)', '', v.path)}": v
            for i, v in enumerate(both)
        }

    def restore(self, arrays):
        """Assign the arrays of a checkpoint to `variables`.

        Args:
            arrays: Dict of name to array.

        Raises:
            RunError: If names or shapes differ; then nothing is assigned.
        """
        variables = self.variables()
        shapes = {name: tuple(x.shape) for name, x in variables.items()}
        found = {name: tuple(x.shape) for name, x in arrays.items()}
        if shapes != found:
            differ = {*shapes.items()} ^ {*found.items()}
            raise RunError(
                "The checkpoint is of another model: "
                f"{', '.join(sorted({name for name, _ in differ})[:4])} …"
            )
        for name, variable in variables.items():
            variable.assign(arrays[name])

    def is_finite(self):
        """Whether no variable has become NaN or infinite."""
        arrays = (v.numpy() for v in self.variables().values())
        return all(np.isfinite(x).all() for x in arrays if x.dtype.kind == "f")

    def step(self, source, target):
        """Train on one global batch.

        Args:
            source: Int array `(B, S)`, padded with 0.
            target: Int array `(B, T + 1)`, between the start and end tokens.

        Returns:
            Float, the mean loss of a token before the step.
        """
        tokens = np.float32((target[:, 1:] != 0).sum())
        batch = source, target[:, :-1], target[:, 1:]

        def part(context):
            first = context.replica_id_in_sync_group * self.share
            last = first + self.share
            return tuple(tf.constant(x[first:last]) for x in batch)

        parts = self.strategy.experimental_distribute_values_from_function(part)
        told = tf.constant(float(self.told_to_leave))
        loss, told = self._step(parts, tf.constant(tokens), told)
        self.leaving = bool(told > 0)
        return float(loss)

    def _sum_of_losses(self, source, target, labels, training=False):
        inputs = {"source": source, "target": target}
        logits = self.model(inputs, training=training)  # (B, T, vocab_size)
        losses = self.loss(labels, logits)  # (B, T)
        return tf.reduce_sum(losses * tf.cast(labels != 0, losses.dtype))

    def _gradients_of_part(self, source, target, labels, tokens):
        variables = [v.value for v in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            loss = self._sum_of_losses(source, target, labels, True) / tokens
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, variables)
        return loss, [tf.convert_to_tensor(x) for x in gradients]

    def _step_of_all(self, parts, tokens, told):
        def of_replica(part):
            loss, gradients = self._gradients(*part, tokens)
            context = tf.distribute.get_replica_context()
            here = tf.identity(told)  # on the device of this replica
            return context.all_reduce("SUM", [loss, here, *gradients])

        sums = self.strategy.run(of_replica, args=(parts,))
        local = self.strategy.experimental_local_results
        loss, told, *gradients = [local(x)[0] for x in sums]
        # The optimizer clips the gradient of the whole batch.
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return loss, told

    def validation_loss(self, batch_size=250):
        """The mean loss of a token of the validation split, a float."""
        source, target = self.corpus.validation
        total, tokens = 0.0, 0
        for i in range(0, len(source), batch_size):
            some = target[i : i + batch_size]
            labels = some[:, 1:]
            total += float(
                self._validation(
                    tf.constant(source[i : i + batch_size]),
                    tf.constant(some[:, :-1]),
                    tf.constant(labels),
                )
            )
            tokens += int((labels != 0).sum())
        return total / tokens


def _optimizer(settings, steps_per_epoch):
    """Adam; its rate rises linearly, then falls along a cosine."""
    warmup, peak = settings.warmup_steps, settings.learning_rate
    rate = keras.optimizers.schedules.CosineDecay(
        0.0 if warmup else peak,
        max(settings.epochs * steps_per_epoch - warmup, 1),
        alpha=0.01,
        warmup_target=peak if warmup else None,
        warmup_steps=warmup,
    )
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    if settings.mixed_precision == "float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def train(trainer, folder, *, chief, checkpoint_every, log_every):
    """Train from the last checkpoint, or from the beginning, to the end.

    Args:
        trainer: `Trainer`.
        folder: `RunFolder`; only the chief writes to it.
        chief: Whether this worker is the first.
        checkpoint_every: Int, steps between two checkpoints.
        log_every: Int, steps between two rows of the history. A row holds
            the mean loss since the row before.

    Returns:
        Int, number of steps made by this call.

    Raises:
        RunError: If the loss or a weight becomes NaN or infinite. The last
            checkpoint before that is kept.
        ToldToLeave: If a worker was told to leave, after a checkpoint.
    """
    corpus = trainer.corpus
    per_epoch = corpus.steps_per_epoch
    last = trainer.settings.epochs * per_epoch
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
        print(f"Going on from step {first:,} of {last:,}.")
    bar = keras.utils.Progbar(
        last - first, verbose=int(chief), stateful_metrics=["loss", "tokens/s"]
    )
    tokens, started = 0, time.perf_counter()
    saved = first

    def stop(where, what):
        """All workers stop here: they see the same loss and weights."""
        kept = (
            f"The checkpoint of step {saved} is kept"
            if saved
            else "There is no checkpoint yet"
        )
        if chief:
            print()  # ends the line of the progress bar
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

    for step, (source, target) in corpus.batches(first, last):
        done = step + 1
        loss = trainer.step(source, target)
        if not np.isfinite(loss):
            stop(f"in step {done}", f"loss={loss}")
        losses.append(loss)
        tokens += int((target[:, 1:] != 0).sum())
        epoch_ends = done % per_epoch == 0
        if len(losses) >= log_every or epoch_ends:
            seconds = time.perf_counter() - started
            row = [
                1 + step // per_epoch,
                done,
                float(np.mean(losses)),
                trainer.validation_loss() if epoch_ends and chief else "",
                round(tokens / seconds),
            ]
            history.append(row)
            values = [("loss", row[2]), ("tokens/s", row[4])]
            bar.update(done - first, values)
            losses.clear()
            tokens, started = 0, time.perf_counter()
        if done % checkpoint_every == 0 or done == last or trainer.leaving:
            save(done)
        if trainer.leaving:
            raise ToldToLeave(
                f"Told to leave: saved after step {done:,} of {last:,}. The "
                "same command goes on from there."
            )
    return last - first
