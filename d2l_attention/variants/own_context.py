"""Context attention that computes the context from its own tokens."""

from d2l_attention.attention_layer import default_inputs, query_and_key_size
from d2l_attention.loops import reshape
from d2l_attention.masking import join_causal_mask, merge_masks, token_mask
from d2l_attention.multi_head import multi_head_attention
from d2l_attention.variants.context import ContextAttention, mean_context
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class GlobalContextAttention(ContextAttention):
    """`ContextAttention` whose context is the mean of its own tokens.

        C_t = mean of x_s over all s; with `use_causal_mask` over s ≤ t

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
            Keras fills one of them from an implicit mask.
        use_causal_mask: Whether each token sees only itself and earlier
            tokens, both in its context and in attention.
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
            Keras fills one of them from an implicit mask.
        use_causal_mask: Whether each token attends only to itself and to
            earlier tokens.
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
        default_inputs(query)
        allowed = merge_masks(attention_mask, query_mask, key_mask, mask)
        if use_causal_mask:
            allowed = join_causal_mask(
                allowed, *query_and_key_size(query, query)
            )
        heads = (
            self.project_query(query),  # (B, T, H, K)
            self.project_key(query),  # (B, T, H, K)
            self.project_value(query),  # (B, T, H, V)
        )
        context = self.context(*heads, allowed)  # (B, T, H V)
        output, weights = self.attend_in_context(
            *heads, context, allowed, training
        )
        return (output, weights) if return_attention_scores else output

    def context(self, query, key, value, mask=None):
        """The result of the first pass, `(B, T, H V)`."""
        first, _ = multi_head_attention(query, key, value, mask)
        size = self.num_heads * self.value_dim  # first: (B, T, H, V)
        return reshape(first, (*ops.shape(first)[:2], size))

    def compute_output_shape(self, query_shape):
        return super().compute_output_shape(query_shape)
