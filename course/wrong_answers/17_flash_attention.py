"""Wrong answers to the exercises of chapter 17; each check refuses them."""


# %% exercise 2 | the shares 1/4 and 3/4
# The outputs are averaged.
def merge(outputs, norms):
    highest = norms.max(axis=0)
    total = np.exp(norms - highest).sum(axis=0)
    return outputs.mean(axis=0), highest + np.log(total)


# %% exercise 2 | the whole denominator is 1 + 3
# The log-sum-exps are added, as if denominators were multiplied.
def merge(outputs, norms):
    powers = np.exp(norms - norms.max(axis=0))
    shares = powers / powers.sum(axis=0)
    return (shares[..., None] * outputs).sum(axis=0), norms.sum(axis=0)


# %% exercise 2 | overflows
# No maximum is taken off.
def merge(outputs, norms):
    powers = np.exp(norms)
    total = powers.sum(axis=0)
    shares = powers / np.where(total == 0, 1, total)
    return (shares[..., None] * outputs).sum(axis=0), np.log(total)


# %% exercise 2 | NaN
# The maximum is −∞ where no part has a key.
def merge(outputs, norms):
    highest = norms.max(axis=0)
    powers = np.exp(norms - highest)
    total = powers.sum(axis=0)
    norm = highest + np.log(total)
    return (powers[..., None] * outputs).sum(axis=0) / total[:, None], norm


# %% exercise 2 | one share for each part
# The first two parts only.
def merge(outputs, norms):
    outputs, norms = outputs[:2], norms[:2]
    highest = norms.max(axis=0)
    highest = np.where(np.isfinite(highest), highest, 0)
    powers = np.exp(norms - highest)
    total = powers.sum(axis=0)
    shares = powers / np.where(total == 0, 1, total)
    norm = highest + np.log(total)
    return (shares[..., None] * outputs).sum(axis=0), norm


# %% exercise 2 | a maximum and a total of its own
# One maximum and one total for all queries.
def merge(outputs, norms):
    highest = norms[np.isfinite(norms)].max(initial=-1e9)
    powers = np.exp(norms - highest)
    shares = powers / np.where(powers.sum() == 0, 1, powers.sum())
    norm = highest + np.log(powers.sum(axis=0))
    return (shares[..., None] * outputs).sum(axis=0), norm


# %% exercise 2 | not the first
# The first part's log-sum-exp is taken off, not the largest.
def merge(outputs, norms):
    finite = np.where(np.isfinite(norms[0]), norms[0], 0)
    powers = np.exp(norms - finite)
    total = powers.sum(axis=0)
    shares = powers / np.where(total == 0, 1, total)
    return (shares[..., None] * outputs).sum(axis=0), finite + np.log(total)


# %% exercise 2 | log-sum-exp −∞
# Without any key the log-sum-exp is 0.
def merge(outputs, norms):
    highest = norms.max(axis=0)
    highest = np.where(np.isfinite(highest), highest, 0)
    powers = np.exp(norms - highest)
    total = powers.sum(axis=0)
    total = np.where(total == 0, 1, total)
    shares = powers / total
    return (shares[..., None] * outputs).sum(axis=0), highest + np.log(total)


# %% exercise 2 | −1000 are as good as others
# The largest log-sum-exp is looked for from 0 on.
def merge(outputs, norms):
    highest = norms.max(axis=0, initial=0)
    powers = np.exp(norms - highest)
    total = powers.sum(axis=0)
    shares = powers / np.where(total == 0, 1, total)
    output = (shares[..., None] * outputs).sum(axis=0)
    return output, highest + np.log(total)


# %% exercise 2 | right
# One part and one query after the other.
def merge(outputs, norms):
    output, norm = np.array(outputs[0]), np.array(norms[0])
    for part in range(1, len(outputs)):
        for t in range(len(norm)):
            highest = max(norm[t], norms[part, t])
            if highest == -np.inf:
                continue
            old, new = np.exp([norm[t] - highest, norms[part, t] - highest])
            both = old * output[t] + new * outputs[part, t]
            output[t] = both / (old + new)
            norm[t] = highest + np.log(old + new)
    return output, norm


