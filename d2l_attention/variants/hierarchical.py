"""Hierarchical attention: words make sentences, sentences a document."""

from d2l_attention._checks import check_positive
from d2l_attention.masking import masked_softmax
from d2l_attention.recurrence import gru
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


@_register
class AttentionPooling(keras.Layer):
    """One vector for a sequence: additive attention with a learned query.

        u_t = tanh(W h_t + b),  a = softmax_t(u_tᵀ q),  s = Σ_t a_t h_t

    Source: Yang et al. (2016), NAACL, section 2.2; documents 000, section
    2.2.4, and 003, where the query may be learned.

    Args:
        units: Positive int, width U of the hidden layer.

    Call arguments:
        x: Float tensor `(…, T, D)`.
        mask: Bool tensor `(…, T)`, True at what counts.
        return_attention_scores: If True, also return the weights.

    Returns:
        Float tensor `(…, D)`, and if asked the weights `(…, T)`. Where
        nothing counts, both are 0.

    Raises:
        ValueError: If `units` is not positive.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AttentionPooling
        >>> x, words = np.ones((1, 3, 4)), np.array([[True, True, False]])
        >>> pooled, weights = AttentionPooling(units=5)(
        ...     x, mask=words, return_attention_scores=True
        ... )
        >>> tuple(pooled.shape), np.array(weights).round(2).tolist()
        ((1, 4), [[0.5, 0.5, 0.0]])
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = check_positive("units", units)
        self.hidden = keras.layers.Dense(
            self.units, "tanh", dtype=self.dtype_policy
        )
        self.supports_masking = True

    def build(self, x_shape):
        self.hidden.build(x_shape)
        # Not zeros: an even look has no gradient towards W.
        normal = keras.initializers.RandomNormal(stddev=0.1)
        self.query = self.add_weight((self.units,), normal, name="q")

    def call(self, x, mask=None, return_attention_scores=False):
        scores = ops.sum(self.hidden(x) * self.query, axis=-1)
        weights = masked_softmax(scores, mask)
        pooled = ops.sum(weights[..., None] * x, axis=-2)
        return (pooled, weights) if return_attention_scores else pooled

    def compute_mask(self, x, mask=None):
        return None  # there are no positions any more

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-2], x_shape[-1])

    def compute_output_spec(self, x, mask=None, return_attention_scores=False):
        shape = self.compute_output_shape(x.shape)
        pooled = keras.KerasTensor(shape, self.compute_dtype)
        weights = keras.KerasTensor(x.shape[:-1], self.compute_dtype)
        return (pooled, weights) if return_attention_scores else pooled

    def get_config(self):
        return {**super().get_config(), "units": self.units}


@_register
class HierarchicalAttentionNetwork(keras.Model):
    """Classifies documents (HAN), and shows which words and sentences count.

        h_it = [→GRU; ←GRU] of the words of sentence i,  s_i = pool_t(h_it)
        h_i = [→GRU; ←GRU] of the sentences,  v = pool_i(h_i)
        logits = W v + b

    Source: Yang et al. (2016), "Hierarchical Attention Networks for Document
    Classification", NAACL, section 2; document 000, section 2.2.4.

    Args:
        vocab_size: Positive int, number of word ids; 0 is padding.
        dim: Positive int, D of the embeddings and of each direction.
        units: Positive int, U of both poolings.
        num_classes: Positive int, number of classes of documents.

    Call arguments:
        inputs: Int tensor `(B, sentences, words)`.
        training: Changes nothing; Keras's own loops give it.
        return_attention_scores: If True, also return a dict of `"words"`
            `(B, sentences, words)` and `"sentences"` `(B, sentences)`.
            Padding, words and whole sentences, has weight 0.

    Returns:
        Logits `(B, num_classes)`.

    Raises:
        ValueError: If a size is not positive.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import HierarchicalAttentionNetwork
        >>> model = HierarchicalAttentionNetwork(9, 4, units=5, num_classes=2)
        >>> document = np.array([[[3, 5, 0], [4, 0, 0], [0, 0, 0]]])
        >>> logits, maps = model(document, return_attention_scores=True)
        >>> tuple(logits.shape), tuple(maps["words"].shape)
        ((1, 2), (1, 3, 3))
        >>> np.array(maps["sentences"])[0, 2].tolist()  # without words
        0.0
    """

    def __init__(self, vocab_size, dim, units, num_classes, **kwargs):
        super().__init__(**kwargs)
        sizes = {
            "vocab_size": vocab_size,
            "dim": dim,
            "units": units,
            "num_classes": num_classes,
        }
        self.sizes = {
            name: check_positive(name, value) for name, value in sizes.items()
        }
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(vocab_size, dim, **policy)
        self.word_cells, self.sentence_cells = (
            [keras.layers.GRUCell(dim, **policy) for _ in range(2)]
            for _ in range(2)
        )
        self.word_pooling, self.sentence_pooling = (
            AttentionPooling(units, **policy) for _ in range(2)
        )
        self.output_layer = keras.layers.Dense(
            num_classes, dtype=self.dtype_policy.variable_dtype
        )

    def build(self, input_shape):
        d = self.sizes["dim"]
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
        rows = ops.reshape(inputs, (-1, words))
        x = _both_ways(self.embedding(rows), rows != 0, self.word_cells)
        s, of_words = self.word_pooling(
            x, mask=rows != 0, return_attention_scores=True
        )
        s = ops.reshape(s, (batch, sentences, s.shape[-1]))
        of_words = ops.reshape(of_words, (batch, sentences, words))
        mask = ops.any(inputs != 0, axis=-1)
        x = _both_ways(s, mask, self.sentence_cells)
        v, of_sentences = self.sentence_pooling(
            x, mask=mask, return_attention_scores=True
        )
        logits = self.output_layer(v)
        maps = {"words": of_words, "sentences": of_sentences}
        return (logits, maps) if return_attention_scores else logits

    def get_config(self):
        return {**super().get_config(), **self.sizes}


def _both_ways(x, mask, cells):
    """States of two GRUs `(B, T, 2U)`, one from each end."""
    ahead, _ = gru(x, mask, cells[0])
    back, _ = gru(ops.flip(x, 1), ops.flip(mask, 1), cells[1])
    return ops.concatenate([ahead, ops.flip(back, 1)], axis=-1)
