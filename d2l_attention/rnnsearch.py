"""RNNsearch, the model of the paper: it searches the source as it writes."""

from d2l_attention._checks import check_dict, check_positive
from d2l_attention.recurrence import scan_states
from d2l_attention.scoring import AdditiveAttention
from d2l_attention.seq2seq import Seq2Seq
import keras
from keras import ops


class GatedWeights(keras.Layer):
    """The matrices of one gated recurrent unit with one or more inputs.

        z = σ(Σ_i x_i W_z,i + s U_z),  r = σ(Σ_i x_i W_r,i + s U_r)
        s̃ = tanh(Σ_i x_i W_i + (r ∘ s) U)
        s′ = (1 − z) ∘ s + z ∘ s̃

    Unlike `keras.layers.GRUCell`, r gates s before U (`reset_after=False`),
    z is the share of the new (Keras's z is that of the old), and there are
    no biases.

    Args:
        units: Positive int, n.
        inputs: Dict of letter to the size of that input, `{"W": m}`.
    """

    def __init__(self, units, inputs, **kwargs):
        super().__init__(**kwargs)
        self.units, self.inputs = units, inputs

    def build(self):
        n = self.units
        self.matrices = {}
        for letter, size in [*self.inputs.items(), ("U", n)]:
            for gate in ("_z", "_r", ""):
                kind = "orthogonal" if letter == "U" else "glorot_uniform"
                self.matrices[letter + gate] = self.add_weight(
                    (size, n), kind, name=letter + gate
                )

    def joined(self, letter):
        """`(size, 3n)`: of z, of r and of the candidate, side by side."""
        gates = [self.matrices[letter + gate] for gate in ("_z", "_r", "")]
        return ops.cast(ops.concatenate(gates, axis=1), self.compute_dtype)


def gated_step(projected, state, recurrent):
    """s′ from the projected inputs `(B, 3n)` and s `(B, n)`."""
    n = state.shape[-1]
    gates = projected[:, : 2 * n] + ops.matmul(state, recurrent[:, : 2 * n])
    z, r = ops.split(ops.sigmoid(gates), 2, axis=-1)
    candidate = projected[:, 2 * n :]
    candidate += ops.matmul(r * state, recurrent[:, 2 * n :])
    return (1 - z) * state + z * ops.tanh(candidate)


