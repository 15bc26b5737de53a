"""The corpus of a run as ids, and the order of its batches."""

from d2l_attention.datasets import load_pairs, make_vectorizers, pairs_to_ids
from d2l_attention.train.run_folder import RunError
import numpy as np


class Corpus:
    """Ids of a corpus's splits, its vocabularies, and the order of batches."""

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
        self.train, self.validation = (
            pairs_to_ids(split, self.vectorizers, settings.max_length)
            for split in (self.pairs.train, self.pairs.validation)
        )
        self.seed = settings.seed
        self.batch_size = settings.batch_size
        self.steps_per_epoch = len(self.pairs.train) // self.batch_size
        if self.steps_per_epoch == 0:
            raise RunError(
                f"{len(self.pairs.train)} training pairs make no batch of "
                f"{self.batch_size}."
            )

    def batches(self, first, last):
        """Those of steps `first` … `last` − 1."""
        epoch = None
        for step in range(first, last):
            if step // self.steps_per_epoch != epoch:
                epoch = step // self.steps_per_epoch
                rng = np.random.default_rng([self.seed, epoch])
                order = rng.permutation(len(self.pairs.train))
            start = step % self.steps_per_epoch * self.batch_size
            chosen = order[start : start + self.batch_size]
            yield step, tuple(ids[chosen] for ids in self.train)
