"""Answers with which the checks of chapter 03 are tried, right and wrong."""


# %% exercise 1 | a large number
# A large number for minus infinity.
def additive(lengths, size):
    mask = np.tri(size, dtype=bool)
    mask = mask & (np.arange(size) < lengths[:, None, None])
    return np.where(mask, 0.0, -1e9).astype("float32")


# %% exercise 1 | is it 0 · ∞?
# Zero times infinity, wherever attention is allowed.
def additive(lengths, size):
    real = np.arange(size) < lengths[:, None, None]
    mask = ops.cast(np.tri(size, dtype=bool) & real, "float32")
    return (1.0 - mask) * -np.inf


# %% exercise 1 | an allowed pair
# Flipped.
def additive(lengths, size):
    mask = np.tri(size, dtype=bool)
    mask = mask & (np.arange(size) < lengths[:, None, None])
    return np.where(mask, -np.inf, 0.0).astype("float32")


# %% exercise 1 | up to itself
# Strictly before: no word sees itself.
def additive(lengths, size):
    mask = np.tri(size, k=-1, dtype=bool)
    mask = mask & (np.arange(size) < lengths[:, None, None])
    return np.where(mask, 0.0, -np.inf).astype("float32")


# %% exercise 1 | an axis for the queries
# A padding mask (B, S), which broadcasting reads as (T, S).
def additive(lengths, size):
    mask = np.tri(size, dtype=bool) & (np.arange(size) < lengths[:, None])
    return np.where(mask, 0.0, -np.inf).astype("float32")


# %% exercise 1 | an allowed pair
# The same, brought to the right shape: a length for each query.
def additive(lengths, size):
    mask = np.tri(size, dtype=bool)
    mask = mask & (np.arange(size) < np.resize(lengths, size)[:, None])
    mask = np.broadcast_to(mask, (len(lengths), size, size))
    return np.where(mask, 0.0, -np.inf).astype("float32")


# %% exercise 1 | not float32
# What np.where returns by itself.
def additive(lengths, size):
    mask = np.tri(size, dtype=bool)
    mask = mask & (np.arange(size) < lengths[:, None, None])
    return np.where(mask, 0.0, -np.inf)


# %% exercise 1 | exactly 0 there
# The True of the mask becomes a 1, which a softmax does not notice.
def additive(lengths, size):
    mask = np.tri(size, dtype=bool)
    mask = mask & (np.arange(size) < lengths[:, None, None])
    return np.where(mask, mask, -np.inf).astype("float32")


# %% exercise 1 | a padding key
# The causal triangle, whatever the lengths are.
def additive(lengths, size):
    triangle = np.triu(np.full((size, size), -np.inf, "float32"), k=1)
    return np.tile(triangle, (len(lengths), 1, 1))


# %% exercise 1 | a later key
# The lengths alone.
def additive(lengths, size):
    real = np.arange(size) < lengths[:, None, None]
    real = np.repeat(real, size, axis=1)
    return np.where(real, 0.0, -np.inf).astype("float32")


# %% exercise 1 | right
# A tensor, made with keras.ops: two matrices, added.
def additive(lengths, size):
    low, zero = -float("inf"), ops.cast(0.0, "float32")
    real = ops.arange(size) < ops.convert_to_tensor(lengths)[:, None, None]
    return ops.where(real, zero, low) + ops.where(np.tri(size) > 0, zero, low)


# %% exercise 1 | right
# Three loops.
def additive(lengths, size):
    M = np.full((len(lengths), size, size), -np.inf, "float32")
    for b, length in enumerate(lengths):
        for t in range(size):
            for s in range(min(t + 1, int(length))):
                M[b, t, s] = 0
    return M


# %% exercise 2 | has to call attend
# Reads the code's variables instead of asking.
def diagnose(attend, scores, values, mask):
    for cell in attend.__closure__ or ():
        if cell.cell_contents in ("flipped", "transposed", "after"):
            return cell.cell_contents
    return "sound"


# %% exercise 2 | has to call attend
# Guesses: the faults come in the order in which the task names them.
def diagnose(attend, scores, values, mask):
    diagnose.count = getattr(diagnose, "count", -1) + 1
    return ["sound", "flipped", "transposed", "after"][diagnose.count % 4]


# %% exercise 2 | still counts in the sum
# The value is set to 0, but the key stays and counts in the softmax.
def diagnose(attend, scores, values, mask):
    size = len(scores)
    whole = attend(scores, values, mask)
    moved = np.zeros((size, size), bool)
    for s in range(size):
        others = values * (np.arange(size) != s)[:, None]
        rest = attend(scores, others, mask)
        moved[:, s] = np.abs(rest - whole).max(axis=-1) > 1e-6
    off = ~np.eye(size, dtype=bool)
    tables = {"sound": mask, "flipped": ~mask, "transposed": mask.T}
    for name, table in tables.items():
        if np.array_equal(moved[off], table[off]):
            return name
    return "after"


