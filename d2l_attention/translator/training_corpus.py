"""The sentence pairs of a run as ids, and the order of the batches."""

from d2l_attention.datasets import (
    learn_subwords,
    load_pairs,
    make_vectorizers,
    pairs_to_ids,
    tokenize,
)
from d2l_attention.datasets.pairs import Pairs
from d2l_attention.translator.settings import RunError
import numpy as np

UNKNOWN = 1  # the id of `[UNK]`


def read_splits(settings, verbose=0):
    """The `Pairs` of the corpus of a run, as `load_pairs` returns them."""
    return load_pairs(
        settings.corpus,
        test_path=settings.test_corpus,
        columns=settings.columns,
        reverse=settings.reverse,
        max_bad_share=settings.max_bad_share,
        max_length=settings.max_length,
        num_pairs=settings.num_pairs,
        num_validation=settings.num_validation,
        num_test=settings.num_test,
        seed=settings.seed,
        raw=bool(settings.subwords),
        verbose=verbose,
    )


class Corpus:
    """The splits of a corpus as ids, its vocabularies and its batches."""

    def __init__(self, settings, run=None, vectorizers=None, verbose=0):
        self.pairs = read_splits(settings, verbose)
        self.vectorizers = vectorizers or self._vectorizers(settings, run)
        if settings.subwords:
            self.pairs = self._without_long(settings.longest(), verbose)
        self.train, self.validation = (
            pairs_to_ids(pairs, self.vectorizers, settings.longest())
            for pairs in (self.pairs.train, self.pairs.validation)
        )
        if verbose:
            self._print_coverage(settings.subwords)
        self.seed = settings.seed
        self.batch_size = settings.batch_size
        self.steps_per_epoch = len(self.pairs.train) // self.batch_size
        if self.steps_per_epoch == 0:
            number = len(self.pairs.train)
            raise RunError(
                f"{number:,} pairs to train on make no batch of "
                f"{self.batch_size}. Take smaller batches, as in --batch-size "
                f"{1 << number.bit_length() - 1}, or more pairs."
            )

    def _vectorizers(self, settings, run):
        size, train = settings.vocab_size, self.pairs.train
        if settings.subwords and size:
            raise RunError(
                "--vocab-size limits words, and --subwords pieces of words. "
                f"Give only one. Received: {size} and {settings.subwords}"
            )
        if run and (settings.subwords or settings.resume_from):
            try:
                return run.load_vectorizers(settings.subwords)
            except FileNotFoundError:  # a new run
                pass
        if settings.subwords:
            return learn_subwords(train, settings.subwords)
        return make_vectorizers(train, size, settings.min_frequency)

    def _without_long(self, longest, verbose):
        """The pairs that have at most so many pieces on both sides."""
        splits = []
        for pairs in self.pairs:
            lengths = [
                max(map(len, map(tokenize, pair, self.vectorizers)))
                for pair in pairs
            ]
            splits.append(
                [p for p, n in zip(pairs, lengths, strict=True) if n <= longest]
            )
        left = [len(pairs) for pairs in splits]
        if verbose and left != [len(pairs) for pairs in self.pairs]:
            print(
                f"Of these, {left[0]:,}, {left[1]:,} and {left[2]:,} have at "
                f"most {longest} pieces on a side. A higher --max-length keeps "
                "the others."
            )
        uses = ("train on", "validate", "test")
        for number, use in zip(left[:3], uses, strict=True):
            if not number:
                raise RunError(
                    f"No pair to {use} has at most {longest} pieces on a "
                    "side. Raise --max-length or --subwords."
                )
        return Pairs(*splits)

    def batches(self, first, last):
        """The batches of steps `first` … `last` − 1: step, sources, targets.

        Each epoch has its own order of the pairs. It depends on the seed and
        the epoch alone, so a run that continues sees the same batches.
        """
        epoch = None
        for step in range(first, last):
            if step // self.steps_per_epoch != epoch:
                epoch = step // self.steps_per_epoch
                order = self._order(epoch)
            chosen = order[step % self.steps_per_epoch]
            yield step, tuple(ids[chosen] for ids in self.train)

    def _order(self, epoch):
        """The rows of each batch of an epoch, `(steps, batch_size)`."""
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(len(self.pairs.train))
        order = order[: self.steps_per_epoch * self.batch_size]
        return order.reshape(-1, self.batch_size)

    def _print_coverage(self, subwords):
        """What the vocabularies hold, and the share of tokens they know."""
        for i, name in enumerate(("source", "target")):
            size = self.vectorizers[i].vocabulary_size()
            known = [
                (split[i][split[i] != 0] != UNKNOWN).mean()
                for split in (self.train, self.validation)
            ]
            print(
                f"The {name} vocabulary has {size:,} ids. It knows "
                f"{known[0]:.1%} of the tokens to train on, and "
                f"{known[1]:.1%} of those to validate."
            )
            if subwords and size < subwords:
                print(
                    f"The {name} vocabulary is smaller than --subwords "
                    f"{subwords}, because the text has no more pieces."
                )
