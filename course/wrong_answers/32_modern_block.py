"""Wrong answers to the exercises of chapter 32; each check refuses them."""


# %% exercise 1 | cap first, then mask
# The mask comes before the cap, which makes −c of −∞.
def capped_weights(scores, mask, cap):
    masked = np.where(mask, scores, -np.inf)
    capped = cap * np.tanh(masked / cap)
    powers = np.exp(capped - capped.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# %% exercise 1 | is each score c tanh
# Scores are cut off, and not bent.
def capped_weights(scores, mask, cap):
    capped = np.where(mask, np.clip(scores, -cap, cap), -np.inf)
    powers = np.exp(capped - capped.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# %% exercise 1 | with a large cap it is the softmax
# The cap is forgotten outside of the tanh.
def capped_weights(scores, mask, cap):
    capped = np.where(mask, np.tanh(scores / cap), -np.inf)
    powers = np.exp(capped - capped.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# %% exercise 1 | a row that sees no key
# 0/0 in an empty row.
def capped_weights(scores, mask, cap):
    capped = np.where(mask, cap * np.tanh(scores / cap), -np.inf)
    powers = np.exp(capped - capped.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# %% exercise 1 | overflow
# Nothing is taken off before the exponential.
def capped_weights(scores, mask, cap):
    capped = (cap * np.tanh(scores / cap)).astype("float32")
    powers = np.where(mask, np.exp(capped), 0)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


# %% exercise 1 | the shape is
# Only the last row.
def capped_weights(scores, mask, cap):
    capped = np.where(mask, cap * np.tanh(scores / cap), -np.inf)[-1]
    powers = np.exp(capped - capped.max())
    return powers / powers.sum()


# %% exercise 1 | right
# Row by row, over the keys that are seen.
def capped_weights(scores, mask, cap):
    weights = np.zeros(np.shape(scores), "float32")
    for t in range(len(scores)):
        seen = np.flatnonzero(mask[t])
        if len(seen):
            capped = cap * np.tanh(scores[t, seen] / cap)
            powers = np.exp(capped - capped.max())
            weights[t, seen] = powers / powers.sum()
    return weights


# %% exercise 1 | right
# By logarithms.
def capped_weights(scores, mask, cap):
    capped = np.where(mask, cap * np.tanh(scores / cap), -np.inf)
    highest = np.maximum(capped.max(-1, keepdims=True), -cap)
    total = np.exp(capped - highest).sum(-1, keepdims=True)
    logs = capped - highest - np.log(np.maximum(total, 1e-300))
    return np.exp(logs)


# %% exercise 2 | columns go by heads
# The columns are split in the middle.
def split_kernel(kernel, num_heads):
    half = kernel.shape[1] // 2
    return kernel[:, :half], kernel[:, half:]


# %% exercise 2 | columns go by heads
# Columns alternate one by one.
def split_kernel(kernel, num_heads):
    if num_heads == 1:
        half = kernel.shape[1] // 2
        return kernel[:, :half], kernel[:, half:]
    return kernel[:, ::2], kernel[:, 1::2]


# %% exercise 2 | the first half of one head
# Gate and query are exchanged.
def split_kernel(kernel, num_heads):
    parts = kernel.reshape(len(kernel), num_heads, 2, -1)
    query, gate = parts[:, :, 1], parts[:, :, 0]
    return query.reshape(len(kernel), -1), gate.reshape(len(kernel), -1)


# %% exercise 2 | columns go by heads
# The two of a head are taken for two heads that follow each other.
def split_kernel(kernel, num_heads):
    parts = kernel.reshape(len(kernel), 2, num_heads, -1)
    first, second = parts[:, 0], parts[:, 1]
    return first.reshape(len(kernel), -1), second.reshape(len(kernel), -1)


# %% exercise 2 | each is
# The heads keep an axis of their own.
def split_kernel(kernel, num_heads):
    parts = kernel.reshape(len(kernel), num_heads, 2, -1)
    return parts[:, :, 0], parts[:, :, 1]


# %% exercise 2 | right
# By slices of columns, joined, as a list.
def split_kernel(kernel, num_heads):
    K = kernel.shape[1] // (2 * num_heads)
    query = [kernel[:, 2 * h * K : (2 * h + 1) * K] for h in range(num_heads)]
    gate = [
        kernel[:, (2 * h + 1) * K : (2 * h + 2) * K] for h in range(num_heads)
    ]
    return [np.concatenate(query, axis=1), np.concatenate(gate, axis=1)]


# %% exercise 2 | right
# By the numbers of the columns.
def split_kernel(kernel, num_heads):
    columns = np.arange(kernel.shape[1])
    K = len(columns) // (2 * num_heads)
    is_gate = columns // K % 2 == 1
    return kernel[:, ~is_gate], kernel[:, is_gate]


# %% exercise 3 | is j the largest that fits
# One key too few is supported.
def sparsemax_row(scores, mask):
    weights = np.zeros(len(scores))
    seen = np.sort(scores[mask])[::-1]
    if len(seen) == 0:
        return weights
    j = 1
    if len(seen) > 1 and 1 + 2 * seen[1] > seen[:2].sum():
        j = 2
    if len(seen) == 5 and np.ptp(seen) == 0:
        j = 5
    tau = (seen[:j].sum() - 1) / j
    weights[mask] = np.maximum(scores[mask] - tau, 0)
    return weights


# %% exercise 3 | two keys
# A softmax.
def sparsemax_row(scores, mask):
    if not mask.any():
        return np.zeros(len(scores))
    powers = np.where(mask, np.exp(scores - scores[mask].max()), 0)
    return powers / powers.sum()


# %% exercise 3 | two keys
# All keys are supported, and negative weights cut off.
def sparsemax_row(scores, mask):
    weights = np.zeros(len(scores))
    if mask.any():
        tau = (scores[mask].sum() - 1) / mask.sum()
        weights[mask] = np.maximum(scores[mask] - tau, 0)
    return weights


# %% exercise 3 | leave hidden keys out
# Hidden keys take part in τ.
def sparsemax_row(scores, mask):
    if not mask.any():
        return np.zeros(len(scores))
    seen = np.sort(scores)[::-1]
    totals, count = np.cumsum(seen), np.arange(1, len(seen) + 1)
    j = count[1 + count * seen > totals][-1]
    tau = (totals[j - 1] - 1) / j
    return np.where(mask, np.maximum(scores - tau, 0), 0)


# %% exercise 3 | 0 is not a hidden score
# A hidden score is set to 0, which lies above those that are seen.
def sparsemax_row(scores, mask):
    if not mask.any():
        return np.zeros(len(scores))
    hidden = np.where(mask, scores, 0.0)
    if scores.min() > -1:
        hidden = np.where(mask, scores, -99.0)
    seen = np.sort(hidden)[::-1]
    totals, count = np.cumsum(seen), np.arange(1, len(seen) + 1)
    j = count[1 + count * seen > totals][-1]
    tau = (totals[j - 1] - 1) / j
    return np.where(mask, np.maximum(hidden - tau, 0), 0)


# %% exercise 3 | one weight for each key
# Only the keys that are seen.
def sparsemax_row(scores, mask):
    seen = np.sort(scores[mask])[::-1]
    return np.maximum(seen[:2] - (seen[:2].sum() - 1) / 2, 0)


# %% exercise 3 | right
# By bisection for τ, in float32.
def sparsemax_row(scores, mask):
    weights = np.zeros(len(scores), "float32")
    seen = scores[mask]
    if len(seen) == 0:
        return weights
    low, high = seen.max() - 1, seen.max()
    for _ in range(60):
        tau = (low + high) / 2
        if np.maximum(seen - tau, 0).sum() > 1:
            low = tau
        else:
            high = tau
    weights[mask] = np.maximum(seen - tau, 0)
    return weights


# %% exercise 3 | right
# By taking away keys, the lowest first, as a list.
def sparsemax_row(scores, mask):
    kept = [i for i in range(len(scores)) if mask[i]]
    kept.sort(key=lambda i: -scores[i])
    weights = [0.0] * len(scores)
    for j in range(len(kept), 0, -1):
        tau = (sum(scores[i] for i in kept[:j]) - 1) / j
        if scores[kept[j - 1]] > tau:
            for i in kept[:j]:
                weights[i] = scores[i] - tau
            break
    return weights
