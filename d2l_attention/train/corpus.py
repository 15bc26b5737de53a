"""The sentence pairs of a run as ids, and the order of the batches."""

from d2l_attention.datasets import load_pairs, make_vectorizers, pairs_to_ids
from d2l_attention.train.run_folder import RunError
import numpy as np


class Corpus:
    """The splits of a corpus as ids, its vocabularies and its batches.

    Args:
        settings: `Settings`.

    Raises:
        DataError: If the file of the corpus is unusable or too small.
        RunError: If the training pairs do not fill one batch.
    """

    def __init__(self, settings):
        self.pairs = load_pairs(
            settings.corpus,
            max_length=settings.max_length,
            num_pairs=settings.num_pairs,
            num_validation=settings.num_validation,
            num_test=settings.num_test,
            seed=settings.seed,
        )
        self.vectorizers = make_vectorizers(
            self.pairs.train, settings.vocab_size, settings.min_frequency
        )
        self.train = pairs_to_ids(
            self.pairs.train, self.vectorizers, settings.max_length
        )
        self.validation = pairs_to_ids(
            self.pairs.validation, self.vectorizers, settings.max_length
        )
        self.seed = settings.seed
        self.batch_size = settings.batch_size
        self.steps_per_epoch = len(self.pairs.train) // self.batch_size
        if self.steps_per_epoch == 0:
            raise RunError(
                f"The training pairs make no batch of {self.batch_size}. "
                f"Received: {len(self.pairs.train)} pairs."
            )

    def batches(self, first, last):
        """The batches of steps `first` … `last` − 1.

        Each epoch has its own order of the pairs. It depends on the seed and
        the epoch alone, so a run that continues sees the same batches.

        Args:
            first: Int, the first step.
            last: Int, the step behind the last.

        Yields:
            The step, and the int32 arrays `(batch_size, max_length)` of
            sources and `(batch_size, max_length + 2)` of targets.
        """
        epoch = None
        for step in range(first, last):
            if step // self.steps_per_epoch != epoch:
                epoch = step // self.steps_per_epoch
                rng = np.random.default_rng([self.seed, epoch])
                order = rng.permutation(len(self.pairs.train))
            start = step % self.steps_per_epoch * self.batch_size
            chosen = order[start : start + self.batch_size]
            yield step, tuple(ids[chosen] for ids in self.train)