# %% exercise 2 | right
# In Keras, a list of the two.
def merge(outputs, norms):
    outputs, norms = map(ops.convert_to_tensor, (outputs, norms))
    norm = ops.logsumexp(norms, axis=0)
    shares = ops.exp(norms - ops.where(ops.isfinite(norm), norm, 0.0))
    return [ops.sum(shares[..., None] * outputs, axis=0), norm]


# %% exercise 3 | is an N × N array made
# The forbidden N × N array; the number is right.
def blocks_of_window(N, block, window):
    back = np.arange(N)[:, None] - np.arange(N)
    seen = (back >= 0) & (back < window)
    shape = (N // block, block, N // block, block)
    return seen.reshape(shape).any(axis=(1, 3)).sum()


# %% exercise 3 | no N × N array
# The N × N array is one of Keras; the number is right.
def blocks_of_window(N, block, window):
    back = ops.arange(N)[:, None] - ops.arange(N)[None]
    seen = np.array((back >= 0) & (back < window))
    shape = (N // block, block, N // block, block)
    return seen.reshape(shape).any(axis=(1, 3)).sum()


# %% exercise 3 | the first query of a block sees the block before
# The last query's window is taken for the block's.
def blocks_of_window(N, block, window):
    count = 0
    for i in range(N // block):
        first = max(0, (i + 1) * block - window)
        count += i - first // block + 1
    return count


# %% exercise 3 | 15 tiles
# Whole blocks are counted: the window is rounded up.
def blocks_of_window(N, block, window):
    wide = -(-window // block)
    return sum(min(i + 1, wide) for i in range(N // block))


# %% exercise 3 | own key only: the diagonal
# One key too many: w keys beside the own one.
def blocks_of_window(N, block, window):
    count = 0
    for i in range(N // block):
        first = max(0, i * block - window)
        count += i - first // block + 1
    return count


# %% exercise 3 | 1 + 2 + … + 8
# The first blocks, which have fewer keys before them, are not cut short.
def blocks_of_window(N, block, window):
    wide = 1 + -(-(window - 1) // block)
    return N // block * wide


# %% exercise 3 | a window may be wider than the text
# A formula that holds while the window is no wider than the text.
def blocks_of_window(N, block, window):
    before = -(-(window - 1) // block)  # blocks that a block sees before it
    return N // block * (before + 1) - before * (before + 1) // 2


# %% exercise 3 | right
# Every tile is looked at.
def blocks_of_window(N, block, window):
    count = 0
    for query in range(0, N, block):
        for key in range(0, query + 1, block):
            count += query - (key + block - 1) < window
    return count


# %% exercise 3 | right
# A formula for each block of queries, in NumPy.
def blocks_of_window(N, block, window):
    before = -(-(window - 1) // block)
    return (np.minimum(np.arange(N // block), before) + 1).sum()


# %% exercise 4 | is one made
# The forbidden table of all weights; the gradient is right.
def query_gradient(q, k, v, output, norm, d_output, block):
    scale = q.shape[1] ** 0.5
    weights = np.exp(q @ k.T / scale - norm[:, None])
    delta = (d_output * output).sum(axis=1, keepdims=True)
    return weights * (d_output @ v.T - delta) @ k / scale


# %% exercise 4 | leave the arguments unchanged
# The queries are divided in place.
def query_gradient(q, k, v, output, norm, d_output, block):
    scale = q.shape[1] ** 0.5
    q /= scale
    delta = (d_output * output).sum(axis=1, keepdims=True)
    d_q = np.zeros_like(q)
    for j in range(0, len(k), block):
        k_j, v_j = k[j : j + block], v[j : j + block]
        weights = np.exp(q @ k_j.T - norm[:, None])
        d_q += weights * (d_output @ v_j.T - delta) @ k_j / scale
    return d_q


# %% exercise 4 | without other attention
# TensorFlow makes the table and its gradient; the gradient is right.
def query_gradient(q, k, v, output, norm, d_output, block):
    q = tf.constant(q)
    with tf.GradientTape() as tape:
        tape.watch(q)
        scores = tf.matmul(q, k, transpose_b=True) / k.shape[1] ** 0.5
        found = tf.matmul(tf.nn.softmax(scores), v)
    return tape.gradient(found, q, output_gradients=d_output).numpy()


# %% exercise 4 | too large by √K
# The scale is forgotten in dq.
def query_gradient(q, k, v, output, norm, d_output, block):
    delta = (d_output * output).sum(axis=1, keepdims=True)
    d_q = np.zeros_like(q)
    for j in range(0, len(k), block):
        k_j, v_j = k[j : j + block], v[j : j + block]
        weights = np.exp(q @ k_j.T / q.shape[1] ** 0.5 - norm[:, None])
        d_q += weights * (d_output @ v_j.T - delta) @ k_j
    return d_q


# %% exercise 4 | with δ = do · o
# δ is forgotten.
def query_gradient(q, k, v, output, norm, d_output, block):
    scale = q.shape[1] ** 0.5
    d_q = np.zeros_like(q)
    for j in range(0, len(k), block):
        k_j, v_j = k[j : j + block], v[j : j + block]
        weights = np.exp(q @ k_j.T / scale - norm[:, None])
        d_q += weights * (d_output @ v_j.T) @ k_j / scale
    return d_q


# %% exercise 4 | is each weight
# A softmax of each block alone, without the log-sum-exp.
def query_gradient(q, k, v, output, norm, d_output, block):
    scale = q.shape[1] ** 0.5
    delta = (d_output * output).sum(axis=1, keepdims=True)
    d_q = np.zeros_like(q)
    for j in range(0, len(k), block):
        k_j, v_j = k[j : j + block], v[j : j + block]
        weights = q @ k_j.T / scale
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        d_q += weights * (d_output @ v_j.T - delta) @ k_j / scale
    return d_q


# %% exercise 4 | does the sum go over all blocks
# Each block overwrites what the blocks before have added.
def query_gradient(q, k, v, output, norm, d_output, block):
    scale = q.shape[1] ** 0.5
    delta = (d_output * output).sum(axis=1, keepdims=True)
    for j in range(0, len(k), block):
        k_j, v_j = k[j : j + block], v[j : j + block]
        weights = np.exp(q @ k_j.T / scale - norm[:, None])
        d_q = weights * (d_output @ v_j.T - delta) @ k_j / scale
    return d_q


# %% exercise 4 | not a number
# e^s and e^norm are computed, and divided: both overflow.
def query_gradient(q, k, v, output, norm, d_output, block):
    scale = q.shape[1] ** 0.5
    delta = (d_output * output).sum(axis=1, keepdims=True)
    d_q = np.zeros_like(q)
    for j in range(0, len(k), block):
        k_j, v_j = k[j : j + block], v[j : j + block]
        with np.errstate(all="ignore"):
            weights = np.exp(q @ k_j.T / scale) / np.exp(norm[:, None])
        d_q += weights * (d_output @ v_j.T - delta) @ k_j / scale
    return d_q


# %% exercise 4 | right
# One query and one key after the other.
def query_gradient(q, k, v, output, norm, d_output, block):
    q, k, v, output, norm, d_output = map(
        np.asarray, (q, k, v, output, norm, d_output)
    )
    scale = q.shape[1] ** 0.5
    d_q = np.zeros(q.shape)
    for j in range(0, len(k), block):
        for i in range(len(q)):
            for s in range(j, min(j + block, len(k))):
                weight = np.exp(q[i] @ k[s] / scale - norm[i])
                d_score = weight * (d_output[i] @ (v[s] - output[i]))
                d_q[i] += d_score * k[s] / scale
    return d_q
