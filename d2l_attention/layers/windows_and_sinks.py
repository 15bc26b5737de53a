"""Attention to the last tokens, to a sink that is no key, to a text's start.

A cache that does not grow is a ring: the token at position p lies in slot
p mod size, where it writes over the one that left the window.
"""

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import wide
from d2l_attention.layers.cache import contiguous_cache, refuse_beyond
from d2l_attention.layers.masking import (
    check_mask,
    join_causal_mask,
    masked_softmax,
    window_mask,
)
from d2l_attention.layers.multi_head import MultiHeadAttention
from d2l_attention.layers.multi_query import grouped_scores, grouped_sum
from d2l_attention.layers.relative_positions import RotaryAttention
from d2l_attention.layers.reshaping import reshape, take_rows
import keras
from keras import ops


def sink_attention(query, key, value, sinks, mask=None, dropout=None):
    """Attention whose softmax has one more score, of no key and no value.

        weights[t, s] = exp(scores[t, s]) / (Σ_j exp(scores[t, j]) + exp(σ_h))
        output        = dropout(weights) value,  scores = query keyᵀ / √K

    A head that finds nothing to read gives its weight to the sink.

    Source: OpenAI (2025), arXiv:2508.10925, section 2.2, where the sinks are
    called learned biases in the denominator of the softmax.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, G, K)` and `(B, S, G, V)`; G
            divides H.
        sinks: Floats `(H,)`, σ; −inf is a head without a sink.
        mask, dropout: As in `multi_head_attention`.

    Returns:
        Float tensor `(B, T, H, V)`, and the weights `(B, H, T, S)` as they
        were before dropout, whose rows sum to less than 1. A query with
        nothing to attend to gets zeros.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import sink_attention
        >>> x = np.zeros((1, 3, 1, 2))  # three keys with the score 0
        >>> _, weights = sink_attention(x[:, :1], x, x, sinks=[np.log(3)])
        >>> np.array(weights)[0, 0].round(3).tolist()  # half of 1/3 each
        [[0.167, 0.167, 0.167]]
    """
    weights = sink_softmax(grouped_scores(query, key), sinks, mask)
    dropped = weights if dropout is None else dropout(weights)
    return grouped_sum(dropped, value), weights


def sink_softmax(scores, sinks, mask=None):
    """The weights of `sink_attention`, of scores `(B, H, T, S)`."""
    dtype, scores = scores.dtype, ops.cast(scores, wide(scores.dtype))
    if mask is not None:
        mask = check_mask(mask, scores.shape)
        scores = ops.where(mask, scores, -float("inf"))
    sinks = ops.cast(sinks, scores.dtype)[:, None, None]  # (H, 1, 1)
    sinks = sinks + ops.zeros_like(scores[..., :1])  # (B, H, T, 1)
    weights = masked_softmax(ops.concatenate([scores, sinks], axis=-1))
    return ops.cast(weights[..., :-1], dtype)


def add_sinks(output, log_sum_exp, sinks):
    """What `sink_attention` gives, from attention without sinks.

        output[b, t, h] · sigmoid(log_sum_exp[b, h, t] − σ_h)

    Args:
        output: Float tensor `(B, T, H, V)`.
        log_sum_exp: Float tensor `(B, H, T)`, the log of the softmax's
            denominator. `flash_attention` returns both. Merge the outputs of
            several sets of keys first, since the sink counts once.
        sinks: Floats `(H,)`, σ.

    Returns:
        Float tensor `(B, T, H, V)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import add_sinks, flash_attention
        >>> x = np.ones((1, 1, 1, 2), "float32")
        >>> found = flash_attention(x, x, x, return_log_sum_exp=True)
        >>> output = add_sinks(*found, sinks=[2**0.5])  # σ is the key's score
        >>> np.array(output).round(3).ravel().tolist()
        [0.5, 0.5]
    """
    log_sum_exp = ops.convert_to_tensor(log_sum_exp)
    sinks = ops.cast(sinks, log_sum_exp.dtype)[:, None]  # (H, 1)
    nothing = log_sum_exp == -float("inf")  # to attend to: −inf − (−inf)
    above = ops.where(nothing, log_sum_exp, log_sum_exp - sinks)
    gate = ops.transpose(ops.sigmoid(above), (0, 2, 1))
    return output * ops.cast(gate[..., None], output.dtype)


