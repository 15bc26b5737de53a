"""The block that a Transformer's decoder is stacked from."""

from d2l_attention.attention_layer import check_shapes, query_and_key_size
from d2l_attention.efficient.cache import attend_with_cache
from d2l_attention.masking import join_causal_mask, merge_masks
from d2l_attention.models.blocks.base import TransformerBlock, attend_to_itself
import keras


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerDecoderBlock(TransformerBlock):
    """Causal self-attention, cross-attention and a position-wise net.

        y = norm(x + self_attention(x) up to each position)
        z = norm(y + cross_attention(y, key))
        output = norm(z + FFN(z))

    With `normalize_first` each line is x + f(norm(x)). The block never
    normalizes `key`.

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
        query: Float tensor `(B, T, D)`, the target so far.
        key: Float tensor `(B, S, D')`, the encoder's output.
        attention_mask: Bool tensor over target and target, `(T, T)`,
            `(B, 1, T)`, `(B, T, T)` or `(B, H, T, T)`. The causal mask is
            always on; there is no `use_causal_mask`.
        cross_attention_mask: Bool tensor over target and source, `(T, S)`,
            `(B, 1, S)` or `(B, T, S)`.
        query_mask: Bool tensor `(B, T)`, True at target tokens.
        key_mask: Bool tensor `(B, S)`, True at source tokens. Keras fills
            both from implicit masks.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked a dict of `"self_attention"`
        `(B, H, T, T)` and `"cross_attention"` `(B, H, T, S)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerDecoderBlock
        >>> block = TransformerDecoderBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> target, source = np.ones((1, 3, 4)), np.ones((1, 5, 6))
        >>> _, maps = block(target, key=source, return_attention_scores=True)
        >>> {name: tuple(weights.shape) for name, weights in maps.items()}
        {'self_attention': (1, 2, 3, 3), 'cross_attention': (1, 2, 3, 5)}
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
        self.cross_attention = self.make_attention("cross_attention")
        self.cross_attention_norm = self.make_add_norm("cross_attention_norm")

    def build(self, query_shape, key_shape=None):
        check_source(self, key_shape)
        super().build(query_shape)
        self.cross_attention.build(query_shape, key_shape)
        self.cross_attention_norm.build(query_shape)

    def memorize(self, key):
        """Keys and values of the source, projected once for all steps."""
        return {
            "key": self.cross_attention.project_key(key),
            "value": self.cross_attention.project_value(key),
        }

    def step(self, x, positions, cache, memory, key_mask=None):
        """Process tokens `(B, T, D)` at `positions` `(B, T)`.

        Args:
            x: Float tensor `(B, T, D)`.
            positions: Int tensor `(B, T)`.
            cache: As `make_cache` gives it, or a step before.
            memory: As `memorize` gives it.
            key_mask: Bool tensor `(B, S)`, True at source tokens.

        Returns:
            Float tensor `(B, T, D)`, and the cache with the new tokens.
        """
        cross_mask = merge_masks(None, key_mask)  # (B, 1, S)
        y = self.sublayer_input(self.self_attention_norm, x)
        y, cache = attend_with_cache(self.self_attention, y, positions, cache)
        x = self.add_residual(self.self_attention_norm, x, y)
        y = self.sublayer_input(self.cross_attention_norm, x)
        y, _ = self.attend_to_memory(y, memory, cross_mask)
        x = self.add_residual(self.cross_attention_norm, x, y)
        y = self.ffn(self.sublayer_input(self.ffn_norm, x))
        return self.add_residual(self.ffn_norm, x, y), cache

    def call(
        self,
        query,
        key=None,
        *,
        query_mask=None,
        key_mask=None,
        attention_mask=None,
        cross_attention_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        check_source(self, key)
        check_shapes(query.shape, key.shape, key.shape)
        mask = merge_masks(attention_mask, query_mask)
        mask = join_causal_mask(mask, *query_and_key_size(query, query))
        cross_mask = merge_masks(cross_attention_mask, key_mask)
        memory = self.memorize(key)  # key and value, each (B, S, H, K)
        y = self.sublayer_input(self.self_attention_norm, query)  # (B, T, D)
        y, weights = attend_to_itself(self.self_attention, y, mask, training)
        x = self.add_residual(self.self_attention_norm, query, y, training)
        y = self.sublayer_input(self.cross_attention_norm, x)
        y, cross_weights = self.attend_to_memory(
            y, memory, cross_mask, training
        )
        x = self.add_residual(self.cross_attention_norm, x, y, training)
        y = self.ffn(self.sublayer_input(self.ffn_norm, x))
        x = self.add_residual(self.ffn_norm, x, y, training)  # (B, T, D)
        maps = {"self_attention": weights, "cross_attention": cross_weights}
        return (x, maps) if return_attention_scores else x

    def attend_to_memory(self, x, memory, mask, training=None):
        """Output `(B, T, D)` and weights `(B, H, T, S)` of cross-attention."""
        query = self.cross_attention.project_query(x)  # (B, T, H, K)
        key, value = memory["key"], memory["value"]  # (B, S, H, K)
        return self.cross_attention.attend(query, key, value, mask, training)

    def compute_output_spec(
        self,
        query,
        key=None,
        *,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        check_source(self, key)
        check_shapes(query.shape, key.shape, key.shape)
        batch, t, _ = query.shape
        rows, dtype = (batch, self.num_heads, t), self.compute_dtype
        output = keras.KerasTensor(query.shape, dtype)
        maps = {
            "self_attention": keras.KerasTensor((*rows, t), dtype),
            "cross_attention": keras.KerasTensor((*rows, key.shape[1]), dtype),
        }
        return (output, maps) if return_attention_scores else output


def check_source(layer, key):
    """Refuse to decode without a source, or without its shape."""
    if key is None:
        raise ValueError(
            f"{type(layer).__name__} attends to a source as well: write "
            "layer(query, key), with key the encoder's output. Received: "
            "key=None."
        )
