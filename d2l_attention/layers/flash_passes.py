"""The forward and the backward pass of flash attention.

Arrays are cut as `Blocks` says: queries `(·, heads, queries, K)`, keys
`(·, heads, keys, K)`, values `(·, heads, keys, V)`. A tile is one block of
queries of one block of heads.
"""

from d2l_attention.layers.chunks import pad_rows_like
from d2l_attention.layers.loops import (
    block_array_of,
    count_loop,
    new_block_array,
    read_block,
    stack_blocks,
    write_block,
)
from keras import ops, tree


def attend_in_blocks(blocks, query, key, value, with_log_sum_exp):
    """Output of every tile and, if asked, its log-sum-exp.

    Only these results are kept; the backward pass computes the weights again.
    """

    @ops.custom_gradient
    def attend(query, key, value):
        kept = _forward(blocks, query, key, value, with_log_sum_exp)

        def gradient(*upstream):
            upstream = tree.flatten(upstream)  # one array or a tuple of two
            return _backward(blocks, query, key, value, kept, upstream)

        result = tuple(kept) if with_log_sum_exp else kept[0]
        return result, gradient

    return attend(query, key, value)


def _forward(blocks, query, key, value, with_log_sum_exp):
    """Output, and log-sum-exp if asked or needed by the gradient."""
    with_log_sum_exp = with_log_sum_exp or not blocks.whole_rows

    def write_tile(tile, *arrays):
        h, i = tile // blocks.num_query_blocks, tile % blocks.num_query_blocks
        q = query[tile]

        def attend_to(j):
            block = h * blocks.num_key_blocks + j
            k = blocks.visible_keys(i, key[block])
            v = blocks.visible_keys(i, value[block])
            scores, weights, any_seen = blocks.scores_and_weights(h, i, j, q, k)
            output = _zero_unless(any_seen, ops.matmul(weights, v))
            if not with_log_sum_exp:
                return (output,)
            return output, *_highest_and_total(scores, weights, any_seen)

        def merge(j, *before):
            return merge_key_blocks(before, attend_to(j))

        if blocks.whole_rows:
            output, *highest_and_total = attend_to(0)
        else:
            zero = ops.zeros_like(q[..., :1])
            nothing = ops.zeros(shape[1:], q.dtype), zero - float("inf"), zero
            output, *highest_and_total = count_loop(
                0, blocks.num_visible_key_blocks(i), merge, nothing
            )
        found = (
            [output, _log_sum_exp(*highest_and_total)]
            if highest_and_total
            else [output]
        )
        return tuple(
            write_block(array, tile, x)
            for array, x in zip(arrays, found, strict=True)
        )

    shape = (*ops.shape(query)[:3], value.shape[-1])
    arrays = [new_block_array(shape, query.dtype)]
    if with_log_sum_exp:
        arrays.append(new_block_array((*shape[:3], 1), query.dtype))
    return [
        stack_blocks(array)
        for array in count_loop(0, shape[0], write_tile, arrays)
    ]


def _highest_and_total(scores, weights, any_seen):
    """The highest score m of each row, and the sum of exp(score − m).

    The largest weight is exp(m − m) divided by that sum, so the sum is one
    over the largest weight. A row that sees no key has −inf and 0.
    """
    highest = ops.max(scores, axis=-1, keepdims=True)
    total = 1 / ops.max(weights, axis=-1, keepdims=True)
    if any_seen is not None:
        highest = ops.where(any_seen, highest, -float("inf"))
    return highest, _zero_unless(any_seen, total)


def _log_sum_exp(highest, total):
    """−inf where no key was seen: then the total is 0."""
    return highest + ops.log(ops.where(total == 0, 1.0, total))


def merge_key_blocks(before, block):
    """Output, highest score and sum over earlier keys and a block together."""
    old_output, old_highest, old_total = before
    new_output, new_highest, new_total = block
    highest = ops.maximum(old_highest, new_highest)
    finite = _finite(highest)  # it is −inf while nothing was seen
    old = ops.exp(old_highest - finite) * old_total
    new = ops.exp(new_highest - finite) * new_total
    total = old + new
    output = old * old_output + new * new_output
    return output / ops.where(total == 0, 1.0, total), highest, total


def _backward(blocks, query, key, value, kept, upstream):
    output, *log_sum_exp = kept
    d_output, *d_log_sum_exp = upstream
    # Σ_s p d_p of each row, less the gradient of its log-sum-exp
    row_shift = ops.sum(d_output * output, -1, keepdims=True)
    if d_log_sum_exp:
        row_shift = row_shift - d_log_sum_exp[0]

    def add_key_block(block, d_queries, d_keys, d_values):
        h, j = block // blocks.num_key_blocks, block % blocks.num_key_blocks

        def add_query_block(i, d_queries, d_key, d_value):
            tile = h * blocks.num_query_blocks + i
            k = blocks.visible_keys(i, key[block])
            v = blocks.visible_keys(i, value[block])
            q = query[tile]
            scores, p, any_seen = blocks.scores_and_weights(h, i, j, q, k)
            if not blocks.whole_rows:  # from weights in the block to all keys'
                m, total = _highest_and_total(scores, p, any_seen)
                p = p * total * ops.exp(m - _finite(log_sum_exp[0][tile]))
            d_o = _zero_unless(any_seen, d_output[tile])
            d_p = ops.matmul(d_o, ops.swapaxes(v, -1, -2))
            d_s = p * (d_p - _zero_unless(any_seen, row_shift[tile]))
            d_query = ops.matmul(d_s, k)
            if not blocks.whole_rows:
                d_query = d_query + read_block(d_queries, tile)
            new_key = ops.matmul(ops.swapaxes(d_s, -1, -2), q)
            new_value = ops.matmul(ops.swapaxes(p, -1, -2), d_o)
            return (
                write_block(d_queries, tile, d_query),
                d_key + pad_rows_like(new_key, d_key),
                d_value + pad_rows_like(new_value, d_value),
            )

        d_key = ops.zeros_like(key[block])
        d_value = ops.zeros_like(value[block])
        d_queries, d_key, d_value = count_loop(
            blocks.first_query_block(j),
            blocks.num_query_blocks,
            add_query_block,
            (d_queries, d_key, d_value),
        )
        return (
            d_queries,
            write_block(d_keys, block, d_key),
            write_block(d_values, block, d_value),
        )

    if blocks.whole_rows:
        d_queries = new_block_array(ops.shape(query), query.dtype)
    else:  # several key blocks add to each
        d_queries = block_array_of(ops.zeros_like(query))
    d_keys = new_block_array(ops.shape(key), key.dtype)
    d_values = new_block_array(ops.shape(value), value.dtype)
    number = blocks.num_head_blocks * blocks.num_key_blocks
    arrays = (d_queries, d_keys, d_values)
    return tuple(
        map(stack_blocks, count_loop(0, number, add_key_block, arrays))
    )


def _zero_unless(any_seen, x):
    """x where a query sees a key, else 0; None = every query sees one."""
    return x if any_seen is None else ops.where(any_seen, x, 0.0)


def _finite(x):
    return ops.where(ops.isfinite(x), x, 0.0)
