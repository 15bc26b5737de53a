"""Wrong answers to the exercises of chapter 20; each check refuses them."""


# %% exercise 1 | divide the inputs by K^¼
# The inputs are not divided by the fourth root of K.
def features_needed(q, k, error):
    return max(1, math.ceil(np.expm1(((q + k) ** 2).sum()) / error**2))


# %% exercise 1 | by K^¼, not by √K
# Each input is divided by the root of K, which scales twice.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q)
    return max(1, math.ceil(np.expm1(exponent) / error**2))


# %% exercise 1 | square the error
# The variance is taken for the standard deviation.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, math.ceil(np.expm1(exponent) / error))


# %% exercise 1 | q + k counts, not q − k
# The difference, which belongs to the trigonometric features.
def features_needed(q, k, error):
    exponent = ((q - k) ** 2).sum() / len(q) ** 0.5
    return max(1, math.ceil(np.expm1(exponent) / error**2))


# %% exercise 1 | one feature is enough, and needed
# No feature at all where the variance is 0.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q) ** 0.5
    return math.ceil(np.expm1(exponent) / error**2)


# %% exercise 1 | the smallest whole number is 14
# Rounded down.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, math.floor(np.expm1(exponent) / error**2))


# %% exercise 1 | F is a whole number
# Not rounded.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, np.expm1(exponent) / error**2)


# %% exercise 1 | less the squared mean
# The mean of the squares is taken for the squared mean.
def features_needed(q, k, error):
    exponent = 2 * ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, math.ceil(np.exp(exponent) / error**2))


# %% exercise 1 | was changed in place
# The caller's vectors are divided.
def features_needed(q, k, error):
    q /= len(q) ** 0.25
    k /= len(k) ** 0.25
    return max(1, math.ceil(np.expm1(((q + k) ** 2).sum()) / error**2))


# %% exercise 1 | take 1 off the exponential
# The squared mean is not taken off.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, math.ceil(np.exp(exponent) / error**2))


# %% exercise 1 | square the length
# The length of q + k, not its square.
def features_needed(q, k, error):
    exponent = np.linalg.norm(q + k) / len(q) ** 0.25
    return max(1, math.ceil(np.expm1(exponent) / error**2))


# %% exercise 1 | measured directions ask for
# Right for vectors of four numbers.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / 2
    return max(1, math.ceil(np.expm1(exponent) / error**2))


# %% exercise 1 | right
# One number after the other, and a search.
def features_needed(q, k, error):
    exponent = sum((a + b) ** 2 for a, b in zip(q, k)) / math.sqrt(len(q))
    features = 1
    while (math.exp(exponent) - 1) / features > error**2:
        features += 1
    return float(features)


# %% exercise 2 | the largest exponent of all keys so far
# The unit of the first key is kept, and nothing is ever rescaled.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = log_k.max() if highest == -np.inf else highest
    phi_k = np.exp(log_k - new)
    weighted, total = weighted + phi_k[:, None] * v, total + phi_k
    phi_q = np.exp(log_q - log_q.max())
    return (weighted, total, new), phi_q @ weighted / (phi_q @ total)


# %% exercise 2 | of a query its own
# The query is brought to the unit of the keys.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = max(highest, log_k.max())
    shrink, phi_k = np.exp(highest - new), np.exp(log_k - new)
    weighted = shrink * weighted + phi_k[:, None] * v
    total = shrink * total + phi_k
    phi_q = np.exp(log_q - new)
    return (weighted, total, new), phi_q @ weighted / (phi_q @ total)


# %% exercise 2 | return two things
# State and output in one tuple.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = max(highest, log_k.max())
    shrink, phi_k = np.exp(highest - new), np.exp(log_k - new)
    weighted = shrink * weighted + phi_k[:, None] * v
    total = shrink * total + phi_k
    phi_q = np.exp(log_q - log_q.max())
    return weighted, total, new, phi_q @ weighted / (phi_q @ total)


# %% exercise 2 | multiplied by exp(old highest
# The old sums stay in the old unit.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = max(highest, log_k.max())
    phi_k = np.exp(log_k - new)
    weighted, total = weighted + phi_k[:, None] * v, total + phi_k
    phi_q = np.exp(log_q - log_q.max())
    return (weighted, total, new), phi_q @ weighted / (phi_q @ total)


