"""Multi-head attention: several attentions side by side, one output."""

from functools import partial

from d2l_attention._checks import check_rate
from d2l_attention._signature import ConstructorSignature
from d2l_attention.attention_layer import (
    default_inputs,
    drop,
    output_spec,
    query_and_key_size,
)
from d2l_attention.masking import join_causal_mask, merge_masks, token_mask
from d2l_attention.multi_head.functions import multi_head_attention
from d2l_attention.multi_head.projections import HeadProjections
import keras


@keras.saving.register_keras_serializable("d2l_attention")
class MultiHeadAttention(HeadProjections):
    """H scaled dot-product attentions, each in a subspace of its own.

        head_h = softmax(Q W_q,h (K W_k,h)ᵀ / √K) V W_v,h
        output = [head_1; …; head_H] W_o

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.2; documents
    001 (multi-head attention), 000, section 2.2.3, 002 and 004, section 2.
    Unlike `keras.layers.MultiHeadAttention`, a query with nothing to attend
    to gets zeros before W_o, there are no biases unless asked for, and the
    kernels of all heads are initialized as one `Dense` kernel.

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
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        key: Float tensor `(B, S, D')`; defaults to `value`. Without both, the
            queries are the keys and values.
        attention_mask: Bool tensor `(T, S)`, `(B, 1, S)` or `(B, T, S)`, the
            same for every head, or `(B, H, T, S)`; True = may attend.
        key_mask: Bool tensor `(B, S)`, True at keys that exist.
        value_mask: Bool tensor `(B, S)`; it masks the keys of these values.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise. Keras fills
            `mask` or the masks of query, key and value from implicit masks,
            such as that of `Embedding(mask_zero=True)`.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T.
        return_attention_scores: If True, also return the weights, as they
            were before dropout. (Keras chose the name; the
            weights after the softmax are meant.)
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, S)`. A query with nothing to attend to
        has weights 0.

    Raises:
        ValueError: If a size is not positive, `dropout` is outside [0, 1), or
            shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MultiHeadAttention
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=3)
        >>> x = np.ones((1, 3, 4))  # three tokens that are all alike
        >>> output, weights = layer(
        ...     x, use_causal_mask=True, return_attention_scores=True
        ... )
        >>> tuple(output.shape), tuple(weights.shape)
        ((1, 3, 4), (1, 2, 3, 3))
        >>> np.array(weights)[0, 0].round(2).tolist()[1]  # of token 1
        [0.5, 0.5, 0.0]
    """

    __signature__ = ConstructorSignature()

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
            use_bias=use_bias,
            **kwargs,
        )
        self.dropout = check_rate("dropout", dropout)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )

    def attend(self, query, key, value, mask=None, training=None):
        """Output and weights for projected queries, keys and values."""
        drop_weights = partial(drop, self.dropout_layer, training=training)
        heads, weights = multi_head_attention(
            query, key, value, mask, drop_weights
        )
        return self.join_heads(heads), weights

    def call(
        self,
        query,
        value=None,
        *,
        key=None,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        if key is None and value is None:  # the queries are the keys
            key_mask = token_mask(query_mask, key_mask, mask)
        value, key = default_inputs(query, value, key)
        may_attend = merge_masks(attention_mask, key_mask, value_mask)
        if use_causal_mask:
            sizes = query_and_key_size(query, key)
            may_attend = join_causal_mask(may_attend, *sizes)
        output, weights = self.attend(
            self.project_query(query),  # (B, T, H, K)
            self.project_key(key),  # (B, S, H, K)
            self.project_value(value),  # (B, S, H, V)
            may_attend,
            training,
        )
        return (output, weights) if return_attention_scores else output

    def compute_output_spec(
        self,
        query,
        value=None,
        *,
        key=None,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        value, key = default_inputs(query, value, key)
        batch, t, features = query.shape
        return output_spec(
            self,
            (batch, t, self.output_dim or features),
            (batch, self.num_heads, t, key.shape[1]),
            return_attention_scores,
        )

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}
