"""Attention whose queries and keys know the context they stand in."""

from d2l_attention.attention_layer import default_inputs, query_and_key_size
from d2l_attention.masking import (
    add_causal_mask,
    causal_mask,
    masked_softmax,
    merge_masks,
    token_mask,
)
from d2l_attention.multi_head import MultiHeadAttention, split_heads
import keras
from keras import ops


def mean_context(x, key_mask=None, use_causal_mask=False):
    """The mean of all tokens, or of those up to each: a global context.

        c_t = Σ_s m_s x_s / Σ_s m_s    over all s, or over s ≤ t

    Source: Yang et al. (2019), arXiv:1902.05766, section 3.2; document 004,
    section 9. The mean up to each token is what a decoder may know.

    Args:
        x: Float tensor `(B, T, D)`.
        key_mask: Bool tensor `(B, T)`, True = counts.
        use_causal_mask: Whether later tokens are left out.

    Returns:
        Float tensor `(B, T, D)`; zeros where nothing counts.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import mean_context
        >>> x = np.array([[[1.0], [3.0], [5.0]]])
        >>> np.array(mean_context(x)).tolist()
        [[[3.0], [3.0], [3.0]]]
        >>> np.array(mean_context(x, use_causal_mask=True)).tolist()
        [[[1.0], [2.0], [3.0]]]
    """
    counts = ops.ones_like(x[..., :1])
    if key_mask is not None:
        counts = ops.cast(key_mask, x.dtype)[..., None]
    x, total = x * counts, ops.ones_like(counts)
    if use_causal_mask:
        x, counts = ops.cumsum(x, axis=1), ops.cumsum(counts, axis=1)
    else:
        x, counts = (
            total * ops.sum(y, axis=1, keepdims=True) for y in (x, counts)
        )
    return x / ops.maximum(counts, 1.0)


def segment_context(x, segments, key_mask=None, use_causal_mask=False):
    """The mean of the tokens in one's own segment, as a sentence.

        c_t = mean of x_s over segments[s] = segments[t]

    Sentences and paragraphs, one after the other, and the tokens themselves
    are the levels of document 004, section 9; join their contexts along the
    last axis.

    Args:
        x: Float tensor `(B, T, D)`.
        segments: Int tensor `(B, T)`, the number of each token's segment.
        key_mask: Bool tensor `(B, T)`, True = counts.
        use_causal_mask: Whether later tokens are left out.

    Returns:
        Float tensor `(B, T, D)`; zeros where nothing counts.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import segment_context
        >>> x = np.array([[[1.0], [3.0], [5.0]]])
        >>> sentences = np.array([[0, 0, 1]])
        >>> np.array(segment_context(x, sentences)).tolist()
        [[[2.0], [2.0], [5.0]]]
    """
    segments = ops.convert_to_tensor(segments)
    together = ops.equal(segments[:, :, None], segments[:, None])
    if use_causal_mask:
        together = ops.logical_and(together, causal_mask(ops.shape(x)[1]))
    together = merge_masks(together, key_mask)
    alike = ops.zeros_like(x[..., :1] * ops.swapaxes(x[..., :1], 1, 2))
    return ops.matmul(masked_softmax(alike, together), x)