# %% exercise 2 | both of them
# Only the weighted sums are brought to the new unit.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = max(highest, log_k.max())
    shrink, phi_k = np.exp(highest - new), np.exp(log_k - new)
    weighted, total = shrink * weighted + phi_k[:, None] * v, total + phi_k
    phi_q = np.exp(log_q - log_q.max())
    return (weighted, total, new), phi_q @ weighted / (phi_q @ total)


# %% exercise 2 | take the largest exponent off first
# Exponentials as they come.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    with np.errstate(all="ignore"):
        phi_q, phi_k = np.exp(log_q), np.exp(log_k)
        weighted, total = weighted + phi_k[:, None] * v, total + phi_k
        output = phi_q @ weighted / (phi_q @ total)
    return (weighted, total, max(highest, log_k.max())), output


# %% exercise 2 | must not grow
# All keys and values are kept, as in a cache.
def decode_step(state, log_q, log_k, v):
    log_keys, values, _ = state
    if values.ndim == 1:
        log_keys, values = np.zeros((0, len(log_k))), np.zeros((0, len(v)))
    log_keys = np.concatenate([log_keys, log_k[None]])
    values = np.concatenate([values, v[None]])
    new = log_keys.max()
    weights = np.exp(log_keys - new) @ np.exp(log_q - log_q.max())
    return (log_keys, values, new), weights @ values / weights.sum()


# %% exercise 2 | does the token see itself
# The output is read before the token is added.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = max(highest, log_k.max())
    shrink, phi_k = np.exp(highest - new), np.exp(log_k - new)
    phi_q = np.exp(log_q - log_q.max())
    output = v if highest == -np.inf else phi_q @ weighted / (phi_q @ total)
    weighted = shrink * weighted + phi_k[:, None] * v
    return (weighted, shrink * total + phi_k, new), output


# %% exercise 2 | it is the first value
# The sum of the weights is left out.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = max(highest, log_k.max())
    shrink, phi_k = np.exp(highest - new), np.exp(log_k - new)
    weighted = shrink * weighted + phi_k[:, None] * v
    total = shrink * total + phi_k
    return (weighted, total, new), np.exp(log_q - log_q.max()) @ weighted


# %% exercise 2 | the old state has changed
# The sums are brought up to date in place.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = state
    new = max(highest, log_k.max())
    shrink, phi_k = np.exp(highest - new), np.exp(log_k - new)
    weighted *= shrink
    weighted += phi_k[:, None] * v
    total *= shrink
    total += phi_k
    phi_q = np.exp(log_q - log_q.max())
    return (weighted, total, new), phi_q @ weighted / (phi_q @ total)


# %% exercise 2 | right
# One number after the other, and the state in a list.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = (np.array(x) for x in state)
    new = max(highest, max(log_k))
    shrink = np.exp(highest - new)
    output, powers = np.zeros(len(v)), 0.0
    for f in range(len(log_k)):
        phi_k, phi_q = np.exp([log_k[f] - new, log_q[f] - max(log_q)])
        total[f] = shrink * total[f] + phi_k
        powers += phi_q * total[f]
        for i in range(len(v)):
            weighted[f, i] = shrink * weighted[f, i] + phi_k * v[i]
            output[i] += phi_q * weighted[f, i]
    return [weighted, total, new], (output / powers).tolist()


# %% exercise 2 | right
# In Keras, in 32 bits.
def decode_step(state, log_q, log_k, v):
    weighted, total, highest = map(np.float32, state)
    log_q, log_k, v = map(np.float32, (log_q, log_k, v))
    new = keras.ops.maximum(highest, keras.ops.max(log_k))
    shrink, phi_k = keras.ops.exp(highest - new), keras.ops.exp(log_k - new)
    weighted = shrink * weighted + phi_k[:, None] * v
    total = shrink * total + phi_k
    phi_q = keras.ops.softmax(log_q)
    output = keras.ops.matmul(phi_q, weighted) / keras.ops.sum(phi_q * total)
    return (weighted, total, new), output


# %% exercise 3 | twice too large
# Divided by the root of F/2, the number of directions.
def paired_log_features(x, directions):
    found = [np.array(log_features(x, w)) for w in (directions, -directions)]
    return np.concatenate(found, axis=-1)


