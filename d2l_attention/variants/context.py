"""Attention whose queries and keys know the context they stand in."""

from d2l_attention.masking import causal_mask, masked_softmax, merge_masks
from d2l_attention.multi_head import MultiHeadAttention, split_heads
import keras
from keras import ops


def mean_context(x, key_mask=None, causal=False):
    """The mean of all tokens, or of those up to each: a global context.

        c_t = Σ_s m_s x_s / Σ_s m_s    over all s, or over s ≤ t

    Source: Yang et al. (2019), arXiv:1902.05766, section 3.2; document 004,
    section 9. The mean up to each token is what a decoder may know.

    Args:
        x: Float tensor `(B, T, D)`.
        key_mask: Bool tensor `(B, T)`, True = counts.
        causal: Whether later tokens are left out.

    Returns:
        Float tensor `(B, T, D)`; zeros where nothing counts.
    """
    counts = ops.ones_like(x[..., :1])
    if key_mask is not None:
        counts = ops.cast(key_mask, x.dtype)[..., None]
    x, total = x * counts, ops.ones_like(counts)
    if causal:
        x, counts = ops.cumsum(x, axis=1), ops.cumsum(counts, axis=1)
    else:
        x, counts = (
            total * ops.sum(y, axis=1, keepdims=True) for y in (x, counts)
        )
    return x / ops.maximum(counts, 1.0)


def segment_context(x, segments, key_mask=None, causal=False):
    """The mean of the tokens in one's own segment, as a sentence.

        c_t = mean of x_s over segments[s] = segments[t]

    Sentences and paragraphs, one after the other, and the tokens themselves
    are the levels of document 004, section 9; join their contexts along the
    last axis.

    Args:
        x: Float tensor `(B, T, D)`.
        segments: Int tensor `(B, T)`, the number of each token's segment.
        key_mask: Bool tensor `(B, T)`, True = counts.
        causal: Whether later tokens are left out.

    Returns:
        Float tensor `(B, T, D)`; zeros where nothing counts.
    """
    segments = ops.convert_to_tensor(segments)
    together = ops.equal(segments[:, :, None], segments[:, None])
    if causal:
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

    Call arguments:
        x: Float tensor `(B, T, H, K)`, projected queries or keys.
        context: Float tensor `(B, T, C)`.

    Returns:
        Float tensor `(B, T, H, K)`, and the gate λ `(B, T, H)`.
    """

    def build(self, x_shape, context_shape):
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

    def compute_output_spec(self, x, context):
        shapes = x.shape, x.shape[:-1]
        return tuple(keras.KerasTensor(s, self.compute_dtype) for s in shapes)


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

    Args: see `MultiHeadAttention`.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        context: Float tensor `(B, T, C)`.
        attention_mask, key_mask, mask, return_attention_scores, training: see
            `AttentionLayer`.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, T)`.
    """

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
        key_mask=None,
        mask=None,
        return_attention_scores=False,
        training=None,
    ):
        output, weights = self.attend_in_context(
            self.project_query(query),
            self.project_key(query),
            self.project_value(query),
            context,
            merge_masks(attention_mask, mask if key_mask is None else key_mask),
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


@keras.saving.register_keras_serializable("d2l_attention")
class GlobalContextAttention(ContextAttention):
    """`ContextAttention` in the context of the mean of its own tokens.

    Args:
        causal: Whether no token sees a later one, nor a mean of it.

    Further args, call arguments (without `context`), returns: see
    `ContextAttention`.
    """

    def __init__(self, num_heads, key_dim, causal=False, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.causal = causal

    def build(self, query_shape):
        super().build(query_shape, query_shape)

    def call(
        self,
        query,
        *,
        attention_mask=None,
        key_mask=None,
        mask=None,
        return_attention_scores=False,
        training=None,
    ):
        key_mask = mask if key_mask is None else key_mask
        if self.causal:
            past = causal_mask(ops.shape(query)[1])
            if attention_mask is not None:
                past = ops.logical_and(past, attention_mask)
            attention_mask = past
        return super().call(
            query,
            context=mean_context(query, key_mask, self.causal),
            attention_mask=attention_mask,
            key_mask=key_mask,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def get_config(self):
        return {**super().get_config(), "causal": self.causal}


@keras.saving.register_keras_serializable("d2l_attention")
class DynamicContextAttention(ContextAttention):
    """`ContextAttention` in a context that each query chooses.

        C = [softmax(Q_1 K_1ᵀ / √K) V_1; …; softmax(Q_H K_Hᵀ / √K) V_H]

    which is document 004's C = f(Q, K, V): a first look, without context,
    tells the second what to look for. The mask holds for both.

    Args, call arguments (without `context`), returns: see `ContextAttention`.
    """

    def build(self, query_shape):
        context = self.num_heads * self.value_dim
        super().build(query_shape, (*query_shape[:2], context))

    def call(
        self,
        query,
        *,
        attention_mask=None,
        key_mask=None,
        mask=None,
        return_attention_scores=False,
        training=None,
    ):
        key_mask = mask if key_mask is None else key_mask
        mask = merge_masks(attention_mask, key_mask)
        projected = (
            self.project_query(query),
            self.project_key(query),
            self.project_value(query),
        )
        context = self.context(*projected, mask)
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
