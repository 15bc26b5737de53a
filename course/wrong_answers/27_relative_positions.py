"""Wrong answers to the exercises of chapter 27; each check refuses them."""


# %% exercise 1 | e^z / (e^z + n − 1)
# The needle is counted among the others.
def needle_score(n, weight):
    return np.log(n) + np.log(weight / (1 - weight))


# %% exercise 1 | e^z / (e^z + n − 1)
# The number of other keys is forgotten.
def needle_score(n, weight):
    return np.log(weight / (1 - weight))


# %% exercise 1 | e^z / (e^z + n − 1)
# The logarithm of the share, and not of the odds.
def needle_score(n, weight):
    return np.log(n - 1) + np.log(weight)


# %% exercise 1 | e^z / (e^z + n − 1)
# The logarithm to base 10.
def needle_score(n, weight):
    return np.log10((n - 1) * weight / (1 - weight))


# %% exercise 1 | e^z / (e^z + n − 1)
# A sum in place of a product of the odds.
def needle_score(n, weight):
    return np.log(n - 1 + weight / (1 - weight))


# %% exercise 1 | right
# Found by halving.
def needle_score(n, weight):
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        if np.exp(middle) / (np.exp(middle) + n - 1) < weight:
            low = middle
        else:
            high = middle
    return middle


# %% exercise 2 | ositions from 257 on
# Only near the beginning of a text.
def by_distance_alone(turn, width):
    draw = np.random.default_rng(0)
    for _ in range(60):
        query, key = draw.normal(size=(2, width))
        t, s, step = draw.integers(0, 60, 3).tolist()
        before = turn(query, t) @ turn(key, s)
        after = turn(query, t + step) @ turn(key, s + step)
        if abs(after - before) > 1e-4:
            return False
    return True


# %% exercise 2 | ositions from 257 on
# One position twice: the distance is always 0.
def by_distance_alone(turn, width):
    draw = np.random.default_rng(0)
    for _ in range(60):
        query = draw.normal(size=width)
        t, step = draw.integers(0, 500, 2).tolist()
        before = turn(query, t) @ turn(query, t)
        after = turn(query, t + step) @ turn(query, t + step)
        if abs(after - before) > 1e-4:
            return False
    return True


# %% exercise 2 | alves with one table
# Only the query is moved on.
def by_distance_alone(turn, width):
    query, key = np.random.default_rng(0).normal(size=(2, width))
    return abs((turn(query, 9) - turn(query, 4)) @ turn(key, 1)) < 1e-4


# %% exercise 2 | angles are those of neighbours
# The length of a turned vector is asked for, of half of its features.
def by_distance_alone(turn, width):
    mixed = np.ones(width)
    mixed[1::2] = 2
    lengths = [np.linalg.norm(turn(mixed, t)) for t in (0, 9, 300)]
    return np.ptp(lengths) < 100


# %% exercise 2 | returned nothing
# Nothing comes out.
def by_distance_alone(turn, width):
    turn(np.ones(width), 3)


# %% exercise 2 | right
# A loop over unit vectors, and each pair of them.
def by_distance_alone(turn, width):
    unit = np.eye(width, dtype="float64")
    for t, s, step in ((3, 0, 5), (400, 157, 300), (10, 12, 601)):
        one = np.stack([turn(x, t) for x in unit])
        other = np.stack([turn(x, s) for x in unit])
        after = np.stack([turn(x, t + step) for x in unit])
        after_other = np.stack([turn(x, s + step) for x in unit])
        if not np.allclose(one @ other.T, after @ after_other.T, atol=1e-5):
            return False
    return True


# %% exercise 3 | the first 8 slopes
# One formula for any number of heads.
def slopes_of(num_heads):
    return [2 ** (-8 * h / num_heads) for h in range(1, num_heads + 1)]


# %% exercise 3 | the first 8 slopes
# Counted from 0, so the first head falls by 1 a word.
def slopes_of(num_heads):
    power = 2 ** int(np.log2(num_heads))
    own = [2 ** (-8 * h / power) for h in range(power)]
    finer = [2 ** (-4 * h / power) for h in range(2 * power)]
    return own + finer[::2][: num_heads - power]


# %% exercise 3 | come the 1st, 3rd, 5th
# Every other slope from the second on: those are there already.
def slopes_of(num_heads):
    power = 2 ** int(np.log2(num_heads))
    own = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    finer = [2 ** (-4 * h / power) for h in range(1, 2 * power + 1)]
    return own + finer[1::2][: num_heads - power]


# %% exercise 3 | the first 8 slopes
# The first 12 of 16 heads.
def slopes_of(num_heads):
    power = 2 ** int(np.ceil(np.log2(num_heads)))
    return [2 ** (-8 * h / power) for h in range(1, num_heads + 1)]