# %% exercise 3 | should be a hyperbolic cosine
# The same direction twice.
def paired_log_features(x, directions):
    return np.array(log_features(x, np.concatenate([directions] * 2)))


# %% exercise 3 | is the sign of w turned
# The sign of the whole log feature is turned, half the square included.
def paired_log_features(x, directions):
    found = np.array(log_features(x, directions)) - np.log(2) / 2
    return np.concatenate([found, -found], axis=-1)


# %% exercise 3 | the shape is
# Only half of the features.
def paired_log_features(x, directions):
    return np.array(log_features(x, -directions))


# %% exercise 3 | on the last axis
# The features are joined on axis 1.
def paired_log_features(x, directions):
    both = [np.array(log_features(x, w)) for w in (directions, -directions)]
    return np.concatenate(both, axis=1) - np.log(2) / 2


# %% exercise 3 | never leave the logarithms
# The logarithm of an exponential, which overflows or vanishes first.
def paired_log_features(x, directions):
    logs = [log_features(x, w) for w in (directions, -directions)]
    with np.errstate(all="ignore"):
        return np.log(np.exp(np.concatenate(logs, axis=-1)) / 2**0.5)


# %% exercise 3 | right
# The formula itself, each pair side by side, in the place of the inputs.
def paired_log_features(x, directions):
    x /= x.shape[-1] ** 0.25
    products = x @ directions.T
    pairs = np.stack([products, -products], axis=-1)
    logs = pairs.reshape(*x.shape[:-1], -1) - (x**2).sum(-1, keepdims=True) / 2
    return logs - np.log(logs.shape[-1]) / 2


# %% exercise 3 | right
# Two maps, joined, in Keras.
def paired_log_features(x, directions):
    logs = [log_features(x, w) for w in (directions, -directions)]
    return keras.ops.concatenate(logs, axis=-1) - np.log(2) / 2


# %% exercise 4 | leans to one side
# The kept factor as it comes.
def fair_blocks(normal, other):
    kept, triangle = np.linalg.qr(normal)
    return kept * np.linalg.norm(other, axis=2, keepdims=True)


# %% exercise 4 | leans to one side
# Every column is made to begin with a positive entry.
def fair_blocks(normal, other):
    kept, triangle = np.linalg.qr(normal)
    signs = np.sign(kept[:, :1])
    return kept * signs * np.linalg.norm(other, axis=2, keepdims=True)


# %% exercise 4 | gets the length of row i
# All directions have length 1.
def fair_blocks(normal, other):
    kept, triangle = np.linalg.qr(normal)
    return kept * np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None]


# %% exercise 4 | gets the length of row i
# The lengths of the columns.
def fair_blocks(normal, other):
    kept, triangle = np.linalg.qr(normal)
    signs = np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None]
    return kept * signs * np.linalg.norm(other, axis=1)[:, :, None]


# %% exercise 4 | at right angles
# The normal vectors themselves, with new lengths.
def fair_blocks(normal, other):
    lengths = np.linalg.norm(other, axis=2, keepdims=True)
    return normal / np.linalg.norm(normal, axis=2, keepdims=True) * lengths


# %% exercise 4 | the shape is
# One block only.
def fair_blocks(normal, other):
    kept, triangle = np.linalg.qr(normal[0])
    lengths = np.linalg.norm(other[0], axis=1, keepdims=True)
    return kept * np.sign(np.diag(triangle)) * lengths


# %% exercise 4 | right
# A coin decides on the sign of each column.
def fair_blocks(normal, other):
    kept, _ = np.linalg.qr(normal)
    coins = np.random.default_rng(8).choice(
        [-1, 1], (len(kept), 1, len(kept[0]))
    )
    return kept * coins * np.linalg.norm(other, axis=2, keepdims=True)


# %% exercise 4 | right
# By Gram and Schmidt, a row after the other: no routine, no signs.
def fair_blocks(normal, other):
    rows = []
    for i in range(normal.shape[1]):
        row = normal[:, i].copy()
        for before in rows:
            row -= (row * before).sum(axis=1, keepdims=True) * before
        rows.append(row / np.linalg.norm(row, axis=1, keepdims=True))
    lengths = np.linalg.norm(other, axis=2, keepdims=True)
    return np.stack(rows, axis=1) * lengths
