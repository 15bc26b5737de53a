"""Answers with which the checks of chapter 02 are tried, right and wrong."""


# %% exercise 1 | is not its limit
# A very small and a very large width, which is not a limit.
def limits(query, key, value):
    inputs = query[None, :, None], key[None, :, None], value[None, :, None]
    return tuple(
        np.array(nadaraya_watson(*inputs, width))[0, :, 0]
        for width in (1e-6, 1e6)
    )


# %% exercise 1 | width -> infinity, the second result
# The two limits stand in the wrong order.
def limits(query, key, value):
    nearest = np.argmin(np.abs(query[:, None] - key), axis=1)
    return np.full(len(query), value.mean()), value[nearest]


# %% exercise 1 | on whichever side
# The next key to the right instead of the nearest.
def limits(query, key, value):
    order = np.argsort(key)
    place = np.searchsorted(key[order], query).clip(0, len(key) - 1)
    return value[order][place], np.full(len(query), value.mean())


# %% exercise 1 | the nearest key takes all the weight
# A straight line between the two neighbours.
def limits(query, key, value):
    order = np.argsort(key)
    between = np.interp(query, key[order], value[order])
    return between, np.full(len(query), value.mean())


# %% exercise 1 | all values count alike
# A kernel that is infinitely wide is thought to weigh nothing.
def limits(query, key, value):
    nearest = np.argmin(np.abs(query[:, None] - key), axis=1)
    return value[nearest], np.zeros(len(query))


# %% exercise 1 | one number per query
# The mean is returned once, not for each query.
def limits(query, key, value):
    nearest = np.argmin(np.abs(query[:, None] - key), axis=1)
    return value[nearest], value.mean()


# %% exercise 1 | right
# Loops and lists.
def limits(query, key, value):
    nearest = []
    for q in query:
        best = 0
        for i in range(len(key)):
            if abs(q - key[i]) < abs(q - key[best]):
                best = i
        nearest.append(value[best])
    return nearest, [sum(value) / len(value)] * len(query)


# %% exercise 2 | must sum to 1 again
# The own term is taken out, the rest is not rescaled.
def leave_one_out(weights, values):
    return weights @ values - np.diag(weights) * values


# %% exercise 2 | own value still moves its prediction
# Rescaled, but the own term is still in the sum.
def leave_one_out(weights, values):
    return weights @ values / (1 - np.diag(weights))


# %% exercise 2 | which need not be the largest
# The largest weight of a row is taken for the own one.
def leave_one_out(weights, values):
    own = weights.max(axis=1)
    return (weights @ values - own * values) / (1 - own)


# %% exercise 2 | own row of weights
# The plain mean of the others: the weights are not used.
def leave_one_out(weights, values):
    return (values.sum() - values) / (len(values) - 1)


# %% exercise 2 | the weights have changed
# The diagonal is emptied in the caller's own array.
def leave_one_out(weights, values):
    np.fill_diagonal(weights, 0)
    return weights @ values / weights.sum(axis=1)


# %% exercise 2 | right
# Point by point, over the others.
def leave_one_out(weights, values):
    predictions = []
    for i in range(len(values)):
        others = [j for j in range(len(values)) if j != i]
        total = sum(weights[i, j] * values[j] for j in others)
        predictions.append(total / sum(weights[i, j] for j in others))
    return predictions


# %% exercise 3 | a quarter of the slope
# The covariance, not divided by anything.
def slope(weights, key, value, width):
    return weights @ (key * value) - (weights @ key) * (weights @ value)


# %% exercise 3 | a quarter of the slope
# Divided by the width once.
def slope(weights, key, value, width):
    covariance = weights @ (key * value) - (weights @ key) * (weights @ value)
    return covariance / width


# %% exercise 3 | the product of the two means
# The mean of the products, without the product of the means.
def slope(weights, key, value, width):
    return weights @ (key * value) / width**2


# %% exercise 3 | count by its weight
# The ordinary covariance: all keys count alike.
def slope(weights, key, value, width):
    return np.cov(key, value, bias=True)[0, 1] / width**2


# %% exercise 3 | the right sign
# The derivative of the square by the key instead of the query.
def slope(weights, key, value, width):
    covariance = weights @ (key * value) - (weights @ key) * (weights @ value)
    return -covariance / width**2


# %% exercise 4 | not w squared times
# The weights multiply the residuals and are squared with them.
def local_linear(query, key, value, width):
    weights = np.exp(-0.5 * ((query - key) / width) ** 2)
    design = np.stack([np.ones_like(key), key - query], axis=1)
    return np.linalg.lstsq(weights[:, None] * design, weights * value)[0][0]


# %% exercise 4 | a 2 under its fraction
# The ½ of the kernel is missing.
def local_linear(query, key, value, width):
    weights = np.exp(-(((query - key) / width) ** 2))
    design = np.stack([np.ones_like(key), key - query], axis=1)
    normal = design.T @ (weights[:, None] * design)
    return np.linalg.solve(normal, design.T @ (weights * value))[0]


# %% exercise 4 | counts by the kernel's weight
# Ordinary regression: far keys count as much as near ones.
def local_linear(query, key, value, width):
    return np.polyval(np.polyfit(key, value, 1), query)


# %% exercise 4 | the value at 0
# The keys are not measured from the query: a is the value at 0.
def local_linear(query, key, value, width):
    weights = np.exp(-0.5 * ((query - key) / width) ** 2)
    design = np.stack([np.ones_like(key), key], axis=1)
    normal = design.T @ (weights[:, None] * design)
    return np.linalg.solve(normal, design.T @ (weights * value))[0]


# %% exercise 4 | not a mean
# The weighted mean of before.
def local_linear(query, key, value, width):
    weights = np.exp(-0.5 * ((query - key) / width) ** 2)
    return weights @ value / weights.sum()


# %% exercise 4 | the slope
# The slope c instead of the value a.
def local_linear(query, key, value, width):
    weights = np.exp(-0.5 * ((query - key) / width) ** 2)
    design = np.stack([np.ones_like(key), key - query], axis=1)
    normal = design.T @ (weights[:, None] * design)
    return np.linalg.solve(normal, design.T @ (weights * value))[1]


# %% exercise 4 | all keys take part
# The line through the two nearest keys.
def local_linear(query, key, value, width):
    one, two = np.argsort(np.abs(key - query))[:2]
    rise = (value[two] - value[one]) / (key[two] - key[one])
    return value[one] + rise * (query - key[one])


# %% exercise 4 | right
# Each row is multiplied by the root of its weight, for a plain line.
def local_linear(query, key, value, width):
    root = np.exp(-((query - key) ** 2) / (4 * width**2))
    rows = np.stack([root, root * (key - query)], axis=1)
    return np.linalg.lstsq(rows, root * value, rcond=None)[0][0]