@keras.saving.register_keras_serializable("d2l_attention")
class ContextGate(keras.Layer):
    """As much of the context as each head of each token lets in.

        λ = σ(x·v + (c U)·w)
        output = (1 − λ) x + λ c U

    Source: Yang et al. (2019), arXiv:1902.05766, equations 5 and 6. Their w
    multiplies c U, so it has as many features as a head, not as a context.

    It has no arguments but those of every layer.

    Call arguments:
        x: Float tensor `(B, T, H, K)`, projected queries or keys.
        context: Float tensor `(B, T, C)`.

    Returns:
        Float tensor `(B, T, H, K)`, and the gate λ `(B, T, H)`.

    Raises:
        ValueError: If x has not four axes, or the context not three.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ContextGate
        >>> x, context = np.zeros((1, 3, 2, 4)), np.zeros((1, 3, 5))
        >>> output, gate = ContextGate()(x, context)
        >>> np.array(gate)[0].tolist()  # σ(0), for each token and head
        [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, x_shape, context_shape):
        if len(x_shape) != 4 or len(context_shape) != 3:
            raise ValueError(
                "x must be (B, T, H, K) and context (B, T, C). Received: x "
                f"{tuple(x_shape)}, context {tuple(context_shape)}."
            )
        h, k = x_shape[-2:]
        self.context_layer = keras.layers.Dense(
            h * k, use_bias=False, name="U", dtype=self.dtype_policy
        )
        self.context_layer.build(context_shape)
        self.v, self.w = (
            self.add_weight(shape=(h, k), name=name) for name in ("v", "w")
        )

    def call(self, x, context):
        context = split_heads(self.context_layer(context), x.shape[-2])
        gate = ops.sum(x * self.v + context * self.w, axis=-1)
        gate = ops.sigmoid(gate)[..., None]
        return (1.0 - gate) * x + gate * context, gate[..., 0]

    def compute_output_shape(self, x_shape, context_shape=None):
        return tuple(x_shape), tuple(x_shape[:-1])


@keras.saving.register_keras_serializable("d2l_attention")
class ContextAttention(MultiHeadAttention):
    """Multi-head self-attention with queries and keys seen in a context.

        Q̂ = (1 − λ_q) Q + λ_q C U_q,   K̂ = (1 − λ_k) K + λ_k C U_k
        head = softmax(Q̂ K̂ᵀ / √K) V

    Each head of each token has gates of its own (`ContextGate`); values stay
    as they are. With all gates at 0 this is `MultiHeadAttention`. What the
    context is, the caller says: `mean_context` (global), `segment_context`
    (of sentences or paragraphs), the outputs of all layers below, joined
    (deep), or several of these, joined.

    Source: Yang et al. (2019), arXiv:1902.05766; document 004, section 9,
    whose formula does not fit its shapes.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        dropout: Float in [0, 1), rate of dropout on the weights.
        use_bias: Whether the four projections have biases.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        context: Float tensor `(B, T, C)`.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`; True = may attend.
        query_mask, key_mask, context_mask, mask: Bool tensors `(B, T)`, True
            at tokens; Keras fills them from implicit masks.
        use_causal_mask: Whether no token sees a later one. The context is not
            masked: a causal model needs one that knows no later token.
        return_attention_scores: If True, also return the weights, as they
            were before dropout.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `dropout` is outside [0, 1), or
            the context has not one row for each token.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ContextAttention, segment_context
        >>> x = np.ones((1, 5, 4), "float32")
        >>> context = segment_context(x, np.array([[0, 0, 0, 1, 1]]))
        >>> layer = ContextAttention(num_heads=2, key_dim=3)
        >>> tuple(layer(x, context=context).shape)
        (1, 5, 4)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        value_dim=None,
        output_dim=None,
        dropout=0.0,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim=value_dim,
            output_dim=output_dim,
            dropout=dropout,
            use_bias=use_bias,
            **kwargs,
        )

    def build(self, query_shape, context_shape):
        super().build(query_shape)
        heads = (*query_shape[:2], self.num_heads, self.key_dim)
        self.query_gate, self.key_gate = (
            ContextGate(name=name, dtype=self.dtype_policy)
            for name in ("query_gate", "key_gate")
        )
        for gate in (self.query_gate, self.key_gate):
            gate.build(heads, context_shape)

    def call(
        self,
        query,
        *,
        context,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        context_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        _check_context(query.shape, context.shape)
        mask = merge_masks(
            attention_mask, query_mask, key_mask, context_mask, mask
        )
        if use_causal_mask:
            mask = add_causal_mask(mask, *query_and_key_size(query, query))
        output, weights = self.attend_in_context(
            self.project_query(query),  # (B, T, H, K)
            self.project_key(query),  # (B, T, H, K)
            self.project_value(query),  # (B, T, H, V)
            context,
            mask,
            training,
        )
        return (output, weights) if return_attention_scores else output

    def attend_in_context(
        self, query, key, value, context, mask=None, training=None
    ):
        """Output and weights of projected queries, keys and values."""
        query, _ = self.query_gate(query, context)
        key, _ = self.key_gate(key, context)
        return self.attend(query, key, value, mask, training)

    def compute_output_shape(self, query_shape, context_shape=None):
        return super().compute_output_shape(query_shape)


def _check_context(query_shape, context_shape):
    if len(context_shape) != 3 or any(
        None not in pair and pair[0] != pair[1]
        for pair in zip(query_shape[:2], context_shape[:2], strict=True)
    ):
        raise ValueError(
            "The context must have one row for each token. Received: query "
            f"{tuple(query_shape)}, context {tuple(context_shape)}."
        )


@keras.saving.register_keras_serializable("d2l_attention")
class GlobalContextAttention(ContextAttention):
    """`ContextAttention` in the context of the mean of its own tokens.

        C_t = mean of all x_s, or of those up to t with `use_causal_mask`

    Source: Yang et al. (2019), arXiv:1902.05766, section 3.2; document 004,
    section 9.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        dropout: Float in [0, 1), rate of dropout on the weights.
        use_bias: Whether the four projections have biases.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`; True = may attend.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills two of them from implicit masks.
        use_causal_mask: Whether no token sees a later one, neither in
            its context nor in attention.
        return_attention_scores: If True, also return the weights, as they
            were before dropout.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `dropout` is outside [0, 1), or
            shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GlobalContextAttention
        >>> layer, x = GlobalContextAttention(2, key_dim=3), np.ones((1, 5, 4))
        >>> before = np.array(layer(x, use_causal_mask=True))
        >>> x[:, 4] = 9.0  # no earlier token sees another last one
        >>> after = np.array(layer(x, use_causal_mask=True))
        >>> bool(np.allclose(after[:, :4], before[:, :4], atol=1e-5))
        True
    """

    def build(self, query_shape):
        super().build(query_shape, query_shape)

    def call(
        self,
        query,
        *,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        tokens = token_mask(query_mask, key_mask, mask)
        return super().call(
            query,
            context=mean_context(query, tokens, use_causal_mask),
            attention_mask=attention_mask,
            key_mask=tokens,
            use_causal_mask=use_causal_mask,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def compute_output_shape(self, query_shape):
        return super().compute_output_shape(query_shape)


@keras.saving.register_keras_serializable("d2l_attention")
class DynamicContextAttention(ContextAttention):
    """`ContextAttention` in a context that each query chooses.

        C = [softmax(Q_1 K_1ᵀ / √K) V_1; …; softmax(Q_H K_Hᵀ / √K) V_H]

    which is document 004's C = f(Q, K, V): a first look, without context,
    tells the second what to look for. The mask holds for both.

    Source: document 004, section 9; the gates are those of Yang et al.
    (2019), arXiv:1902.05766.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        dropout: Float in [0, 1), rate of dropout on the weights.
        use_bias: Whether the four projections have biases.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`; True = may attend.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills two of them from implicit masks.
        use_causal_mask: Whether no token sees a later one.
        return_attention_scores: If True, also return the weights, as they
            were before dropout.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `dropout` is outside [0, 1), or
            shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import DynamicContextAttention
        >>> layer = DynamicContextAttention(num_heads=2, key_dim=3)
        >>> output, weights = layer(
        ...     np.ones((1, 5, 4)), return_attention_scores=True
        ... )
        >>> tuple(output.shape), tuple(weights.shape)
        ((1, 5, 4), (1, 2, 5, 5))
    """

    def build(self, query_shape):
        context = self.num_heads * self.value_dim
        super().build(query_shape, (*query_shape[:2], context))

    def call(
        self,
        query,
        *,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        default_inputs(query)
        mask = merge_masks(attention_mask, query_mask, key_mask, mask)
        if use_causal_mask:
            mask = add_causal_mask(mask, *query_and_key_size(query, query))
        projected = (
            self.project_query(query),  # (B, T, H, K)
            self.project_key(query),  # (B, T, H, K)
            self.project_value(query),  # (B, T, H, V)
        )
        context = self.context(*projected, mask)  # (B, T, H V)
        output, weights = self.attend_in_context(
            *projected, context, mask, training
        )
        return (output, weights) if return_attention_scores else output

    def context(self, query, key, value, mask=None):
        """What a first look finds, `(B, T, H V)`."""
        if mask is not None and len(mask.shape) == 3:
            mask = mask[:, None]
        weights = masked_softmax(self.score(query, key), mask)
        found = self.average(weights, value)
        size = self.num_heads * self.value_dim
        return ops.reshape(found, (*ops.shape(found)[:2], size))

    def compute_output_shape(self, query_shape):
        return super().compute_output_shape(query_shape)
