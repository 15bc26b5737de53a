"""Keys and values in blocks behind a table.

A paged cache changes where keys and values lie, never what is computed.
`page_local_attention` is another thing: it looks at less.
"""

from d2l_attention._checks import check_positive
from d2l_attention.efficient.block_manager import BlockManager
from d2l_attention.efficient.multi_query import grouped_scores, grouped_sum
from d2l_attention.masking import masked_softmax
from keras import ops
import numpy as np


class PagedKVCache(BlockManager):
    """Keys and values of many sequences, in the blocks of one pool.

    Blocks are numbered, and live in arrays of
    `(num_blocks + 1, block_size, G, K)` for each layer of a model; the last
    block is nobody's, and takes what is written where nothing was reserved.

    Source: Kwon et al. (2023), arXiv:2309.06180; document 004, section 7.
    There the kernel reads the blocks where they lie; here attention gathers
    the blocks of a sequence first, so the pool is small but a step is not
    faster.

    Args:
        num_blocks: Positive int, blocks of the pool.
        block_size: Positive int, tokens in a block.
        num_kv_heads: Positive int, G heads of keys and values.
        key_dim: Positive int, features K of a key.
        value_dim: Positive int, features V of a value; None = `key_dim`.
        num_layers: Positive int, layers that share the block table.
        dtype: Name of the dtype of keys and values.

    Raises:
        ValueError: If a size is not positive.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PagedKVCache
        >>> cache = PagedKVCache(4, block_size=2, num_kv_heads=1, key_dim=3)
        >>> sequence = cache.add()
        >>> cache.append(sequence, np.ones((3, 1, 3)), np.ones((3, 1, 3)))
        >>> cache.tables[sequence]  # three tokens lie in two blocks
        [0, 1]
        >>> output = cache.attend(np.ones((1, 1, 2, 3)), [sequence])
        >>> tuple(output.shape)  # of two query heads
        (1, 1, 2, 3)
    """

    def __init__(
        self,
        num_blocks,
        block_size,
        num_kv_heads,
        key_dim,
        value_dim=None,
        num_layers=1,
        dtype="float32",
    ):
        super().__init__(num_blocks, block_size)
        value_dim = key_dim if value_dim is None else value_dim
        check_positive("num_layers", num_layers)
        sizes = {"key": key_dim, "value": value_dim}
        for name, size in (("num_kv_heads", num_kv_heads), *sizes.items()):
            check_positive(name, size)
        self.num_kv_heads = num_kv_heads
        self.sizes = sizes
        self.pools = [
            {
                name: ops.zeros(
                    (num_blocks + 1, block_size, num_kv_heads, size), dtype
                )
                for name, size in sizes.items()
            }
            for _ in range(num_layers)
        ]

    def reserve(self, sequence, num_tokens):
        """Make room for so many more tokens; see `BlockManager.reserve`."""
        copies = super().reserve(sequence, num_tokens)
        for old, new in copies:
            for pool in self.pools:
                for name, x in pool.items():
                    pool[name] = ops.slice_update(
                        x, (new, 0, 0, 0), x[old : old + 1]
                    )
        return copies

    def append(self, sequence, key, value):
        """Keys `(T, G, K)` and values `(T, G, V)` of T more tokens.

        A cache of several layers takes `(num_layers, T, G, K)`.

        Raises:
            KeyError: If there is no such sequence.
            OutOfBlocksError: If too few blocks are free.
            ValueError: If shapes do not match.
        """
        new = {"key": key, "value": value}
        layers = () if len(self.pools) == 1 else (len(self.pools),)
        num_tokens = ops.shape(key)[len(layers)]
        for name, x in new.items():
            shape = (*layers, num_tokens, self.num_kv_heads, self.sizes[name])
            if tuple(ops.shape(x)) != shape:
                raise ValueError(
                    f"The cache takes a {name} of shape {shape}. Received: "
                    f"key {tuple(ops.shape(key))}, value "
                    f"{tuple(ops.shape(value))}."
                )
            new[name] = ops.reshape(x, (len(self.pools), 1, *shape[-3:]))
        self.reserve(sequence, num_tokens)
        positions = self.lengths[sequence] + np.arange(num_tokens)[None]
        caches = [
            write_cache(cache, positions, new["key"][i], new["value"][i])
            for i, cache in enumerate(self.caches([sequence]))
        ]
        self.accept([sequence], caches, num_tokens)

    def caches(self, sequences):
        """Of each layer a dict of tensors that `write_cache` understands.

        Reserve what is to be written first: a table does not grow inside a
        compiled loop. `accept` takes the tensors back when it has ended.
        """
        tables = [self._table(sequence) for sequence in sequences]
        width = max(map(len, tables)) + 1  # the last column is nobody's
        table = np.full((len(tables), width), self.num_blocks, "int32")
        for row, blocks in zip(table, tables, strict=True):
            row[: len(blocks)] = blocks
        table = ops.convert_to_tensor(table)
        return [{**pool, "block_table": table} for pool in self.pools]

    def accept(self, sequences, caches, num_tokens):
        """Take back `caches` with `num_tokens` more tokens a sequence."""
        for sequence in sequences:
            self.advance(sequence, num_tokens)
        self.pools = [{n: cache[n] for n in self.sizes} for cache in caches]

    def gather(self, sequence, layer=0):
        """Keys `(S, G, K)` and values `(S, G, V)` of a sequence, in order."""
        key, value = read_cache(self.caches([sequence])[layer])
        length = self.lengths[sequence]
        return key[0, :length], value[0, :length]

    def attend(self, query, sequences, layer=0):
        """Attention of the last T tokens of each sequence to all before.

        See `paged_attention`.

        Args:
            query: Float tensor `(B, T, H, K)`, of one sequence each.
            sequences: Their numbers.
            layer: Int, of the model.

        Returns:
            Float tensor `(B, T, H, V)`.
        """
        lengths = np.array([self.lengths[self._known(s)] for s in sequences])
        return paged_attention(query, self.caches(sequences)[layer], lengths)


