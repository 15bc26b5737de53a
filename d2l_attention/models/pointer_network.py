"""Pointer networks: the attention weights are the output."""

from d2l_attention._checks import check_dict, check_positive
from d2l_attention._config import Configurable
from d2l_attention.layers.compiled_loops import scan_states
from d2l_attention.layers.scoring import AdditiveAttention
from d2l_attention.models.recurrent import GRUParameters, gru_step
import keras
from keras import ops

MASKED = -1e9  # log p of what may not be chosen; finite, unlike −∞


@keras.saving.register_keras_serializable("d2l_attention")
class PointerNetwork(Configurable, keras.Model):
    """Writes a sequence of places in its input, each place at most once.

        h_j = W_2 tanh(W_1 x_j + b_1) + b_2,  s_0 = tanh(W_0 mean_j h_j)
        s_t = GRU(h of the place pointed at last, s_{t−1})
        p(z_t = j) = softmax_j(vᵀ tanh(W_q s_t + W_k h_j))

    over the inputs j that were not pointed at yet. There is no weighted sum,
    because the weights are the answer. So there is one possible answer for
    each input, however many inputs there are. The encoder ignores their
    order: permuting the inputs permutes the pointers.

    Source: Vinyals et al. (2015), arXiv:1506.03134, section 2.3; document
    000, section 2.2.5.
    Unlike the paper, the encoder reads a set, as in Vinyals et al. (2016),
    arXiv:1511.06391, and is no LSTM; and inputs that were chosen are masked.

    Args:
        dim: Positive int, number D of features of embedded items and states.

    Call arguments:
        inputs: Dict of `"items"`, float `(B, S, F)`, and `"places"`, int
            `(B, T)`: the right answers, which the decoder reads (teacher
            forcing). An item whose features are NaN is padding.
        training: Changes nothing; Keras's own loops pass it.

    Returns:
        Float tensor `(B, T, S)` of log p, −1e9 at what may not be chosen.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PointerNetwork
        >>> model = PointerNetwork(dim=4)
        >>> items = np.arange(6.0, dtype="float32").reshape(1, 3, 2)
        >>> sorted(np.array(model.decode(items))[0].tolist())  # each once
        [0, 1, 2]
    """

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = check_positive("dim", dim)
        dtype = self.dtype_policy
        self.hidden = keras.layers.Dense(dim, "tanh", dtype=dtype)
        self.embed = keras.layers.Dense(dim, dtype=dtype)
        self.start_layer = keras.layers.Dense(dim, "tanh", dtype=dtype)
        self.cell = keras.layers.GRUCell(dim, dtype=dtype)
        self.attention = AdditiveAttention(dim, dtype=dtype)

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
        """h and the keys W_k h `(B, S, D)`, s_0 `(B, D)`, and a mask `(B, S)`.

        The mask is False at padding: at items `(B, S, F)` that are NaN.
        """
        present = ~ops.any(ops.isnan(items), axis=-1)  # (B, S)
        items = ops.where(present[..., None], items, ops.zeros_like(items))
        h = self.embed(self.hidden(items))  # (B, S, D)
        share = ops.cast(present, h.dtype)
        share = share / ops.sum(share, axis=-1, keepdims=True)
        mean = ops.einsum("bs,bsd->bd", share, h)
        start = self.start_layer(mean)  # s_0, (B, D)
        return h, self.attention.project_key(h), start, present

    def point(self, state, keys, free):
        """log p `(B, T, S)` over the free items, −1e9 at the others.

        States of the decoder are `(B, T, D)`, keys `(B, S, D)`. `free`
        `(B, T, S)` is False at padding and at items that were chosen before.
        """
        query = self.attention.project_query(state)
        scores = self.attention.score(query, keys)  # (B, T, S)
        scores = ops.where(free, ops.cast(scores, "float32"), MASKED)
        return ops.where(free, ops.log_softmax(scores, axis=-1), MASKED)

    def call(self, inputs, training=None):
        check_dict(inputs, "items", "places")
        h, keys, start, present = self.encode(inputs["items"])
        places = inputs["places"]
        pointed = ops.take_along_axis(h, places[..., None], axis=1)  # (B, T, D)
        fed = self._feed(pointed[:, :-1])  # (B, T, D)
        cell = GRUParameters.of(self.cell)
        states = scan_states(
            lambda state, x: gru_step(x, state, cell),
            start,
            ops.swapaxes(cell.project(fed), 0, 1),
        )  # (T, B, D)
        chosen = ops.one_hot(places, ops.shape(h)[1], dtype="int32")
        before = ops.cumsum(chosen, axis=1) - chosen  # (B, T, S)
        free = (before == 0) & present[:, None]
        return self.point(ops.swapaxes(states, 0, 1), keys, free)

    def decode(self, items, length=None):
        """Point at the likeliest free item T times: the places `(B, T)`.

        Items `(B, S, F)` that are NaN are padding. T is `length`, or else S.
        """
        items = ops.convert_to_tensor(items)
        if not self.built:
            self.build({"items": items.shape})
        h, keys, start, present = self.encode(items)
        length = ops.shape(h)[1] if length is None else length
        cell = GRUParameters.of(self.cell)
        places = ops.arange(ops.shape(h)[1])

        def step(state, _):
            projected = cell.project(state["fed"])
            hidden = gru_step(projected, state["hidden"], cell)  # (B, D)
            free = state["free"]  # (B, S)
            log_p = self.point(hidden[:, None], keys, free[:, None])[
                :, 0
            ]  # (B, S)
            place = ops.argmax(log_p, axis=-1)  # (B,)
            fed = ops.take_along_axis(h, place[:, None, None], axis=1)[:, 0]
            place = ops.cast(place, "int32")
            return {
                "hidden": hidden,
                "fed": fed,
                "free": free & (places != place[:, None]),
                "place": place,
            }

        state = {
            "hidden": start,
            "fed": self._feed(h[:, :0])[:, 0],
            "free": present,
            "place": ops.zeros_like(ops.cast(present[:, 0], "int32")),
        }
        states = scan_states(step, state, ops.arange(length))  # (T, B, …)
        return ops.swapaxes(states["place"], 0, 1)

    def _feed(self, pointed):
        """What the decoder reads: a learned vector, then the chosen items."""
        shape = (ops.shape(pointed)[0], 1, self.dim)
        first = ops.broadcast_to(ops.cast(self.first, pointed.dtype), shape)
        return ops.concatenate([first, pointed], axis=1)