def ring_positions(end, size, num_pinned=0):
    """Which token lies in which slot, after the tokens 0 … end − 1.

        slot p                     of the first `num_pinned` tokens
        slot num_pinned + j        of the last p < end with p − num_pinned
                                   ≡ j (mod size)

    Args:
        end: Int tensor `(B,)`.
        size, num_pinned: Ints, slots of the ring, and slots before it.

    Returns:
        int32 tensor `(B, num_pinned + size)` of positions, −1 at an empty slot.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.windows_and_sinks import ring_positions
        >>> np.array(ring_positions(np.array([6, 2]), size=4)).tolist()
        [[4, 5, 2, 3], [0, 1, -1, -1]]
    """
    slots = ops.arange(num_pinned + size, dtype="int32")
    last = ops.expand_dims(ops.cast(end, "int32"), 1) - 1  # (B, 1)
    latest = last - (last - slots) % size
    places = ops.where(slots < num_pinned, slots, latest)
    filled = places >= ops.minimum(slots, num_pinned)
    filled = ops.logical_and(filled, places <= last)
    return ops.where(filled, places, -1)


def write_ring(cache, key, value, start, end, num_pinned=0):
    """The cache after the tokens `start` … `end` − 1 of each row.

    `key` and `value` are `(B, T, G, ·)`; the first end − start of a row are
    its tokens, the others padding. `start` and `end` are `(B,)`.
    """
    num_slots = cache["key"].shape[1]
    latest = ring_positions(end, num_slots - num_pinned, num_pinned)
    new = latest - ops.expand_dims(start, 1)  # which of the T tokens
    slots = ops.arange(num_slots, dtype="int32")
    index = ops.where(new >= 0, num_slots + new, slots)
    joined = _joined(cache, key, value)
    return {name: take_rows(x, index) for name, x in joined.items()}


def _joined(cache, key, value):
    """The new keys and values after those of the cache."""
    return {
        name: ops.concatenate(
            [cache[name], ops.cast(new, cache[name].dtype)], axis=1
        )
        for name, new in (("key", key), ("value", value))
    }


def _refuse_short_ring(output, positions, cache, most):
    """The output, but where a ring of fewer than `most` slots goes round."""
    num_slots = cache["key"].shape[1]
    if num_slots >= most:
        return output
    return refuse_beyond(output, positions, num_slots)


def _end(positions, query_mask):
    """One position after the last token of each row, `(B,)`."""
    if query_mask is None:
        return positions[:, -1] + 1
    lengths = ops.sum(ops.cast(query_mask, "int32"), axis=1)
    return positions[:, 0] + lengths