def contiguous_cache(shape, value_dim, dtype="float32"):
    """An empty cache that reserves `(B, max_length, G, K)` for every row.

    Returns:
        Dict of zeros, `"key"` of that shape and `"value"` of `value_dim`
        features.
    """
    return {
        "key": ops.zeros(shape, dtype),
        "value": ops.zeros((*shape[:-1], value_dim), dtype),
    }


def write_cache(cache, positions, key, value):
    """The cache with the tokens at `positions` written.

        slot[b, t] = block_table[b, ⌊p / size⌋] size + p mod size,
            p = positions[b, t]

    and without a table b max_length + p: then every row has one large block.

    Args:
        cache: Dict of `"key"`, `"value"` and, if paged, `"block_table"`.
        positions: Int tensor `(B, T)`.
        key: Float tensor `(B, T, G, K)`.
        value: Float tensor `(B, T, G, V)`.

    Returns:
        A dict like `cache`.
    """
    size = cache["key"].shape[1]
    positions = ops.cast(positions, "int32")
    if "block_table" in cache:
        table = cache["block_table"]
        columns = ops.minimum(positions // size, table.shape[1] - 1)
        blocks = ops.take_along_axis(table, columns, axis=1)
    else:
        blocks = ops.arange(ops.shape(positions)[0], dtype="int32")[:, None]
    slots = ops.reshape(blocks * size + positions % size, (-1, 1))
    written = dict(cache)
    for name, new in (("key", key), ("value", value)):
        old = cache[name]
        tail = tuple(old.shape[2:])
        flat = ops.reshape(old, (-1, *tail))
        new = ops.cast(ops.reshape(new, (-1, *tail)), old.dtype)
        flat = ops.scatter_update(flat, slots, new)
        written[name] = ops.reshape(flat, ops.shape(old))
    return written


def read_cache(cache):
    """Keys `(B, S, G, K)` and values `(B, S, G, V)`, in order of position.

    Slots that were never written hold anything; mask them.
    """
    if "block_table" not in cache:
        return cache["key"], cache["value"]
    table = cache["block_table"]
    found = []
    for name in ("key", "value"):
        blocks = ops.take(cache[name], table, axis=0)
        rows, width, size, *tail = ops.shape(blocks)
        found.append(ops.reshape(blocks, (rows, width * size, *tail)))
    return tuple(found)


def paged_attention(query, cache, lengths):
    """Exact causal attention to keys and values behind a block table.

        output_t = softmax(q_t Kᵀ / √K) V over the keys up to token t,

    the T queries being the last T of `lengths` tokens. Query head h reads
    key head ⌊h / (H/G)⌋.

    Source: Kwon et al. (2023), arXiv:2309.06180, equation 4; document 004,
    section 7, whose formulas describe something else: see
    `page_local_attention`.

    Args:
        query: Float tensor `(B, T, H, K)`.
        cache: Dict as of `PagedKVCache.caches`.
        lengths: Int tensor `(B,)`, tokens of each sequence.

    Returns:
        Float tensor `(B, T, H, V)`. What lies in unused slots, NaN included,
        is not seen.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PagedKVCache, paged_attention
        >>> cache = PagedKVCache(4, block_size=2, num_kv_heads=1, key_dim=1)
        >>> value = np.array([1.0, 3.0, 5.0]).reshape(3, 1, 1)
        >>> cache.append(cache.add(), np.zeros((3, 1, 1)), value)
        >>> query = np.ones((1, 1, 1, 1), "float32")
        >>> output = paged_attention(query, cache.caches([0])[0], np.array([3]))
        >>> np.array(output).round(2).tolist()  # keys all alike: the mean
        [[[[3.0]]]]
    """
    key, value = read_cache(cache)
    lengths = ops.cast(lengths, "int32")[:, None]
    slots = ops.arange(ops.shape(key)[1], dtype="int32")
    last = ops.shape(query)[1] - 1
    positions = lengths - 1 - last + ops.arange(last + 1, dtype="int32")
    seen = slots <= positions[:, :, None]  # (B, T, S)
    weights = masked_softmax(grouped_scores(query, key), seen[:, None])
    filled = (slots < lengths)[..., None, None]  # 0 times NaN is NaN
    return grouped_sum(weights, ops.where(filled, value, 0.0))
