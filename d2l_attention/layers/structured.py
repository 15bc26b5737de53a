"""Structured attention: the places are chosen together, not one by one."""

from d2l_attention.layers.base import drop, wide
from d2l_attention.layers.compiled_loops import scan_states
from d2l_attention.layers.masking import join_causal_mask
from d2l_attention.layers.scoring import DotProductAttention
import keras
from keras import ops


def linear_chain_marginals(unary, transitions, mask=None):
    """The probability of each state at each place of a chain.

        p(z) ∝ exp(Σ_j unary[j, z_j] + Σ_j transitions[z_{j−1}, z_j])
        marginals[j, c] = p(z_j = c) = ∂ log Z / ∂ unary[j, c]

    computed by the forward and the backward recursion, in log space.

    Source: Kim et al. (2017), arXiv:1702.00887, section 3.1; Rabiner (1989)
    for the recursions.

    Args:
        unary: Float tensor `(…, S, C)`, scores of C states at S places.
        transitions: Float tensor `(C, C)`, scores of the steps from a state
            (row) to the next one (column); −1e9 forbids a step.
        mask: Bool tensor that broadcasts to `(…, S)`; the chain skips the
            places where it is False.

    Returns:
        Float tensor `(…, S, C)` of float32 or wider. Rows sum to 1, or to 0
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
    dtype = wide(unary.dtype)
    unary, transitions = ops.cast(unary, dtype), ops.cast(transitions, dtype)
    counts = True if mask is None else mask
    counts = ops.broadcast_to(counts, ops.shape(unary)[:-1])  # (…, S)
    ahead = _messages(unary, transitions, counts)  # (…, S, C)
    back = _messages(
        ops.flip(unary, -2), ops.transpose(transitions), ops.flip(counts, -1)
    )
    joint = ahead + ops.flip(back, -2) + unary
    marginals = ops.softmax(joint, axis=-1)
    return marginals * ops.cast(ops.expand_dims(counts, -1), dtype)


def _messages(unary, transitions, counts):
    """For each place: log Σ over all chains before it, up to a constant.

        message_j[c] = log Σ_b exp(message_{j−1}[b] + unary[j − 1, b]
                                   + transitions[b, c])

    The message `(…, S, C)` is 0 at the first place that counts.
    """
    unary = ops.moveaxis(unary, -2, 0)  # (S, …, C)
    counts = ops.expand_dims(ops.moveaxis(counts, -1, 0), -1)  # (S, …, 1)
    start = {
        "message": ops.zeros_like(unary[0]),
        "next": ops.zeros_like(unary[0]),
    }

    def step(state, inputs):
        scores, here_counts = inputs
        message = state["next"]  # (…, C)
        paths = ops.expand_dims(message + scores, -1) + transitions  # (…, C, C)
        following = ops.logsumexp(paths, axis=-2)  # (…, C)
        # Otherwise the numbers would grow with the length of the chain.
        largest = ops.max(
            following, axis=-1, keepdims=True, initial=-float("inf")
        )
        following = following - ops.stop_gradient(largest)
        return {
            "message": message,
            "next": ops.where(here_counts, following, message),
        }

    states = scan_states(step, start, (unary, counts))
    return ops.moveaxis(states["message"], 0, -2)


@keras.saving.register_keras_serializable("d2l_attention")
class StructuredAttention(DotProductAttention):
    """Attention that chooses each place together with its neighbours.

        p(z) ∝ exp(Σ_j z_j score_j + Σ_j transitions[z_{j−1}, z_j])
        weights_j = p(z_j = 1),  output = Σ_j weights_j value_j

    with z_j in {0, 1}: every place is chosen or not, and learned transitions
    say which choices go together at neighbouring places. Rows sum to the
    expected number of chosen places, not to 1. With transitions of 0 the
    weights are sigmoids of the scores. The chain skips masked keys. The layer
    exports to SavedModel and ONNX. TFLite cannot take its loop over places of
    an unknown number.

    Source: Kim et al. (2017), arXiv:1702.00887, section 3.1; document 000,
    section 2.2.4.

    Args:
        scale: Float, factor of the scores; None = 1/√K.
        dropout: Float in [0, 1), rate of dropout on the weights.

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

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.transitions = self.add_weight((2, 2), "zeros", name="transitions")

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
    ):
        scores = self.score(query, key)  # (B, T, S)
        if use_causal_mask:
            mask = join_causal_mask(mask, query, key)
        unary = ops.stack([ops.zeros_like(scores), scores], axis=-1)
        marginals = linear_chain_marginals(unary, self.transitions, mask)
        weights = ops.cast(marginals[..., 1], scores.dtype)  # (B, T, S)
        dropped = drop(self.dropout_layer, weights, training)
        return ops.matmul(dropped, value), weights  # (B, T, V)
