"""Hierarchical attention: words make sentences, and sentences a document."""

from d2l_attention._checks import check_positive
from d2l_attention._config import Configurable
from d2l_attention.layers.base import wide
from d2l_attention.layers.pooling import AttentionPooling
from d2l_attention.layers.reshaping import reshape
from d2l_attention.models.recurrent import gru
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class HierarchicalAttentionNetwork(Configurable, keras.Model):
    """Classifies documents (HAN), and shows which words and sentences count.

        h_it = [→GRU; ←GRU] of the words of sentence i,  s_i = pool_t(h_it)
        h_i = [→GRU; ←GRU] of the sentences,  v = pool_i(h_i)
        logits = W v + b

    Source: Yang et al. (2016), "Hierarchical Attention Networks for Document
    Classification", NAACL, section 2; document 000, section 2.2.4.

    Args:
        vocab_size: Positive int, number of word ids; 0 is padding.
        dim: Positive int, size D of the embeddings, and of the states in each
            direction.
        units: Positive int, hidden units U of both poolings.
        num_classes: Positive int, number of classes.

    Call arguments:
        inputs: Int tensor `(B, sentences, words)`.
        training: Changes nothing; Keras's own loops pass it.
        return_attention_scores: If True, also return a dict of the weights
            `"words"` `(B, sentences, words)` and `"sentences"`
            `(B, sentences)`. Padding has weight 0, and so has a sentence
            without words.

    Returns:
        Logits `(B, num_classes)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import HierarchicalAttentionNetwork
        >>> model = HierarchicalAttentionNetwork(9, 4, units=5, num_classes=2)
        >>> document = np.array([[[3, 5, 0], [4, 0, 0], [0, 0, 0]]])
        >>> logits, maps = model(document, return_attention_scores=True)
        >>> np.array(maps["sentences"])[0, 2].tolist()  # without words
        0.0
    """

    def __init__(self, vocab_size, dim, units, num_classes, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = check_positive("vocab_size", vocab_size)
        self.dim = check_positive("dim", dim)
        self.units = check_positive("units", units)
        self.num_classes = check_positive("num_classes", num_classes)
        dtype = self.dtype_policy
        self.embedding = keras.layers.Embedding(vocab_size, dim, dtype=dtype)
        cell = keras.layers.GRUCell
        self.word_cells = [cell(dim, dtype=dtype), cell(dim, dtype=dtype)]
        self.sentence_cells = [cell(dim, dtype=dtype), cell(dim, dtype=dtype)]
        self.word_pooling = AttentionPooling(units, dtype=dtype)
        self.sentence_pooling = AttentionPooling(units, dtype=dtype)
        self.output_layer = keras.layers.Dense(
            num_classes, dtype=wide(self.dtype_policy.variable_dtype)
        )

    def build(self, input_shape):
        d = self.dim
        self.embedding.build(input_shape)
        for cell in self.word_cells:
            cell.build((None, d))
        for cell in self.sentence_cells:
            cell.build((None, 2 * d))
        for pooling in (self.word_pooling, self.sentence_pooling):
            pooling.build((None, None, 2 * d))
        self.output_layer.build((None, 2 * d))

    def call(self, inputs, training=None, return_attention_scores=False):
        if len(inputs.shape) != 3:
            raise ValueError(
                "inputs must be ids (B, sentences, words). Received: shape "
                f"{tuple(inputs.shape)}."
            )
        batch, sentences, words = ops.shape(inputs)
        rows = ops.reshape(inputs, (-1, words))  # (B · sentences, words)
        x = _both_ways(self.embedding(rows), rows != 0, self.word_cells)
        s, word_weights = self.word_pooling(
            x, mask=rows != 0, return_attention_scores=True
        )  # (B · sentences, 2D) and (B · sentences, words)
        s = reshape(s, (batch, sentences, s.shape[-1]))
        word_weights = reshape(word_weights, (batch, sentences, words))
        has_words = ops.any(inputs != 0, axis=-1)  # (B, sentences)
        x = _both_ways(s, has_words, self.sentence_cells)
        v, sentence_weights = self.sentence_pooling(
            x, mask=has_words, return_attention_scores=True
        )  # (B, 2D) and (B, sentences)
        logits = self.output_layer(v)  # (B, num_classes)
        maps = {"words": word_weights, "sentences": sentence_weights}
        return (logits, maps) if return_attention_scores else logits


def _both_ways(x, mask, cells):
    """The states of two GRUs, one from each end: `(B, T, 2D)`."""
    ahead, _ = gru(x, mask, cells[0])  # (B, T, D)
    back, _ = gru(ops.flip(x, 1), ops.flip(mask, 1), cells[1])
    return ops.concatenate([ahead, ops.flip(back, 1)], axis=-1)
