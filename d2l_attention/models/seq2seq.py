"""The base of the sequence-to-sequence models, and the plainest of them.

Training uses `call`; decoding uses the step protocol, `start` and `step`.
"""

from d2l_attention._checks import check_dict, check_positive, check_rate
from d2l_attention._config import Configurable
from d2l_attention.layers.base import wide
from d2l_attention.layers.compiled_loops import scan_states
from d2l_attention.models.recurrent import GRUParameters, gru, gru_step
import keras
from keras import ops


class Seq2Seq(Configurable, keras.Model):
    """What training and decoding need of a sequence-to-sequence model.

    `FixedContextSeq2Seq` describes the arguments and the call.
    """

    # Keras's default, at most 0.05, is small beside a recurrent state. With it
    # chapter 05's model learns more slowly: after 8 epochs its BLEU is 93.0,
    # not 94.8.
    embedding_stddev = 0.3

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        dim,
        num_layers,
        *,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.source_vocab_size = check_positive(
            "source_vocab_size", source_vocab_size
        )
        self.target_vocab_size = check_positive(
            "target_vocab_size", target_vocab_size
        )
        self.dim = check_positive("dim", dim)
        self.num_layers = check_positive("num_layers", num_layers)
        self.dropout = check_rate("dropout", dropout)
        # Keras does not pass a model's dtype on to its layers.
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )
        # Logits of half precision would make the loss rough.
        self.output_layer = keras.layers.Dense(
            self.target_vocab_size, dtype=wide(self.dtype_policy.variable_dtype)
        )

    def add_embeddings(self, embedding_dim):
        """Make the two embeddings, with `embedding_dim` features each."""
        self.embedding_dim = check_positive("embedding_dim", embedding_dim)
        self.source_embedding = self._embedding(self.source_vocab_size)
        self.target_embedding = self._embedding(self.target_vocab_size)

    def _embedding(self, vocab_size):
        return keras.layers.Embedding(
            vocab_size,
            self.embedding_dim,
            keras.initializers.RandomNormal(stddev=self.embedding_stddev),
            dtype=self.dtype_policy,
        )

    def start(self, source):
        """Read `source` `(B, S)`; the state before the first target token.

        The state is a nest of tensors, each with the batch as its first axis.
        """
        raise NotImplementedError

    def step(self, token, state):
        """Read a token `(B,)`: the logits `(B, vocab_size)`, and the state."""
        raise NotImplementedError


