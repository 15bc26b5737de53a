"""DSA, DeepSeek sparse attention: a few tokens, chosen by a small score.

What the choice reads is cheaper than attention: a few features of each token,
the indexer's. Each query attends to the tokens that score best, and to no
other.
"""

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import default_shapes
from d2l_attention.layers.cache import refuse_beyond, write_cache
from d2l_attention.layers.masking import (
    join_masks,
    key_offsets,
    query_offsets,
)
from d2l_attention.layers.moba import selected_block_attention, top_entries
from d2l_attention.layers.multi_head import split_heads
from d2l_attention.layers.relative_positions import RotaryAttention
import keras
from keras import ops


def index_scores(query, key, weights):
    """A small score of each query and key, for the choice alone.

        I[b, t, s] = Σ_j weights[b, t, j] ReLU(query[b, t, j] · key[b, s])

    Source: DeepSeek-AI (2025), arXiv:2512.02556, section 2.1: the lightning
    indexer.

    Args:
        query, key: Float tensors `(B, T, J, I)` and `(B, S, I)`.
        weights: Float tensor `(B, T, J)`, of either sign.

    Returns:
        Float tensor `(B, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import index_scores
        >>> query = np.array([[[[1.0], [-1.0]]]])  # two heads of one feature
        >>> key = np.array([[[3.0], [-5.0]]])
        >>> scores = index_scores(query, key, np.array([[[2.0, 1.0]]]))
        >>> np.array(scores).tolist()
        [[[6.0, 5.0]]]
    """
    products = ops.relu(ops.einsum("btji,bsi->btjs", query, key))
    return ops.einsum("btj,btjs->bts", weights, products)


def index_loss(scores, weights, mask):
    """How far the index scores are from the attention they choose for.

        mean over t of KL(p_t ‖ softmax(I_t)),  p_t = mean over h of weights_t

    Both run over the keys that the mask allows. No gradient goes to the
    weights. A choice has none to give, so this is what trains an indexer.

    Source: DeepSeek-AI (2025), arXiv:2512.02556, section 2.1.

    Args:
        scores: Float tensor `(B, T, S)`, as of `index_scores`.
        weights: Float tensor `(B, H, T, S)`, attention's.
        mask: Bool tensor that broadcasts to `(B, T, S)`.

    Returns:
        Float, at least 0. The mean is over the queries that the mask allows a
        key, so that padding changes nothing; without any, it is 0.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.dsa import index_loss
        >>> scores, weights = np.zeros((1, 1, 2)), np.array([[[[1.0, 0.0]]]])
        >>> loss = index_loss(scores, weights, np.ones((1, 1, 2), "bool"))
        >>> round(float(loss), 4)  # ln 2
        0.6931
    """
    scores = ops.cast(scores, "float32")
    mask = ops.broadcast_to(mask, ops.shape(scores))
    target = ops.mean(ops.cast(weights, "float32"), axis=1)
    target = ops.stop_gradient(target)
    lowest = ops.min(scores, axis=-1, keepdims=True)
    highest = ops.where(mask, scores, lowest)
    highest = ops.stop_gradient(ops.max(highest, axis=-1, keepdims=True))
    scores = ops.where(mask, scores - highest, 0.0)
    total = ops.sum(ops.where(mask, ops.exp(scores), 0.0), -1, keepdims=True)
    log_shares = scores - ops.log(ops.maximum(total, 1e-30))
    ratio = ops.log(ops.maximum(target, 1e-30)) - log_shares
    queries = ops.any(mask, axis=-1)  # (B, T)
    found = ops.where(target > 0, target * ratio, 0.0)
    found = ops.sum(ops.where(queries[..., None], found, 0.0))
    return found / ops.maximum(ops.sum(ops.cast(queries, found.dtype)), 1.0)