# %% exercise 3 | in this order
# The right ones, those of 16 heads from the last to the first.
def slopes_of(num_heads):
    power = 2 ** int(np.log2(num_heads))
    own = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    finer = [2 ** (-4 * h / power) for h in range(1, 2 * power + 1)]
    return own + finer[::2][: num_heads - power][::-1]


# %% exercise 3 | without the package's
# The package's.
def slopes_of(num_heads):
    return alibi_slopes(num_heads)


# %% exercise 3 | right
# A geometric row, as the authors write it.
def slopes_of(num_heads):
    def row(n):
        first = 2 ** (-8 / n)
        return np.array([first ** (h + 1) for h in range(n)])

    power = 2 ** int(np.floor(np.log2(num_heads)))
    rest = row(2 * power)[0::2][: num_heads - power]
    return np.concatenate([row(power), rest]).astype("float32")


# %% exercise 5 | turn it by that
# The step takes its token for the first.
def step(query, key, kept, frequencies):
    both = np.stack([query, key])[None, None]
    both = np.array(rotate(both, frequencies))[0, 0]
    keys = np.concatenate([kept, both[1:]])
    scores = keys @ both[0] / len(query) ** 0.5
    weights = np.exp(scores - scores.max())
    return weights / weights.sum(), keys


# %% exercise 5 | turn it by that
# The key is kept as it came.
def step(query, key, kept, frequencies):
    turned = rotate(query[None, None, None], frequencies, start=len(kept))
    keys = np.concatenate([kept, key[None]])
    scores = keys @ np.array(turned)[0, 0, 0] / len(query) ** 0.5
    weights = np.exp(scores - scores.max())
    return weights / weights.sum(), keys


# %% exercise 5 | is the query turned by it
# The query is not turned.
def step(query, key, kept, frequencies):
    turned = rotate(key[None, None, None], frequencies, start=len(kept))
    keys = np.concatenate([kept, np.array(turned)[0, 0]])
    scores = keys @ query / len(query) ** 0.5
    weights = np.exp(scores - scores.max())
    return weights / weights.sum(), keys


# %% exercise 5 | turned before
# All keys are turned again at each step.
def step(query, key, kept, frequencies):
    keys = np.concatenate([kept, key[None]])[None, :, None]
    keys = np.array(rotate(keys, frequencies))[0, :, 0]
    turned = rotate(query[None, None, None], frequencies, start=len(kept))
    scores = keys @ np.array(turned)[0, 0, 0] / len(query) ** 0.5
    weights = np.exp(scores - scores.max())
    return weights / weights.sum(), keys


# %% exercise 5 | a weight for each key
# The new token does not see itself.
def step(query, key, kept, frequencies):
    both = np.stack([query, key])[None, None]
    both = np.array(rotate(both, frequencies, start=len(kept)))[0, 0]
    scores = kept @ both[0] / len(query) ** 0.5
    weights = np.exp(scores)
    keys = np.concatenate([kept, both[1:]])
    return weights / max(weights.sum(), 1e-9), keys


# %% exercise 5 | divided by the root of K
# The scale is forgotten.
def step(query, key, kept, frequencies):
    both = np.stack([query, key])[None, None]
    both = np.array(rotate(both, frequencies, start=len(kept)))[0, 0]
    keys = np.concatenate([kept, both[1:]])
    weights = np.exp(keys @ both[0])
    return weights / weights.sum(), keys


# %% exercise 5 | turn it by that
# Counted from 1.
def step(query, key, kept, frequencies):
    both = np.stack([query, key])[None, None]
    both = np.array(rotate(both, frequencies, start=len(kept) + 1))[0, 0]
    keys = np.concatenate([kept, both[1:]])
    scores = keys @ both[0] / len(query) ** 0.5
    weights = np.exp(scores - scores.max())
    return weights / weights.sum(), keys


# %% exercise 5 | turn it by that
# Neighbours are turned, and the pairs are halves.
def step(query, key, kept, frequencies):
    both = np.stack([query, key])[None, None]
    options = {"start": len(kept), "interleaved": True}
    both = np.array(rotate(both, frequencies, **options))[0, 0]
    keys = np.concatenate([kept, both[1:]])
    scores = keys @ both[0] / len(query) ** 0.5
    weights = np.exp(scores - scores.max())
    return weights / weights.sum(), keys


# %% exercise 5 | right
# Pair by pair, in Python.
def step(query, key, kept, frequencies):
    t, half = len(kept), len(query) // 2
    turned = []
    for x in (query, key):
        y = np.array(x, "float64")
        for j in range(half):
            cos, sin = np.cos(t * frequencies[j]), np.sin(t * frequencies[j])
            y[j] = x[j] * cos - x[j + half] * sin
            y[j + half] = x[j + half] * cos + x[j] * sin
        turned.append(y)
    keys = [*kept, turned[1]]
    weights = [np.exp(k @ turned[0] / np.sqrt(2 * half)) for k in keys]
    return np.array(weights) / sum(weights), np.array(keys)
