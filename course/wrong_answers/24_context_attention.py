"""Answers with which the checks of chapter 24 are tried, right and wrong."""


# %% exercise 1 | does each token so far count the same?
# The mean of the old mean and the new token.
def step(state, x):
    context = x if state is None else (state + x) / 2
    return context, context


# %% exercise 1 | the state grows with each token
# All tokens are kept.
def step(state, x):
    tokens = [x] if state is None else [*state, x]
    return tokens, np.mean(tokens, axis=0)


# %% exercise 1 | outside the state
# The tokens are kept in a list that all sequences share.
def step(state, x, kept=[]):
    kept.append(x)
    return 0, np.mean(kept, axis=0)


# %% exercise 1 | going on from a state has changed it
# The sum is updated in place, also for whoever holds the old state.
def step(state, x):
    if state is None:
        state = [np.zeros_like(x), np.zeros(1)]
    state[0] += x
    state[1] += 1
    return state, state[0] / state[1]


# %% exercise 1 | write a + b, not a += b
# The sum grows in the old state's own array.
def step(state, x):
    total, count = (np.zeros_like(x), 0) if state is None else state
    total += x
    return (total, count + 1), total / (count + 1)


# %% exercise 1 | right
# A mean that moves, in float32 tensors and a dict.
def step(state, x):
    x = keras.ops.convert_to_tensor(x, "float32")
    state = state or {"mean": keras.ops.zeros_like(x), "count": 0}
    count = state["count"] + 1
    mean = state["mean"] + (x - state["mean"]) / count
    return {"mean": mean, "count": count}, mean


# %% exercise 2 | the juice gets as much as the tea
# Each head cares for a drink, but no weather silences it.
def two_heads(limit):
    return limit * np.array([[0, 0, 1, -1], [0, 0, -1, 1.0]])


# %% exercise 2 | the juice gets as much as the tea
# Both heads do the same.
def two_heads(limit):
    return limit * np.array([[-1, 1, 0, -1], [-1, 1, 0, -1.0]]) * [1, 1, 0, 0]


# %% exercise 2 | is beyond the limit
# Fixed scores, whatever the limit.
def two_heads(limit):
    return np.array([[0, 20, 10, 0], [20, 0, 0, 10.0]])


# %% exercise 2 | the tea gets as much as the juice
# One head is enough for frost; the second has no say.
def two_heads(limit):
    return limit * np.array([[-1, 1, 0, -1], [1, 1, -1, -1.0]])


# %% exercise 2 | two heads, four kinds of token
# The rows are token kinds, the columns heads.
def two_heads(limit):
    scores = np.array([[-1, 1, 0, -1], [1, -1, -1, 0.0]])
    return limit * scores.T


# %% exercise 2 | right
# Float32, in which the limit itself is rounded.
def two_heads(limit):
    signs = np.array([[-1, 1, 1, -1], [1, -1, -1, 1]], "float32")
    return signs * np.float32(limit)


# %% exercise 3 | is not in the sequence
# A fixed vote for what is there, whatever the prices.
def votes_for(prices):
    return 100 * np.eye(len(prices)), np.array([prices, -prices])


# %% exercise 3 | Which vote says what the flag prefers?
# Things say how dear they are, and not that they are there.
def votes_for(prices):
    return np.diag(prices), np.array([prices, -prices])


# %% exercise 3 | Which vote says what the flag prefers?
# The flags are exchanged.
def votes_for(prices):
    present = 3 * np.ptp(prices) * np.eye(len(prices))
    return present, np.array([-prices, prices])


# %% exercise 3 | flags vote (2, n)
# One flag is thought to be enough, with the other its absence.
def votes_for(prices):
    return 3 * np.ptp(prices) * np.eye(len(prices)), prices


# %% exercise 3 | outweigh what a flag prefers
# A number that is large beside the prices of the text.
def votes_for(prices):
    return 1e4 * np.eye(len(prices)), np.array([prices, -prices])


# %% exercise 3 | right
# Ranks in place of prices.
def votes_for(prices):
    ranks = np.argsort(np.argsort(prices)).tolist()
    n = len(prices)
    things = [[2 * n * (i == j) for j in range(n)] for i in range(n)]
    return things, [ranks, [-rank for rank in ranks]]