@keras.saving.register_keras_serializable("d2l_attention")
class IndexedAttention(RotaryAttention):
    """DSA: rotary attention to the tokens that a small indexer finds best.

        I_ts   = Σ_j w_tj ReLU(q'_tj · k'_s),  s ≤ t
        head_h = softmax(scores of the top tokens of I_t) V W_v,g
        output = [head_1; …; head_H] W_o

    It is causal with and without `use_causal_mask`; all heads read the same
    tokens. In training the layer adds `index_loss` over these tokens, from
    which alone the indexer learns, and which changes nothing else: its inputs
    have no gradient. With `top` of at least S attention is dense, and the
    indexer learns from all its weights.

    Source: DeepSeek-AI (2025), arXiv:2512.02556, section 2.1: DeepSeek sparse
    attention. Unlike there, keys need no latent, and the indexer has no
    positions and computes in the precision of the layer.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        top: Positive int, tokens that a query reads.
        index_heads: Positive int, J heads of the indexer.
        index_dim: Positive int, I features of its queries and keys.
        num_kv_heads, frequencies, interleaved, magnitude: As there.
        dropout, value_dim, output_dim, use_bias: As there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import IndexedAttention
        >>> layer = IndexedAttention(2, 4, top=2, index_heads=1, index_dim=3)
        >>> x = np.random.default_rng(0).normal(size=(1, 5, 8))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> (np.array(weights)[0, 0] > 0).sum(axis=1).tolist()
        [1, 2, 2, 2, 2]
    """

    def __init__(
        self, num_heads, key_dim, top, *, index_heads, index_dim, **options
    ):
        super().__init__(num_heads, key_dim, **options)
        self.top = check_positive("top", top)
        self.index_heads = check_positive("index_heads", index_heads)
        self.index_dim = check_positive("index_dim", index_dim)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        query, _, key = default_shapes(query_shape, value_shape, key_shape)
        j, i = self.index_heads, self.index_dim
        self.index_query_layer = self._dense("W_iq", j * i, query[-1])
        self.index_key_layer = self._dense("W_ik", i, key[-1])
        self.index_weight_layer = self._dense("W_iw", j, query[-1])

    def project_query(self, query, start=0):
        """Rotated queries `(B, T, H, K)`, and the indexer's and its weights.

        These are `(B, T, J, I)` and `(B, T, J)`.
        """
        apart = ops.stop_gradient(query)
        return (
            super().project_query(query, start),
            split_heads(self.index_query_layer(apart), self.index_heads),
            self.index_weight_layer(apart),
        )

    def project_key(self, key, start=0):
        """Rotated keys `(B, S, G, K)`, and those of the indexer `(B, S, I)`."""
        index_key = self.index_key_layer(ops.stop_gradient(key))
        return super().project_key(key, start), index_key

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
        """As `MultiHeadAttention.attend`, from what the layer projects."""
        query, index_query, index_weights = query
        key, index_key = key
        _, offsets = query_offsets(query, key, query_positions)
        mask = join_masks((query, key), offsets <= 0, mask)
        index = index_scores(index_query, index_key, index_weights)
        scores = ops.where(mask, ops.expand_dims(index, 1), -float("inf"))
        chosen = top_entries(scores, self.top)  # (B, 1 or H, T, S)
        output, weights = super().attend(
            query, key, value, chosen, training=training
        )
        if training:
            # A query that may not see its own key is padding.
            visible = scores > -float("inf")
            own = join_masks((query, key), offsets == 0, visible)
            own = ops.any(own, axis=(1, 3))  # (B, T)
            seen = ops.logical_and(ops.any(chosen, axis=1), own[..., None])
            self.add_loss(index_loss(index, weights, seen))
        return output, weights

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values, and of the indexer's keys."""
        shape = (batch_size, max_length, self.index_dim)
        index = ops.zeros(shape, self.compute_dtype)
        return super().make_cache(batch_size, max_length) | {"index": index}

    def step(self, x, positions, cache, query_mask=None):
        """As `MultiHeadAttention.step`; one token reads the chosen keys."""
        positions = ops.cast(positions, "int32")
        queries = self.project_query(x, positions[:, 0])
        key, index_key = self.project_key(x, positions[:, 0])
        value = self.project_value(x)
        cache = write_cache(
            cache, positions, key=key, value=value, index=index_key
        )
        key, value, index_key = (cache[x] for x in ("key", "value", "index"))
        num_slots = key.shape[1]
        if x.shape[1] == 1:
            query, index_query, index_weights = queries
            seen = key_offsets(positions, ops.arange(num_slots)) <= 0
            scores = index_scores(index_query, index_key, index_weights)
            scores = ops.where(seen, scores, -float("inf"))  # (B, 1, S)
            selected = ops.expand_dims(top_entries(scores, self.top), 1)
            top = min(self.top, num_slots)
            heads = selected_block_attention(
                query, key, value, selected, 1, top
            )
            output = self.join_heads(heads)
        else:
            output, _ = self.attend(
                queries, (key, index_key), value, query_positions=positions
            )
        return refuse_beyond(output, positions, num_slots), cache
