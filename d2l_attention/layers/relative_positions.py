"""Positions in the scores: rotated queries and keys, ALiBi, T5's buckets.

The score of a query and a key depends on the distance between the two, and not
on their absolute positions.
"""

import math

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import drop, wide
from d2l_attention.layers.cache import attend_with_cache
from d2l_attention.layers.masking import (
    join_causal_mask,
    key_offsets,
    masked_softmax,
)
from d2l_attention.layers.multi_query import (
    GroupedQueryAttention,
    grouped_scores,
    grouped_sum,
)
from d2l_attention.layers.reshaping import reshape
import keras
from keras import ops
import numpy as np


def rotary_frequencies(width, base=10_000.0):
    """The angle by which each pair of features turns from token to token.

        θ_i = base^(−2i / P),  i = 0 … P/2 − 1

    Source: Su et al. (2021), arXiv:2104.09864, section 3.2.2.

    Args:
        width: Even positive int, P features that turn.
        base: Float above 1; a larger one turns the slow pairs more slowly.

    Returns:
        float64 array `(P/2,)`, radians per token, falling from 1.

    Example:
        >>> from d2l_attention import rotary_frequencies
        >>> rotary_frequencies(4).tolist()
        [1.0, 0.01]
    """
    check_positive("width", width)
    if width % 2:
        raise ValueError(
            "Features turn in pairs, so `width` must be even. Received: "
            f"width={width}."
        )
    return base ** (-np.arange(0, width, 2) / width)


def check_frequencies(frequencies, width):
    """The list of frequencies; None is `rotary_frequencies(width)`."""
    if frequencies is None:
        frequencies = rotary_frequencies(width) if width else []
    frequencies = [float(x) for x in frequencies]
    if 2 * len(frequencies) > width:
        raise ValueError(
            "There can be at most one frequency for each pair of features. "
            f"Received: {len(frequencies)} frequencies for {width} features."
        )
    return frequencies


def ntk_frequencies(width, factor, base=10_000.0):
    """Frequencies for texts `factor` times as long: the slow pairs slow down.

        θ_i = (base factor^(P / (P − 2)))^(−2i / P)

    The fastest pair keeps its frequency, the slowest turns 1/factor as fast.
    Position interpolation is simpler: `rotary_frequencies(width) / factor`.

    Source: bloc97 (2023), "NTK-aware scaled RoPE", as Peng et al. (2023),
    arXiv:2309.00071, section 3.1, have it. Interpolation: Chen et al. (2023),
    arXiv:2306.15595.

    Args:
        width: Even int above 2, P.
        factor: Float ≥ 1, how many times as long.
        base: As in `rotary_frequencies`.

    Returns:
        float64 array `(P/2,)`.

    Example:
        >>> from d2l_attention.layers.relative_positions import ntk_frequencies
        >>> ntk_frequencies(4, factor=2).round(3).tolist()  # 1 and 0.01 / 2
        [1.0, 0.005]
    """
    if width <= 2:
        raise ValueError(
            "With one pair there is no slow one to slow down: `width` must be "
            f"above 2. Received: width={width}."
        )
    return rotary_frequencies(width, base * factor ** (width / (width - 2)))


