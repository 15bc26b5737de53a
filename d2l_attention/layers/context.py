"""Attention whose queries and keys are mixed with their context."""

from d2l_attention._checks import differ
from d2l_attention._config import Configurable
from d2l_attention.layers.base import (
    check_shapes,
    output_spec,
)
from d2l_attention.layers.masking import (
    causal_mask,
    join_causal_mask,
    masked_softmax,
    merge_masks,
    token_mask,
)
from d2l_attention.layers.multi_head import (
    MultiHeadAttention,
    multi_head_attention,
    split_heads,
)
from d2l_attention.layers.reshaping import reshape
import keras
from keras import ops


def mean_context(x, key_mask=None, use_causal_mask=False):
    """The mean of all tokens, or of the tokens so far: a global context.

        c_t = Σ_s m_s x_s / Σ_s m_s    over all s, or over s ≤ t

    Source: Yang et al. (2019), arXiv:1902.05766, section 3.2; document 004,
    section 9. A decoder may only use the mean of the tokens so far.

    Args:
        x: Float tensor `(B, T, D)`.
        key_mask: Bool tensor `(B, T)`, True = counts.
        use_causal_mask: Whether the mean at t leaves out the tokens after t.

    Returns:
        Float tensor `(B, T, D)`; zeros where no token counts.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.context import mean_context
        >>> x = np.array([[[1.0], [3.0], [5.0]]])
        >>> np.array(mean_context(x, use_causal_mask=True)).tolist()
        [[[1.0], [2.0], [3.0]]]
    """
    x = ops.convert_to_tensor(x)
    counts = ops.ones_like(x[..., :1])  # (B, T, 1)
    if key_mask is not None:
        counts = ops.expand_dims(ops.cast(key_mask, x.dtype), -1)
    ones = ops.ones_like(counts)
    total = x * counts  # (B, T, D)
    if use_causal_mask:
        total = ops.cumsum(total, axis=1)
        number = ops.cumsum(counts, axis=1)
    else:
        total = ones * ops.sum(total, axis=1, keepdims=True)
        number = ones * ops.sum(counts, axis=1, keepdims=True)
    return total / ops.maximum(number, 1.0)


def segment_context(x, segments, key_mask=None, use_causal_mask=False):
    """The mean of the tokens in the same segment, such as a sentence.

        c_t = mean of x_s over segments[s] = segments[t]

    Document 004, section 9, has contexts of tokens, sentences and paragraphs.
    Join them along the last axis.

    Args:
        x: Float tensor `(B, T, D)`.
        segments: Int tensor `(B, T)`, the number of each token's segment.
        key_mask, use_causal_mask: As in `mean_context`.

    Returns:
        Float tensor `(B, T, D)`; zeros where no token counts.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.context import segment_context
        >>> x = np.array([[[1.0], [3.0], [5.0]]])
        >>> sentences = np.array([[0, 0, 1]])
        >>> np.array(segment_context(x, sentences)).tolist()
        [[[2.0], [2.0], [5.0]]]
    """
    x, segments = (ops.convert_to_tensor(a) for a in (x, segments))
    together = ops.equal(  # (B, T, T)
        ops.expand_dims(segments, 2), ops.expand_dims(segments, 1)
    )
    if use_causal_mask:
        together = ops.logical_and(together, causal_mask(ops.shape(x)[1]))
    together = merge_masks(together, key_mask)
    # Equal scores: each token that counts has the same weight.
    scores = ops.zeros_like(x[..., :1] * ops.swapaxes(x[..., :1], 1, 2))
    return ops.matmul(masked_softmax(scores, together), x)  # (B, T, D)