@keras.saving.register_keras_serializable("d2l_attention")
class WindowAttention(RotaryAttention):
    """Rotary attention of each token to the last W, with itself.

        head_h = softmax(scores of s = t − W + 1 … t) V W_v,g
        output = [head_1; …; head_H] W_o

    It is causal with and without `use_causal_mask`. A stack of L layers
    reaches L(W − 1) tokens back. The cache is a ring of W slots, so a step
    costs no more at a later position.

    Source: Jiang et al. (2023), arXiv:2310.06825, section 2, whose text has
    s = t − W … t, and a reach of L W.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        window: Positive int, W tokens that a query sees.
        num_kv_heads, frequencies, interleaved, magnitude: As there.
        dropout, value_dim, output_dim, use_bias: As there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import WindowAttention
        >>> layer, x = WindowAttention(1, 4, window=2), np.ones((1, 3, 8))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> (np.array(weights)[0, 0] > 0).astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """

    window_is_optional = False  # None = all earlier tokens

    def __init__(self, num_heads, key_dim, window, **options):
        super().__init__(num_heads, key_dim, **options)
        if window is not None or not self.window_is_optional:
            window = check_positive("window", window)
        self.window = window

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
    ):
        mask = join_causal_mask(mask, query, key)
        if self.window is not None:
            sizes = ops.shape(query)[1], ops.shape(key)[1]
            near = window_mask(*sizes, before=self.window - 1, after=0)
            mask = ops.logical_and(mask, near)
        return super().attend(query, key, value, mask, training=training)

    def make_cache(self, batch_size, max_length):
        """An empty ring of W slots, or of `max_length` if that is less."""
        size = max_length
        if self.window is not None:
            size = min(self.window, max_length)
        return super().make_cache(batch_size, size)

    def step(self, x, positions, cache, query_mask=None):
        """Attend from tokens `(B, T, D)` at `positions` `(B, T)` to the window.

        What comes back is `(B, T, D)`, and the cache with the new tokens.
        Padding, where `query_mask` `(B, T)` is False, must follow the tokens of
        a row and is not written.
        """
        if self.window is None:
            return super().step(x, positions, cache, query_mask)
        positions = ops.cast(positions, "int32")
        start, end = positions[:, 0], _end(positions, query_mask)
        query = self.project_query(x, start)  # (B, T, H, K)
        key, value = self.project_key(x, start), self.project_value(x)
        held = ring_positions(start, cache["key"].shape[1])
        places = ops.concatenate([held, positions], axis=1)[:, None]
        back = positions[..., None] - places  # (B, T, W + T)
        seen = (places >= 0) & (back >= 0) & (back < self.window)
        joined = _joined(cache, key, value)
        output, _ = super().attend(query, joined["key"], joined["value"], seen)
        output = _refuse_short_ring(output, positions, cache, self.window)
        return output, write_ring(cache, key, value, start, end)


@keras.saving.register_keras_serializable("d2l_attention")
class SinkAttention(WindowAttention):
    """Attention to the last W tokens, and to a learned sink.

        weights[t, s] = exp(scores[t, s]) / (Σ_j exp(scores[t, j]) + exp(σ_h))
        output = [head_1; …; head_H] W_o

    Source: OpenAI (2025), arXiv:2508.10925, section 2.2. gpt-oss alternates
    layers with a window of 128 and layers without one, all with sinks.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        window: As in `WindowAttention`; None = all earlier tokens.
        num_kv_heads, frequencies, interleaved, magnitude: As there.
        dropout, value_dim, output_dim, use_bias: As there.

    Unlike `AttentionLayer`, rows of weights sum to less than 1. The sinks
    `(H,)` begin at 0.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import SinkAttention
        >>> layer, x = SinkAttention(1, key_dim=4), np.zeros((1, 3, 8))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> print(np.array(weights)[0, 0].sum(-1).round(3))
        [0.5   0.667 0.75 ]
    """

    window_is_optional = True

    def __init__(self, num_heads, key_dim, window=None, **options):
        super().__init__(num_heads, key_dim, window, **options)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.sinks = self.add_weight(
            (self.num_heads,), "zeros", name="sinks", autocast=False
        )

    def equation(self, query, key, value, mask, dropout):
        return sink_attention(query, key, value, self.sinks, mask, dropout)


