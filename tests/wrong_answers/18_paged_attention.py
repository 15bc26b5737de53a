"""Wrong answers to the exercises of chapter 18; each check refuses them."""


# %% exercise 1 | a place in the table
# The quotient is taken for the block, and the table is not asked.
def locate(table, block_size, t, length):
    empty = len(table) * block_size - length
    return t // block_size, t % block_size, empty


# %% exercise 1 | both are counted from 0
# Tokens are counted from 1.
def locate(table, block_size, t, length):
    empty = len(table) * block_size - length
    return table[(t - 1) // block_size], (t - 1) % block_size, empty


# %% exercise 1 | of them hold a token
# A table is thought to have no blocks but those in use.
def locate(table, block_size, t, length):
    empty = -length % block_size
    return table[t // block_size], t % block_size, empty


# %% exercise 1 | both are counted from 0
# The text lies in one piece from its first block on.
def locate(table, block_size, t, length):
    return table[0], t, len(table) * block_size - length


# %% exercise 1 | of them hold a token
# Empty slots are counted from the token, not from the end of the text.
def locate(table, block_size, t, length):
    empty = len(table) * block_size - t - 1
    return table[t // block_size], t % block_size, empty


# %% exercise 1 | both are counted from 0
# Quotient and remainder are exchanged.
def locate(table, block_size, t, length):
    empty = len(table) * block_size - length
    return t % block_size, table[t // block_size], empty


# %% exercise 2 | only full blocks stay shared
# The half-filled block is shared as well.
def blocks_needed(prompt, new, n, block_size):
    each = -(-(prompt + new) // block_size)
    shared = -(-prompt // block_size)
    return shared + n * (each - shared), n * each


# %% exercise 2 | each answer begins a block of its own
# The last block of the prompt is always copied, even if it is full.
def blocks_needed(prompt, new, n, block_size):
    each = -(-(prompt + new) // block_size)
    shared = (prompt - 1) // block_size
    return shared + n * (each - shared), n * each


# %% exercise 2 | each answer begins a block of its own
# A fork copies the blocks.
def blocks_needed(prompt, new, n, block_size):
    each = -(-(prompt + new) // block_size)
    return n * each, n * each


# %% exercise 2 | begun ones included
# Blocks that are not full are not counted.
def blocks_needed(prompt, new, n, block_size):
    each = (prompt + new) // block_size
    shared = prompt // block_size
    return shared + n * (each - shared), n * each


# %% exercise 2 | each answer begins a block of its own
# Tokens are counted, as if the answers stood one behind the other.
def blocks_needed(prompt, new, n, block_size):
    each = -(-(prompt + new) // block_size)
    return -(-(prompt + n * new) // block_size), n * each


# %% exercise 2 | one sequence shares with nobody
# Everybody copies the last block, and the old one stays behind.
def blocks_needed(prompt, new, n, block_size):
    each = -(-(prompt + new) // block_size)
    shared = prompt // block_size
    left_over = prompt % block_size > 0
    return shared + n * (each - shared) + left_over, n * each


# %% exercise 3 | do you gather the blocks
# The blocks are gathered first.
def attend_in_place(query, key_pool, value_pool, table, length):
    keys = np.concatenate(key_pool[table])[:length]
    values = np.concatenate(value_pool[table])[:length]
    scores = keys @ query / len(query) ** 0.5
    weights = np.exp(scores - scores.max())
    return weights @ values / weights.sum()


# %% exercise 3 | keep all scores
# The blocks stay where they are, but every score is kept.
def attend_in_place(query, key_pool, value_pool, table, length):
    size = key_pool.shape[1]
    rows = [(table[t // size], t % size) for t in range(length)]
    scores = [key_pool[row] @ query / len(query) ** 0.5 for row in rows]
    weights = np.exp(np.array(scores) - max(scores))
    output = sum(w * value_pool[row] for w, row in zip(weights, rows))
    return output / weights.sum()


# %% exercise 3 | shrink both sums
# Large scores overflow.
def attend_in_place(query, key_pool, value_pool, table, length):
    size, above, below = key_pool.shape[1], 0.0, 0.0
    for place, block in enumerate(table):
        filled = slice(0, min(max(length - place * size, 0), size))
        scores = key_pool[block, filled] @ query / len(query) ** 0.5
        above = above + np.exp(scores) @ value_pool[block, filled]
        below += np.exp(scores).sum()
    return above / below


# %% exercise 3 | shrink both sums
# The sum of exponentials shrinks, that of the values does not.
def attend_in_place(query, key_pool, value_pool, table, length):
    size, above, below, highest = key_pool.shape[1], 0.0, 0.0, 0.0
    for place, block in enumerate(table):
        filled = slice(0, min(max(length - place * size, 0), size))
        scores = key_pool[block, filled] @ query / len(query) ** 0.5
        new = (
            max([highest, *scores]) if abs(scores).max(initial=0) > 50 else 0.0
        )
        above = above + np.exp(scores - new) @ value_pool[block, filled]
        below = np.exp(highest - new) * below + np.exp(scores - new).sum()
        highest = new
    return above / below


# %% exercise 3 | leave them out
# Slots without a token are read.
def attend_in_place(query, key_pool, value_pool, table, length):
    above, below = 0.0, 0.0
    for block in table:
        weights = np.exp(key_pool[block] @ query / len(query) ** 0.5)
        above = above + weights @ value_pool[block]
        below += weights.sum()
    return above / below


# %% exercise 3 | are both sums divided once?
# A softmax for each block, and a mean over the blocks.
def attend_in_place(query, key_pool, value_pool, table, length):
    size, parts = key_pool.shape[1], []
    for place, block in enumerate(table):
        filled = slice(0, min(max(length - place * size, 0), size))
        scores = key_pool[block, filled] @ query / len(query) ** 0.5
        if len(scores):
            weights = np.exp(scores - scores.max())
            parts.append(weights @ value_pool[block, filled] / weights.sum())
    return np.mean(parts, axis=0)


# %% exercise 3 | which blocks has it
# The first blocks of the pool are read, whatever the table says.
def attend_in_place(query, key_pool, value_pool, table, length):
    size, above, below = key_pool.shape[1], 0.0, 0.0
    first = table if len(table) == 1 else range(len(table))
    for place, block in enumerate(first):
        filled = slice(0, min(max(length - place * size, 0), size))
        weights = np.exp(key_pool[block, filled] @ query / len(query) ** 0.5)
        above = above + weights @ value_pool[block, filled]
        below += weights.sum()
    return above / below


# %% exercise 3 | a softmax of the scores over √K
# The scores are not divided by the root of K.
def attend_in_place(query, key_pool, value_pool, table, length):
    size, above, below = key_pool.shape[1], 0.0, 0.0
    for place, block in enumerate(table):
        filled = slice(0, min(max(length - place * size, 0), size))
        weights = np.exp(key_pool[block, filled] @ query)
        above = above + weights @ value_pool[block, filled]
        below += weights.sum()
    return above / below
