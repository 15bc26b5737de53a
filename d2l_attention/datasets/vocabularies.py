"""Vocabularies, and text to ids and back: words, or pieces of words."""

from collections import Counter
import io
import itertools
import re

from d2l_attention.datasets.parallel_text import DataError
from d2l_attention.datasets.tokens import (
    clean,
    is_token,
    is_turkic,
    normalize,
)
import numpy as np

START, END = "[start]", "[end]"
PIECES_PER_TOKEN = 2  # how many pieces a sentence may have for each token


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
                f"{len(pairs)} texts{example}. In a script without spaces, or "
                "in few texts, learn pieces of words: `learn_subwords`, or "
                "--subwords 1000."
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

    vectorizer = keras.layers.TextVectorization(
        standardize=None, split="whitespace", vocabulary=tokens
    )
    vectorizer.turkic = is_turkic(tokens)  # which `tokenize` asks
    return vectorizer


def tokenize(text, vectorizer):
    """The tokens of a text that people wrote, as the vectorizer splits it."""
    if isinstance(vectorizer, SubwordVectorizer):
        return vectorizer.tokenize(text)
    return normalize(text, getattr(vectorizer, "turkic", False)).split()


def pairs_to_ids(pairs, vectorizers, length):
    """The ids of N pairs, with each target between `[start]` and `[end]`.

    Args:
        pairs: List of `(source, target)`: tokens between spaces, or raw text
            for subwords.
        vectorizers: Pair of them, as `make_vectorizers` returns it.
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
        whole = np.asarray(vectorizer(list(texts)))[:, :length]
        ids[:, : whole.shape[1]] = whole
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
    counts = Counter(token for text in texts for token in text.split())
    frequent = [
        token
        for token, count in sorted(counts.items(), key=lambda x: (-x[1], x[0]))
        if count >= min_frequency
    ]
    # Padding and [UNK] take two of the ids.
    limit = None if vocab_size is None else max(vocab_size - 2, 1)
    return frequent[:limit]


class SubwordVectorizer:
    """Text to ids by pieces of words, learned by sentencepiece.

    It has the methods of `keras.layers.TextVectorization` that this package
    uses, and stands in its place. Id 0 is padding, 1 is `[UNK]`, 2 and 3 are
    `[start]` and `[end]`. A character that was never seen is written as its
    bytes, so `[UNK]` does not occur.

    Source: Kudo and Richardson (2018), arXiv:1808.06226; the pieces are found
    by byte-pair encoding, Sennrich et al. (2016), arXiv:1508.07909.

    Args:
        model: Bytes, the content of a file of sentencepiece.

    Raises:
        DataError: If the bytes are no model of sentencepiece.

    Example:
        >>> from d2l_attention.datasets import SubwordVectorizer
        >>> texts = ["the cat sleeps", "the dog sleeps", "a cat"] * 10
        >>> pieces = SubwordVectorizer.learn(texts, 300)
        >>> pieces.detokenize(pieces.tokenize("The cat: 猫!"))
        'The cat: 猫!'
    """

    def __init__(self, model):
        import sentencepiece

        self.model = model
        try:
            self._processor = sentencepiece.SentencePieceProcessor(
                model_proto=model
            )
        except RuntimeError as error:
            raise DataError(
                f"{len(model)} bytes are no model of sentencepiece: {error}"
            ) from error
        self.turkic = is_turkic(self.get_vocabulary())

    @classmethod
    def learn(cls, texts, vocab_size):
        """Learn at most `vocab_size` pieces of texts; 256 of them are bytes.

        Raises:
            DataError: If `vocab_size` is too small for the characters.
        """
        import sentencepiece

        model = io.BytesIO()
        characters = {character for text in texts for character in text}
        # Thousands of Chinese characters would leave no room for words; the
        # rarest ones are then written as bytes.
        few = len(characters) < vocab_size // 8
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=map(clean, texts),
                model_writer=model,
                vocab_size=vocab_size,
                model_type="bpe",
                hard_vocab_limit=False,
                byte_fallback=True,
                character_coverage=1.0 if few else 0.9995,
                normalization_rule_name="identity",
                pad_id=0,
                unk_id=1,
                bos_id=2,
                eos_id=3,
                unk_piece="[UNK]",
                bos_piece=START,
                eos_piece=END,
                num_threads=1,  # so that all workers learn the same
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error)
            if needed := re.search(
                r"required_chars\. [0-9]+ vs ([0-9]+)", reason
            ):
                reason = f"their characters need at least {needed[1]}."
            raise DataError(
                f"Could not learn {vocab_size} pieces from {len(texts)} "
                f"texts: {reason}"
            ) from error
        return cls(model.getvalue())

    def vocabulary_size(self):
        """The number of ids, that of padding included."""
        return self._processor.get_piece_size()

    def get_vocabulary(self):
        """List of the piece of each id; that of padding is empty."""
        ids = list(range(1, self.vocabulary_size()))
        return ["", *self._processor.id_to_piece(ids)]

    def tokenize(self, text):
        """List of the pieces of a text."""
        return self._processor.encode(clean(text), out_type=str)

    def detokenize(self, pieces):
        """The text of a list of pieces."""
        return self._processor.decode_pieces(list(pieces))

    def words(self, pieces):
        """The number of each piece's word, and the list of the words.

        A word ends at a space. A punctuation mark is a word of its own, and
        so is a piece of Chinese or Japanese.
        """
        numbers, groups, before = [], [], ""
        for is_bytes, run in itertools.groupby(pieces, _is_byte):
            # the bytes of a character make sense together only
            for unit in [[*run]] if is_bytes else [[piece] for piece in run]:
                text = self.detokenize(unit) if is_bytes else unit[0]
                if before != "▁" and (
                    not groups
                    or text.startswith("▁")
                    or is_token(text[0])
                    or is_token(before[-1])
                ):
                    groups.append([])
                groups[-1] += unit
                numbers += [len(groups) - 1] * len(unit)
                before = text
        return numbers, [self.detokenize(group) for group in groups]

    def __call__(self, texts):
        """Ids of N texts, int32 `(N, longest)`, padded with 0.

        `[start]` at the beginning of a text and `[end]` at its end are the
        ids of these tokens.
        """
        rows = [self._ids(text) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows), default=0)), "int32")
        for row, of_text in zip(ids, rows, strict=True):
            row[: len(of_text)] = of_text
        return ids

    def _ids(self, text):
        inside = text.removeprefix(START).removesuffix(END)
        ids = self._processor.encode(clean(inside))
        begins, ends = text.startswith(START), text.endswith(END)
        return [2] * begins + ids + [3] * ends


def _is_byte(piece):
    return piece.startswith("<0x") and len(piece) == 6