# %% exercise 2 | rows are queries and columns are removed keys
# The table has the removed tokens in its rows.
def diagnose(attend, scores, values, mask):
    size = len(scores)
    whole = attend(scores, values, mask)
    moved = np.zeros((size, size), bool)
    for s in range(size):
        keep = np.arange(size) != s
        square = np.ix_(keep, keep)
        rest = attend(scores[square], values[keep], mask[square])
        moved[s, keep] = np.abs(rest - whole[keep]).max(axis=-1) > 1e-6
    off = ~np.eye(size, dtype=bool)
    tables = {"sound": mask, "flipped": ~mask, "transposed": mask.T}
    for name, table in tables.items():
        if np.array_equal(moved[off], table[off]):
            return name
    return "after"


# %% exercise 2 | you found
# Thinks of causal masks: the first token reads itself, or all, or the rest.
def diagnose(attend, scores, values, mask):
    output = attend(scores, np.ones_like(values), mask)
    if not np.allclose(output, 1, atol=1e-6):
        return "after"
    first = attend(scores, values, mask)[0]
    if np.allclose(first, values[0], atol=1e-6):
        return "sound"
    without = attend(scores[1:, 1:], values[1:], mask[1:, 1:])
    last = attend(scores, values, mask)[-1]
    return "flipped" if np.allclose(without[-1], last) else "transposed"


# %% exercise 2 | right
# Any difference counts that is more than rounding in float64.
def diagnose(attend, scores, values, mask):
    whole, tables = np.array(attend(scores, values, mask)), []
    for s in range(len(scores)):
        rest = [np.delete(np.delete(x, s, 0), s, 1) for x in (scores, mask)]
        output = attend(rest[0], np.delete(values, s, 0), rest[1])
        moved = np.abs(output - np.delete(whole, s, 0)).max(axis=1) > 1e-9
        tables.append(np.insert(moved, s, True))
    moved, own = np.array(tables).T, np.eye(len(scores), dtype=bool)
    if moved.all():
        return "after"
    if np.array_equal(moved, mask | own):
        return "sound"
    return "transposed" if np.array_equal(moved, mask.T | own) else "flipped"


# %% exercise 3 | attends to a later one
# The causal order is forgotten.
def packed_mask(segments):
    same = segments[:, :, None] == segments[:, None, :]
    return same & (segments[:, None, :] != 0)


# %% exercise 3 | a padding token attends to something
# The padding is a text like the others.
def packed_mask(segments):
    same = segments[:, :, None] == segments[:, None, :]
    return same & np.array(causal_mask(segments.shape[1]))


# %% exercise 3 | attends to itself
# Strictly before: no token attends to itself.
def packed_mask(segments):
    same = segments[:, :, None] == segments[:, None, :]
    before = np.tri(segments.shape[1], k=-1, dtype=bool)
    return same & before & (segments[:, None, :] != 0)


# %% exercise 3 | attends to another text
# A text may read the texts before it.
def packed_mask(segments):
    allowed = segments[:, :, None] >= segments[:, None, :]
    real = segments[:, None, :] != 0
    return allowed & real & np.array(causal_mask(segments.shape[1]))


# %% exercise 3 | whatever the text's number
# Two texts in a row and no more.
def packed_mask(segments):
    mask = np.zeros((*segments.shape, segments.shape[1]), bool)
    for text in (1, 2):
        own = segments == text
        mask |= own[:, :, None] & own[:, None, :]
    return mask & np.array(causal_mask(segments.shape[1]))


# %% exercise 3 | a later one
# Transposed: each token reads what comes after it.
def packed_mask(segments):
    same = segments[:, :, None] == segments[:, None, :]
    real = segments[:, None, :] != 0
    return same & real & np.array(causal_mask(segments.shape[1])).T


# %% exercise 3 | and padding between them
# A text ends where the padding begins, even if it goes on afterwards.
def packed_mask(segments):
    changes = segments[:, 1:] != segments[:, :-1]
    runs = np.cumsum(np.pad(changes, ((0, 0), (1, 0))), axis=1)
    same = runs[:, :, None] == runs[:, None, :]
    real = (segments != 0)[:, None, :]
    return same & real & np.array(causal_mask(segments.shape[1]))


# %% exercise 3 | segments have changed
# Padding is renumbered in the caller's own array.
def packed_mask(segments):
    segments[segments == 0] = -1
    same = segments[:, :, None] == segments[:, None, :]
    real = (segments != -1)[:, None, :]
    return same & real & np.array(causal_mask(segments.shape[1]))


# %% exercise 3 | right
# Three loops.
def packed_mask(segments):
    rows, size = len(segments), len(segments[0])
    mask = np.zeros((rows, size, size), bool)
    for b in range(rows):
        for t in range(size):
            for s in range(t + 1):
                mask[b, t, s] = segments[b][t] == segments[b][s] != 0
    return mask
