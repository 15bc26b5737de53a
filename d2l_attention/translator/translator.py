"""Translate texts with a trained model and its vocabularies."""

from d2l_attention._atomic import write_whole
from d2l_attention.datasets import (
    END,
    START,
    ids_to_text,
    text_to_ids,
    tokenize,
)
from d2l_attention.datasets.tokens import join_tokens, split_tokens
from d2l_attention.datasets.vocabularies import SubwordVectorizer
from d2l_attention.models.decoding import BeamDecoder, GreedyDecoder
import numpy as np


class Translator:
    """Translates texts, and shows where the model looked.

    Args:
        model: A `Seq2Seq` model.
        vectorizers: Pair of vectorizers, of the source and of the target, as
            `datasets.make_vectorizers` or `datasets.learn_subwords` makes
            them. The target's vocabulary holds `[start]` and `[end]`.
        max_length: Positive int, longest source in tokens. A translation may
            have 8 tokens more.

    Raises:
        ValueError: From each method, if a text has no token, or more than
            `max_length`.

    Example:
        >>> from d2l_attention import BahdanauSeq2Seq
        >>> from d2l_attention.datasets import END, START, make_vectorizer
        >>> from d2l_attention.translator import Translator
        >>> english = make_vectorizer(["the", "cat", "sleeps"])
        >>> french = make_vectorizer([START, END, "le", "chat", "dort"])
        >>> sizes = english.vocabulary_size(), french.vocabulary_size()
        >>> model = BahdanauSeq2Seq(*sizes, dim=4, num_layers=1)  # untrained
        >>> translator = Translator(model, (english, french), max_length=5)
        >>> len(translator.translate(["The cat sleeps", "The cat"]))
        2
        >>> weights, *tokens = translator.attention("The cat", "le chat")
        >>> tokens
        [['the', 'cat'], ['le', 'chat', '[end]']]
        >>> weights.shape  # a row for each target token
        (3, 2)
    """

    def __init__(self, model, vectorizers, max_length):
        self.model = model
        self.vectorizers = vectorizers
        self.max_length = max_length
        self._decoders = {}
        self._known = {*vectorizers[0].get_vocabulary()}

    def translate(self, texts, beam=1, batch_size=100, length_penalty=1.0):
        """Translate texts by greedy or beam search.

        Args:
            texts: List of N str, as people write them.
            beam: Positive int, width of the beam; 1 is greedy search.
            batch_size: Positive int, texts that are decoded together.
            length_penalty: Float, as in `BeamDecoder`: with 0 a beam compares
                sentences by their log probabilities, with 1 by the mean of a
                token.

        Returns:
            List of N str: tokens between spaces, but for those of Chinese and
            Japanese, or, from subwords, text as people write it.
        """
        source = self._ids(texts)  # (N, S), S = max_length
        ids = self.decoder(beam, length_penalty).predict(
            source, batch_size=batch_size, verbose=0
        )  # (N, T), T = max_length + 8
        return [
            self.as_written(text)
            for text in ids_to_text(ids, self.vectorizers[1])
        ]

    def as_written(self, text):
        """A text of the pairs, without spaces in Chinese and Japanese."""
        if isinstance(self.vectorizers[1], SubwordVectorizer):
            return text  # it is
        return join_tokens(text)

    def decoder(self, beam=1, length_penalty=1.0):
        """The `GreedyDecoder` or `BeamDecoder` that `translate` uses."""
        search = beam, length_penalty
        if search not in self._decoders:  # each is compiled once
            self._decoders[search] = self._make_decoder(*search)
        return self._decoders[search]

    def _make_decoder(self, beam, length_penalty):
        vocabulary = self.vectorizers[1].get_vocabulary()
        options = (
            self.model,
            vocabulary.index(START),
            vocabulary.index(END),
            self.max_length + 8,
        )
        if beam == 1:
            return GreedyDecoder(*options)
        return BeamDecoder(*options, width=beam, length_penalty=length_penalty)

    def attention(self, text, translation):
        """The attention weights of a translation, with its tokens.

        A Transformer has weights in every block and head. These are the mean
        over the heads of the last block's cross-attention. Pieces are joined
        to words: the weight of a source word is the sum, that of a target
        word the mean over its pieces.

        Args:
            text: Str, the source as people write it.
            translation: Str, as `translate` returns it.

        Returns:
            Float array `(T, S)`: row t shows where the model looked when it
            chose target token t. Then the list of the S source tokens and
            the list of the T target tokens, the last of them `[end]`.
        """
        source, vectorizer = self.tokens(text), self.vectorizers[1]
        pieces = isinstance(vectorizer, SubwordVectorizer)
        if pieces:
            target = vectorizer.tokenize(translation)
        else:
            target = split_tokens(translation)
            translation = " ".join(target)
        ids = text_to_ids(
            [f"{START} {translation}"], vectorizer, len(target) + 1
        )
        _, maps = self.model(
            {"source": self._ids([text]), "target": ids},
            return_attention_scores=True,
        )
        *_, last = (n for n in maps if not n.endswith("self_attention"))
        weights = np.array(maps[last])[0].mean(axis=0)  # (T, max_length)
        weights = weights[:, : len(source)]
        if not pieces:
            return weights, source, [*target, END]
        from d2l_attention.heatmaps import merge_subwords

        target_words, target = vectorizer.words(target)
        source_words, source = self.vectorizers[0].words(source)
        target_words.append(None)
        weights = merge_subwords(weights, target_words, source_words)
        return weights, source, [*target, END]

    def unknown_tokens(self, text):
        """List of the tokens of a text that the model reads as `[UNK]`."""
        return [x for x in self.tokens(text) if x not in self._known]

    def tokens(self, text):
        """List of the tokens of a source: words, or pieces of words."""
        tokens = tokenize(text, self.vectorizers[0])
        if not 0 < len(tokens) <= self.max_length:
            raise ValueError(
                f"A text must have 1 to {self.max_length} tokens. "
                f"Received {len(tokens)}: {text[:80]!r}"
            )
        return tokens

    def _ids(self, texts):
        tokens = [self.tokens(text) for text in texts]
        if not isinstance(self.vectorizers[0], SubwordVectorizer):
            texts = [" ".join(x) for x in tokens]
        return text_to_ids(texts, self.vectorizers[0], self.max_length)


def draw(translator, text, translation, path):
    """Draw where the model looked: a page for `.html`, otherwise a PNG."""
    from d2l_attention.heatmaps import plot_alignment, view_attention
    from d2l_attention.heatmaps.notebook_figures import to_png

    weights, source, target = translator.attention(text, translation)
    tokens = {"query_tokens": target, "key_tokens": source}
    if str(path).endswith(".html"):
        view_attention(weights[None, None], **tokens).save(path)
        return
    ax = plot_alignment(weights, **tokens)
    write_whole(path, to_png(ax.figure, dpi=150))
