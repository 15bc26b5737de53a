"""Pointer networks: attention as the output, an input for each answer."""

from d2l_attention._checks import check_dict, check_positive
from d2l_attention.recurrence import GRUWeights, gru_step, scan_states
from d2l_attention.scoring import AdditiveAttention
import keras
from keras import ops

MASKED = -1e9


@keras.saving.register_keras_serializable("d2l_attention")
class PointerNetwork(keras.Model):
    """Writes a sequence of places in its input, each at most once.

        e_j = W_2 tanh(W_1 x_j + b_1) + b_2,  d_0 = tanh(W_0 mean_j e_j)
        d_i = GRU(e of the place that was pointed at last, d_{i−1})
        u_ij = vᵀ tanh(W_q d_i + W_k e_j),  p(C_i = j) = softmax_j(u_ij)

    over the inputs j that were not pointed at yet. There is no weighted sum:
    the weights are the answer, so the answers are as many as the inputs,
    however many those are. The encoder has no order: permuting the inputs
    permutes the pointers.

    Source: Vinyals et al. (2015), arXiv:1506.03134, section 2.3; document
    000, section 2.2.5. Unlike the paper, as in Vinyals et al. (2016),
    arXiv:1511.06391: an encoder of a set in place of an LSTM; and chosen
    inputs are masked.

    Args:
        dim: Positive int, D features of embedded items and hidden states.

    Call arguments:
        inputs: Dict of `"items"`, float `(B, S, F)`, and `"places"`, int
            `(B, T)`, the right answers, which are fed back (teacher forcing).
            An item of NaN alone is padding.

    Returns:
        log p, `(B, T, S)`, −1e9 at what may not be chosen.

    Raises:
        ValueError: If `dim` is not positive.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PointerNetwork
        >>> model = PointerNetwork(dim=4)
        >>> items = np.arange(6.0, dtype="float32").reshape(1, 3, 2)
        >>> sorted(np.array(model.decode(items))[0].tolist())  # each once
        [0, 1, 2]
        >>> places = np.array([[2, 0, 1]])
        >>> tuple(model({"items": items, "places": places}).shape)
        (1, 3, 3)
    """

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = check_positive("dim", dim)
        policy = {"dtype": self.dtype_policy}
        self.hidden = keras.layers.Dense(dim, "tanh", **policy)
        self.embed = keras.layers.Dense(dim, **policy)
        self.start_layer = keras.layers.Dense(dim, "tanh", **policy)
        self.cell = keras.layers.GRUCell(dim, **policy)
        self.attention = AdditiveAttention(dim, **policy)

    def build(self, input_shape):
        check_dict(input_shape, "items")
        d = self.dim
        self.hidden.build(input_shape["items"])
        self.embed.build((None, None, d))
        self.start_layer.build((None, d))
        self.cell.build((None, d))
        self.attention.build((None, None, d), (None, None, d))
        self.first = self.add_weight((d,), name="first")  # before any pointer

    def encode(self, items):
        """Embedded items `(B, S, D)`, their keys, d_0, which are items."""
        present = ~ops.any(ops.isnan(items), axis=-1)
        items = ops.where(present[..., None], items, ops.zeros_like(items))
        e = self.embed(self.hidden(items))
        share = ops.cast(present, e.dtype)
        share = share / ops.sum(share, axis=-1, keepdims=True)
        start = self.start_layer(ops.einsum("bs,bsd->bd", share, e))
        return e, self.attention.project_key(e), start, present

    def point(self, state, keys, free):
        """log p `(…, S)` for decoder states `(…, D)` over free items."""
        query = self.attention.project_query(state)
        scores = self.attention.score(query, keys)
        scores = ops.where(free, ops.cast(scores, "float32"), MASKED)
        return ops.where(free, ops.log_softmax(scores, axis=-1), MASKED)

    def call(self, inputs, training=None):
        check_dict(inputs, "items", "places")
        e, keys, start, present = self.encode(inputs["items"])
        places = inputs["places"]
        pointed = ops.take_along_axis(e, places[..., None], axis=1)
        fed = self._feed(pointed[:, :-1])
        weights = GRUWeights.of(self.cell)
        states = scan_states(
            lambda state, x: gru_step(x, state, weights),
            start,
            ops.swapaxes(weights.project(fed), 0, 1),
        )
        chosen = ops.one_hot(places, ops.shape(e)[1], dtype="int32")
        before = ops.cumsum(chosen, axis=1) - chosen
        free = (before == 0) & present[:, None]
        return self.point(ops.swapaxes(states, 0, 1), keys, free)

    def _feed(self, pointed):
        """What the decoder reads: the learned first vector, then e."""
        shape = (ops.shape(pointed)[0], 1, self.dim)
        first = ops.broadcast_to(ops.cast(self.first, pointed.dtype), shape)
        return ops.concatenate([first, pointed], axis=1)

    def decode(self, items, length=None):
        """The likeliest item each time: int places `(B, T)`, T = S.

        Args:
            items: Float tensor `(B, S, F)`.
            length: Int, T, if not all are to be pointed at.
        """
        items = ops.convert_to_tensor(items)
        if not self.built:
            self.build({"items": items.shape})
        e, keys, start, present = self.encode(items)
        length = ops.shape(e)[1] if length is None else length
        weights = GRUWeights.of(self.cell)
        places = ops.arange(ops.shape(e)[1])

        def step(state, _):
            d = gru_step(
                weights.project(state["fed"]), state["hidden"], weights
            )
            free = state["free"]
            log_p = self.point(d[:, None], keys, free[:, None])[:, 0]
            place = ops.argmax(log_p, axis=-1)
            fed = ops.take_along_axis(e, place[:, None, None], axis=1)[:, 0]
            place = ops.cast(place, "int32")
            return {
                "hidden": d,
                "fed": fed,
                "free": free & (places != place[:, None]),
                "place": place,
            }

        state = {
            "hidden": start,
            "fed": self._feed(e[:, :0])[:, 0],
            "free": present,
            "place": ops.zeros_like(ops.cast(present[:, 0], "int32")),
        }
        states = scan_states(step, state, ops.arange(length))
        return ops.swapaxes(states["place"], 0, 1)

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}
