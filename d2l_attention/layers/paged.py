"""Keys and values in blocks that a table points to; the result is the same.

Paged attention is unrelated to `page_local_attention`, which reads fewer keys.
"""

from d2l_attention._checks import check_positive
from d2l_attention.layers.cache import (
    contiguous_cache,
    read_cache,
    write_cache,
)
from d2l_attention.layers.multi_query import grouped_query_attention
from d2l_attention.layers.reshaping import ceil_divide
from keras import ops
import numpy as np


class OutOfBlocksError(MemoryError):
    """There are too few free blocks; nothing was changed.

    Example:
        >>> from d2l_attention.layers.paged import (
        ...     BlockManager,
        ...     OutOfBlocksError,
        ... )
        >>> manager = BlockManager(num_blocks=2, block_size=4)
        >>> try:
        ...     manager.reserve(manager.add(), num_tokens=9)
        ... except OutOfBlocksError:
        ...     print(len(manager.free_blocks), "blocks are free")
        2 blocks are free
    """


class BlockManager:
    """Which sequence owns which block: the page table of a cache.

    Blocks have `block_size` slots for one token each. A sequence owns a list
    of blocks; its token t lies in slot t mod `block_size` of its block
    ⌊t / block_size⌋. A fork shares all blocks of its sequence. A sequence
    that writes into a shared block gets a copy of it first (copy-on-write).

    Source: Kwon et al. (2023), arXiv:2309.06180, sections 4.2–4.4; document
    004, section 7.

    Args:
        num_blocks: Positive int, number of blocks.
        block_size: Positive int, tokens in a block.

    Example:
        >>> from d2l_attention.layers.paged import BlockManager
        >>> manager = BlockManager(num_blocks=4, block_size=2)
        >>> sequence = manager.add()
        >>> copies = manager.reserve(sequence, num_tokens=3)
        >>> manager.advance(sequence, num_tokens=3)
        >>> child = manager.fork(sequence)  # shares both blocks …
        >>> manager.reserve(child, num_tokens=1)  # … until it writes
        [(1, 2)]
        >>> manager.tables
        {0: [0, 1], 1: [0, 2]}
    """

    def __init__(self, num_blocks, block_size):
        self.num_blocks = check_positive("num_blocks", num_blocks)
        self.block_size = check_positive("block_size", block_size)
        self.free_blocks = list(range(num_blocks - 1, -1, -1))
        self.references = np.zeros(num_blocks, "int32")
        self.tables = {}
        self.lengths = {}
        self.next_sequence = 0

    def add(self):
        """Begin an empty sequence, and return its number."""
        sequence = self.next_sequence
        self.next_sequence += 1
        self.tables[sequence] = []
        self.lengths[sequence] = 0
        return sequence

    def reserve(self, sequence, num_tokens):
        """Make room for more tokens, or raise `OutOfBlocksError`.

        What comes back are pairs (block, copy). The caller copies the contents
        of each block into its copy before it writes.
        """
        table = self._table(sequence)
        length, size = self.lengths[sequence], self.block_size
        missing = max(ceil_divide(length + num_tokens, size) - len(table), 0)
        last = length // size  # index in the table of the next token's block
        shared = (
            num_tokens > 0
            and last < len(table)
            and self.references[table[last]] > 1
        )
        if missing + shared > len(self.free_blocks):
            raise OutOfBlocksError(
                f"Sequence {sequence} has {length} tokens in {len(table)} "
                f"blocks of {size} and needs {missing + shared} more for "
                f"{num_tokens} tokens. Free: {len(self.free_blocks)} of "
                f"{self.num_blocks} blocks."
            )
        copies = []
        if shared:
            block, copy = table[last], self._take()
            self.references[block] -= 1
            table[last] = copy
            copies.append((block, copy))
        table.extend(self._take() for _ in range(missing))
        return copies

    def advance(self, sequence, num_tokens):
        """Count `num_tokens` more of the reserved slots as filled."""
        room = len(self._table(sequence)) * self.block_size
        if self.lengths[sequence] + num_tokens > room:
            raise ValueError(
                f"Sequence {sequence} has {self.lengths[sequence]} tokens and "
                f"room for {room}. Received: num_tokens={num_tokens}."
            )
        self.lengths[sequence] += num_tokens

    def fork(self, sequence):
        """Begin a sequence that shares the tokens and blocks of another."""
        filled = ceil_divide(
            self.lengths[self._known(sequence)], self.block_size
        )
        child = self.add()
        self.tables[child] = self.tables[sequence][:filled]
        self.references[self.tables[child]] += 1
        self.lengths[child] = self.lengths[sequence]
        return child

    def free(self, sequence):
        """Forget a sequence; blocks that no other sequence has are free."""
        del self.lengths[self._known(sequence)]
        for block in self.tables.pop(sequence):
            self.references[block] -= 1
            if self.references[block] == 0:
                self.free_blocks.append(block)

    def _take(self):
        block = self.free_blocks.pop()
        self.references[block] = 1
        return block

    def _table(self, sequence):
        return self.tables[self._known(sequence)]

    def _known(self, sequence):
        if sequence not in self.tables:
            raise KeyError(
                f"No sequence {sequence!r} is in the cache. It holds: "
                f"{sorted(self.tables)}."
            )
        return sequence