@keras.saving.register_keras_serializable("d2l_attention")
class StreamingAttention(RotaryAttention):
    """Rotary attention that writes without end, with a cache of one size.

    The call is that of `RotaryAttention`. What keeps a cache keeps the first
    `num_sinks` tokens and the last W, and numbers them 0, 1, 2, …. So no
    distance is longer than the cache. What left it is forgotten by this layer;
    keys of a layer above may have read it.

    Source: Xiao et al. (2023), arXiv:2309.17453, section 3.2. As there, keys
    are kept before rotation.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        window: Positive int, W last tokens, with the newest one.
        num_sinks: Non-negative int, first tokens that stay.
        num_kv_heads, frequencies, interleaved, magnitude: As there.
        dropout, value_dim, output_dim, use_bias: As there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import StreamingAttention
        >>> layer = StreamingAttention(1, 4, window=2, num_sinks=1)
        >>> x = np.random.default_rng(0).normal(size=(1, 9, 8))
        >>> kept = layer(x[:, [0, 7, 8]], use_causal_mask=True)
        >>> cache = layer.make_cache(1, max_length=9)
        >>> for t in range(9):
        ...     y, cache = layer.step(x[:, t : t + 1], np.array([[t]]), cache)
        >>> bool(np.allclose(y[:, 0], kept[:, -1], atol=1e-5))
        True
    """

    def __init__(self, num_heads, key_dim, window, num_sinks=4, **options):
        super().__init__(num_heads, key_dim, **options)
        self.window = check_positive("window", window)
        if num_sinks:
            check_positive("num_sinks", num_sinks)
        self.num_sinks = int(num_sinks)

    def make_cache(self, batch_size, max_length):
        """An empty cache of `num_sinks` + W slots, or `max_length`."""
        size = max(1, min(self.window, max_length - self.num_sinks))
        rows = (batch_size, self.num_sinks + size, self.num_kv_heads)
        return contiguous_cache(
            (*rows, self.key_dim), self.value_dim, self.compute_dtype
        )

    def step(self, x, positions, cache, query_mask=None):
        """Attend from tokens `(B, T, D)` to what the cache keeps.

        A step of T tokens equals T steps of one. The arguments and what comes
        back are as in `WindowAttention`.
        """
        positions = ops.cast(positions, "int32")
        start, end = positions[:, 0], _end(positions, query_mask)
        # Of the grandparent, which does not rotate.
        query = MultiHeadAttention.project_query(self, x)  # (B, T, H, K)
        key = MultiHeadAttention.project_key(self, x)
        value = self.project_value(x)
        n = self.num_sinks
        after = write_ring(cache, key, value, start, end, n)
        size = cache["key"].shape[1] - n
        # The first tokens as they are after the step, then the window before
        # it, then the new tokens.
        joined = _joined({k: v[:, n:] for k, v in cache.items()}, key, value)
        first = ring_positions(end, size, n)[:, :n]  # (B, n)
        held = ring_positions(start, size, n)[:, n:]
        places = ops.concatenate([held, positions], axis=1)  # (B, W + T)
        here = positions[..., None]  # (B, T, 1)
        see_first = (first[:, None] >= 0) & (first[:, None] <= here)
        back = here - places[:, None]
        see_last = (places[:, None] >= n) & (back >= 0) & (back < self.window)
        # Only the distance to the first tokens depends on the numbers.
        numbers = ops.minimum(positions, n + self.window - 1)
        start = ops.expand_dims(start, 1)
        scores = [
            grouped_scores(
                self._rotate_at(query, numbers),
                self._rotate_at(after["key"][:, :n], first),
            ),
            grouped_scores(
                self._rotate_at(query, positions - start),
                self._rotate_at(joined["key"], places - start),
            ),
        ]
        weights = masked_softmax(
            ops.concatenate(scores, axis=-1),
            ops.concatenate([see_first, see_last], axis=-1),
        )
        values = [after["value"][:, :n], joined["value"]]
        heads = grouped_sum(weights, ops.concatenate(values, axis=1))
        output = self.join_heads(heads)
        most = n + self.window
        return _refuse_short_ring(output, positions, cache, most), after

    def _rotate_at(self, x, positions):
        """Rotate the tokens of x `(B, T, H, K)` by `positions` `(B, T)`."""
        b, t, h, k = ops.shape(x)
        alone = reshape(x, (b * t, 1, h, k))
        turned = self.rotate(alone, reshape(positions, (b * t,)))
        return reshape(turned, (b, t, h, k))
