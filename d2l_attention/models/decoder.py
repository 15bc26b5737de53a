"""The Transformer's decoder: a stack of blocks over embedded tokens."""

from d2l_attention.attention_layer import drop
from d2l_attention.models.blocks import TransformerDecoderBlock
from d2l_attention.models.blocks.decoder import check_source
from d2l_attention.models.stack import TransformerStack, asking_for_weights
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerDecoder(TransformerStack):
    """A stack of `TransformerDecoderBlock` over embedded tokens.

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
            added to the input, and slots of a decoding's cache; None adds no
            positions, and then `start` must be told the slots.

    Call arguments:
        query: Float tensor `(B, T, D)`, embedded tokens of the target.
        key: Float tensor `(B, S, D')`, the encoder's output.
        query_mask: Bool tensor `(B, T)`, True at target tokens.
        key_mask: Bool tensor `(B, S)`, True at source tokens. Keras fills
            both from implicit masks.
        attention_mask: Bool tensor over target and target, `(T, T)`,
            `(B, 1, T)` or `(B, T, T)`; the causal mask comes on top.
        cross_attention_mask: Bool tensor over target and source, `(T, S)`,
            `(B, 1, S)` or `(B, T, S)`.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked a dict of
        `"block_i/self_attention"` `(B, H, T, T)` and
        `"block_i/cross_attention"` `(B, H, T, S)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `dropout` is outside [0, 1), shapes do not match, or the
            input is longer than `max_length`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerDecoder
        >>> decoder = TransformerDecoder(
        ...     dim=4, num_layers=2, num_heads=2, ffn_dim=8
        ... )
        >>> x, source = np.ones((1, 3, 4)), np.ones((1, 5, 4))
        >>> whole, state = decoder(x, key=source), decoder.start(source)
        >>> for t in range(3):  # token by token
        ...     last, state = decoder.step(x[:, t : t + 1], state)
        >>> bool(np.allclose(last[:, 0], whole[:, 2], atol=1e-5))
        True
    """

    block_class = TransformerDecoderBlock

    def build(self, query_shape, key_shape=None):
        check_source(self, key_shape)
        self.build_blocks(query_shape, key_shape)

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
        x = drop(self.dropout_layer, self.place(query), training)
        maps, asked = {}, asking_for_weights(return_attention_scores)
        for block in self.blocks:
            x = block(
                x,
                key=key,
                query_mask=query_mask,
                key_mask=key_mask,
                attention_mask=attention_mask,
                cross_attention_mask=cross_attention_mask,
                training=training,
                **asked,
            )
            if return_attention_scores:
                x, weights = x
                for name, one in weights.items():
                    maps[f"{block.name}/{name}"] = one
        x = self.end(x)
        return (x, maps) if return_attention_scores else x

    def compute_output_spec(
        self,
        query,
        key=None,
        *,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        check_source(self, key)
        maps = {}
        for block in self.blocks:
            x, weights = block.compute_output_spec(
                query, key=key, return_attention_scores=True
            )
            for name, one in weights.items():
                maps[f"{block.name}/{name}"] = one
        return (x, maps) if return_attention_scores else x

    def start(self, key, key_mask=None, max_length=None):
        """The state before the first token; every tensor batch first.

        Args:
            key: Float tensor `(B, S, D)`, the encoder's output.
            key_mask: Bool tensor `(B, S)`, True at source tokens.
            max_length: Positive int, slots of the cache; None = the number of
                positions.

        Raises:
            ValueError: If nothing says how many slots there are.
        """
        max_length = self.max_length if max_length is None else max_length
        if max_length is None:
            raise ValueError(
                "A stack without positions must be told how many tokens its "
                "cache holds. Received: max_length=None."
            )
        batch, size = ops.shape(key)[:2]
        if key_mask is None:
            key_mask = ops.ones((batch, size), "bool")
        return {
            "position": ops.zeros((batch,), "int32"),
            "caches": [b.make_cache(batch, max_length) for b in self.blocks],
            "memory": [block.memorize(key) for block in self.blocks],
            "mask": key_mask,
        }

    def step(self, x, state):
        """One embedded token `(B, 1, D)` further: output and state."""
        position, caches = state["position"], []
        x = self.place(x, position)
        for block, cache, memory in zip(
            self.blocks, state["caches"], state["memory"], strict=True
        ):
            x, cache = block.step(
                x, position[:, None], cache, memory, state["mask"]
            )
            caches.append(cache)
        state = {**state, "position": position + 1, "caches": caches}
        return self.end(x), state