@keras.saving.register_keras_serializable("d2l_attention")
class RNNSearch(Seq2Seq):
    """A translator that aligns and translates jointly.

        h_j = [→h_j; ←h_j],  s_0 = tanh(W_s ←h_1)
        α_i = softmax_j(v_aᵀ tanh(W_a s_{i−1} + U_a h_j)),  c_i = Σ_j α_ij h_j
        s_i = gated unit of (E y_{i−1}, c_i, s_{i−1})
        t̃_i = U_o s_{i−1} + V_o E y_{i−1} + C_o c_i
        t_i = max over pairs of t̃_i,  logits_i = W_o t_i

    Source: Bahdanau et al. (2015), arXiv:1409.0473, appendix A; document 003,
    section 1, which forgets V_o. As there, without biases but for one at the
    output.

    Args:
        source_vocab_size, target_vocab_size: Positive ints, numbers K_x and
            K_y of token ids.
        dim: Positive int, n hidden units in each direction.
        num_layers: 1; the paper's model has one.
        dropout: Float in [0, 1), rate of dropout on embedded tokens and on t.
        embedding_dim: Positive int, m features of the embeddings; None =
            `dim`.
        alignment_dim: Positive int, n′ hidden units of the alignment model;
            None = `dim`.
        maxout_dim: Positive int, l pairs in the maxout layer; None = half of
            `dim`.

    Call arguments:
        inputs: Dict of int tensors: `"source"` `(B, S)` and `"target"`
            `(B, T)`, the target as the decoder sees it, beginning with the
            start token. Id 0 is padding.
        training: Whether dropout is active.
        return_attention_scores: If True, also return a dict of the weights
            `"decoder/attention"` `(B, 1, T, S)`. Row t belongs to the token
            that step t predicts.

    Returns:
        Logits `(B, T, target_vocab_size)`, of float32 or wider.

    Raises:
        ValueError: If a size is not positive, `num_layers` is not 1, or
            `dropout` is outside [0, 1).

    Example:
        >>> import numpy as np
        >>> from d2l_attention import RNNSearch
        >>> model = RNNSearch(9, 7, dim=4)
        >>> source, target = np.array([[3, 0, 0]]), np.array([[1, 5]])
        >>> logits, maps = model(
        ...     {"source": source, "target": target},
        ...     return_attention_scores=True,
        ... )
        >>> tuple(logits.shape)
        (1, 2, 7)
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
        dropout=0.0,
        embedding_dim=None,
        alignment_dim=None,
        maxout_dim=None,
        **kwargs,
    ):
        more = {
            "embedding_dim": dim if embedding_dim is None else embedding_dim,
            "alignment_dim": dim if alignment_dim is None else alignment_dim,
            "maxout_dim": max(dim // 2, 1)
            if maxout_dim is None
            else maxout_dim,
        }
        more = {
            name: check_positive(name, value) for name, value in more.items()
        }
        super().__init__(
            source_vocab_size,
            target_vocab_size,
            dim,
            num_layers,
            dropout=dropout,
            **kwargs,
        )
        self.add_embeddings(more["embedding_dim"])
        if num_layers != 1:
            raise ValueError(
                "The model of the paper has one layer. Received: "
                f"num_layers={num_layers}."
            )
        self.more_sizes = more
        policy = {"dtype": self.dtype_policy}
        m = more["embedding_dim"]
        self.forward, self.backward, self.decoder = (
            GatedWeights(dim, inputs, name=name, **policy)
            for name, inputs in (
                ("forward", {"W": m}),
                ("backward", {"W": m}),
                ("decoder", {"W": m, "C": 2 * dim}),
            )
        )
        self.attention = AdditiveAttention(more["alignment_dim"], **policy)

    def build(self, input_shape):
        n = self.sizes["dim"]
        m, units = (
            self.more_sizes[name] for name in ("embedding_dim", "maxout_dim")
        )
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.build((None, None))
        for weights in (self.forward, self.backward, self.decoder):
            weights.build()
        self.attention.build((None, None, n), (None, None, 2 * n))
        self.start_kernel = self.add_weight((n, n), name="W_s")
        self.readout = {
            name: self.add_weight((size, 2 * units), name=name)
            for name, size in (("U_o", n), ("V_o", m), ("C_o", 2 * n))
        }
        self.output_layer.build((None, None, units))

    def matrices(self):
        """Every matrix of document 003 by its name, in its shape.

        The document's matrices stand left of their vector, Keras's right of
        it: each is the transpose of the variable. Those of the encoder's two
        directions begin with an arrow; Ē is the source embedding.
        """
        found = {
            "Ē": self.source_embedding.embeddings,
            "E": self.target_embedding.embeddings,
            "W_s": self.start_kernel,
            "W_a": self.attention.query_kernel,
            "U_a": self.attention.key_kernel,
            "W_o": self.output_layer.kernel,
            **self.readout,
            **self.decoder.matrices,
        }
        for arrow, weights in (("→", self.forward), ("←", self.backward)):
            for name, matrix in weights.matrices.items():
                found[arrow + name] = matrix
        found = {name: ops.transpose(x) for name, x in found.items()}
        return {
            **found,
            "v_a": ops.convert_to_tensor(self.attention.score_kernel),
        }

    def annotate(self, source, training=None):
        """Annotations h `(B, S, 2n)`, ←h_1 `(B, n)` and the mask `(B, S)`."""
        mask = ops.not_equal(source, 0)
        x = self.dropout_layer(self.source_embedding(source), training=training)
        ahead = _states(x, mask, self.forward)
        back = _states(ops.flip(x, 1), ops.flip(mask, 1), self.backward)
        annotations = ops.concatenate([ahead, ops.flip(back, 1)], axis=-1)
        return annotations, back[:, -1], mask

    def encode(self, source, training=None):
        """The memory, and s_0 with no attention yet."""
        annotations, first, mask = self.annotate(source, training)
        memory = {
            "value": annotations,
            "key": self.attention.project_key(annotations),
            "mask": mask,
        }
        start_kernel = ops.cast(self.start_kernel, first.dtype)
        hidden = ops.tanh(ops.matmul(first, start_kernel))
        state = {
            "hidden": hidden,
            "context": ops.zeros_like(annotations[:, 0]),
            "attention": ops.zeros_like(annotations[:, :, 0]),
        }
        return memory, state

    def advance(self, projected, hidden, memory, joined):
        """c_i, α_i and s_i from E y_{i−1}, projected, and s_{i−1}."""
        context, weights = self.attention.attend(
            self.attention.project_query(hidden)[:, None],
            memory["key"],
            memory["value"],
            memory["mask"][:, None],
        )
        context = context[:, 0]
        projected = projected + ops.matmul(context, joined["C"])
        return {
            "hidden": gated_step(projected, hidden, joined["U"]),
            "context": context,
            "attention": ops.cast(weights[:, 0], context.dtype),
        }

    def read_out(self, before, embedded, context, training=None):
        """Logits from s_{i−1}, E y_{i−1} and c_i: one maxout layer."""
        t = sum(
            ops.matmul(x, ops.cast(self.readout[name], x.dtype))
            for name, x in (
                ("U_o", before),
                ("V_o", embedded),
                ("C_o", context),
            )
        )
        pairs = ops.reshape(t, (*ops.shape(t)[:-1], t.shape[-1] // 2, 2))
        t = self.dropout_layer(ops.max(pairs, axis=-1), training=training)
        return self.output_layer(t)

    def call(self, inputs, training=None, return_attention_scores=False):
        check_dict(inputs, "source", "target")
        memory, state = self.encode(inputs["source"], training)
        embedded = self.target_embedding(inputs["target"])
        embedded = self.dropout_layer(embedded, training=training)
        joined = {letter: self.decoder.joined(letter) for letter in "WCU"}
        states = scan_states(
            lambda state, x: self.advance(x, state["hidden"], memory, joined),
            state,
            ops.swapaxes(ops.matmul(embedded, joined["W"]), 0, 1),
        )
        states = {name: ops.swapaxes(x, 0, 1) for name, x in states.items()}
        before = ops.concatenate(
            [state["hidden"][:, None], states["hidden"][:, :-1]], axis=1
        )
        logits = self.read_out(before, embedded, states["context"], training)
        maps = {"decoder/attention": states["attention"][:, None]}
        return (logits, maps) if return_attention_scores else logits

    def start(self, source):
        memory, state = self.encode(source, training=False)
        return {"memory": memory, **state}

    def step(self, token, state):
        memory, before = state["memory"], state["hidden"]
        embedded = self.target_embedding(token)
        joined = {letter: self.decoder.joined(letter) for letter in "WCU"}
        projected = ops.matmul(embedded, joined["W"])
        state = self.advance(projected, before, memory, joined)
        logits = self.read_out(before, embedded, state["context"])
        return logits, {"memory": memory, **state}

    def get_config(self):
        return {**super().get_config(), **self.more_sizes}


def _states(x, mask, weights):
    """All states of one direction; behind the last token the state stays."""
    recurrent = weights.joined("U")
    inputs = (
        ops.swapaxes(ops.matmul(x, weights.joined("W")), 0, 1),
        ops.swapaxes(mask, 0, 1)[..., None],
    )

    def step(state, inputs):
        projected, is_token = inputs
        moved = gated_step(projected, state, recurrent)
        return ops.where(is_token, moved, state)

    start = ops.zeros((ops.shape(x)[0], weights.units), x.dtype)
    return ops.swapaxes(scan_states(step, start, inputs), 0, 1)
