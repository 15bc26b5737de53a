"""The shared base of the sequence-to-sequence models, and its plainest one.

A model reads a source sentence and writes a target sentence, one token a
step. Whatever happens inside, training sees `call` and decoding sees the
step protocol, `start` and `step`.
"""

from d2l_attention._checks import check_dict, check_positive, check_rate
from d2l_attention.recurrence import (
    GRUWeights,
    gru,
    gru_step,
    scan_states,
)
import keras
from keras import ops


class Seq2Seq(keras.Model):
    """What training and decoding ask of a sequence-to-sequence model.

    Args:
        source_vocab_size: Positive int, number of source token ids.
        target_vocab_size: Positive int, number of target token ids.
        dim: Positive int, size D of embeddings and hidden states.
        num_layers: Positive int, number of layers on each side.
        dropout: Float in [0, 1).

    Call arguments:
        inputs: Dict of int tensors: `"source"` `(B, S)` and `"target"`
            `(B, T)`, the target as the decoder sees it, beginning with the
            start token. Id 0 is padding.
        return_attention_scores: If True, also return a dict name → weights
            `(B, H, T, S)`. Row t belongs to the token that step t predicts.

    Returns:
        Logits `(B, T, target_vocab_size)`, of float32 or wider.

    Raises:
        ValueError: If a size is not positive or `dropout` outside [0, 1).
    """

    # Keras's default, at most 0.05, is small beside a recurrent state: chapter
    # 05's model then learns more slowly (BLEU 93.0 for 94.8 after 8 epochs).
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
        sizes = {
            "source_vocab_size": source_vocab_size,
            "target_vocab_size": target_vocab_size,
            "dim": dim,
            "num_layers": num_layers,
        }
        self.sizes = {
            name: check_positive(name, value) for name, value in sizes.items()
        }
        self.dropout = check_rate("dropout", dropout)
        policy = {"dtype": self.dtype_policy}  # Keras does not hand it down
        self.dropout_layer = keras.layers.Dropout(dropout, **policy)
        # Under mixed precision the logits stay float32, or the loss is rough.
        self.output_layer = keras.layers.Dense(
            self.sizes["target_vocab_size"],
            dtype=self.dtype_policy.variable_dtype,
        )

    def add_embeddings(self, embedding_dim):
        """Make the two embeddings, of as many features as a model wants."""
        self.embedding_dim = check_positive("embedding_dim", embedding_dim)
        self.source_embedding, self.target_embedding = (
            keras.layers.Embedding(
                self.sizes[f"{side}_vocab_size"],
                self.embedding_dim,
                keras.initializers.RandomNormal(stddev=self.embedding_stddev),
                dtype=self.dtype_policy,
            )
            for side in ("source", "target")
        )

    def start(self, source):
        """Read `source` `(B, S)`; the state before the first target token.

        The state is a nest of tensors, each with the batch as first axis.
        """
        raise NotImplementedError

    def step(self, token, state):
        """One token `(B,)` further: `(logits (B, vocab_size), state)`."""
        raise NotImplementedError

    def get_config(self):
        config = {**self.sizes, "dropout": self.dropout}
        return {**super().get_config(), **config}


