"""The block that a Transformer's encoder is stacked from."""

from d2l_attention.attention_layer import output_spec, query_and_key_size
from d2l_attention.masking import join_causal_mask, merge_masks
from d2l_attention.models.blocks.base import TransformerBlock, attend_to_itself
import keras


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerEncoderBlock(TransformerBlock):
    """Self-attention and a position-wise net, each behind a residual.

        y = norm(x + self_attention(x)),  output = norm(y + FFN(y))

    and with `normalize_first`

        y = x + self_attention(norm(x)),  output = y + FFN(norm(y))

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.1; documents
    001 (Transformer) and 004, sections 3–5. Norms first: Xiong et al. (2020),
    arXiv:2002.04745.

    Args:
        dim: Positive int, features D of input and output.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width U of the position-wise net.
        dropout: Float in [0, 1), rate of dropout on weights and residuals.
        activation: Name or function of the net's activation.
        use_bias: Whether attention's projections have biases. The net always
            has b₁ and b₂.
        normalize_first: Whether each sublayer reads a normalized input,
            instead of normalizing after each residual.
        epsilon: Float of the layer normalization.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`; True = may attend.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills one of them from an implicit mask.
        use_causal_mask: Whether no token sees a later one.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked the weights `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerEncoderBlock
        >>> block = TransformerEncoderBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> x, tokens = np.ones((1, 3, 4)), np.array([[True, True, False]])
        >>> output, weights = block(
        ...     x, key_mask=tokens, return_attention_scores=True
        ... )
        >>> tuple(output.shape), np.array(weights)[0, 0, 0].round(2).tolist()
        ((1, 3, 4), [0.5, 0.5, 0.0])
    """

    def __init__(
        self,
        dim,
        num_heads,
        ffn_dim,
        *,
        dropout=0.0,
        activation="relu",
        use_bias=False,
        normalize_first=False,
        epsilon=1e-5,
        **kwargs,
    ):
        super().__init__(
            dim,
            num_heads,
            ffn_dim,
            dropout=dropout,
            activation=activation,
            use_bias=use_bias,
            normalize_first=normalize_first,
            epsilon=epsilon,
            **kwargs,
        )
        self.add_sublayers()

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
        mask = merge_masks(attention_mask, query_mask, key_mask, mask)
        if use_causal_mask:
            mask = join_causal_mask(mask, *query_and_key_size(query, query))
        y = self.sublayer_input(self.self_attention_norm, query)  # (B, T, D)
        y, weights = attend_to_itself(self.self_attention, y, mask, training)
        x = self.add_residual(self.self_attention_norm, query, y, training)
        y = self.ffn(self.sublayer_input(self.ffn_norm, x))
        x = self.add_residual(self.ffn_norm, x, y, training)
        return (x, weights) if return_attention_scores else x

    def compute_output_spec(
        self, query, *, return_attention_scores=False, **masks_and_mode
    ):
        batch, t, _ = query.shape
        weights_shape = (batch, self.num_heads, t, t)
        return output_spec(
            self, query.shape, weights_shape, return_attention_scores
        )
