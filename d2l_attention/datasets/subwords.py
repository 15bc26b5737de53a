"""Pieces of words in place of words: no text is unknown."""

import io
import itertools
import re

from d2l_attention.datasets.files import DataError, clean, is_token

START, END = "[start]", "[end]"
PIECES_PER_TOKEN = 2  # how many pieces a sentence may have for each token


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

    @classmethod
    def learn(cls, texts, vocab_size):
        """Learn the pieces of texts.

        Args:
            texts: List of str.
            vocab_size: Int, largest number of ids. 256 of them are bytes.

        Returns:
            `SubwordVectorizer`.

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
            if found := re.search(
                r"required_chars\. [0-9]+ vs ([0-9]+)", reason
            ):
                reason = f"their characters need at least {found[1]}."
            raise DataError(
                f"Could not learn {vocab_size} pieces from {len(texts)} "
                f"texts: {reason}"
            ) from error
        return cls(model.getvalue())

    def vocabulary_size(self):
        """Number of ids."""
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
        """Which pieces belong to one word.

        A word ends at a space. A punctuation mark is a word of its own, and
        so is a piece of Chinese or Japanese.

        Args:
            pieces: List of S str.

        Returns:
            List of S int, the number of each piece's word, and the list of
            the words.
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
        import numpy as np

        rows = [self._ids(text) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows), default=0)), "int32")
        for row, found in zip(ids, rows, strict=True):
            row[: len(found)] = found
        return ids

    def _ids(self, text):
        inside = text.removeprefix(START).removesuffix(END)
        ids = self._processor.encode(clean(inside))
        begins, ends = text.startswith(START), text.endswith(END)
        return [2] * begins + ids + [3] * ends


def _is_byte(piece):
    return piece.startswith("<0x") and len(piece) == 6
