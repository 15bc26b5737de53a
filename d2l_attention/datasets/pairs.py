"""Pairs of sentences, split and batched: no source is in two splits."""

from collections import Counter
from typing import Any, NamedTuple

from d2l_attention.datasets.corpus import read_corpus
from d2l_attention.datasets.corpus_warnings import find_warnings
from d2l_attention.datasets.parallel_text import (
    DataError,
    are_two,
    check_columns,
    named,
    read_pairs,
)
from d2l_attention.datasets.tokens import (
    normalize_pairs,
    turkic_sides,
    without_end_marks,
)
from d2l_attention.datasets.vocabularies import make_vectorizers, pairs_to_ids
import numpy as np

SIDES = ("source", "target")
SHOWN = 5  # kinds of signs that are told
MANY = 0.1  # share of pairs that are too long, from which a way on is told


class Pairs(NamedTuple):
    """Four lists of `(source, target)`, tokens between spaces unless raw."""

    train: list
    validation: list
    test: list
    long_test: list


def load_pairs(
    path=None,
    *,
    test_path=None,
    columns=None,
    max_length=16,
    num_pairs=None,
    num_validation=None,
    num_test=None,
    max_bad_share=0.01,
    seed=0,
    raw=False,
    reverse=False,
    verbose=0,
):
    """Split parallel sentences so that no source sentence is in two splits.

    Args:
        path: None for the shipped corpus; a tab-separated file (two columns
            or more; plain or gzipped); two files with aligned lines;
            or `"download:fra-eng"`.
        test_path: One file or two, like `path`. All its pairs within
            `max_length` are the test, in its order, in place of pairs that
            are drawn; its sources are in no other split.
        columns: Two positive ints, the columns of the source and the target,
            counted from 1; None = the first two. Only of single files.
        max_length: Int, longest sentence in tokens, on either side. The long
            test has the pairs above it, up to twice as long.
        num_pairs: Int, number of pairs within `max_length` to use, drawn at
            random; None = all.
        num_validation: Int, number of source sentences for validation; None =
            1,000, or a tenth of fewer than 10,000. Sentences that differ
            only in case and in the marks at their ends count once, and are
            in one split.
        num_test: The same for the test (without `test_path`), and the largest
            number for the long test.
        max_bad_share: Float, share of unusable lines that is tolerated.
        seed: Int, decides which pairs are drawn, and which sentence goes into
            which split.
        raw: Whether to return the text as people wrote it, in the same
            splits. Which pairs are long or equal is decided in normalized
            text.
        reverse: Whether source and target change places, in all files.
        verbose: 1 prints what strikes a reader of the pairs, how many were
            read, how many were dropped and why, and how many each split has;
            0 prints nothing.

    Returns:
        `Pairs(train, validation, test, long_test)`. Validation and the
        tests that are drawn have one target for each source, the first of the
        file.

    Raises:
        DataError: If the file is unusable or too small for the splits.
    """
    test = None
    options = (max_bad_share, reverse, verbose)
    read = _read(path, columns, *options)
    turkic = turkic_sides(read)
    if verbose and any(turkic):
        sides = [x for x, is_so in zip(SIDES, turkic, strict=True) if is_so]
        print(
            f"By its letters i, the {' and the '.join(sides)} is in a Turkic "
            "language: in lower case, I is ı there, and İ is i."
        )
    written = _by_tokens(read, turkic, path, verbose)
    num_twice = len(read) - len(written)
    if test_path is not None:
        own_columns = None if are_two(test_path) else columns
        test = _read(test_path, own_columns, *options)
        of_test = {
            without_end_marks(x)
            for x, _ in _by_tokens(test, turkic, test_path, verbose)
        }
        others = {
            pair: raw_pair
            for pair, raw_pair in written.items()
            if without_end_marks(pair[0]) not in of_test
        }
        if verbose:
            print(
                f"The test is {named(test_path)}. Its sources are those of "
                f"{len(written) - len(others):,} other pairs, which are left "
                "out."
            )
        if not others:
            raise DataError(
                f"{named(test_path)} holds the source of each pair that was "
                "read, so nothing is left to train on."
            )
        written, num_test = others, 0
    splits, dropped = _split(
        written, max_length, num_pairs, num_validation, num_test, seed, raw
    )
    if test is not None:
        splits = splits._replace(**_by_length(test, turkic, max_length, raw))
        if not splits.test:
            raise DataError(
                f"No pair of {named(test_path)} has at most "
                f"max_length={max_length} tokens on either side."
            )
    if verbose:
        train, validation, test, _ = map(len, splits)
        print(
            f"Read {len(read):,} pairs. Dropped: {num_twice:,} that occur "
            f"twice, {dropped}\n"
            f"Left: {train:,} to train on, {validation:,} to validate, and "
            f"{test:,} to test."
        )
    return splits


