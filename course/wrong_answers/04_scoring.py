"""Answers with which the checks of chapter 04 are tried, right and wrong."""


# %% exercise 2 | is missing from q·k?
# The extra feature is 0: there is no penalty.
def augment(query, key):
    grow = [(0, 0), (0, 0), (0, 1)]
    return np.pad(query, grow), np.pad(key, grow)


# %% exercise 2 | penalty on long keys is too large
# The ½ is missing.
def augment(query, key):
    fine = -np.sum(key**2, axis=-1, keepdims=True)
    ones = np.ones((*query.shape[:-1], 1))
    return np.concatenate([query, ones], -1), np.concatenate([key, fine], -1)


# %% exercise 2 | a long key beats
# Half the length instead of half its square.
def augment(query, key):
    fine = -0.5 * np.linalg.norm(key, axis=-1, keepdims=True)
    ones = np.ones((*query.shape[:-1], 1))
    return np.concatenate([query, ones], -1), np.concatenate([key, fine], -1)


# %% exercise 2 | a long key beats
# A reward instead of a fine.
def augment(query, key):
    bonus = 0.5 * np.sum(key**2, axis=-1, keepdims=True)
    ones = np.ones((*query.shape[:-1], 1))
    return np.concatenate([query, ones], -1), np.concatenate([key, bonus], -1)


# %% exercise 2 | depends on the key
# The square of the query, which is the same for every key.
def augment(query, key):
    fine = -0.5 * np.sum(query**2, axis=-1, keepdims=True)
    ones = np.ones((*key.shape[:-1], 1))
    return np.concatenate([query, fine], -1), np.concatenate([key, ones], -1)


# %% exercise 2 | right
# Lists, another factor, and a constant that all keys share.
def augment(query, key):
    longer = [[[*(2 * q), -1.0] for q in rows] for rows in query]
    return longer, [[[*k, k @ k + 7] for k in rows] for rows in key]


# %% exercise 3 | a row for each feature of the query
# The key's features first.
def folded_kernel(W_k, W_q):
    return W_k.T @ W_q / np.sqrt(len(W_k))


# %% exercise 3 | q meets W_q
# The shape is put right by reshaping instead of transposing.
def folded_kernel(W_k, W_q):
    return (W_k.T @ W_q).reshape(W_q.shape[1], W_k.shape[1]) / np.sqrt(len(W_k))


# %% exercise 3 | is the scale the root of K?
# The scale is forgotten.
def folded_kernel(W_k, W_q):
    return W_q.T @ W_k


# %% exercise 3 | is the scale the root of K?
# The root of the query's features.
def folded_kernel(W_k, W_q):
    return W_q.T @ W_k / np.sqrt(W_q.shape[1])


# %% exercise 3 | is the scale the root of K?
# Each projection is divided by the root of K.
def folded_kernel(W_k, W_q):
    return (W_q / np.sqrt(len(W_q))).T @ (W_k / np.sqrt(len(W_k)))


# %% exercise 3 | right
# A float32 tensor.
def folded_kernel(W_k, W_q):
    W_k, W_q = (keras.ops.cast(W, "float32") for W in (W_k, W_q))
    return keras.ops.transpose(W_q) @ W_k / W_k.shape[0] ** 0.5


# %% exercise 4 | their factor cancels
# The counts multiply the scores.
def counted_weights(scores, counts):
    return masked_softmax(scores * counts)


# %% exercise 4 | n times e^s add to s?
# The counts are added to the scores, without the logarithm.
def counted_weights(scores, counts):
    return masked_softmax(scores + counts)


# %% exercise 4 | sum to 1
# The weights are multiplied by the counts and not divided by their new sum.
def counted_weights(scores, counts):
    return np.array(masked_softmax(scores)) * counts


# %% exercise 4 | the sum over the copies
# The counts are ignored.
def counted_weights(scores, counts):
    return masked_softmax(scores)


# %% exercise 4 | do not repeat the keys
# Every copy gets a score of its own after all.
def counted_weights(scores, counts):
    weights = np.array(masked_softmax(np.repeat(scores, counts, axis=-1)))
    return np.add.reduceat(weights, np.cumsum(counts) - counts, axis=-1)


# %% exercise 4 | one weight per distinct key
# The weights of the copies, not their totals.
def counted_weights(scores, counts):
    return masked_softmax(np.repeat(scores, counts, axis=-1))


# %% exercise 4 | the scores or counts have changed
# The logarithm is added to the caller's own scores.
def counted_weights(scores, counts):
    scores += np.log(counts)
    return masked_softmax(scores)


# %% exercise 4 | did not end within
# One copy after the other is added up.
def counted_weights(scores, counts):
    totals = np.zeros_like(scores)
    for s in range(len(counts)):
        for _ in range(counts[s]):
            totals[..., s] += np.exp(scores[..., s])
    return totals / totals.sum(axis=-1, keepdims=True)


# %% exercise 4 | right
# One number after the other.
def counted_weights(scores, counts):
    weights = np.zeros(np.shape(scores))
    for place in np.ndindex(*np.shape(scores)[:-1]):
        copies = [n * np.exp(s) for s, n in zip(scores[place], counts)]
        weights[place] = [c / sum(copies) for c in copies]
    return weights
