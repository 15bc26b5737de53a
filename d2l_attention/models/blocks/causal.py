"""A block that sees no later token, and so can keep a cache."""

from d2l_attention.attention_layer import output_spec, query_and_key_size
from d2l_attention.efficient.cache import attend_with_cache
from d2l_attention.efficient.multi_query import GroupedQueryAttention
from d2l_attention.masking import join_causal_mask, merge_masks
from d2l_attention.models.blocks.base import TransformerBlock, attend_to_itself
import keras


@keras.saving.register_keras_serializable("d2l_attention")
class CausalBlock(TransformerBlock):
    """An encoder block that sees no later token, and so can keep a cache.

        y = norm(x + self_attention(x) up to each position)
        output = norm(y + FFN(y))

    Source: Liu et al. (2018), arXiv:1801.10198, section 4.2.1; document 004,
    section 5.

    Args:
        dim: Positive int, features D of input and output.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width U of the position-wise net.
        num_kv_heads: Positive int, G heads of keys and values that the query
            heads share; divides `num_heads`. None = `num_heads`.
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
            `(B, H, T, T)`; the causal mask comes on top.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills one of them from an implicit mask.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked the weights `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `num_kv_heads` does not divide `num_heads`, `dropout` is
            outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import CausalBlock
        >>> block = CausalBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> x = np.arange(12.0).reshape(1, 3, 4)
        >>> whole, cache = block(x), block.make_cache(1, max_length=3)
        >>> for t in range(3):  # token by token, at position t
        ...     y, cache = block.step(x[:, t : t + 1], np.array([[t]]), cache)
        >>> bool(np.allclose(y[:, 0], whole[:, 2], atol=1e-5))
        True
    """

    def __init__(
        self,
        dim,
        num_heads,
        ffn_dim,
        *,
        num_kv_heads=None,
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
        self.num_kv_heads = None
        if num_kv_heads is None:
            self.add_sublayers()
        else:
            self.add_sublayers(GroupedQueryAttention, num_kv_heads=num_kv_heads)
            self.num_kv_heads = self.self_attention.num_kv_heads

    def call(
        self,
        query,
        *,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        mask=None,
        return_attention_scores=False,
        training=None,
    ):
        mask = merge_masks(attention_mask, query_mask, key_mask, mask)
        mask = join_causal_mask(mask, *query_and_key_size(query, query))
        y = self.sublayer_input(self.self_attention_norm, query)  # (B, T, D)
        y, weights = attend_to_itself(self.self_attention, y, mask, training)
        x = self.add_residual(self.self_attention_norm, query, y, training)
        y = self.ffn(self.sublayer_input(self.ffn_norm, x))
        x = self.add_residual(self.ffn_norm, x, y, training)
        return (x, weights) if return_attention_scores else x

    def step(self, x, positions, cache):
        """Process tokens `(B, T, D)` at `positions` `(B, T)`.

        Returns:
            Float tensor `(B, T, D)`, and the cache with the new tokens.
        """
        y = self.sublayer_input(self.self_attention_norm, x)
        y, cache = attend_with_cache(self.self_attention, y, positions, cache)
        x = self.add_residual(self.self_attention_norm, x, y)
        y = self.ffn(self.sublayer_input(self.ffn_norm, x))
        return self.add_residual(self.ffn_norm, x, y), cache

    def compute_output_spec(
        self, query, *, return_attention_scores=False, **masks_and_mode
    ):
        batch, t, _ = query.shape
        weights_shape = (batch, self.num_heads, t, t)
        return output_spec(
            self, query.shape, weights_shape, return_attention_scores
        )

    def get_config(self):
        return {**super().get_config(), "num_kv_heads": self.num_kv_heads}
