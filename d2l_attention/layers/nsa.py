"""NSA, native sparse attention: means of blocks, chosen blocks and a window."""

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import AttentionLayer
from d2l_attention.layers.cache import attend_with_cache
from d2l_attention.layers.masking import (
    check_mask,
    join_masks,
    masked_softmax,
    query_offsets,
)
from d2l_attention.layers.moba import (
    block_scores,
    expand_blocks,
    refuse_padding_first,
    select_blocks,
    sum_blocks,
)
from d2l_attention.layers.multi_head import (
    HeadProjections,
    MultiHeadAttention,
    split_heads,
)
from d2l_attention.layers.multi_query import (
    check_shared_heads,
    grouped_scores,
    grouped_sum,
)
from d2l_attention.layers.relative_positions import (
    RotatesByPosition,
    check_frequencies,
)
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class NativeSparseAttention(RotatesByPosition, HeadProjections, AttentionLayer):
    """NSA: three attentions, to means of blocks, chosen blocks and a window.

        head_h = Σ_c g_c,h softmax(scores_c,h) values_c,g
        output = [head_1; …; head_H] W_o

    c is *compressed* (one mean key and mean value for each block before the
    query's own), *selected* (the own block and the best before it, by the
    compressed weights, summed over the heads of a group) or *window*. Each has
    its own keys and values. The gates g = sigmoid(x W_g) need not sum to 1. It
    is causal with and without `use_causal_mask`. The choice learns through the
    compressed attention, whose keys it reads.

    Source: Yuan et al. (2025), arXiv:2502.11089, section 3: native sparse
    attention. Unlike there, a block's entry is a plain mean, blocks do not
    overlap, both attentions use one block size, and no place among the chosen
    is reserved for the first block.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        block_size: Positive int, tokens of a block.
        top: Positive int, blocks that are selected, the own one included.
        window: Positive int, W tokens that the window sees.
        num_kv_heads: Positive int, G heads of keys and values in each of the
            three.
        frequencies, interleaved, magnitude: As in `RotaryAttention`.
        value_dim, output_dim, use_bias: As there.

    Unlike `AttentionLayer`, it returns no weights: three tables belong to
    three sets of values, and no one table times one set gives the output.
    Padding before a text is refused, as by `SelectedBlockAttention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import NativeSparseAttention
        >>> layer = NativeSparseAttention(2, 4, block_size=2, top=1, window=3)
        >>> x = np.arange(40.0).reshape(1, 5, 8) / 20
        >>> whole, cache = layer(x), layer.make_cache(1, max_length=5)
        >>> for t in range(5):
        ...     y, cache = layer.step(x[:, t : t + 1], np.array([[t]]), cache)
        >>> bool(np.allclose(y[:, 0], whole[:, 4], atol=1e-5))
        True
    """

    weights_from = (
        "Its three attentions have values of their own; select_blocks and "
        "expand_blocks show what is chosen, and SelectedBlockAttention has "
        "one attention, and dropout."
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        block_size,
        top,
        window,
        *,
        num_kv_heads=None,
        frequencies=None,
        interleaved=False,
        magnitude=1.0,
        **options,
    ):
        super().__init__(num_heads, key_dim, **options)
        if num_kv_heads is None:
            num_kv_heads = self.num_heads
        self.num_groups = check_shared_heads(num_kv_heads, self.num_heads)
        self.num_kv_heads = 3 * self.num_groups  # of projections and cache
        self.frequencies = check_frequencies(frequencies, self.key_dim)
        self.interleaved = interleaved
        self.magnitude = magnitude
        self.block_size = check_positive("block_size", block_size)
        self.top = check_positive("top", top)
        self.window = check_positive("window", window)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        size = 3 * self.num_heads
        self.gate_layer = self._dense("W_g", size, query_shape[-1])

    def project_query(self, query, start=0):
        """Rotated queries and three gates after them, `(B, T, H, K + 3)`."""
        gates = split_heads(self.gate_layer(query), self.num_heads)
        rotated = self.rotate(super().project_query(query), start)
        return ops.concatenate([rotated, ops.sigmoid(gates)], axis=-1)

    def project_key(self, key, start=0):
        """Rotated keys of the three `(B, S, 3G, K)`; the first at `start`."""
        return self.rotate(super().project_key(key), start)

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
        query_positions=None,
    ):
        """Output, and None for weights; keys and values of the three in turn.

        They are `(B, S, 3G, ·)`: compressed, selected, window.
        """
        gates, query = query[..., self.key_dim :], query[..., : self.key_dim]
        keys, values = (ops.split(x, 3, axis=2) for x in (key, value))
        weights = self.three_weights(query, keys, mask, query_positions)
        heads = [
            gates[..., c : c + 1] * grouped_sum(weights[c], values[c])
            for c in range(3)
        ]
        return refuse_padding_first(self.join_heads(sum(heads)), mask), None

    def three_weights(self, query, keys, mask, positions):
        """Compressed, selected and window weights, each `(B, H, T, S)`.

        The weight of a compressed entry is spread evenly over its tokens.
        """
        num_keys, size = ops.shape(keys[0])[1], self.block_size
        positions, offsets = query_offsets(query, keys[0], positions)
        scores = block_scores(query, keys[0], size, mask)  # (B, H, T, N)
        blocks = ops.arange(ops.shape(scores)[-1], dtype="int32")
        own = ops.expand_dims(positions // size, -1)
        closed = check_mask(blocks < own, scores.shape)
        entries = masked_softmax(scores, closed)
        known = ops.where(scores > -float("inf"), entries, -float("inf"))
        selected = select_blocks(
            known, self.top, size, positions, self.num_groups
        )
        chosen = expand_blocks(selected, size, num_keys)
        present = join_masks((query, keys[0]), offsets == offsets, mask)
        present = ops.cast(present, entries.dtype)
        counts = ops.maximum(sum_blocks(present, size), 1)
        spread = expand_blocks(entries / counts, size, num_keys) * present
        masks = (
            join_masks((query, keys[1]), offsets <= 0, chosen, mask),
            join_masks(
                (query, keys[2]),
                (offsets <= 0) & (offsets > -self.window),
                mask,
            ),
        )
        rest = (
            masked_softmax(grouped_scores(query, x), seen)
            for x, seen in zip(keys[1:], masks, strict=True)
        )
        return spread, *rest

    make_cache = MultiHeadAttention.make_cache  # for 3G heads

    def step(self, x, positions, cache, query_mask=None):
        """As `MultiHeadAttention.step`.

        It reads the whole cache, of three keys and values for each token, so
        a step costs more than one of dense attention.
        """
        positions = ops.cast(positions, "int32")
        return attend_with_cache(
            self, x, positions, cache, query_positions=positions
        )

    def get_config(self):
        return {**super().get_config(), "num_kv_heads": self.num_groups}
