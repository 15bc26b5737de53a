"""Structured attention: places are chosen together, not each for itself."""

from d2l_attention.attention_layer import drop
from d2l_attention.recurrence import scan_states
from d2l_attention.scoring import DotProductAttention
import keras
from keras import ops


def linear_chain_marginals(unary, transitions, mask=None):
    """How likely each state is at each place of a chain.

        p(z) ∝ exp(Σ_j unary[j, z_j] + Σ_j transitions[z_{j−1}, z_j])
        marginals[j, c] = p(z_j = c) = ∂ log Z / ∂ unary[j, c]

    by the forward and the backward recursion, in log space.

    Source: Kim et al. (2017), arXiv:1702.00887, section 3.1; Rabiner (1989)
    for the recursions.

    Args:
        unary: Float tensor `(…, S, C)`, scores of C states at S places.
        transitions: Float tensor `(C, C)`, row = from, column = to. −1e9
            forbids one.
        mask: Bool tensor that broadcasts to `(…, S)`: the chain leaps over
            places that are False.

    Returns:
        Float tensor `(…, S, C)` of float32 or wider; rows sum to 1, and to 0
        where the mask is False.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import linear_chain_marginals
        >>> unary = np.log([[[1.0, 3.0], [1.0, 1.0]]])
        >>> alike = np.array([[0.0, -1e9], [-1e9, 0.0]])  # neighbors agree
        >>> np.array(linear_chain_marginals(unary, alike)).round(2).tolist()
        [[[0.25, 0.75], [0.25, 0.75]]]
    """
    unary = ops.convert_to_tensor(unary)
    dtype = keras.backend.result_type(unary.dtype, "float32")
    unary, transitions = ops.cast(unary, dtype), ops.cast(transitions, dtype)
    mask = True if mask is None else mask
    mask = ops.broadcast_to(mask, ops.shape(unary)[:-1])
    ahead = _messages(unary, transitions, mask)
    back = _messages(
        ops.flip(unary, -2), ops.transpose(transitions), ops.flip(mask, -1)
    )
    joint = ahead + ops.flip(back, -2) + unary
    marginals = ops.softmax(joint, axis=-1)
    return marginals * ops.cast(mask[..., None], dtype)


def _messages(unary, transitions, mask):
    """log Σ over what lies before each place, `(…, S, C)`, but for a constant.

    The first place that counts has nothing before it: its message is 0.
    """
    unary = ops.moveaxis(unary, -2, 0)
    mask = ops.moveaxis(mask, -1, 0)[..., None]
    start = {
        "message": ops.zeros_like(unary[0]),
        "next": ops.zeros_like(unary[0]),
    }

    def step(state, inputs):
        scores, counts = inputs
        here = state["next"] + scores
        onward = ops.logsumexp(here[..., :, None] + transitions, axis=-2)
        # Without this the numbers grow with the length of the chain.
        highest = ops.max(onward, axis=-1, keepdims=True, initial=-float("inf"))
        onward = onward - ops.stop_gradient(highest)
        return {
            "message": state["next"],
            "next": ops.where(counts, onward, state["next"]),
        }

    states = scan_states(step, start, (unary, mask))
    return ops.moveaxis(states["message"], 0, -2)


@keras.saving.register_keras_serializable("d2l_attention")
class StructuredAttention(DotProductAttention):
    """Attention whose choices are coupled along the sequence.

        p(z) ∝ exp(Σ_j z_j score_j + Σ_j transitions[z_{j−1}, z_j])
        weights_j = p(z_j = 1),  output = Σ_j weights_j value_j

    for z_j in {0, 1}: a Bernoulli choice at every place, and a learned
    preference for what may stand side by side. Rows sum to the expected
    number of chosen places, not to 1. With transitions of 0 they are
    sigmoids.

    Source: Kim et al. (2017), arXiv:1702.00887, section 3.1; document 000,
    section 2.2.4.

    Args:
        scale: Float, factor of the scores; None = 1/√K.
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments:
        query: Float tensor `(B, T, K)`.
        key: Float tensor `(B, S, K)`; defaults to `query`.
        value: Float tensor `(B, S, V)`; defaults to `key`.
        attention_mask, query_mask, key_mask, value_mask, mask: Bool tensors;
            see `DotProductAttention`. The chain leaps over masked places.
        use_causal_mask, return_attention_scores, training: Bools; see
            `DotProductAttention`.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`, each between 0 and 1. A query with nothing to
        attend to gets zeros.

    Raises:
        ValueError: If `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import StructuredAttention
        >>> query, key = np.zeros((1, 1, 2)), np.ones((1, 3, 2))
        >>> _, weights = StructuredAttention()(
        ...     query, key=key, return_attention_scores=True
        ... )
        >>> np.array(weights).round(2).tolist()  # σ(0) at each place
        [[[0.5, 0.5, 0.5]]]
    """

    def __init__(self, *, scale=None, dropout=0.0, **kwargs):
        super().__init__(scale=scale, dropout=dropout, **kwargs)

    def build(self, query_shape, key_shape=None, value_shape=None):
        super().build(query_shape, key_shape, value_shape)
        self.transitions = self.add_weight((2, 2), "zeros", name="transitions")

    def attend(self, query, key, value, mask=None, training=None):
        scores = self.score(query, key)
        unary = ops.stack([ops.zeros_like(scores), scores], axis=-1)
        marginals = linear_chain_marginals(unary, self.transitions, mask)
        weights = ops.cast(marginals[..., 1], scores.dtype)
        kept = drop(self.dropout_layer, weights, training)
        return ops.matmul(kept, value), weights