class PagedKVCache(BlockManager):
    """Keys and values of many sequences, in the blocks of one pool.

    Each layer of a model has arrays `(num_blocks + 1, block_size, G, K)`.
    The last block belongs to no sequence; it takes what is written where
    nothing was reserved.

    Source: Kwon et al. (2023), arXiv:2309.06180; document 004, section 7.
    There the kernel reads the blocks where they lie. Here attention gathers
    the blocks of a sequence first: the pool is small, but a step is not
    faster.

    Args:
        num_blocks, block_size: As in `BlockManager`.
        num_kv_heads: Positive int, G heads of keys and values.
        key_dim: Positive int, features K of a key.
        value_dim: Int, features V of a value; None = `key_dim`. With 0 there
            are no values, as `LatentAttention` has it; then only `caches` and
            `accept` fill the cache, from inside a model.
        num_layers: Positive int, layers that share the block table.
        dtype: Name of the dtype of keys and values.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PagedKVCache
        >>> cache = PagedKVCache(4, block_size=2, num_kv_heads=1, key_dim=3)
        >>> sequence = cache.add()
        >>> cache.append(sequence, np.ones((3, 1, 3)), np.ones((3, 1, 3)))
        >>> cache.tables[sequence]  # three tokens lie in two blocks
        [0, 1]
    """

    def __init__(
        self,
        num_blocks,
        block_size,
        num_kv_heads,
        key_dim,
        *,
        value_dim=None,
        num_layers=1,
        dtype="float32",
    ):
        super().__init__(num_blocks, block_size)
        self.num_kv_heads = check_positive("num_kv_heads", num_kv_heads)
        self.key_dim = check_positive("key_dim", key_dim)
        self.value_dim = 0
        if value_dim != 0:
            self.value_dim = check_positive(
                "value_dim", value_dim, self.key_dim
            )
        check_positive("num_layers", num_layers)
        shape = (num_blocks + 1, block_size, num_kv_heads, key_dim)
        self.pools = [
            contiguous_cache(shape, self.value_dim, dtype)
            for _ in range(num_layers)
        ]

    def reserve(self, sequence, num_tokens):
        copies = super().reserve(sequence, num_tokens)
        for old, new in copies:
            for pool in self.pools:
                for name, x in pool.items():
                    pool[name] = ops.slice_update(
                        x, (new, 0, 0, 0), x[old : old + 1]
                    )
        return copies

    def append(self, sequence, key, value):
        """Write keys `(T, G, K)` and values `(T, G, V)` of T more tokens.

        A cache of several layers takes `(num_layers, T, G, K)`. Where too few
        blocks are free, `OutOfBlocksError` is raised.
        """
        layers = () if len(self.pools) == 1 else (len(self.pools),)
        num_tokens = ops.shape(key)[len(layers)]
        rows = (*layers, num_tokens, self.num_kv_heads)
        wanted = (*rows, self.key_dim), (*rows, self.value_dim)
        received = tuple(ops.shape(key)), tuple(ops.shape(value))
        if received != wanted:
            raise ValueError(
                f"The cache takes key {wanted[0]} and value {wanted[1]}. "
                f"Received: key {received[0]}, value {received[1]}."
            )
        self.reserve(sequence, num_tokens)
        positions = self.lengths[sequence] + np.arange(num_tokens)[None]
        num_layers = len(self.pools)
        keys = ops.reshape(key, (num_layers, 1, *wanted[0][-3:]))
        values = ops.reshape(value, (num_layers, 1, *wanted[1][-3:]))
        caches = [
            write_cache(cache, positions, key=keys[i], value=values[i])
            for i, cache in enumerate(self.caches([sequence]))
        ]
        self.accept([sequence], caches, num_tokens)

    def caches(self, sequences):
        """A cache for each layer: a dict as `write_cache` takes it.

        Reserve room before a compiled loop, inside which a table cannot grow.
        After the loop, `accept` takes the caches back.
        """
        tables = [self._table(sequence) for sequence in sequences]
        width = max(map(len, tables)) + 1  # the last column stays unowned
        table = np.full((len(tables), width), self.num_blocks, "int32")
        for row, blocks in zip(table, tables, strict=True):
            row[: len(blocks)] = blocks
        table = ops.convert_to_tensor(table)
        return [{**pool, "block_table": table} for pool in self.pools]

    def accept(self, sequences, caches, num_tokens):
        """Take back `caches` with `num_tokens` more tokens a sequence."""
        for sequence in sequences:
            self.advance(sequence, num_tokens)
        self.pools = [
            {name: cache[name] for name in pool}
            for pool, cache in zip(self.pools, caches, strict=True)
        ]

    def gather(self, sequence, layer=0):
        """Keys `(S, G, K)` and values `(S, G, V)` of a sequence, in order."""
        key, value = read_cache(self.caches([sequence])[layer])
        length = self.lengths[sequence]
        return key[0, :length], value[0, :length]

    def attend(self, query, sequences, layer=0):
        """`paged_attention` of the last T tokens of B sequences.

        Queries `(B, T, H, K)` become `(B, T, H, V)`.
        """
        lengths = np.array([self.lengths[self._known(s)] for s in sequences])
        return paged_attention(query, self.caches(sequences)[layer], lengths)


def paged_attention(query, cache, lengths):
    """Exact causal attention to keys and values that a block table points to.

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
    filled = (slots < lengths)[..., None, None]  # 0 times NaN is NaN
    value = ops.where(filled, value, 0.0)
    output, _ = grouped_query_attention(query, key, value, seen)
    return output
