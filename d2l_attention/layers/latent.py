"""MLA, multi-head latent attention: heads read from one small vector a token.

A cache holds R + P numbers a token instead of 2HK: a latent c, out of which
each head makes its keys and values, and P features of position for all heads.
"""

from d2l_attention._checks import check_positive, differ
from d2l_attention.layers.base import default_shapes, drop
from d2l_attention.layers.cache import attend_with_cache, contiguous_cache
from d2l_attention.layers.masking import join_causal_mask
from d2l_attention.layers.multi_head import (
    MultiHeadAttention,
    multi_head_attention,
)
from d2l_attention.layers.multi_query import grouped_query_attention
from d2l_attention.layers.relative_positions import (
    RotatesByPosition,
    check_frequencies,
)
from d2l_attention.layers.reshaping import reshape
import keras
from keras import ops


def expanded_latent_attention(
    query, latent, key_kernel, value_kernel, mask=None, dropout=None
):
    """Attention to latents, with the keys and values of all heads formed.

        key_h   = [c U^K_h ; k_R],   value_h = c U^V_h
        weights = softmax(query keyᵀ / √(K + P))
        output  = dropout(weights) value

    `absorbed_latent_attention` computes the same from the latents alone.

    Source: DeepSeek-AI (2024), arXiv:2405.04434, section 2.1.

    Args:
        query: Float tensor `(B, T, H, K + P)`: K features without position,
            then P that are rotated.
        latent: Float tensor `(B, S, R + P)`, [c ; k_R]: what all heads read,
            then P rotated features, the same for all heads.
        key_kernel, value_kernel: Float tensors `(R, H, K)` and `(R, H, V)`.
        mask, dropout: As in `multi_head_attention`.

    Returns:
        Float tensor `(B, T, H, V)`, and the weights `(B, H, T, S)` as they
        were before dropout. A query with nothing to attend to gets zeros.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import expanded_latent_attention
        >>> query, latent = np.zeros((1, 1, 2, 3)), np.ones((1, 4, 5))
        >>> kernel = np.ones((5, 2, 3))  # R 5, H 2, K = V = 3, P 0
        >>> out, _ = expanded_latent_attention(query, latent, kernel, kernel)
        >>> np.array(out).tolist()  # each value is a sum of five ones
        [[[[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]]]
    """
    rank = key_kernel.shape[0]
    return multi_head_attention(
        query,
        expand_keys(latent, key_kernel),  # (B, S, H, K + P)
        expand_values(latent[..., :rank], value_kernel),  # (B, S, H, V)
        mask,
        dropout,
    )


def absorbed_latent_attention(
    query, latent, key_kernel, value_kernel, mask=None, dropout=None
):
    """Attention to latents, with no key or value of a head ever formed.

        q̃_h     = [q_h U^K_hᵀ ; q_R]
        weights = softmax(q̃ latentᵀ / √(K + P))
        output  = (dropout(weights) c) U^V_h

    All heads attend to one head of keys [c ; k_R] and values c, which is
    multi-query attention. Since (q U^Kᵀ) · c = q · (c U^K), the result is that
    of `expanded_latent_attention`.

    Source: DeepSeek-AI (2024), arXiv:2405.04434, section 2.1.2.

    Args, returns: As in `expanded_latent_attention`.
    """
    rank, _, size = key_kernel.shape
    moved = ops.einsum("bthk,rhk->bthr", query[..., :size], key_kernel)
    moved = ops.concatenate([moved, query[..., size:]], axis=-1)
    # The grouped function divides by √(R + P), but a score is a product of
    # K + P features.
    moved = moved * (latent.shape[-1] / query.shape[-1]) ** 0.5
    means, weights = grouped_query_attention(
        moved,  # (B, T, H, R + P)
        ops.expand_dims(latent, 2),  # (B, S, 1, R + P)
        ops.expand_dims(latent[..., :rank], 2),  # (B, S, 1, R)
        mask,
        dropout,
    )
    return ops.einsum("bthr,rhv->bthv", means, value_kernel), weights


