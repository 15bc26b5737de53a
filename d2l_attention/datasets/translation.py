"""Batches of token ids for `fit`, from parallel text."""

from typing import Any, NamedTuple

from d2l_attention.datasets.pairs import load_pairs
from d2l_attention.datasets.vectorizers import make_vectorizers, pairs_to_ids


class Translation(NamedTuple):
    """Four `tf.data.Dataset` and two `keras.layers.TextVectorization`.

    A batch is `({"source": …, "target": …}, labels, weights)`. The labels are
    the target one token ahead. The weights are 1 at tokens and 0 at padding.
    """

    train: Any
    validation: Any
    test: Any
    long_test: Any
    source_vectorizer: Any
    target_vectorizer: Any


def load_translation(
    path=None,
    *,
    max_length=16,
    batch_size=64,
    vocab_size=None,
    min_frequency=2,
    seed=0,
    **options,
):
    """Batches of ids for `fit`, and the vocabularies that made them.

    Args:
        path: None for the shipped corpus; a tab-separated file (two columns
            or more; plain, gzipped or zipped); or `"download:fra-eng"`.
        max_length: Int, longest sentence in tokens, on either side. Sources
            are padded to this length, and targets to one more, for the start
            or end token. In the long test both are twice as long.
        batch_size: Int, number of sentences in a batch. Training batches are
            full and shuffled anew each epoch. The other splits keep their
            order, and their last batch may be smaller.
        vocab_size: Int, largest number of token ids on either side; None =
            no limit.
        min_frequency: Int; training tokens that are rarer become `[UNK]`.
        seed: Int, seed of the splits and of the shuffling.
        **options: Further arguments of `load_pairs`.

    Returns:
        `Translation(train, validation, test, long_test, source_vectorizer,
        target_vectorizer)`. The vectorizers are
        `keras.layers.TextVectorization`; id 0 is padding, 1 is `[UNK]`.

    Raises:
        DataError: If the file is unusable or too small for the splits.
    """
    pairs = load_pairs(path, max_length=max_length, seed=seed, **options)
    vectorizers = make_vectorizers(pairs.train, vocab_size, min_frequency)

    def rows(pairs, length):
        return _dataset(*pairs_to_ids(pairs, vectorizers, length))

    train = rows(pairs.train, max_length)
    train = train.shuffle(len(pairs.train), seed=seed)
    return Translation(
        train.batch(batch_size, drop_remainder=True).prefetch(2),
        rows(pairs.validation, max_length).batch(batch_size),
        rows(pairs.test, max_length).batch(batch_size),
        rows(pairs.long_test, 2 * max_length).batch(batch_size),
        *vectorizers,
    )


def _dataset(source, target):
    """A `tf.data.Dataset` of single rows, as `Translation` describes them."""
    import tensorflow as tf

    labels = target[:, 1:]
    dataset = tf.data.Dataset.from_tensor_slices(
        (
            {"source": source, "target": target[:, :-1]},
            labels,
            (labels != 0).astype("float32"),
        )
    )
    options = tf.data.Options()
    # Its thread wakes only every five seconds, and at the end `fit` waits for
    # the thread.
    options.autotune.enabled = False
    return dataset.with_options(options)