@keras.saving.register_keras_serializable("d2l_attention")
class ContextGate(Configurable, keras.Layer):
    """A mix of each token's heads with its context, by a learned gate.

        λ = σ(x·v + (c U)·w)
        output = (1 − λ) x + λ c U

    Each head of each token has its own gate λ. w multiplies c U, so it has K
    features, as a head has, and not C.

    Source: Yang et al. (2019), arXiv:1902.05766, equations 5 and 6.

    Call arguments:
        x: Float tensor `(B, T, H, K)`, projected queries or keys.
        context: Float tensor `(B, T, C)`.

    Returns:
        Float tensor `(B, T, H, K)`, and the gate λ `(B, T, H)`.

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
        self.v = self.add_weight(shape=(h, k), name="v")
        self.w = self.add_weight(shape=(h, k), name="w")

    def call(self, x, context):
        context = self.context_layer(context)  # (B, T, H K)
        context = split_heads(context, x.shape[-2])  # (B, T, H, K)
        score = ops.sum(x * self.v + context * self.w, axis=-1)  # (B, T, H)
        gate = ops.expand_dims(ops.sigmoid(score), -1)  # (B, T, H, 1)
        return (1.0 - gate) * x + gate * context, gate[..., 0]

    def compute_output_shape(self, x_shape, context_shape=None):
        return tuple(x_shape), tuple(x_shape[:-1])


@keras.saving.register_keras_serializable("d2l_attention")
class ContextAttention(MultiHeadAttention):
    """Multi-head self-attention whose queries and keys include a context.

        Q̂ = (1 − λ_q) Q + λ_q C U_q,   K̂ = (1 − λ_k) K + λ_k C U_k
        head = softmax(Q̂ K̂ᵀ / √K) V

    Each head of each token has two gates of its own (`ContextGate`); values
    have none. With all gates at 0 this is `MultiHeadAttention`. The caller
    chooses the context: `mean_context` (global), `segment_context` (sentences
    or paragraphs), the joined outputs of all layers below (deep), or several
    of these, joined.

    Source: Yang et al. (2019), arXiv:1902.05766; document 004, section 9,
    whose formula has shapes that do not fit together.

    Args:
        num_heads, key_dim: As in `MultiHeadAttention`.
        dropout, value_dim, output_dim, use_bias: As there.

    Unlike `AttentionLayer`, the queries are the keys and values, and the
    context is given by name.

    Call arguments:
        context: Float tensor `(B, T, C)`, a row for each token.
        context_mask: Bool tensor `(B, T)`, which masks the keys of the tokens.
        use_causal_mask: It masks attention, not the context: a causal model
            needs a context in which no token knows a later one.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ContextAttention
        >>> from d2l_attention.layers.context import segment_context
        >>> x = np.ones((1, 5, 4), "float32")
        >>> context = segment_context(x, np.array([[0, 0, 0, 1, 1]]))
        >>> layer = ContextAttention(num_heads=2, key_dim=3)
        >>> tuple(layer(x, context=context).shape)
        (1, 5, 4)
    """

    def build(self, query_shape, context_shape):
        super().build(query_shape)
        heads = (*query_shape[:2], self.num_heads, self.key_dim)
        self.query_gate = self._make_gate("query_gate", heads, context_shape)
        self.key_gate = self._make_gate("key_gate", heads, context_shape)

    def _make_gate(self, name, shape, context_shape):
        gate = ContextGate(name=name, dtype=self.dtype_policy)
        gate.build(shape, context_shape)
        return gate

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
        output, weights = self.attend(
            self.project_query(query),  # (B, T, H, K)
            self.project_key(query),  # (B, T, H, K)
            self.project_value(query),  # (B, T, H, V)
            merge_masks(
                attention_mask, query_mask, key_mask, context_mask, mask
            ),
            context=context,  # (B, T, C)
            use_causal_mask=use_causal_mask,
            training=training,
        )
        return (output, weights) if return_attention_scores else output

    def attend(self, query, key, value, mask=None, *, context, **mode):
        query, _ = self.query_gate(query, context)  # (B, T, H, K)
        key, _ = self.key_gate(key, context)  # (B, T, H, K)
        return super().attend(query, key, value, mask, **mode)

    def compute_output_shape(self, query_shape, context_shape=None):
        return super().compute_output_shape(query_shape)

    def compute_output_spec(
        self, query, *, return_attention_scores=False, **context_and_masks
    ):
        batch, t, _ = query.shape
        return output_spec(
            self,
            self.compute_output_shape(query.shape),
            (batch, self.num_heads, t, t),
            return_attention_scores,
        )


def _check_context(query_shape, context_shape):
    if len(context_shape) != 3 or any(
        map(differ, query_shape[:2], context_shape[:2])
    ):
        raise ValueError(
            "The context must have one row for each token. Received: query "
            f"{tuple(query_shape)}, context {tuple(context_shape)}."
        )


@keras.saving.register_keras_serializable("d2l_attention")
class GlobalContextAttention(ContextAttention):
    """`ContextAttention` whose context is the mean of its own tokens.

        C_t = mean of x_s over all s; with `use_causal_mask` over s ≤ t

    Source: Yang et al. (2019), arXiv:1902.05766, section 3.2; document 004,
    section 9.

    Args:
        num_heads, key_dim: As in `MultiHeadAttention`.
        dropout, value_dim, output_dim, use_bias: As there.

    Unlike `ContextAttention`, it takes no context, and `use_causal_mask` masks
    the context too.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GlobalContextAttention
        >>> layer, x = GlobalContextAttention(2, key_dim=3), np.ones((1, 5, 4))
        >>> before = np.array(layer(x, use_causal_mask=True))
        >>> x[:, 4] = 9.0  # another last token: no earlier one sees it
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
    """`ContextAttention` whose context is a first pass of attention.

        C = [softmax(Q_1 K_1ᵀ / √K) V_1; …; softmax(Q_H K_Hᵀ / √K) V_H]

    This is C = f(Q, K, V) of document 004. The first pass has no context; its
    result is the context of the second. One mask holds for both.

    Source: document 004, section 9; Yang et al. (2019), arXiv:1902.05766, for
    the gates.

    Args:
        num_heads, key_dim: As in `MultiHeadAttention`.
        dropout, value_dim, output_dim, use_bias: As there.

    Unlike `ContextAttention`, it takes no context, and `use_causal_mask` masks
    both passes.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import DynamicContextAttention
        >>> layer = DynamicContextAttention(num_heads=2, key_dim=3)
        >>> tuple(layer(np.ones((1, 5, 4))).shape)
        (1, 5, 4)
    """

    def build(self, query_shape):
        context_size = self.num_heads * self.value_dim
        super().build(query_shape, (*query_shape[:2], context_size))

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
        check_shapes(query.shape)
        may_attend = merge_masks(attention_mask, query_mask, key_mask, mask)
        if use_causal_mask:
            may_attend = join_causal_mask(may_attend, query, query)
        heads = (
            self.project_query(query),  # (B, T, H, K)
            self.project_key(query),  # (B, T, H, K)
            self.project_value(query),  # (B, T, H, V)
        )
        context = self.context(*heads, may_attend)  # (B, T, H V)
        output, weights = self.attend(
            *heads, may_attend, context=context, training=training
        )
        return (output, weights) if return_attention_scores else output

    def context(self, query, key, value, mask=None):
        """The result of the first pass, `(B, T, H V)`."""
        first, _ = multi_head_attention(query, key, value, mask)
        size = self.num_heads * self.value_dim  # first: (B, T, H, V)
        return reshape(first, (*ops.shape(first)[:2], size))

    def compute_output_shape(self, query_shape):
        return super().compute_output_shape(query_shape)
