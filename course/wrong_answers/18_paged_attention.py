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


# %% exercise 1 | three numbers
# The empty slots are left out.
def locate(table, block_size, t, length):
    return table[t // block_size], t % block_size


# %% exercise 1 | right
# All slots in a list, and the answer in an array.
def locate(table, block_size, t, length):
    slots = [(block, slot) for block in table for slot in range(block_size)]
    return np.array([*slots[t], len(slots[length:])])


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


# %% exercise 2 | begun ones included
# Blocks that are not full are not counted.
def blocks_needed(prompt, new, n, block_size):
    each = (prompt + new) // block_size
    shared = prompt // block_size
    return shared + n * (each - shared), n * each


# %% exercise 2 | one sequence shares with nobody
# Everybody copies the last block, and the old one stays behind.
def blocks_needed(prompt, new, n, block_size):
    each = -(-(prompt + new) // block_size)
    shared = prompt // block_size
    left_over = prompt % block_size > 0
    return shared + n * (each - shared) + left_over, n * each


# %% exercise 2 | two numbers
# Only the forked sequences are counted.
def blocks_needed(prompt, new, n, block_size):
    shared = prompt // block_size
    return shared + n * (-(-(prompt + new) // block_size) - shared)


# %% exercise 2 | right
# Every token of every sequence is put into its block.
def blocks_needed(prompt, new, n, block_size):
    forked, apart = set(), set()
    for sequence in range(n):
        for token in range(prompt + new):
            block = token // block_size
            full = (block + 1) * block_size <= prompt
            forked.add((block, None if full else sequence))
            apart.add((block, sequence))
    return [len(forked), len(apart)]


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


# %% exercise 3 | clip none
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
    size, above, below, highest = key_pool.shape[1], 0.0, 0.0, -np.inf
    for place, block in enumerate(table):
        filled = slice(0, min(max(length - place * size, 0), size))
        scores = key_pool[block, filled] @ query / len(query) ** 0.5
        new = max([highest, *scores])
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


# %% exercise 3 | are both sums divided once
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


# %% exercise 3 | which blocks does the table name
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


# %% exercise 3 | a softmax of q · k / √K
# The scores are not divided by the root of K.
def attend_in_place(query, key_pool, value_pool, table, length):
    size, above, below = key_pool.shape[1], 0.0, 0.0
    for place, block in enumerate(table):
        filled = slice(0, min(max(length - place * size, 0), size))
        weights = np.exp(key_pool[block, filled] @ query)
        above = above + weights @ value_pool[block, filled]
        below += weights.sum()
    return above / below


# %% exercise 3 | begins at −∞, not at 0
# The largest score so far begins at 0.
def attend_in_place(query, key_pool, value_pool, table, length):
    highest, total, output = 0.0, 0.0, 0.0
    for t in range(length):
        place = table[t // key_pool.shape[1]], t % key_pool.shape[1]
        score = key_pool[place] @ query / len(query) ** 0.5
        new = max(highest, score)
        shrink, power = np.exp(highest - new), np.exp(score - new)
        total = shrink * total + power
        output = shrink * output + power * value_pool[place]
        highest = new
    return output / total


# %% exercise 3 | divide by the sum of exponentials, once
# The weighted sum is divided at every token.
def attend_in_place(query, key_pool, value_pool, table, length):
    highest, total, output = -np.inf, 0.0, 0.0
    for t in range(length):
        place = table[t // key_pool.shape[1]], t % key_pool.shape[1]
        score = key_pool[place] @ query / len(query) ** 0.5
        new = max(highest, score)
        shrink, power = np.exp(highest - new), np.exp(score - new)
        total = shrink * total + power
        output = (shrink * output + power * value_pool[place]) / total
        highest = new
    return output


# %% exercise 3 | of all scores so far, not of this block
# Each block's own largest score, though it may be smaller.
def attend_in_place(query, key_pool, value_pool, table, length):
    size = key_pool.shape[1]
    highest, total, output = -np.inf, 0.0, 0.0
    for i in range(-(-length // size)):
        filled = table[i], slice(min(size, length - i * size))
        scores = key_pool[filled] @ query / len(query) ** 0.5
        new = scores.max()
        shrink, powers = np.exp(highest - new), np.exp(scores - new)
        total = shrink * total + powers.sum()
        output = shrink * output + powers @ value_pool[filled]
        highest = new
    return output / total


# %% exercise 3 | right
# Token by token, with the query divided in place.
def attend_in_place(query, key_pool, value_pool, table, length):
    query /= len(query) ** 0.5
    size = key_pool.shape[1]
    highest, total = -np.inf, 0.0
    output = [0.0] * value_pool.shape[2]
    for t in range(length):
        key = key_pool[table[t // size], t % size]
        score = float(np.dot(key, query))
        if score > highest:
            shrink = np.exp(highest - score)
            total, output = shrink * total, [shrink * x for x in output]
            highest = score
        power = np.exp(score - highest)
        total += power
        for i, x in enumerate(value_pool[table[t // size], t % size]):
            output[i] += power * x
    return [x / total for x in output]


# %% exercise 3 | right
# The log of the sum is kept in place of the largest score, in 32 bits.
def attend_in_place(query, key_pool, value_pool, table, length):
    size = key_pool.shape[1]
    norm, output = np.float32(-np.inf), np.float32(0)
    for i in range(-(-length // size)):
        filled = table[i], slice(min(size, length - i * size))
        keys, values = map(np.float32, (key_pool[filled], value_pool[filled]))
        scores = keys @ np.float32(query) / np.float32(len(query) ** 0.5)
        new = np.logaddexp.reduce([norm, *scores])
        output = np.exp(norm - new) * output + np.exp(scores - new) @ values
        norm = new
    return output


# %% exercise 4 | a block is known only with all that comes before it
# A block is named by its own tokens alone.
def known_tokens(requests, block_size):
    known, counts = set(), []
    for tokens in requests:
        count = 0
        for end in range(block_size, len(tokens) + 1, block_size):
            block = tuple(tokens[end - block_size : end])
            if block in known and end < len(tokens):
                count += block_size
            known.add(block)
        counts.append(count)
    return counts


# %% exercise 4 | a block is known only with all that comes before it
# A block is named by its own tokens and its place.
def known_tokens(requests, block_size):
    known, counts = set(), []
    for tokens in requests:
        count = 0
        for end in range(block_size, len(tokens) + 1, block_size):
            block = end, tuple(tokens[end - block_size : end])
            if block in known and end < len(tokens):
                count += block_size
            known.add(block)
        counts.append(count)
    return counts


# %% exercise 4 | only full blocks are known
# All tokens of the longest common beginning are counted.
def known_tokens(requests, block_size):
    counts = []
    for i, tokens in enumerate(requests):
        longest = 0
        for other in requests[:i]:
            for n in range(1, min(len(other), len(tokens)) + 1):
                if other[:n] == tokens[:n]:
                    longest = max(longest, n)
        counts.append(min(longest, max(len(tokens) - 1, 0)))
    return counts


# %% exercise 4 | any earlier request
# Only the request just before is looked at.
def known_tokens(requests, block_size):
    counts, before = [], []
    for tokens in requests:
        count = 0
        for end in range(block_size, len(tokens), block_size):
            if len(before) >= end and before[:end] == tokens[:end]:
                count = end
        counts.append(count)
        before = tokens
    return counts


# %% exercise 4 | the last token is read in any case
# A request that is known as a whole reads nothing.
def known_tokens(requests, block_size):
    known, counts = set(), []
    for tokens in requests:
        count = 0
        for end in range(block_size, len(tokens) + 1, block_size):
            if tuple(tokens[:end]) in known:
                count = end
            known.add(tuple(tokens[:end]))
        counts.append(count)
    return counts


# %% exercise 4 | count the tokens of blocks
# Blocks are counted, not tokens.
def known_tokens(requests, block_size):
    known, counts = set(), []
    for tokens in requests:
        count = 0
        for end in range(block_size, len(tokens) + 1, block_size):
            count += tuple(tokens[:end]) in known and end < len(tokens)
            known.add(tuple(tokens[:end]))
        counts.append(count)
    return counts


# %% exercise 4 | one number for each request
# All requests together.
def known_tokens(requests, block_size):
    known, count = set(), 0
    for tokens in requests:
        for end in range(block_size, len(tokens) + 1, block_size):
            if tuple(tokens[:end]) in known and end < len(tokens):
                count += block_size
            known.add(tuple(tokens[:end]))
    return count


# %% exercise 4 | right
# Beginnings are compared with those of all earlier requests, no hash.
def known_tokens(requests, block_size):
    counts = []
    for i, tokens in enumerate(requests):
        count = 0
        for end in range(block_size, len(tokens), block_size):
            if any(
                len(other) >= end and other[:end] == tokens[:end]
                for other in requests[:i]
            ):
                count = end
        counts.append(count)
    return np.array(counts)