class RecurrentSeq2Seq(Seq2Seq):
    """A recurrent encoder, and a recurrent decoder that reads a context.

        h_1 … h_S = GRU(source)
        c_t = read(s_{t−1}, memory)
        s_t = GRU([c_t; embedded target_t], s_{t−1})
        logits_t = W s_t + b

    A subclass says what the decoder remembers of the source (`memorize`), and
    how the decoder reads the context from this memory (`read`).
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        dim,
        num_layers,
        *,
        embedding_dim=None,
        **options,
    ):
        super().__init__(
            source_vocab_size, target_vocab_size, dim, num_layers, **options
        )
        self.add_embeddings(dim if embedding_dim is None else embedding_dim)
        self.encoder_cells = self._cells()
        self.decoder_cells = self._cells()

    def _cells(self):
        return [
            keras.layers.GRUCell(self.dim, dtype=self.dtype_policy)
            for _ in range(self.num_layers)
        ]

    def build(self, input_shape):
        dim, m = self.dim, self.embedding_dim
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.build((None, None))
        for i, cell in enumerate(self.encoder_cells):
            cell.build((None, m if i == 0 else dim))
        for i, cell in enumerate(self.decoder_cells):
            cell.build((None, dim + m if i == 0 else dim))
        self.output_layer.build((None, None, dim))

    def memorize(self, annotations, final, mask):
        """What the decoder keeps of the source; every tensor batch first.

        `annotations` `(B, S, D)` are the top layer's states, `final` `(B, D)`
        the last of them; `mask` `(B, S)` is True at source tokens.
        """
        raise NotImplementedError

    def read(self, query, memory):
        """The context `(B, D)` of a state, and a dict of weights `(B, S)`."""
        raise NotImplementedError

    def encode(self, source, training=None):
        mask = ops.not_equal(source, 0)  # (B, S)
        x = self.source_embedding(source)  # (B, S, M), M = embedding_dim
        x = self.dropout_layer(x, training=training)
        hidden = []
        for cell in self.encoder_cells:
            x, last = gru(x, mask, cell)  # (B, S, D) and (B, D)
            hidden.append(last)
        memory = self.memorize(x, hidden[-1], mask)
        _, weights = self.read(hidden[-1], memory)
        unread = {name: ops.zeros_like(w) for name, w in weights.items()}
        return memory, {"hidden": hidden, **unread}

    def advance(self, embedded, state, memory, cells):
        """The decoder's state after one more token, `embedded` `(B, M)`."""
        context, weights = self.read(state["hidden"][-1], memory)  # (B, D)
        x = ops.concatenate([context, embedded], axis=-1)  # (B, D + M)
        hidden = []
        for cell, previous in zip(cells, state["hidden"], strict=True):
            x = gru_step(cell.project(x), previous, cell)  # (B, D)
            hidden.append(x)
        return {"hidden": hidden, **weights}

    def call(self, inputs, training=None, return_attention_scores=False):
        check_dict(inputs, "source", "target")
        memory, state = self.encode(inputs["source"], training)
        embedded = self.target_embedding(inputs["target"])  # (B, T, M)
        embedded = self.dropout_layer(embedded, training=training)
        cells = [GRUParameters.of(cell) for cell in self.decoder_cells]
        states = scan_states(
            lambda state, x: self.advance(x, state, memory, cells),
            state,
            ops.swapaxes(embedded, 0, 1),
        )  # all states, (T, B, …)
        top = ops.swapaxes(states.pop("hidden")[-1], 0, 1)  # (B, T, D)
        top = self.dropout_layer(top, training=training)
        logits = self.output_layer(top)  # (B, T, target_vocab_size)
        maps = {  # (T, B, S) to (B, 1, T, S)
            f"decoder/{name}": ops.swapaxes(weights, 0, 1)[:, None]
            for name, weights in states.items()
        }
        return (logits, maps) if return_attention_scores else logits

    def start(self, source):
        memory, state = self.encode(source, training=False)
        return {"memory": memory, **state}

    def step(self, token, state):
        state = dict(state)
        memory = state.pop("memory")
        embedded = self.target_embedding(token)  # (B, M)
        cells = [GRUParameters.of(cell) for cell in self.decoder_cells]
        state = self.advance(embedded, state, memory, cells)
        logits = self.output_layer(state["hidden"][-1])  # (B, vocab_size)
        return logits, {"memory": memory, **state}


@keras.saving.register_keras_serializable("d2l_attention")
class FixedContextSeq2Seq(RecurrentSeq2Seq):
    """An encoder–decoder without attention: all steps have one context.

        c_t = h_S

    Source: Cho et al. (2014), arXiv:1406.1078, section 2.2; document 001,
    Bahdanau attention, as what attention replaces.

    Args:
        source_vocab_size, target_vocab_size: Positive ints, numbers of ids.
        dim: Positive int, size D of the hidden states.
        num_layers: Positive int, number of layers on each side.
        embedding_dim: Positive int, features of the embeddings; None = `dim`.
        dropout: Float in [0, 1), rate of dropout on embedded tokens and on the
            decoder's states before the output layer.

    Call arguments:
        inputs: Dict of int tensors: `"source"` `(B, S)` and `"target"`
            `(B, T)`, the target as the decoder sees it, beginning with the
            start token. Id 0 is padding.
        training: Whether dropout is active.
        return_attention_scores: If True, also return an empty dict, because
            there are no weights.

    Returns:
        Logits `(B, T, target_vocab_size)`, of float32 or wider.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import FixedContextSeq2Seq
        >>> model = FixedContextSeq2Seq(9, 7, dim=4, num_layers=1)
        >>> source = np.array([[3, 4, 0], [5, 6, 8]])
        >>> target = np.array([[1, 5], [1, 3]])
        >>> tuple(model({"source": source, "target": target}).shape)
        (2, 2, 7)
    """

    def memorize(self, annotations, final, mask):
        return final

    def read(self, query, memory):
        return memory, {}
