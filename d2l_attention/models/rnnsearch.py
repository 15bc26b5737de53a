"""RNNsearch, the model of Bahdanau et al., as the paper describes it."""

from d2l_attention._checks import check_dict, check_positive
from d2l_attention.layers.compiled_loops import scan_states
from d2l_attention.layers.reshaping import reshape
from d2l_attention.layers.scoring import AdditiveAttention
from d2l_attention.models.recurrent import (
    GatedUnit,
    gated_states,
    gated_step,
)
from d2l_attention.models.seq2seq import Seq2Seq
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class RNNSearch(Seq2Seq):
    """A translator that learns to align and to translate together.

        h_j = [→h_j; ←h_j],  s_0 = tanh(W_s ←h_1)
        α_i = softmax_j(v_aᵀ tanh(W_a s_{i−1} + U_a h_j)),  c_i = Σ_j α_ij h_j
        s_i = gated unit of (E y_{i−1}, c_i, s_{i−1})
        t̃_i = U_o s_{i−1} + V_o E y_{i−1} + C_o c_i
        t_i = max over pairs of t̃_i,  logits_i = W_o t_i

    Source: Bahdanau et al. (2015), arXiv:1409.0473, appendix A; document 003,
    section 1, which forgets V_o. As in the paper, only the output has a bias.

    Args:
        source_vocab_size, target_vocab_size: Positive ints, numbers K_x and K_y
            of token ids.
        dim: Positive int, number n of hidden units in each direction.
        num_layers: 1, as in the paper.
        embedding_dim: Positive int, number m of features of the embeddings;
            None = `dim`.
        alignment_dim: Positive int, number n′ of hidden units of the alignment
            model; None = `dim`.
        maxout_dim: Positive int, number l of pairs in the maxout layer; None =
            half of `dim`.
        dropout: Float in [0, 1), rate of dropout on embedded tokens and on t.

    The call is that of `FixedContextSeq2Seq`, but the dict of weights holds
    `"decoder/attention"` `(B, 1, T, S)`. Row t belongs to the token that step
    t predicts.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import RNNSearch
        >>> model = RNNSearch(9, 7, dim=4)
        >>> source, target = np.array([[3, 0, 0]]), np.array([[1, 5]])
        >>> inputs = {"source": source, "target": target}
        >>> _, maps = model(inputs, return_attention_scores=True)
        >>> np.array(maps["decoder/attention"])[0, 0].tolist()  # no padding
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        dim,
        num_layers=1,
        *,
        embedding_dim=None,
        alignment_dim=None,
        maxout_dim=None,
        **options,
    ):
        super().__init__(
            source_vocab_size, target_vocab_size, dim, num_layers, **options
        )
        if num_layers != 1:
            raise ValueError(
                "The model of the paper has one layer. Received: "
                f"num_layers={num_layers}."
            )
        self.add_embeddings(dim if embedding_dim is None else embedding_dim)
        self.alignment_dim = check_positive("alignment_dim", alignment_dim, dim)
        self.maxout_dim = check_positive(
            "maxout_dim", maxout_dim, max(dim // 2, 1)
        )
        self.forward_unit = self._gated_unit("forward", W=self.embedding_dim)
        self.backward_unit = self._gated_unit("backward", W=self.embedding_dim)
        self.decoder = self._gated_unit(
            "decoder", W=self.embedding_dim, C=2 * dim
        )
        self.attention = AdditiveAttention(
            self.alignment_dim, dtype=self.dtype_policy
        )

    def _gated_unit(self, name, **inputs):
        return GatedUnit(self.dim, inputs, name=name, dtype=self.dtype_policy)

    def build(self, input_shape):
        n, m, num_pairs = self.dim, self.embedding_dim, self.maxout_dim
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.build((None, None))
        for unit in (self.forward_unit, self.backward_unit, self.decoder):
            unit.build()
        self.attention.build((None, None, n), (None, None, 2 * n))
        self.start_kernel = self.add_weight((n, n), name="W_s")
        self.readout = {
            name: self.add_weight((size, 2 * num_pairs), name=name)
            for name, size in (("U_o", n), ("V_o", m), ("C_o", 2 * n))
        }
        self.output_layer.build((None, None, num_pairs))

    def matrices(self):
        """Dict of every matrix of document 003, by its name, in its shape.

        The document multiplies matrix times vector, Keras vector times
        matrix. So each matrix here is the transpose of a variable. The names
        of the encoder's matrices begin with → or ←, by direction; Ē is the
        source embedding.
        """
        matrices = {
            "Ē": self.source_embedding.embeddings,
            "E": self.target_embedding.embeddings,
            "W_s": self.start_kernel,
            "W_a": self.attention.query_kernel,
            "U_a": self.attention.key_kernel,
            "W_o": self.output_layer.kernel,
            **self.readout,
            **self.decoder.matrices,
        }
        for arrow, weights in (
            ("→", self.forward_unit),
            ("←", self.backward_unit),
        ):
            for name, matrix in weights.matrices.items():
                matrices[arrow + name] = matrix
        matrices = {name: ops.transpose(x) for name, x in matrices.items()}
        return {
            **matrices,
            "v_a": ops.convert_to_tensor(self.attention.score_kernel),
        }

    def annotate(self, source, training=None):
        """Annotations h `(B, S, 2n)`, ←h_1 `(B, n)` and the mask `(B, S)`."""
        mask = ops.not_equal(source, 0)
        x = self.source_embedding(source)  # (B, S, m)
        x = self.dropout_layer(x, training=training)
        ahead = gated_states(x, mask, self.forward_unit)  # (B, S, n)
        back = gated_states(
            ops.flip(x, 1), ops.flip(mask, 1), self.backward_unit
        )
        annotations = ops.concatenate([ahead, ops.flip(back, 1)], axis=-1)
        return annotations, back[:, -1], mask

    def encode(self, source, training=None):
        """The memory, and the decoder's first state, with no attention yet."""
        annotations, first, mask = self.annotate(source, training)
        memory = {
            "value": annotations,  # (B, S, 2n)
            "key": self.attention.project_key(annotations),  # (B, S, n′)
            "mask": mask,  # (B, S)
        }
        start_kernel = ops.cast(self.start_kernel, first.dtype)
        hidden = ops.tanh(ops.matmul(first, start_kernel))  # s_0, (B, n)
        state = {
            "hidden": hidden,
            "context": ops.zeros_like(annotations[:, 0]),
            "attention": ops.zeros_like(annotations[:, :, 0]),
        }
        return memory, state

    def advance(self, projected, hidden, memory, joined):
        """c_i, α_i and s_i, from E y_{i−1} projected and from s_{i−1}."""
        context, weights = self.attention.attend(
            self.attention.project_query(hidden)[:, None],
            memory["key"],
            memory["value"],
            memory["mask"][:, None],
        )
        context = context[:, 0]  # (B, 2n)
        projected = projected + ops.matmul(context, joined["C"])  # (B, 3n)
        return {
            "hidden": gated_step(projected, hidden, joined["U"]),  # (B, n)
            "context": context,
            "attention": ops.cast(weights[:, 0], context.dtype),  # (B, S)
        }

    def read_out(self, before, embedded, context, training=None):
        """Logits from s_{i−1}, E y_{i−1} and c_i: one maxout layer."""
        t = (
            self._times("U_o", before)
            + self._times("V_o", embedded)
            + self._times("C_o", context)
        )  # (…, 2l)
        pairs = reshape(t, (*ops.shape(t)[:-1], t.shape[-1] // 2, 2))
        t = self.dropout_layer(ops.max(pairs, axis=-1), training=training)
        return self.output_layer(t)  # (…, l) to (…, target_vocab_size)

    def _times(self, name, x):
        """x times one matrix of the maxout layer, `(…, 2l)`."""
        return ops.matmul(x, ops.cast(self.readout[name], x.dtype))

    def call(self, inputs, training=None, return_attention_scores=False):
        check_dict(inputs, "source", "target")
        memory, state = self.encode(inputs["source"], training)
        embedded = self.target_embedding(inputs["target"])  # (B, T, m)
        embedded = self.dropout_layer(embedded, training=training)
        joined = {letter: self.decoder.joined(letter) for letter in "WCU"}
        states = scan_states(
            lambda state, x: self.advance(x, state["hidden"], memory, joined),
            state,
            ops.swapaxes(ops.matmul(embedded, joined["W"]), 0, 1),
        )  # all states, (T, B, …)
        states = {name: ops.swapaxes(x, 0, 1) for name, x in states.items()}
        before = ops.concatenate(
            [state["hidden"][:, None], states["hidden"][:, :-1]], axis=1
        )  # s_0 … s_{T−1}, (B, T, n)
        logits = self.read_out(before, embedded, states["context"], training)
        maps = {"decoder/attention": states["attention"][:, None]}
        return (logits, maps) if return_attention_scores else logits

    def start(self, source):
        memory, state = self.encode(source, training=False)
        return {"memory": memory, **state}

    def step(self, token, state):
        memory, before = state["memory"], state["hidden"]
        embedded = self.target_embedding(token)  # (B, m)
        joined = {letter: self.decoder.joined(letter) for letter in "WCU"}
        projected = ops.matmul(embedded, joined["W"])  # (B, 3n)
        state = self.advance(projected, before, memory, joined)
        logits = self.read_out(before, embedded, state["context"])
        return logits, {"memory": memory, **state}