class RecurrentSeq2Seq(Seq2Seq):
    """A recurrent encoder and a recurrent decoder with a context.

        h_1 … h_S = GRU(source)
        c_t = read(s_{t−1}, memory)
        s_t = GRU([c_t; embedded target_t], s_{t−1})
        logits_t = W s_t + b

    A subclass says what the decoder remembers of the source (`memorize`) and
    how it reads the context from it (`read`).
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        dim,
        num_layers,
        *,
        dropout=0.0,
        embedding_dim=None,
        **kwargs,
    ):
        super().__init__(
            source_vocab_size,
            target_vocab_size,
            dim,
            num_layers,
            dropout=dropout,
            **kwargs,
        )
        dim, layers = self.sizes["dim"], range(self.sizes["num_layers"])
        self.add_embeddings(dim if embedding_dim is None else embedding_dim)
        self.encoder_cells, self.decoder_cells = (
            [keras.layers.GRUCell(dim, dtype=self.dtype_policy) for _ in layers]
            for _ in ("encoder", "decoder")
        )

    def build(self, input_shape):
        dim, m = self.sizes["dim"], self.embedding_dim
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.build((None, None))
        for i, cell in enumerate(self.encoder_cells):
            cell.build((None, m if i == 0 else dim))
        for i, cell in enumerate(self.decoder_cells):
            cell.build((None, dim + m if i == 0 else dim))
        self.output_layer.build((None, None, dim))

    def memorize(self, annotations, final, mask):
        """What the decoder keeps: a nest of tensors, batch first.

        Args:
            annotations: `(B, S, D)`, the top layer at every source position.
            final: `(B, D)`, the top layer behind the last source token.
            mask: `(B, S)`, True at source tokens.
        """
        raise NotImplementedError

    def read(self, query, memory):
        """Context `(B, D)` for the query `(B, D)`, and weights by name."""
        raise NotImplementedError

    def encode(self, source, training=None):
        """The memory and the decoder's first state."""
        mask = ops.not_equal(source, 0)
        x = self.dropout_layer(self.source_embedding(source), training=training)
        hidden = []
        for cell in self.encoder_cells:
            x, last = gru(x, mask, cell)
            hidden.append(last)
        memory = self.memorize(x, hidden[-1], mask)
        _, weights = self.read(hidden[-1], memory)
        unread = {name: ops.zeros_like(w) for name, w in weights.items()}
        return memory, {"hidden": hidden, **unread}

    def advance(self, embedded, state, memory, cells):
        """The decoder's state one token further."""
        context, weights = self.read(state["hidden"][-1], memory)
        x, hidden = ops.concatenate([context, embedded], axis=-1), []
        for cell, previous in zip(cells, state["hidden"], strict=True):
            x = gru_step(cell.project(x), previous, cell)
            hidden.append(x)
        return {"hidden": hidden, **weights}

    def call(self, inputs, training=None, return_attention_scores=False):
        check_dict(inputs, "source", "target")
        memory, state = self.encode(inputs["source"], training)
        embedded = self.target_embedding(inputs["target"])
        embedded = self.dropout_layer(embedded, training=training)
        cells = [GRUWeights.of(cell) for cell in self.decoder_cells]
        states = scan_states(
            lambda state, x: self.advance(x, state, memory, cells),
            state,
            ops.swapaxes(embedded, 0, 1),
        )
        top = ops.swapaxes(states.pop("hidden")[-1], 0, 1)
        top = self.dropout_layer(top, training=training)
        logits = self.output_layer(top)
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
        embedded = self.target_embedding(token)
        cells = [GRUWeights.of(cell) for cell in self.decoder_cells]
        state = self.advance(embedded, state, memory, cells)
        logits = self.output_layer(state["hidden"][-1])
        return logits, {"memory": memory, **state}

    def get_config(self):
        return {**super().get_config(), "embedding_dim": self.embedding_dim}


@keras.saving.register_keras_serializable("d2l_attention")
class FixedContextSeq2Seq(RecurrentSeq2Seq):
    """An encoder–decoder without attention: one context for all steps.

        c_t = h_S

    Source: Cho et al. (2014), arXiv:1406.1078, section 2.2; document 001,
    Bahdanau attention, as what attention replaces.

    Args:
        source_vocab_size: Positive int, number of source token ids.
        target_vocab_size: Positive int, number of target token ids.
        dim: Positive int, size D of the hidden states.
        num_layers: Positive int, number of layers on each side.
        dropout: Float in [0, 1), rate of dropout on embedded tokens and on the
            decoder's states before the output layer.
        embedding_dim: Positive int, features of the embeddings; None = `dim`.

    Call arguments:
        inputs: Dict of int tensors: `"source"` `(B, S)` and `"target"`
            `(B, T)`, the target as the decoder sees it, beginning with the
            start token. Id 0 is padding.
        training: Whether dropout is active.
        return_attention_scores: If True, also return a dict, which is empty:
            there are no weights.

    Returns:
        Logits `(B, T, target_vocab_size)`, of float32 or wider.

    Raises:
        ValueError: If a size is not positive or `dropout` is outside [0, 1).

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
