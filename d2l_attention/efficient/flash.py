"""Exact attention, block by block: no matrix of all queries and keys."""

from d2l_attention._checks import check_positive
from d2l_attention.efficient.blockwise import (
    Blocks,
    array_of,
    join,
    read,
    repeat,
    split,
    stack,
    write,
)
from d2l_attention.efficient.weightless import WeightlessAttention
from d2l_attention.masking import check_mask
import keras
from keras import ops, tree


def flash_attention(
    query,
    key,
    value,
    *,
    attention_mask=None,
    causal=False,
    block_size=512,
    return_log_sum_exp=False,
):
    """Softmax attention with memory that grows as T + S, not as T times S.

        for each block of queries, for each block of keys:
            s  = q kᵀ / √K
            m′ = max(m, max s)
            l  = exp(m − m′) l + Σ exp(s − m′)
            o  = exp(m − m′) o + exp(s − m′) v
        output = o / l,  log_sum_exp = m + log l

    The gradient computes each block of weights again, exp(s − log_sum_exp),
    instead of keeping them. There is no gradient of the gradient.

    Source: Dao et al. (2022), arXiv:2205.14135; Rabe and Staats (2021),
    arXiv:2112.05682; document 004, section 6.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.
        value: Float tensor `(B, S, H, V)`.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`, or to
            `(B, H, T, S)` if it has four axes; True = may attend.
        causal: Whether query t sees no key behind t + S − T; blocks that
            nobody sees are skipped.
        block_size: Positive int, queries and keys in a block, at most.
        return_log_sum_exp: If True, also return the log of the softmax's
            denominator; outputs over two sets of keys merge by it.

    Returns:
        Float tensor `(B, T, H, V)` of the query's dtype, computed in float32
        or wider; a query with nothing to attend to gets zeros. If asked also
        the log-sum-exp `(B, H, T)`, −inf for such a query.

    Raises:
        ValueError: If `block_size` is not positive, the mask is not boolean,
            or shapes do not match.
    """
    check_positive("block_size", block_size)
    _check(query, key, value, attention_mask)
    dtype = query.dtype
    wide = "float64" if ops.dtype(query) == "float64" else "float32"
    (t, s), scale = (ops.shape(x)[1] for x in (query, key)), key.shape[-1]
    blocks = Blocks.of(t, s, block_size, causal, attention_mask)
    query = ops.cast(query, wide) / scale**0.5
    output, log_sum_exp = _attend(blocks)(
        split(query, blocks.queries),
        split(ops.cast(key, wide), blocks.keys),
        split(ops.cast(value, wide), blocks.keys),
    )
    output = ops.cast(join(output)[:, :t], dtype)
    log_sum_exp = ops.transpose(join(log_sum_exp)[:, :t, :, 0], (0, 2, 1))
    return (output, log_sum_exp) if return_log_sum_exp else output


def _attend(blocks):
    """Output and log-sum-exp from blocks `(N, B, H, n, ·)`, and gradients."""

    @ops.custom_gradient
    def attend(query, key, value):
        output, log_sum_exp = _forward(blocks, query, key, value)

        def gradient(*upstream):
            kept = (query, key, value, output, log_sum_exp)
            return _backward(blocks, *kept, *tree.flatten(upstream))

        return (output, log_sum_exp), gradient

    return attend


def _forward(blocks, query, key, value):
    def attend(i, outputs, norms):
        q = query[i]

        def add(diagonal):
            def add_block(j, m, total, o):
                s = blocks.scores(i, j, q, key[j], diagonal)
                highest = ops.maximum(m, ops.max(s, axis=-1, keepdims=True))
                finite = _finite(highest)  # it is −inf while all is masked
                p, shrink = ops.exp(s - finite), ops.exp(m - finite)
                total = shrink * total + ops.sum(p, axis=-1, keepdims=True)
                return highest, total, shrink * o + ops.matmul(p, value[j])

            return add_block

        zeros = ops.zeros_like(q[..., :1])
        kept = (zeros - float("inf"), zeros, zeros * value[0, :, :, :1])
        whole, some = blocks.seen_by(i)
        kept = repeat(0, whole, add(diagonal=False), kept)
        if blocks.causal:
            kept = repeat(whole, some, add(diagonal=True), kept)
        m, total, o = kept
        total = ops.where(total == 0.0, 1.0, total)
        log_sum_exp = m + ops.log(total)
        return write(outputs, i, o / total), write(norms, i, log_sum_exp)

    zeros = ops.zeros_like(query[..., :1])
    arrays = array_of(zeros * value[:1, :, :, :1]), array_of(zeros)
    arrays = repeat(0, blocks.num_queries, attend, arrays)
    return tuple(map(stack, arrays))


def _backward(
    blocks, query, key, value, output, log_sum_exp, d_output, d_log_sum_exp
):
    norm = _finite(log_sum_exp)
    mean = ops.sum(d_output * output, -1, keepdims=True) - d_log_sum_exp

    def attend(j, d_queries, d_keys, d_values):
        k, v = key[j], value[j]

        def add(diagonal):
            def add_block(i, d_queries, d_key, d_value):
                q, d_o = query[i], d_output[i]
                p = ops.exp(blocks.scores(i, j, q, k, diagonal) - norm[i])
                d_p = ops.matmul(d_o, ops.swapaxes(v, -1, -2))
                d_s = p * (d_p - mean[i])
                d_value = d_value + ops.matmul(ops.swapaxes(p, -1, -2), d_o)
                d_key = d_key + ops.matmul(ops.swapaxes(d_s, -1, -2), q)
                d_query = read(d_queries, i) + ops.matmul(d_s, k)
                return write(d_queries, i, d_query), d_key, d_value

            return add_block

        kept = (d_queries, ops.zeros_like(k), ops.zeros_like(v))
        some, whole = blocks.seeing(j)
        if blocks.causal:
            kept = repeat(some, whole, add(diagonal=True), kept)
        d_queries, d_key, d_value = repeat(
            whole, blocks.num_queries, add(diagonal=False), kept
        )
        return d_queries, write(d_keys, j, d_key), write(d_values, j, d_value)

    arrays = [array_of(ops.zeros_like(x)) for x in (query, key, value)]
    arrays = repeat(0, blocks.num_keys, attend, arrays)
    return tuple(map(stack, arrays))


def _finite(x):
    return ops.where(ops.isfinite(x), x, 0.0)


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
class FlashAttention(WeightlessAttention):
    """Multi-head attention in blocks; see `flash_attention`.

    It computes what `MultiHeadAttention` computes with the same weights.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features a head.
        causal: Whether query t sees no key behind t + S − T.
        block_size: Positive int, queries and keys in a block, at most.

    Further args, call arguments, returns and errors: see
    `WeightlessAttention`.
    """

    def __init__(
        self, num_heads, key_dim, causal=False, block_size=512, **kwargs
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_positive("block_size", block_size)
        self.causal = causal
        self.block_size = block_size

    def mix(self, query, key, value, mask):
        return flash_attention(
            query,
            key,
            value,
            attention_mask=mask,
            causal=self.causal,
            block_size=self.block_size,
        )

    def get_config(self):
        config = {"causal": self.causal, "block_size": self.block_size}
        return {**super().get_config(), **config}
