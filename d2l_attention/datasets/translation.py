"""Split parallel text, make vocabularies, and batch token ids."""

from typing import Any, NamedTuple

from d2l_attention.datasets.corpus import read_corpus
from d2l_attention.datasets.files import DataError, check_columns, read_pairs
import numpy as np

START, END = "[start]", "[end]"


class Pairs(NamedTuple):
    """Four lists of `(source, target)`, normalized, tokens between spaces."""

    train: list
    validation: list
    test: list
    long_test: list


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


def load_pairs(
    path=None,
    *,
    columns=None,
    max_length=16,
    num_pairs=None,
    num_validation=1000,
    num_test=1000,
    max_bad_share=0.01,
    seed=0,
    verbose=0,
):
    """Split parallel sentences so that no source sentence is in two splits.

    Args:
        path: None for the shipped corpus; a tab-separated file (two columns
            or more; plain, gzipped or zipped); or `"download:fra-eng"`.
        columns: Two positive ints, the columns of the source and the target,
            counted from 1; None = the first two.
        max_length: Int, longest sentence in tokens, on either side. The long
            test has the pairs above it, up to twice as long.
        num_pairs: Int, number of pairs within `max_length` to use, drawn at
            random; None = all.
        num_validation: Int, number of source sentences for validation.
        num_test: Int, number of source sentences for the test, and the
            largest number for the long test.
        max_bad_share: Float, share of unusable lines that is tolerated.
        seed: Int, decides which pairs are drawn, and which sentence goes into
            which split.
        verbose: 1 prints how many pairs were read, how many were dropped and
            why, and how many each split has; 0 prints nothing.

    Returns:
        `Pairs(train, validation, test, long_test)`. Validation and tests
        have one target for each source, the first of the file.

    Raises:
        DataError: If the file is unusable or too small for the splits.
    """
    if path is None:
        one, two = check_columns(columns, 2)
        read = [(row[one - 1], row[two - 1]) for row in read_corpus()]
    else:
        read = read_pairs(path, max_bad_share, columns)
    pairs = list(dict.fromkeys(read))
    lengths = np.array([max(len(x.split()) for x in pair) for pair in pairs])
    short = [pairs[i] for i in np.flatnonzero(lengths <= max_length)]
    drawn = short
    if num_pairs is not None and num_pairs < len(short):
        rng = np.random.default_rng([seed, num_pairs])
        chosen = rng.choice(len(short), num_pairs, replace=False)
        drawn = [short[i] for i in np.sort(chosen)]
    targets = {}
    for source, target in drawn:
        targets.setdefault(source, []).append(target)
    if len(targets) <= num_validation + num_test:
        raise DataError(
            f"{len(targets)} different sources in {len(drawn)} pairs are too "
            f"few for num_validation={num_validation}, num_test={num_test} and "
            f"one to train on. Of {len(pairs)} pairs, {len(short)} have at "
            f"most max_length={max_length} tokens on both sides; half of them "
            f"have at most {np.median(lengths):.0f}."
        )
    sources = list(targets)
    np.random.default_rng(seed).shuffle(sources)
    held = [(source, targets[source][0]) for source in sources]
    long = {}
    for i in np.flatnonzero(
        (max_length < lengths) & (lengths <= 2 * max_length)
    ):
        if pairs[i][0] not in targets:
            long.setdefault(*pairs[i])
    long = list(long.items())
    np.random.default_rng(seed).shuffle(long)
    end_test = num_validation + num_test
    splits = Pairs(
        [(s, target) for s in sources[end_test:] for target in targets[s]],
        held[:num_validation],
        held[num_validation:end_test],
        [tuple(pair) for pair in long[:num_test]],
    )
    if verbose:
        further = len(drawn) - len(splits.train) - end_test
        print(
            f"Read {len(read):,} pairs. Dropped: "
            f"{len(read) - len(pairs):,} that occur twice, "
            f"{len(pairs) - len(short):,} with more than {max_length} tokens, "
            f"{len(short) - len(drawn):,} not drawn, {further:,} further "
            "translations of sources that are held back.\n"
            f"Left: {len(splits.train):,} to train on, {num_validation:,} to "
            f"validate, {num_test:,} to test. Of the longer ones, "
            f"{len(splits.long_test):,} are a test of their own."
        )
    return splits


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


def make_vectorizers(pairs, vocab_size=None, min_frequency=2):
    """Make the vocabularies of the sources and of the targets of pairs.

    Args:
        pairs: List of `(source, target)`, tokens between spaces.
        vocab_size: Int, largest number of token ids on either side; None =
            no limit.
        min_frequency: Int; tokens that are rarer become `[UNK]`.

    Returns:
        Two `keras.layers.TextVectorization`. The second one's vocabulary
        holds `[start]` and `[end]`.

    Raises:
        DataError: If a vocabulary would be empty, or the second would lack
            `[start]` or `[end]`.
    """
    sides = (
        [source for source, _ in pairs],
        [f"{START} {target} {END}" for _, target in pairs],
    )
    tokens = [_frequent_tokens(x, vocab_size, min_frequency) for x in sides]
    if not tokens[0] or not {START, END} <= {*tokens[1]}:
        raise DataError(
            "The vocabularies would be empty, or without [start] and [end]. "
            f"Received: vocab_size={vocab_size}, "
            f"min_frequency={min_frequency}, for {len(pairs)} pairs."
        )
    return tuple(map(make_vectorizer, tokens))


def make_vectorizer(tokens):
    """A `TextVectorization` that gives the tokens the ids 2, 3, … in order."""
    import keras

    return keras.layers.TextVectorization(
        standardize=None, split="whitespace", vocabulary=tokens
    )


def pairs_to_ids(pairs, vectorizers, length):
    """The ids of N pairs, with each target between `[start]` and `[end]`.

    Args:
        pairs: List of `(source, target)`, tokens between spaces.
        vectorizers: Pair of `TextVectorization`, for sources and targets.
        length: Int, longest sentence; longer ones are cut.

    Returns:
        Two int32 arrays, padded with 0: `(N, length)` of the sources and
        `(N, length + 2)` of the targets.
    """
    source_vectorizer, target_vectorizer = vectorizers
    targets = [f"{START} {target} {END}" for _, target in pairs]
    return (
        text_to_ids([s for s, _ in pairs], source_vectorizer, length),
        text_to_ids(targets, target_vectorizer, length + 2),
    )


def text_to_ids(texts, vectorizer, length):
    """Ids of N texts, int32 `(N, length)`, cut or padded with 0."""
    ids = np.zeros((len(texts), length), "int32")
    if len(texts):
        found = np.asarray(vectorizer(list(texts)))[:, :length]
        ids[:, : found.shape[1]] = found
    return ids


def ids_to_text(ids, vectorizer):
    """N texts of ids `(N, length)`, each up to its end token, without it."""
    vocabulary = vectorizer.get_vocabulary()
    texts = []
    for row in np.asarray(ids):
        tokens = [vocabulary[i] for i in row if i != 0]
        if END in tokens:
            tokens = tokens[: tokens.index(END)]
        texts.append(" ".join(t for t in tokens if t != START))
    return texts


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


def _frequent_tokens(texts, vocab_size, min_frequency):
    """The tokens to keep, the most frequent first."""
    from collections import Counter

    counts = Counter(token for text in texts for token in text.split())
    frequent = [
        token
        for token, count in sorted(counts.items(), key=lambda x: (-x[1], x[0]))
        if count >= min_frequency
    ]
    # Padding and [UNK] take two of the ids.
    limit = None if vocab_size is None else max(vocab_size - 2, 1)
    return frequent[:limit]
