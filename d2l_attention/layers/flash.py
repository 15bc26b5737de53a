"""Exact attention, block by block: no matrix of all queries and keys."""

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import AttentionLayer
from d2l_attention.layers.flash_blocks import Blocks
from d2l_attention.layers.flash_passes import attend_in_blocks
from d2l_attention.layers.masking import check_mask
from d2l_attention.layers.multi_head import HeadProjections
import keras
from keras import ops, tree


def flash_attention(
    query,
    key,
    value,
    *,
    attention_mask=None,
    use_causal_mask=False,
    block_size=None,
    return_log_sum_exp=False,
):
    """Softmax attention with memory that grows as T + S, not as T times S.

        for each block of queries, for each block of keys:
            s = q kᵀ / √K,  p = softmax(s)        # of this block alone
            m = max s,  g = Σ exp(s − m)
            M′ = max(M, m)                        # M and G: of all before
            old = exp(M − M′) G,  new = exp(m − M′) g
            o = (old o + new p v) / (old + new)
            M = M′,  G = old + new
        output = o,  log_sum_exp = M + log G

    If one block holds all keys, o = p v, and nothing is merged. Without
    `block_size` one does for up to 2¹⁵ keys on TensorFlow without XLA, and up
    to 512 otherwise. The gradient computes the weights of each block again
    instead of keeping them, and cannot be differentiated again.

    Source: Dao et al. (2022), arXiv:2205.14135; Rabe and Staats (2021),
    arXiv:2112.05682; document 004, section 6, steps 5 and 6.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.
        value: Float tensor `(B, S, H, V)`.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`, or to
            `(B, H, T, S)` if it has four axes; True = may attend.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T. A
            block of queries skips the keys that none of them sees.
        block_size: Positive int, largest number of queries and of keys in a
            block; None chooses both.
        return_log_sum_exp: If True, also return the log of the softmax's
            denominator; outputs over two sets of keys merge by it.

    Returns:
        Float tensor `(B, T, H, V)` of the query's dtype, computed in float32
        or wider; a query with nothing to attend to gets zeros. If asked also
        the log-sum-exp `(B, H, T)`, −inf for such a query.

    Raises:
        ValueError: If `block_size` is not positive, the mask is not boolean,
            or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import flash_attention
        >>> key = np.zeros((1, 4, 1, 2), "float32")
        >>> value = np.array([1, 2, 3, 6], "float32").reshape(1, 4, 1, 1)
        >>> output, log_sum_exp = flash_attention(
        ...     key[:, :1], key, value, block_size=2, return_log_sum_exp=True
        ... )
        >>> np.array(output).round(2).tolist()  # keys all alike: the mean
        [[[[3.0]]]]
        >>> np.exp(log_sum_exp).round(2).tolist()  # four times exp(0)
        [[[4.0]]]
    """
    if block_size is not None:
        check_positive("block_size", block_size)
    _check(query, key, value, attention_mask)
    dtype = query.dtype
    wide = "float64" if ops.dtype(query) == "float64" else "float32"
    query = _heads_first(query, wide) / key.shape[-1] ** 0.5  # (B, H, T, K)
    key, value = _heads_first(key, wide), _heads_first(value, wide)
    b, h, t, _ = ops.shape(query)
    scores_shape = (b, h, t, ops.shape(key)[2])
    if 0 in (query.shape[2], key.shape[2]):  # nothing to cut into blocks
        return _without_scores(query, value, dtype, return_log_sum_exp)
    blocks = Blocks.of(
        scores_shape, block_size, attention_mask, use_causal_mask
    )
    found = attend_in_blocks(
        blocks,
        blocks.cut(query, blocks.queries),
        blocks.cut(key, blocks.keys),
        blocks.cut(value, blocks.keys),
        return_log_sum_exp,
    )
    output, *log_sum_exp = tree.flatten(found)
    output = blocks.join(output, (b, h, t, value.shape[-1]))
    output = ops.cast(ops.transpose(output, (0, 2, 1, 3)), dtype)
    if not return_log_sum_exp:
        return output
    return output, blocks.join(log_sum_exp[0], (b, h, t, 1))[..., 0]


def _without_scores(query, value, dtype, return_log_sum_exp):
    """Zeros, and log 0, where there are no queries or no keys."""
    b, h, t, _ = ops.shape(query)
    output = ops.zeros((b, t, h, value.shape[-1]), dtype)
    if not return_log_sum_exp:
        return output
    return output, ops.full((b, h, t), -float("inf"), query.dtype)


def _heads_first(x, dtype):
    """`(B, T, H, K)` as `(B, H, T, K)` of a dtype."""
    return ops.transpose(ops.cast(x, dtype), (0, 2, 1, 3))


def _check(query, key, value, mask):
    shapes = [tuple(x.shape) for x in (query, key, value)]
    query_shape, key_shape, value_shape = shapes
    if (
        not all(len(shape) == 4 for shape in shapes)
        or query_shape[2:] != key_shape[2:]
        or key_shape[1:3] != value_shape[1:3]
    ):
        raise ValueError(
            "query must be (B, T, H, K), key (B, S, H, K) and value "
            f"(B, S, H, V). Received: query {query_shape}, key {key_shape}, "
            f"value {value_shape}."
        )
    if mask is not None:
        b, t, h, _ = query_shape
        heads = (h,) if len(mask.shape) == 4 else ()
        check_mask(mask, (b, *heads, t, key_shape[1]))


@keras.saving.register_keras_serializable("d2l_attention")
class FlashAttention(HeadProjections, AttentionLayer):
    """Multi-head attention in blocks, with memory that grows as T + S.

        output = [flash_attention(Q W_q,h, K W_k,h, V W_v,h) for each h] W_o

    It computes what `MultiHeadAttention` computes with the same weights, and
    its projections have the same names, so that each can be given to the
    other; see `flash_attention`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`. It exports to SavedModel only. For
    ONNX and TFLite, which cannot take its loops over blocks, export a
    `MultiHeadAttention` with its weights.

    Source: Dao et al. (2022), arXiv:2205.14135; document 004, section 6.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        use_bias: Whether the four projections have biases.
        block_size: Positive int, largest number of queries and of keys in a
            block; None chooses both.

    The call is that of `AttentionLayer`; the output is `(B, T, output_dim)`.

    Raises:
        ValueError: If a size is not positive, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import FlashAttention, MultiHeadAttention
        >>> flash, dense = FlashAttention(2, 3), MultiHeadAttention(2, 3)
        >>> x = np.arange(20.0).reshape(1, 5, 4) / 20
        >>> _ = flash(x), dense(x)  # builds them
        >>> flash.set_weights(dense.get_weights())
        >>> bool(np.allclose(flash(x), dense(x), atol=1e-5))
        True
    """

    weights_from = (
        "MultiHeadAttention with the same parameters computes the same and has "
        "both."
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        value_dim=None,
        output_dim=None,
        use_bias=False,
        block_size=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim=value_dim,
            output_dim=output_dim,
            use_bias=use_bias,
            **kwargs,
        )
        self.block_size = block_size
        if block_size is not None:
            self.block_size = check_positive("block_size", block_size)

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
        heads = flash_attention(
            query,
            key,
            value,
            attention_mask=mask,
            use_causal_mask=use_causal_mask,
            block_size=self.block_size,
        )
        return self.join_heads(heads), None

    def get_config(self):
        return {**super().get_config(), "block_size": self.block_size}