def _read(path, columns, max_bad_share, reverse, verbose):
    """The pairs of a file, or of the shipped corpus, as people see them."""
    if path is None:
        one, two = check_columns(columns, 2)[:: -1 if reverse else 1]
        return [(row[one - 1], row[two - 1]) for row in read_corpus()]
    signs = Counter()
    options = {"reverse": reverse, "signs": signs}
    pairs = read_pairs(path, max_bad_share, columns, raw=True, **options)
    if verbose and signs:
        some = ", ".join(
            f"{_show_sign(sign)} as {_show_sign(other)} ({number:,} times)"
            for (sign, other), number in signs.most_common(SHOWN)
        )
        more = f", and {len(signs) - SHOWN} others" * (len(signs) > SHOWN)
        print(
            f"{named(path)}: signs that are one are read as one: {some}{more}."
        )
    return pairs


def _show_sign(sign):
    """A sign by its number, if nobody sees it."""
    if not sign:
        return "nothing"
    return sign if sign.isprintable() else f"U+{ord(sign):04X}"


def _by_tokens(read, turkic, path, verbose):
    """Dict of normalized pair to the first that was read; looks are printed."""
    written = {}
    for tokens, pair in zip(normalize_pairs(read, turkic), read, strict=True):
        written.setdefault(tokens, pair)
    if verbose and path is not None:
        for look in find_warnings(written):
            print(f"Warning: {named(path)}: {look}")
    return written


def _by_length(test, turkic, max_length, raw):
    """The short pairs of a test file, and the longer ones, in its order."""
    splits = {"test": [], "long_test": []}
    for tokens, pair in zip(normalize_pairs(test, turkic), test, strict=True):
        length = max(len(side.split()) for side in tokens)
        if length <= 2 * max_length:
            split = "test" if length <= max_length else "long_test"
            splits[split].append(pair if raw else tokens)
    return splits


def _split(written, max_length, num_pairs, num_validation, num_test, seed, raw):
    """`Pairs` of a dict of pairs, and a str that counts what was dropped."""
    pairs = list(written)
    lengths = np.array([max(len(x.split()) for x in pair) for pair in pairs])
    short = [pairs[i] for i in np.flatnonzero(lengths <= max_length)]
    drawn = short
    if num_pairs is not None and num_pairs < len(short):
        rng = np.random.default_rng([seed, num_pairs])
        chosen = rng.choice(len(short), num_pairs, replace=False)
        drawn = [short[i] for i in np.sort(chosen)]
    twins = {}  # the pairs of sources that differ in their end marks only
    for pair in drawn:
        twins.setdefault(without_end_marks(pair[0]), []).append(pair)
    share = min(1000, max(1, len(twins) // 10))
    num_validation = share if num_validation is None else num_validation
    num_test = share if num_test is None else num_test
    end_test = num_validation + num_test
    if len(twins) <= end_test:
        message = (
            f"{len(twins):,} different sources are too few to hold back "
            f"num_validation={num_validation} and num_test={num_test} of them."
            f" Different pairs: {len(pairs):,}."
        )
        if 9 * len(twins) < len(drawn):
            message += (
                f" Many have one source, such as {drawn[0][0]!r}. Are these "
                "the right columns?"
            )
        elif len(short) < len(pairs):
            message += (
                f" {len(pairs) - len(short):,} have more than "
                f"max_length={max_length} tokens on a side; half of all pairs "
                f"have at most {np.median(lengths):.0f}. Raise it, or hold "
                "back fewer."
            )
        else:
            message += " Hold back fewer, or give more pairs."
        raise DataError(message)
    sources = list(twins)
    np.random.default_rng(seed).shuffle(sources)
    groups = [twins[source] for source in sources]
    long = {}
    for i in np.flatnonzero(
        (max_length < lengths) & (lengths <= 2 * max_length)
    ):
        source = without_end_marks(pairs[i][0])
        if source not in twins:
            long.setdefault(source, pairs[i])
    long = list(long.values())
    np.random.default_rng(seed).shuffle(long)
    splits = Pairs(
        [pair for group in groups[end_test:] for pair in group],
        [group[0] for group in groups[:num_validation]],
        [group[0] for group in groups[num_validation:end_test]],
        [tuple(pair) for pair in long[:num_test]],
    )
    if raw:
        splits = Pairs(*([written[pair] for pair in x] for x in splits))
    further = len(drawn) - len(splits.train) - end_test
    longer = len(pairs) - len(short)
    way_on = ""
    if longer > MANY * len(pairs):
        needed = np.quantile(lengths, 1 - MANY, method="inverted_cdf")
        way_on = f" (--max-length {needed} keeps nine of ten)"
    return splits, (
        f"{longer:,} with more than {max_length} tokens{way_on}, "
        f"{len(short) - len(drawn):,} not drawn, {further:,} further "
        "translations of sources that are held back (also where only an end "
        "mark differs)."
    )


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
        path: As in `load_pairs`.
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
