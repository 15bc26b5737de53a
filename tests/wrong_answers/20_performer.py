"""Wrong answers to the exercises of chapter 20; each check refuses them."""


# %% exercise 1 | are the inputs divided by K^¼
# The inputs are not divided by the fourth root of K.
def features_needed(q, k, error):
    return max(1, math.ceil(np.expm1(((q + k) ** 2).sum()) / error**2))


# %% exercise 1 | are the inputs divided by K^¼
# Each input is divided by the root of K, which scales twice.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q)
    return max(1, math.ceil(np.expm1(exponent) / error**2))


# %% exercise 1 | and the error squared
# The variance is taken for the standard deviation.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, math.ceil(np.expm1(exponent) / error))


# %% exercise 1 | is it q + k that counts
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


# %% exercise 1 | are the inputs divided by K^¼
# The mean of the squares is taken for the squared mean.
def features_needed(q, k, error):
    exponent = 2 * ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, math.ceil(np.exp(exponent) / error**2))


# %% exercise 1 | the smallest whole number is 14
# Rounded to the nearest whole number.
def features_needed(q, k, error):
    exponent = ((q + k) ** 2).sum() / len(q) ** 0.5
    return max(1, round(np.expm1(exponent) / error**2))


# %% exercise 1 | was changed in place
# The caller's vectors are divided.
def features_needed(q, k, error):
    q /= len(q) ** 0.25
    k /= len(k) ** 0.25
    return max(1, math.ceil(np.expm1(((q + k) ** 2).sum()) / error**2))


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


# %% exercise 2 | multiplied by exp(old highest
# Each key's own largest exponent is taken off, and nothing else.
def decode_step(state, log_q, log_k, v):
    weighted, total, _ = state
    phi_k = np.exp(log_k - log_k.max())
    weighted, total = weighted + phi_k[:, None] * v, total + phi_k
    phi_q = np.exp(log_q - log_q.max())
    output = phi_q @ weighted / (phi_q @ total)
    return (weighted, total, log_k.max()), output


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


# %% exercise 3 | should be a hyperbolic cosine
# The inputs are not divided by the fourth root of K.
def paired_log_features(x, directions):
    both = np.concatenate([directions, -directions])
    half = (x * x).sum(-1, keepdims=True) / 2
    return x @ both.T - half - np.log(len(both)) / 2


# %% exercise 3 | should be a hyperbolic cosine
# Other directions at right angles, not the opposite ones.
def paired_log_features(x, directions):
    both = np.concatenate([directions, np.roll(directions, 1, axis=1)])
    return np.array(log_features(x, both))


# %% exercise 3 | should be a hyperbolic cosine
# The features, and not their logarithms.
def paired_log_features(x, directions):
    both = np.concatenate([directions, -directions])
    return np.exp(log_features(x, both))


# %% exercise 3 | on the last axis
# The features are joined on axis 1.
def paired_log_features(x, directions):
    both = [np.array(log_features(x, w)) for w in (directions, -directions)]
    return np.concatenate(both, axis=1) - np.log(2) / 2
