"""Which sequence owns which block of a cache: a table, without the blocks."""

from d2l_attention._checks import check_positive
import numpy as np


class OutOfBlocksError(MemoryError):
    """There are too few free blocks; nothing was changed.

    Example:
        >>> from d2l_attention import BlockManager, OutOfBlocksError
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

    Raises:
        ValueError: If a size is not positive.

    Example:
        >>> from d2l_attention import BlockManager
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
        """Make room for `num_tokens` more tokens.

        Returns:
            List of pairs (block, copy). The caller copies the contents of
            each block into its copy before it writes.

        Raises:
            KeyError: If there is no such sequence.
            OutOfBlocksError: If too few blocks are free.
        """
        table = self._table(sequence)
        length, size = self.lengths[sequence], self.block_size
        missing = max(-(-(length + num_tokens) // size) - len(table), 0)
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
        filled = -(-self.lengths[self._known(sequence)] // self.block_size)
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