def expand_keys(latent, key_kernel):
    """Keys of all heads: `(B, S, R + P)` to `(B, S, H, K + P)`.

    key_h = [c U^K_h ; k_R], of which k_R is the same for all heads.
    """
    rank, num_heads, _ = key_kernel.shape
    key = ops.einsum("bsr,rhk->bshk", latent[..., :rank], key_kernel)
    if latent.shape[-1] == rank:
        return key
    shared = ops.expand_dims(latent[..., rank:], 2)
    shared = ops.repeat(shared, num_heads, axis=2)
    return ops.concatenate([key, shared], axis=-1)


def expand_values(latent, value_kernel):
    """Values of all heads, c U^V_h: `(B, S, R)` to `(B, S, H, V)`."""
    return ops.einsum("bsr,rhv->bshv", latent, value_kernel)


@keras.saving.register_keras_serializable("d2l_attention")
class LatentAttention(RotatesByPosition, MultiHeadAttention):
    """MLA: multi-head attention that reads keys and values out of a latent.

        c_s = norm(y_s W_D),  k_s = y_s W_KR Ω_s
        head_h = softmax([q ; q_P Ω_t]_h · [c U^K_h ; k] / √(K + P)) c U^V_h
        output = [head_1; …; head_H] W_o

    Here [q ; q_P]_h = x_t W_q,h, and Ω_p rotates by position p as `rotate`
    does. Query t of T has the position t + S − T, as in `causal_mask`. The
    cache holds [c ; k], which is R + P numbers a token for all heads together.
    A call expands the keys of all heads; a step absorbs U^K and U^V, unless so
    many tokens come at once that expanding would take less with a long cache.

    Source: DeepSeek-AI (2024), arXiv:2405.04434, section 2.1; multi-head
    latent attention. Queries are not compressed; there they are, which saves
    memory in training and nothing in the cache.

    Args:
        num_heads, key_dim: Positive ints, H, and K features of a key that have
            no position.
        latent_dim: Positive int, R features of c.
        rotary_dim: Int, P features that are rotated; 0 = no positions.
        frequencies: Floats, at most P/2, radians per token. None =
            `rotary_frequencies(rotary_dim)`.
        interleaved, magnitude: As in `rotate`; pairs are neighbours here, as in
            DeepSeek's models. `magnitude` scales the P features alone;
            DeepSeek's YaRN scales whole scores.
        dropout, value_dim, output_dim: As in `MultiHeadAttention`.
        use_bias: Whether W_q, W_D, W_KR and W_o have biases. U^K and U^V never
            have.

    Keys and values are read out of one latent: if both tensors are given,
    they must have as many features.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LatentAttention
        >>> layer = LatentAttention(4, key_dim=8, latent_dim=5, rotary_dim=2)
        >>> output, x = layer(np.ones((1, 3, 8))), np.ones((1, 1, 8))
        >>> cache = layer.make_cache(1, max_length=10)
        >>> y, cache = layer.step(x, np.array([[0]]), cache)
        >>> {name: tuple(array.shape) for name, array in cache.items()}
        {'key': (1, 10, 1, 7)}
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        latent_dim,
        rotary_dim,
        *,
        frequencies=None,
        interleaved=True,
        magnitude=1.0,
        **options,
    ):
        super().__init__(num_heads, key_dim, **options)
        self.num_kv_heads = 1  # of the cache
        self.latent_dim = check_positive("latent_dim", latent_dim)
        self.rotary_dim = 0
        if rotary_dim != 0:
            self.rotary_dim = check_positive("rotary_dim", rotary_dim)
        self.frequencies = check_frequencies(frequencies, self.rotary_dim)
        self.interleaved = interleaved
        self.magnitude = magnitude

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, value, key = default_shapes(query_shape, value_shape, key_shape)
        if differ(key[-1], value[-1]):
            raise ValueError(
                "Keys and values are read out of one latent, so their tensors "
                f"must have as many features. Received: key {key}, value "
                f"{value}."
            )
        h, r = self.num_heads, self.latent_dim
        self.query_layer = self._dense(
            "W_q", h * (self.key_dim + self.rotary_dim), query[-1]
        )
        self.latent_layer = self._dense("W_D", r, key[-1])
        self.norm = keras.layers.RMSNormalization(
            name="norm", dtype=self.dtype_policy
        )
        self.norm.supports_masking = True  # Keras's norm does not say so
        self.norm.build((None, None, r))
        if self.rotary_dim:
            self.position_layer = self._dense("W_KR", self.rotary_dim, key[-1])
        # In columns, as W_k and W_v of `MultiHeadAttention` have their heads.
        self.key_kernel = self.add_weight((r, h * self.key_dim), name="U_K")
        self.value_kernel = self.add_weight((r, h * self.value_dim), name="U_V")
        output_size = self.output_dim or query[-1]
        self.output_layer = self._dense("W_o", output_size, h * self.value_dim)

    def project_query(self, query, start=0):
        """Queries `(B, T, H, K + P)`, the last P rotated."""
        query = super().project_query(query)
        plain, turning = query[..., : self.key_dim], query[..., self.key_dim :]
        return self._join(plain, turning, start)

    def project_key(self, key, start=0):
        """What is cached, [c ; k] `(B, S, 1, R + P)`, the last P rotated."""
        latent = self.project_value(key)
        if not self.rotary_dim:
            return latent
        turning = ops.expand_dims(self.position_layer(key), 2)
        return self._join(latent, turning, start)

    def _join(self, plain, turning, start):
        return ops.concatenate([plain, self.rotate(turning, start)], axis=-1)

    def project_value(self, value):
        """The latent c `(B, S, 1, R)`, out of which heads read values."""
        return ops.expand_dims(self.norm(self.latent_layer(value)), 2)

    def kernels(self):
        """U^K `(R, H, K)` and U^V `(R, H, V)`."""
        shape = (self.latent_dim, self.num_heads, -1)
        return [
            reshape(ops.cast(kernel, self.compute_dtype), shape)
            for kernel in (self.key_kernel, self.value_kernel)
        ]

    def attend(
        self,
        query,
        key,
        value=None,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
        absorb=False,
    ):
        """Output and weights; without `value`, the key's c is the value's."""
        if use_causal_mask:
            mask = join_causal_mask(mask, query, key)
        latent = key[:, :, 0]  # (B, S, R + P)
        key_kernel, value_kernel = self.kernels()
        options = (
            mask,
            lambda weights: drop(self.dropout_layer, weights, training),
        )
        if absorb:
            heads, weights = absorbed_latent_attention(
                query, latent, key_kernel, value_kernel, *options
            )
        else:
            if value is None:
                value = key[..., : self.latent_dim]
            heads, weights = multi_head_attention(
                query,
                expand_keys(latent, key_kernel),  # (B, S, H, K + P)
                expand_values(value[:, :, 0], value_kernel),  # (B, S, H, V)
                *options,
            )
        return self.join_heads(heads), weights  # (B, T, D), (B, H, T, S)

    def attend_to_itself(
        self, x, mask=None, *, use_causal_mask=False, training=None
    ):
        query, key = self.project_query(x), self.project_key(x)
        return self.attend(
            query,
            key,
            mask=mask,
            use_causal_mask=use_causal_mask,
            training=training,
        )

    def make_cache(self, batch_size, max_length):
        """An empty cache of R + P numbers for each of `max_length` tokens."""
        width = self.latent_dim + self.rotary_dim
        return contiguous_cache(
            (batch_size, max_length, 1, width), dtype=self.compute_dtype
        )

    def step(self, x, positions, cache, query_mask=None):
        """As `MultiHeadAttention.step`, from the latents alone."""
        k, v, r = self.key_dim, self.value_dim, self.latent_dim
        # A query meets 2R features in place of K + V, a latent is expanded
        # once: of a known number of tokens, which takes less?
        tokens = x.shape[1]
        absorb = tokens is None or tokens * (2 * r - k - v) <= r * (k + v)
        return attend_with_cache(self, x, positions, cache, absorb=absorb)
