"""Exact attention, block by block: no matrix of all queries and keys."""

from d2l_attention._checks import check_positive
from d2l_attention.efficient.blockwise import (
    array_of,
    new_array,
    read,
    repeat,
    stack,
    with_rows_behind,
    write,
)
from d2l_attention.efficient.flash_blocks import Blocks
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
    use_causal_mask=False,
    block_size=None,
    return_log_sum_exp=False,
):
    """Softmax attention with memory that grows as T + S, not as T times S.

        for each block of queries, for each block of keys:
            s  = q kᵀ / √K
            p  = softmax(s)                      # of this block alone
            l  = log Σ exp(s)
            l′ = log(exp(L) + exp(l))
            o  = exp(L − l′) o + exp(l − l′) p v
            L  = l′
        output = o,  log_sum_exp = L

    A block of queries sees all its keys at once where 2²¹ scores are enough
    for that: then o = p v, and nothing is merged. The gradient computes the
    weights of each block again instead of keeping them. There is no gradient
    of the gradient.

    Source: Dao et al. (2022), arXiv:2205.14135; Rabe and Staats (2021),
    arXiv:2112.05682; document 004, section 6, steps 5 and 6.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.
        value: Float tensor `(B, S, H, V)`.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`, or to
            `(B, H, T, S)` if it has four axes; True = may attend.
        use_causal_mask: Whether query t sees no key behind t + S − T. A block
            of queries skips the keys that none of them sees.
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
    query, key, value = (
        ops.transpose(ops.cast(x, wide), (0, 2, 1, 3))
        for x in (query, key, value)
    )
    query = query / key.shape[-1] ** 0.5
    b, h, t, _ = ops.shape(query)
    shape = (b, h, t, ops.shape(key)[2])
    blocks = Blocks.of(shape, block_size, attention_mask, use_causal_mask)
    attend = _attend(blocks, return_log_sum_exp)
    found = attend(
        blocks.split(query, blocks.queries),
        blocks.split(key, blocks.keys),
        blocks.split(value, blocks.keys),
    )
    output, *log_sum_exp = (
        blocks.join(x, (b, h, t, x.shape[-1])) for x in tree.flatten(found)
    )
    output = ops.cast(ops.transpose(output, (0, 2, 1, 3)), dtype)
    return (output, log_sum_exp[0][..., 0]) if return_log_sum_exp else output


def _attend(blocks, with_log_sum_exp):
    """Output and, if asked, log-sum-exp of blocks, with their gradients."""

    @ops.custom_gradient
    def attend(query, key, value):
        kept = _forward(blocks, query, key, value, with_log_sum_exp)

        def gradient(*upstream):
            upstream = tree.flatten(upstream)
            return _backward(blocks, query, key, value, kept, upstream)

        return tuple(kept) if with_log_sum_exp else kept[0], gradient

    return attend


def _forward(blocks, query, key, value, with_log_sum_exp):
    """Output, and log-sum-exp if asked or needed by the gradient."""
    with_log_sum_exp = with_log_sum_exp or not blocks.whole_rows

    def attend(tile, *arrays):
        h, i = tile // blocks.num_queries, tile % blocks.num_queries
        q = query[tile]

        def attend_to(j):
            block = h * blocks.num_keys + j
            k, v = (blocks.keys_seen(i, x[block]) for x in (key, value))
            scores, weights, any_seen = blocks.weights(h, i, j, q, k)
            output = _zero_unless(any_seen, ops.matmul(weights, v))
            if not with_log_sum_exp:
                return (output,)
            return output, *_sums(scores, weights, any_seen)

        def add(j, *before):
            return _merge(before, attend_to(j))

        if blocks.whole_rows:
            output, *sums = attend_to(0)
        else:
            zero = ops.zeros_like(q[..., :1])
            nothing = ops.zeros(shape[1:], q.dtype), zero - float("inf"), zero
            output, *sums = repeat(0, blocks.key_blocks(i), add, nothing)
        found = [output, _log_sum_exp(*sums)] if sums else [output]
        return tuple(
            write(array, tile, x)
            for array, x in zip(arrays, found, strict=True)
        )

    shape = (*ops.shape(query)[:3], value.shape[-1])
    arrays = [new_array(shape, query.dtype)]
    if with_log_sum_exp:
        arrays.append(new_array((*shape[:3], 1), query.dtype))
    return [stack(array) for array in repeat(0, shape[0], attend, arrays)]


def _sums(scores, weights, any_seen):
    """Of each row the highest score m, and the sum of exp(score − m).

    The largest weight is exp(m − m) divided by this sum. A row that sees no
    key has −inf and 0.
    """
    highest = ops.max(scores, axis=-1, keepdims=True)
    total = 1 / ops.max(weights, axis=-1, keepdims=True)
    if any_seen is not None:
        highest = ops.where(any_seen, highest, -float("inf"))
    return highest, _zero_unless(any_seen, total)


def _log_sum_exp(highest, total):
    return highest + ops.log(ops.where(total == 0, 1.0, total))


def _merge(before, block):
    """Output, highest score and sum over the keys before and of a block."""
    highest = ops.maximum(before[1], block[1])
    finite = _finite(highest)  # it is −inf while nothing was seen
    old, new = (ops.exp(m - finite) * total for _, m, total in (before, block))
    total = old + new
    output = old * before[0] + new * block[0]
    return output / ops.where(total == 0, 1.0, total), highest, total


def _backward(blocks, query, key, value, kept, upstream):
    output, *log_sum_exp = kept
    d_output, *d_log_sum_exp = upstream
    mean = ops.sum(d_output * output, -1, keepdims=True)
    if d_log_sum_exp:
        mean = mean - d_log_sum_exp[0]

    def attend(block, d_queries, d_keys, d_values):
        h, j = block // blocks.num_keys, block % blocks.num_keys

        def add(i, d_queries, d_key, d_value):
            tile = h * blocks.num_queries + i
            k, v = (blocks.keys_seen(i, x[block]) for x in (key, value))
            q = query[tile]
            scores, p, any_seen = blocks.weights(h, i, j, q, k)
            if not blocks.whole_rows:  # this block's share of all weight
                m, total = _sums(scores, p, any_seen)
                p = p * total * ops.exp(m - _finite(log_sum_exp[0][tile]))
            d_o = _zero_unless(any_seen, d_output[tile])
            d_p = ops.matmul(d_o, ops.swapaxes(v, -1, -2))
            d_s = p * (d_p - _zero_unless(any_seen, mean[tile]))
            d_query = ops.matmul(d_s, k)
            if not blocks.whole_rows:
                d_query = d_query + read(d_queries, tile)
            new_key = ops.matmul(ops.swapaxes(d_s, -1, -2), q)
            new_value = ops.matmul(ops.swapaxes(p, -1, -2), d_o)
            return (
                write(d_queries, tile, d_query),
                d_key + with_rows_behind(new_key, d_key),
                d_value + with_rows_behind(new_value, d_value),
            )

        nothing = (ops.zeros_like(x[block]) for x in (key, value))
        d_queries, d_key, d_value = repeat(
            blocks.first_queries(j),
            blocks.num_queries,
            add,
            (d_queries, *nothing),
        )
        return (
            d_queries,
            write(d_keys, block, d_key),
            write(d_values, block, d_value),
        )

    arrays = [new_array(ops.shape(x), x.dtype) for x in (query, key, value)]
    if not blocks.whole_rows:
        arrays[0] = array_of(ops.zeros_like(query))  # each is added to
    number = blocks.num_heads * blocks.num_keys
    return tuple(map(stack, repeat(0, number, attend, arrays)))


def _zero_unless(any_seen, x):
    """x of the queries that see a key (None: all do), 0 of the others."""
    return x if any_seen is None else ops.where(any_seen, x, 0.0)


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
    """Multi-head attention in blocks, with memory that grows as T + S.

        output = [flash_attention(Q W_q,h, K W_k,h, V W_v,h) for each h] W_o

    It computes what `MultiHeadAttention` computes with the same weights, and
    its projections have the same names, so that each can be given to the
    other; see `flash_attention`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`.

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

    Call arguments:
        query: Float tensor `(B, T, D)`.
        key: Float tensor `(B, S, D')`; defaults to `query`, not to `value`
            as in Keras.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        attention_mask, query_mask, key_mask, value_mask, mask: Bool tensors;
            see `MultiHeadAttention`.
        use_causal_mask: Whether query t sees no key behind t + S − T.

    Returns:
        Float tensor `(B, T, output_dim)`.

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

    def mix(self, query, key, value, mask, use_causal_mask):
        return flash_attention(
            query,
            key,
            value,
            attention_mask=mask,
            use_causal_mask=use_causal_mask,
            block_size=self.block_size,
        )

    def get_config(self):
        return {**super().get_config(), "block_size": self.block_size}
