"""The Transformer's encoder: a stack of blocks over embedded tokens."""

from d2l_attention.attention_layer import drop, query_and_key_size
from d2l_attention.masking import join_causal_mask, merge_masks
from d2l_attention.models.blocks import TransformerEncoderBlock
from d2l_attention.models.stack import TransformerStack, asking_for_weights
import keras


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerEncoder(TransformerStack):
    """A stack of `TransformerEncoderBlock` over embedded tokens.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3; document 001,
    Transformer.

    Args:
        dim: Positive int, features D.
        num_layers: Positive int, number of blocks.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width U of the position-wise nets.
        dropout: Float in [0, 1), rate of dropout on the input, on weights and
            on residuals.
        activation: Name or function of the nets' activation.
        use_bias: Whether attention's projections have biases. The nets always
            have b₁ and b₂.
        normalize_first: Whether each sublayer reads a normalized input,
            instead of normalizing after each residual. One more norm then
            follows the last block.
        epsilon: Float of the layer normalizations.
        max_length: Positive int, number of sinusoidal positions that are
            added to the input; None adds none.

    Call arguments:
        query: Float tensor `(B, T, D)`, embedded tokens.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`; True = may attend.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills one of them from an implicit mask.
        use_causal_mask: Whether no token sees a later one.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked a dict of
        `"block_i/self_attention"` `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `dropout` is outside [0, 1), shapes do not match, or the
            input is longer than `max_length`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerEncoder
        >>> encoder = TransformerEncoder(
        ...     dim=4, num_layers=2, num_heads=2, ffn_dim=8
        ... )
        >>> _, maps = encoder(np.ones((1, 3, 4)), return_attention_scores=True)
        >>> sorted(maps), tuple(maps["block_0/self_attention"].shape)
        (['block_0/self_attention', 'block_1/self_attention'], (1, 2, 3, 3))
    """

    block_class = TransformerEncoderBlock

    def build(self, query_shape):
        self.build_blocks(query_shape)

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
        x = drop(self.dropout_layer, self.place(query), training)
        maps, asked = {}, asking_for_weights(return_attention_scores)
        for block in self.blocks:
            x = block(x, attention_mask=mask, training=training, **asked)
            if return_attention_scores:
                x, maps[f"{block.name}/self_attention"] = x
        x = self.end(x)
        return (x, maps) if return_attention_scores else x

    def compute_output_spec(
        self, query, *, return_attention_scores=False, **masks_and_mode
    ):
        maps = {}
        for block in self.blocks:
            x, weights = block.compute_output_spec(
                query, return_attention_scores=True
            )
            maps[f"{block.name}/self_attention"] = weights
        return (x, maps) if return_attention_scores else x
