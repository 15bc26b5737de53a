"""One step of training, with the same loss from one worker or several.

    loss     = Σ over the global batch of −log p(token) / number of tokens
    gradient = Σ over workers of the gradient of the worker's part

Every worker draws the same order of the pairs and takes its part of each
batch. So the number of workers does not change what a run learns. Nor does the
order within a part, so a worker computes its part in groups of sentences that
are about as long: they have little padding.
"""

from d2l_attention._quiet import hold_stderr
from d2l_attention.translator.run_folder import by_name
from d2l_attention.translator.settings import RunError
import keras
import numpy as np
import tensorflow as tf

GROUP = 32  # sentences; smaller groups have less padding, but cost more


class Trainer:
    """A model and its optimizer under a strategy, and one step of training.

    Set `told_to_leave` in one worker, and `leaving` is True in all of them
    after the same step.
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
        xla = settings.xla
        if xla:  # it logs when it first compiles
            with hold_stderr():
                tf.function(tf.identity, jit_compile=True)(tf.ones(()))
        # XLA compiles each width anew, and for groups every choice of widths.
        most = 1 if xla else max(self.share // GROUP, 1)
        self.num_groups = max(
            n for n in range(1, most + 1) if self.share % n == 0
        )
        self._gradients = tf.function(self._gradients_of_part, jit_compile=xla)
        self._losses = tf.function(self._sum_of_losses, jit_compile=xla)
        self._training_losses = tf.function(
            lambda *group: self._sum_of_losses(*group, training=True)
        )
        self._step = tf.function(self._step_of_all)
        self._validation = tf.function(
            lambda *batch: self._losses(*self._trim(*batch))
        )

    def variables(self):
        """Dict of name to variable: the model's and the optimizer's."""
        return by_name([*self.model.variables, *self.optimizer.variables])

    def restore(self, arrays):
        """Assign the arrays of a checkpoint, if all names and shapes fit."""
        variables = self.variables()
        shapes = {name: tuple(x.shape) for name, x in variables.items()}
        saved = {name: tuple(x.shape) for name, x in arrays.items()}
        if shapes != saved:
            differ = {*shapes.items()} ^ {*saved.items()}
            raise RunError(
                "The checkpoint is of another model: "
                f"{', '.join(sorted({name for name, _ in differ})[:4])} …"
            )
        for name, variable in variables.items():
            variable.assign(arrays[name])

    def begin_with(self, model):
        for variable, value in zip(
            self.model.trainable_variables,
            model.trainable_variables,
            strict=True,
        ):
            variable.assign(value)

    def is_finite(self):
        """Whether no variable has become NaN or infinite."""
        arrays = (v.numpy() for v in self.variables().values())
        return all(np.isfinite(x).all() for x in arrays if x.dtype.kind == "f")

    def learning_rate(self):
        return float(self.optimizer.learning_rate)

    def step(self, source, target):
        """Train on one global batch; the mean loss of a token before the step.

        Sources `(B, S)` are padded with 0; targets `(B, T + 1)` stand between
        the start and end tokens.
        """
        tokens = np.float32((target[:, 1:] != 0).sum())

        def part(context):
            first = context.replica_id_in_sync_group * self.share
            own = slice(first, first + self.share)
            order = _by_length(source[own], target[own])
            s, t = source[own][order], target[own][order]
            return tuple(map(tf.constant, (s, t[:, :-1], t[:, 1:])))

        parts = self.strategy.experimental_distribute_values_from_function(part)
        leave = tf.constant(float(self.told_to_leave))
        loss, number = self._step(parts, tf.constant(tokens), leave)
        self.leaving = bool(number > 0)
        return float(loss)

    def _groups(self, *part):
        """The groups of a part that is sorted by length, each trimmed."""
        columns = (tf.split(ids, self.num_groups) for ids in part)
        return [self._trim(*group) for group in zip(*columns, strict=True)]

    def _trim(self, source, target, labels):
        """Without the columns after the longest sentence."""

        def width(ids):
            longest = tf.reduce_max(tf.math.count_nonzero(ids, axis=1))
            return -(-longest // 8) * 8 if self.settings.xla else longest

        s, t = width(source), width(labels)
        return source[:, :s], target[:, :t], labels[:, :t]

    def _sum_of_losses(self, source, target, labels, training=False):
        inputs = {"source": source, "target": target}
        logits = self.model(inputs, training=training)  # (B, T, vocab_size)
        losses = self.loss(labels, logits)  # (B, T)
        smoothing = self.settings.label_smoothing
        if training and smoothing:
            logits = tf.cast(logits, losses.dtype)
            total = tf.reduce_logsumexp(logits, axis=-1)
            of_all = total - tf.reduce_mean(logits, axis=-1)  # mean −log p
            losses += smoothing * (of_all - losses)
        return tf.reduce_sum(losses * tf.cast(labels != 0, losses.dtype))

    def _gradients_of_part(self, groups, tokens):
        variables = [v.value for v in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            losses = [self._training_losses(*group) for group in groups]
            loss = tf.add_n(losses) / tokens
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, variables)
        return loss, [tf.convert_to_tensor(x) for x in gradients]

    def _step_of_all(self, parts, tokens, leave):
        def of_replica(part):
            loss, gradients = self._gradients(self._groups(*part), tokens)
            context = tf.distribute.get_replica_context()
            here = tf.identity(leave)  # on the device of this replica
            return context.all_reduce("SUM", [loss, here, *gradients])

        sums = self.strategy.run(of_replica, args=(parts,))
        local = self.strategy.experimental_local_results
        loss, number, *gradients = [local(x)[0] for x in sums]
        # The optimizer clips the gradient of the whole batch.
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return loss, number

    def validation_loss(self, batch_size=250):
        """The mean loss of a token of the validation split, a float."""
        split, total, tokens = self.corpus.validation, 0.0, 0
        rows = _by_length(*split)
        for start in range(0, len(rows), batch_size):
            some = rows[start : start + batch_size]
            source, target = (ids[some] for ids in split)
            batch = source, target[:, :-1], target[:, 1:]
            total += float(self._validation(*map(tf.constant, batch)))
            tokens += int((target[:, 1:] != 0).sum())
        return total / tokens


def _by_length(source, target):
    """The order of the rows that begins with the shortest pair."""
    longer = np.maximum((source != 0).sum(1), (target != 0).sum(1))
    return np.argsort(longer, kind="stable")


def _optimizer(settings, steps_per_epoch):
    """Adam; its rate rises linearly, then falls along a cosine."""
    steps, peak = settings.epochs * steps_per_epoch, settings.learning_rate
    warmup = settings.warmup(steps)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0 if warmup else peak,
        max(steps - warmup, 1),
        alpha=0.01,
        warmup_target=peak if warmup else None,
        warmup_steps=warmup,
    )
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    if settings.mixed_precision == "float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer
