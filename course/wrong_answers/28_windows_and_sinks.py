"""Wrong answers to the exercises of chapter 28; each check refuses them."""


# %% exercise 1 | the token itself counts
# How far back, in place of how many.
def window_size(weights):
    _, _, t, s = np.nonzero(np.array(weights))
    return int(np.max(t - s))


# %% exercise 1 | a key that is padding lies in the window
# Counts the keys of a row; one of them is padding.
def window_size(weights):
    rows = np.array(weights)[0, 0, 8:11] > 0
    return int(rows.sum(-1).max())


# %% exercise 1 | a key that is padding lies in the window
# Back from the diagonal to the first key without weight.
def window_size(weights):
    row = np.array(weights)[0, 0, 9]
    for size in range(1, 10):
        if row[9 - size] == 0:
            return size


# %% exercise 1 | window holds 4 tokens, not 14
# Any row is taken to see from its first weight to the end of the text.
def window_size(weights):
    first = np.argmax(np.array(weights)[0, 0, 4] > 0)
    return int(np.shape(weights)[-1] - first)


# %% exercise 1 | a small weight is not a forbidden key
# Only large weights count.
def window_size(weights):
    return int((np.array(weights) > 0.6).sum(-1).max())


# %% exercise 1 | right
# The mask of each distance, in a loop.
def window_size(weights):
    weights, last = np.asarray(weights, "float64"), 0
    for back in range(weights.shape[-1]):
        diagonal = np.diagonal(weights, -back, axis1=2, axis2=3)
        if (diagonal > 0).any():
            last = back
    return last + 1


# %% exercise 2 | The ring is not sorted
# The last tokens in the order of the text.
def slots_after(end, size, pinned):
    first = list(range(min(end, pinned)))
    last = list(range(max(pinned, end - size), end))
    empty = [-1] * (pinned + size - len(first) - len(last))
    return first + last + empty


# %% exercise 2 | do the first tokens stay
# One ring of all slots: nothing is pinned.
def slots_after(end, size, pinned):
    slots = [-1] * (pinned + size)
    for p in range(end):
        slots[p % (pinned + size)] = p
    return slots


# %% exercise 2 | begin to count after them
# The ring counts from 0, not from the first token that is not pinned.
def slots_after(end, size, pinned):
    slots = [-1] * (pinned + size)
    for p in range(end):
        slots[p if p < pinned else pinned + p % size] = p
    return slots


# %% exercise 2 | does a token write over
# Once full, the ring takes nothing more.
def slots_after(end, size, pinned):
    slots = [-1] * (pinned + size)
    for p in range(min(end, pinned + size)):
        slots[p] = p
    return slots


# %% exercise 2 | does a token write over
# An empty slot is 0, as the first position is.
def slots_after(end, size, pinned):
    slots = [0] * (pinned + size)
    for p in range(end):
        slots[p if p < pinned else pinned + (p - pinned) % size] = p
    return slots


# %% exercise 2 | right
# By the formula, in NumPy.
def slots_after(end, size, pinned):
    c = np.arange(pinned + size)
    last = end - 1 - (end - 1 - c) % size
    p = np.where(c < pinned, c, last)
    return np.where((p < end) & (p >= np.minimum(c, pinned)), p, -1)


# %% exercise 3 | logistic function
# The sink is forgotten.
def merge_with_sink(outputs, lses, sigma):
    powers = np.exp(lses)
    total = powers.sum(axis=0)
    return np.sum(powers[:, :, None] * outputs, axis=0) / total[:, None]


# %% exercise 3 | once for each split
# e^σ once per split: about as large an error as the sink itself.
def merge_with_sink(outputs, lses, sigma):
    powers = np.exp(lses)
    total = (powers + np.exp(sigma)).sum(axis=0)
    return np.sum(powers[:, :, None] * outputs, axis=0) / total[:, None]


# %% exercise 3 | weighted by e^lse
# Splits count alike.
def merge_with_sink(outputs, lses, sigma):
    gates = 1 / (1 + np.exp(sigma - lses))
    return np.mean(gates[:, :, None] * outputs, axis=0)


# %% exercise 3 | logistic function
# The gate the wrong way round.
def merge_with_sink(outputs, lses, sigma):
    whole = np.logaddexp.reduce(lses, axis=0)
    plain = (np.exp(lses - whole)[..., None] * outputs).sum(0)
    return plain / (1 + np.exp(whole - sigma))[:, None]


# %% exercise 3 | take the largest
# Right but for its range.
def merge_with_sink(outputs, lses, sigma):
    powers = np.exp(lses)
    total = powers.sum(axis=0) + np.exp(sigma)
    return np.sum(powers[:, :, None] * outputs, axis=0) / total[:, None]


# %% exercise 3 | right
# Merge first, then the gate.
def merge_with_sink(outputs, lses, sigma):
    whole = np.logaddexp.reduce(lses, axis=0)
    shares = np.exp(lses - whole)
    plain = (shares[..., None] * outputs).sum(0)
    gate = np.exp(whole - np.logaddexp(whole, sigma))
    return plain * gate[:, None]