def yarn_frequencies(
    width,
    factor,
    trained_length,
    base=10_000.0,
    slow=1.0,
    fast=32.0,
    *,
    ramp="index",
    truncate=True,
):
    """Frequencies for texts `factor` times as long, by what a pair has seen.

        γ_i  = (i(slow) − i) / (i(slow) − i(fast))    cut off at 0 and 1
        θ'_i = (1 − γ_i) θ_i / factor + γ_i θ_i
        i(r) = P/2 ln(N₀ / 2πr) / ln base

    A pair that turned often within N₀ tokens keeps its frequency; one that
    never completed a turn is interpolated. i(r) is the index, perhaps a
    fraction, of the pair that turned r times, so γ is even in the index, as
    models have it. In the paper's text it is even in the turns r_i = N₀ θ_i /
    2π, γ_i = (r_i − slow) / (fast − slow), which is lower between the bounds.
    `yarn_magnitude` is the method's other half.

    Source: Peng et al. (2023), arXiv:2309.00071, section 3.2, and its code.

    Args:
        width, base: As in `rotary_frequencies`.
        factor: Float ≥ 1, how many times as long.
        trained_length: Positive int, N₀ tokens.
        slow, fast: Floats, the turns at which γ is 0 and 1.
        ramp: "index", or "turns" for the paper's text.
        truncate: Whether i(fast) is rounded down and i(slow) up, as in most
            models; not in gpt-oss.

    Returns:
        float64 array `(P/2,)`.

    Example:
        >>> from d2l_attention import rotary_frequencies
        >>> from d2l_attention.layers.relative_positions import yarn_frequencies
        >>> found = yarn_frequencies(16, factor=4, trained_length=64)
        >>> (found / rotary_frequencies(16))[:4].round(3).tolist()
        [1.0, 0.75, 0.5, 0.25]
    """
    theta = rotary_frequencies(width, base)
    if ramp == "turns":
        turns = trained_length * theta / (2 * np.pi)
        kept = (turns - slow) / (fast - slow)
    elif ramp == "index":
        first, last = (
            width * math.log(trained_length / (2 * np.pi * r), base) / 2
            for r in (fast, slow)
        )
        if truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, width - 1)
        last += 0.001 * (first == last)  # a step, as the authors' code has it
        kept = (last - np.arange(width // 2)) / (last - first)
    else:
        raise ValueError(
            f'`ramp` must be "index" or "turns". Received: ramp={ramp!r}.'
        )
    kept = np.clip(kept, 0, 1)
    return (1 - kept) * theta / factor + kept * theta


def yarn_magnitude(factor, mscale=1.0, mscale_all_dim=0.0):
    """YaRN's factor of a rotated query and key.

        m(mscale) / m(mscale_all_dim),  m(s) = 0.1 s ln factor + 1

    With the defaults it is 0.1 ln factor + 1, as in the paper; DeepSeek gives
    both, and they cancel where they are equal. A model file that has an
    `attention_factor` gives the number itself.

    Source: Peng et al. (2023), arXiv:2309.00071, section 3.3; the two scales
    from the code of DeepSeek-AI (2024), arXiv:2405.04434.

    Args:
        factor: Float ≥ 1, how many times as long.
        mscale, mscale_all_dim: Floats, as model files name them.

    Returns:
        Float.
    """

    def magnitude(scale):
        return 0.1 * scale * math.log(factor) + 1

    return magnitude(mscale) / magnitude(mscale_all_dim)


def rotate(x, frequencies, start=0, *, interleaved=False, magnitude=1.0):
    """Turn each pair of features by its frequency times the token's position.

        (a, b) becomes (a cos φ − b sin φ, b cos φ + a sin φ),
            φ = position × frequency

    The dot product of a rotated query and a rotated key depends only on the
    difference of their positions. Angles are computed in float32 at least,
    since bfloat16 cannot tell the positions 256 and 257 apart.

    Source: Su et al. (2021), arXiv:2104.09864, section 3.2.

    Args:
        x: Float tensor `(B, T, H, K)`.
        frequencies: Floats `(P/2,)`, as `rotary_frequencies` gives them. The
            first P of the K features turn; the others stay.
        start: Int, or int tensor `()` or `(B,)`, position of the first token.
        interleaved: If True, pair i is the features 2i and 2i + 1, as in the
            paper. If False, i and i + P/2, as most models have it.
        magnitude: Float, by which what turns is multiplied.

    Returns:
        Float tensor `(B, T, H, K)` of the dtype of `x`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import rotate
        >>> x = np.array([[[[1.0, 0.0]], [[1.0, 0.0]]]])  # two tokens
        >>> np.array(rotate(x, [np.pi / 6])).round(3).tolist()[0][1]
        [[0.866, 0.5]]
    """
    x = ops.convert_to_tensor(x)
    half = len(frequencies)
    if 2 * half > x.shape[-1]:
        raise ValueError(
            f"{half} frequencies turn {2 * half} features. Received: x "
            f"{tuple(x.shape)}."
        )
    if half == 0:
        return x
    cos, sin = _turns(x, frequencies, start, magnitude)  # (…, T, 1, P/2)
    turning = ops.cast(x[..., : 2 * half], cos.dtype)
    if interleaved:
        a, b = turning[..., 0::2], turning[..., 1::2]
    else:
        a, b = turning[..., :half], turning[..., half:]
    turned = [a * cos - b * sin, b * cos + a * sin]
    if interleaved:
        pairs = ops.stack(turned, axis=-1)  # (B, T, H, P/2, 2)
        turned = [reshape(pairs, (*ops.shape(pairs)[:-2], 2 * half))]
    turned = [ops.cast(part, x.dtype) for part in turned]
    return ops.concatenate([*turned, x[..., 2 * half :]], axis=-1)


def _turns(x, frequencies, start, magnitude):
    """Cosines and sines `(T, 1, P/2)` or `(B, T, 1, P/2)`, of float32 or x."""
    dtype = wide(x.dtype)
    steps = ops.arange(ops.shape(x)[1], dtype="int32")
    start = ops.expand_dims(ops.cast(start, "int32"), -1)
    positions = ops.cast(start + steps, dtype)  # (T,) or (B, T)
    angles = positions[..., None, None] * ops.convert_to_tensor(
        frequencies, dtype
    )
    return magnitude * ops.cos(angles), magnitude * ops.sin(angles)


def alibi_slopes(num_heads):
    """How steeply each head's scores fall with the distance.

        m_h = 2^(−8h / H),  h = 1 … H

    If H is no power of two, the slopes of the next smaller one come first,
    and then every other slope of the next larger one.

    Source: Press et al. (2021), arXiv:2108.12409, section 3, and its code.

    Args:
        num_heads: Positive int, H.

    Returns:
        float64 array `(H,)`.

    Example:
        >>> from d2l_attention import alibi_slopes
        >>> alibi_slopes(3).tolist()  # of two heads, then the first of four
        [0.0625, 0.00390625, 0.25]
    """
    check_positive("num_heads", num_heads)
    power = 2 ** int(math.log2(num_heads))
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-4 * np.arange(1, 2 * power, 2) / power)
    return np.concatenate([slopes, between[: num_heads - power]])


def alibi_bias(slopes, query_positions, key_positions):
    """A score for nearness: minus the slope times the distance.

        bias[h, t, s] = −m_h |position of t − position of s|

    Source: Press et al. (2021), arXiv:2108.12409, section 3.

    Args:
        slopes: Floats `(H,)`, as `alibi_slopes` gives them.
        query_positions: Int tensor `(T,)` or `(B, T)`.
        key_positions: Int tensor `(S,)`.

    Returns:
        float32 tensor `(H, T, S)` or `(B, H, T, S)`, to add to scores.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import alibi_bias
        >>> places = np.arange(3)
        >>> np.array(alibi_bias([0.5], places, places))[0, 2].tolist()
        [-1.0, -0.5, -0.0]
    """
    offsets = key_offsets(query_positions, key_positions)  # (…, T, S)
    distances = ops.expand_dims(ops.cast(ops.abs(offsets), "float32"), -3)
    slopes = ops.convert_to_tensor(slopes, "float32")
    return -slopes[:, None, None] * distances


def relative_buckets(
    query_positions,
    key_positions,
    num_buckets=32,
    max_distance=128,
    bidirectional=False,
):
    """T5's buckets of distances: near ones alone, far ones together.

    Of the buckets of one direction, the first half hold one distance each,
    and the others distances whose logarithms are evenly spaced; the last one
    holds all that are left. Without `bidirectional`, keys after the query are
    in bucket 0; with it, they have the second half of the buckets.

    Source: Raffel et al. (2019), arXiv:1910.10683, section 2.1, and its code.

    Args:
        query_positions: Int tensor `(T,)` or `(B, T)`.
        key_positions: Int tensor `(S,)`.
        num_buckets: Even int, of both directions together; with
            `bidirectional` a multiple of 4.
        max_distance: Int above the distances that are alone. The last bucket
            begins before it: at 113 with the defaults, at 91 with
            `bidirectional`.
        bidirectional: Whether keys after the query have buckets of their own.

    Returns:
        int32 tensor `(T, S)` or `(B, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.relative_positions import relative_buckets
        >>> keys = np.array([200, 199, 184, 183, 88, 87])
        >>> np.array(relative_buckets(np.array([200]), keys)).tolist()
        [[0, 1, 16, 16, 30, 31]]
    """
    of_one_direction = _check_buckets(num_buckets, max_distance, bidirectional)
    back = -key_offsets(query_positions, key_positions)  # t − s
    first, num_buckets = 0, of_one_direction
    if bidirectional:
        first = ops.where(back < 0, num_buckets, 0)
        back = ops.abs(back)
    alone = num_buckets // 2
    # The smallest distance of each bucket of several.
    logs = np.linspace(math.log(alone), math.log(max_distance), alone + 1)
    starts = np.ceil(np.exp(logs[1:-1]) - 1e-9)
    distances = np.arange(max_distance + 1)
    far = alone + np.searchsorted(starts, distances, side="right")
    buckets = np.where(distances < alone, distances, far).astype("int32")
    return first + ops.take(buckets, ops.clip(back, 0, max_distance))


def _check_buckets(num_buckets, max_distance, bidirectional):
    """The buckets of one direction, which must be two halves."""
    number = num_buckets // 2 if bidirectional else num_buckets
    if num_buckets < 2 or number % 2:
        raise ValueError(
            "`num_buckets` must be even, and with `bidirectional` a multiple "
            f"of 4. Received: num_buckets={num_buckets}."
        )
    if max_distance <= number // 2:
        raise ValueError(
            f"{number // 2} distances have a bucket alone, so `max_distance` "
            f"must be above that. Received: max_distance={max_distance}."
        )
    return number


def biased_attention(
    query, key, value, bias, mask=None, dropout=None, scale=None
):
    """Attention whose scores have something added before the softmax.

        weights = softmax(scale query keyᵀ + bias)
        output  = dropout(weights) value

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, G, K)` and `(B, S, G, V)`; G
            divides H.
        bias: Float tensor `(H, T, S)` or `(B, H, T, S)`.
        mask, dropout: As in `multi_head_attention`.
        scale: Float; None = 1/√K.

    Returns:
        Float tensor `(B, T, H, V)`, and the weights `(B, H, T, S)` as they
        were before dropout. A query with nothing to attend to gets zeros.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.relative_positions import biased_attention
        >>> x, bias = np.zeros((1, 2, 1, 4)), np.log([[[1.0, 3.0]]])
        >>> _, weights = biased_attention(x[:, :1], x, x, bias)
        >>> np.array(weights)[0, 0].round(3).tolist()
        [[0.25, 0.75]]
    """
    scores = grouped_scores(query, key, scale)  # (B, H, T, S)
    # At least float32: a far key's bias has more digits than bfloat16 holds.
    dtype = wide(scores.dtype)
    biased = ops.cast(scores, dtype) + ops.cast(bias, dtype)
    weights = masked_softmax(biased, mask)
    weights = ops.cast(weights, scores.dtype)
    dropped = weights if dropout is None else dropout(weights)
    return grouped_sum(dropped, value), weights  # (B, T, H, V)


class RotatesByPosition:
    """`rotate` with the frequencies of the layer."""

    def rotate(self, x, start):
        return rotate(
            x,
            self.frequencies,
            start,
            interleaved=self.interleaved,
            magnitude=self.magnitude,
        )


@keras.saving.register_keras_serializable("d2l_attention")
class RotaryAttention(RotatesByPosition, GroupedQueryAttention):
    """RoPE: multi-head attention whose queries and keys rotate by position.

        head_h = softmax(R_t(x_t W_q,h) · R_s(y_s W_k,g) / √K) y W_v,g
        output = [head_1; …; head_H] W_o

    R_p turns each pair of features by p times its frequency, so that a score
    depends on t − s. Values are not rotated. Query t of T has the position t +
    S − T, as in `causal_mask`; a cache holds the rotated keys.

    Source: Su et al. (2021), arXiv:2104.09864; it is in seven of ten open
    model families of 2026.

    Args:
        num_heads, key_dim: As in `MultiHeadAttention`.
        num_kv_heads: Positive int, G heads of keys and values that the query
            heads share; divides `num_heads`. None = `num_heads`.
        frequencies: Floats `(P/2,)`, radians per token; the first P of the K
            features turn. None = `rotary_frequencies(key_dim)`; an empty list =
            no positions.
        interleaved, magnitude: As in `rotate`.
        dropout, value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import RotaryAttention
        >>> layer, x = RotaryAttention(2, key_dim=4), np.ones((1, 3, 8))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> moved = layer.project_query(x, start=7), layer.project_key(x, 7)
        >>> _, same = layer.attend(*moved, layer.project_value(x))
        >>> bool(np.allclose(weights, same, atol=1e-6))
        True
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        num_kv_heads=None,
        frequencies=None,
        interleaved=False,
        magnitude=1.0,
        **options,
    ):
        groups = num_heads if num_kv_heads is None else num_kv_heads
        super().__init__(num_heads, groups, key_dim, **options)
        self.frequencies = check_frequencies(frequencies, self.key_dim)
        self.interleaved = interleaved
        self.magnitude = magnitude

    def project_query(self, query, start=0):
        """Rotated queries `(B, T, H, K)`; the first is at position `start`."""
        return self.rotate(super().project_query(query), start)

    def project_key(self, key, start=0):
        """Rotated keys `(B, S, G, K)`; the first is at position `start`."""
        return self.rotate(super().project_key(key), start)


class BiasedAttention(GroupedQueryAttention):
    """Heads whose scores have a bias, by the positions of query and key.

    `ALiBiAttention` and `T5Attention` say which. Query t of T has the position
    t + S − T, as in `causal_mask`.
    """

    scale = None  # of the scores: 1/√K

    def __init__(self, num_heads, key_dim, *, num_kv_heads=None, **options):
        groups = num_heads if num_kv_heads is None else num_kv_heads
        super().__init__(num_heads, groups, key_dim, **options)

    def bias(self, query_positions, key_positions):
        """What is added to the scores, `(H, T, S)` or `(B, H, T, S)`."""
        raise NotImplementedError

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
        start=None,
    ):
        num_queries, num_keys = ops.shape(query)[1], ops.shape(key)[1]
        if start is None:  # the queries are the last of the keys
            start = num_keys - num_queries
        start = ops.expand_dims(ops.cast(start, "int32"), -1)
        if use_causal_mask:
            mask = join_causal_mask(mask, query, key)
        heads, weights = biased_attention(
            query,  # (B, T, H, K)
            key,  # (B, S, G, K)
            value,  # (B, S, G, V)
            self.bias(
                start + ops.arange(num_queries, dtype="int32"),
                ops.arange(num_keys, dtype="int32"),
            ),
            mask,
            lambda weights: drop(self.dropout_layer, weights, training),
            self.scale,
        )
        return self.join_heads(heads), weights  # (B, T, D), (B, H, T, S)

    def step(self, x, positions, cache, query_mask=None):
        start = positions[:, 0]
        return attend_with_cache(self, x, positions, cache, start=start)


@keras.saving.register_keras_serializable("d2l_attention")
class ALiBiAttention(BiasedAttention):
    """Multi-head attention whose scores fall with the distance.

        head_h = softmax(Q W_q,h (K W_k,g)ᵀ / √K − m_h |t − s|) V W_v,g
        output = [head_1; …; head_H] W_o

    The slopes m_h are `alibi_slopes`; nothing about positions is learned.

    Source: Press et al. (2021), arXiv:2108.12409, section 3. After the query
    the paper has no keys; here both sides fall alike.

    Args:
        num_heads, key_dim: As in `MultiHeadAttention`.
        num_kv_heads: As in `RotaryAttention`. Slopes belong to the H heads.
        dropout, value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ALiBiAttention
        >>> layer, x = ALiBiAttention(1, key_dim=4), np.zeros((1, 3, 8))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> print(np.array(weights)[0, 0, 2].round(3))  # slope 1/256
        [0.332 0.333 0.335]
    """

    def bias(self, query_positions, key_positions):
        slopes = alibi_slopes(self.num_heads)
        return alibi_bias(slopes, query_positions, key_positions)


@keras.saving.register_keras_serializable("d2l_attention")
class T5Attention(BiasedAttention):
    """Multi-head attention with a learned score for each bucket of distances.

        head_h = softmax(Q W_q,h (K W_k,g)ᵀ + E[bucket(s − t), h]) V W_v,g
        output = [head_1; …; head_H] W_o

    The scores are not divided by √K. T5 shares one table E among the layers
    of a stack; here each layer has its own.

    Source: Raffel et al. (2019), arXiv:1910.10683, section 2.1.

    Args:
        num_heads, key_dim: As in `MultiHeadAttention`.
        num_buckets, max_distance, bidirectional: As in `relative_buckets`.
        num_kv_heads: As in `RotaryAttention`.
        dropout, value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import T5Attention
        >>> layer, x = T5Attention(1, key_dim=4), np.zeros((1, 3, 8))
        >>> _ = layer(x)  # builds it
        >>> _ = layer.table.assign(np.log([[5.0], [2.0], *[[1.0]] * 30]))
        >>> _, weights = layer(x, return_attention_scores=True)
        >>> print(np.array(weights)[0, 0, 2].round(3))  # as 1 : 2 : 5
        [0.125 0.25  0.625]
    """

    scale = 1.0

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        num_buckets=32,
        max_distance=128,
        bidirectional=False,
        **options,
    ):
        super().__init__(num_heads, key_dim, **options)
        self.num_buckets = check_positive("num_buckets", num_buckets)
        self.max_distance = check_positive("max_distance", max_distance)
        self.bidirectional = bidirectional
        _check_buckets(num_buckets, max_distance, bidirectional)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.table = self.add_weight(
            (self.num_buckets, self.num_heads),
            keras.initializers.RandomNormal(stddev=0.02),
            name="table",
        )

    def bias(self, query_positions, key_positions):
        buckets = relative_buckets(
            query_positions,
            key_positions,
            self.num_buckets,
            self.max_distance,
            self.bidirectional,
        )
        found = ops.take(self.table, buckets, axis=0)  # (…, T, S, H)
        return ops.moveaxis(found, -1, -3)
