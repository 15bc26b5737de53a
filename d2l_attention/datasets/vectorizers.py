"""Vocabularies, and text to ids and back: words or pieces of words."""

from d2l_attention.datasets.files import DataError, normalize
from d2l_attention.datasets.subwords import END, START, SubwordVectorizer
import numpy as np


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
        DataError: If a vocabulary would hold no word, or the second would lack
            `[start]` or `[end]`.
    """
    sides = (
        [source for source, _ in pairs],
        [f"{START} {target} {END}" for _, target in pairs],
    )
    tokens = [_frequent_tokens(x, vocab_size, min_frequency) for x in sides]
    marks = set(), {START, END}
    for i, name in enumerate(("source", "target")):
        if not {*tokens[i]} > marks[i]:  # marks and a word
            example = f", such as {pairs[0][i]!r}" if pairs else ""
            raise DataError(
                f"The vocabulary of the {name} would hold no word. Received: "
                f"min_frequency={min_frequency}, vocab_size={vocab_size}, for "
                f"{len(pairs)} texts{example}."
            )
    return tuple(map(make_vectorizer, tokens))


def learn_subwords(pairs, vocab_size):
    """Learn the pieces of the sources and of the targets of pairs.

    Args:
        pairs: List of `(source, target)`, as people write them.
        vocab_size: Int, largest number of ids on either side.

    Returns:
        Two `SubwordVectorizer`.

    Raises:
        DataError: If `vocab_size` is too small for the characters.
    """
    sides = zip(*pairs, strict=True)
    return tuple(SubwordVectorizer.learn(x, vocab_size) for x in sides)


def make_vectorizer(tokens):
    """A `TextVectorization` that gives the tokens the ids 2, 3, … in order."""
    import keras

    return keras.layers.TextVectorization(
        standardize=None, split="whitespace", vocabulary=tokens
    )


def tokenize(text, vectorizer):
    """The tokens of a text that people wrote, as the vectorizer splits it."""
    if isinstance(vectorizer, SubwordVectorizer):
        return vectorizer.tokenize(text)
    return normalize(text).split()


def pairs_to_ids(pairs, vectorizers, length):
    """The ids of N pairs, with each target between `[start]` and `[end]`.

    Args:
        pairs: List of `(source, target)`: tokens between spaces, or raw text
            for subwords.
        vectorizers: Pair of `TextVectorization` or `SubwordVectorizer`, for
            sources and targets.
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
    """N texts of ids `(N, length)`, each up to its end token, without it.

    A text has single spaces. Pieces can be bytes, so a model can write any
    white space, the end of a line too.
    """
    vocabulary = vectorizer.get_vocabulary()
    join = getattr(vectorizer, "detokenize", " ".join)
    texts = []
    for row in np.asarray(ids):
        tokens = [vocabulary[i] for i in row if i != 0]
        if END in tokens:
            tokens = tokens[: tokens.index(END)]
        text = join(t for t in tokens if t != START)
        texts.append(" ".join(text.split()))
    return texts


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
