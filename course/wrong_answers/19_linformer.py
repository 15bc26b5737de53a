"""Wrong answers to the exercises of chapter 19; each check refuses them."""


# %% exercise 2 | m equal keys have m equal
# The groups are counted once each, whatever their sizes.
def grouped_attention(query, key, value, group):
    same = group == np.arange(group.max() + 1)[:, None]
    mean = same / same.sum(axis=1, keepdims=True)
    scores = query @ (mean @ key).T / query.shape[1] ** 0.5
    return np.array(masked_softmax(scores)) @ (mean @ value)


# %% exercise 2 | mix keys and values by means
# Sums in place of means.
def grouped_attention(query, key, value, group):
    same = (group == np.arange(group.max() + 1)[:, None]).astype(float)
    scores = query @ (same @ key).T / query.shape[1] ** 0.5
    return np.array(masked_softmax(scores)) @ (same @ value)


# %% exercise 2 | divide the scores by the root of K
# The scores are not divided.
def grouped_attention(query, key, value, group):
    same = group == np.arange(group.max() + 1)[:, None]
    size = same.sum(axis=1)
    mean = same / size[:, None]
    scores = query @ (mean @ key).T + np.log(size)
    return np.array(masked_softmax(scores)) @ (mean @ value)


# %% exercise 2 | only groups may have a score
# Plain dense attention, which is forbidden.
def grouped_attention(query, key, value, group):
    scores = query @ key.T / query.shape[1] ** 0.5
    return np.array(masked_softmax(scores)) @ value


# %% exercise 2 | a table of T × S scores
# Each key gets a score, and the scores of a group are averaged.
def grouped_attention(query, key, value, group):
    same = group == np.arange(group.max() + 1)[:, None]
    size = same.sum(axis=1)
    mean = same / size[:, None]
    scores = query @ key.T @ mean.T / query.shape[1] ** 0.5 + np.log(size)
    return np.array(masked_softmax(scores)) @ (mean @ value)


# %% exercise 2 | right
# Arrays are converted first, and the query is divided in place.
def grouped_attention(query, key, value, group):
    query, key, value, group = map(np.asarray, (query, key, value, group))
    query /= query.shape[1] ** 0.5
    size = np.bincount(group)
    same = group == np.arange(len(size))[:, None]
    powers = size * np.exp(query @ (same @ key / size[:, None]).T)
    return powers @ (same @ value / size[:, None]) / powers.sum(1)[:, None]


# %% exercise 2 | right
# One query and one group after the other, with the group's last key.
def grouped_attention(query, key, value, group):
    output = []
    for q in query:
        total, powers = np.zeros(value.shape[1]), 0.0
        for r in range(max(group) + 1):
            power = np.exp(np.dot(q, key[group == r][-1]) / len(q) ** 0.5)
            total += power * value[group == r].sum(axis=0)
            powers += power * np.sum(group == r)
        output.append(total / powers)
    return output


# %% exercise 2 | right
# In Keras, in 32 bits, with the group's first key.
def grouped_attention(query, key, value, group):
    _, first, size = np.unique(group, return_index=True, return_counts=True)
    query, key, value = map(np.float32, (query, key[first], value))
    scores = keras.ops.matmul(query, key.T) / query.shape[1] ** 0.5
    weights = keras.ops.softmax(scores + np.float32(np.log(size)))
    same = group == np.arange(len(size))[:, None]
    mean = np.float32(same / size[:, None])
    return keras.ops.matmul(weights, keras.ops.matmul(mean, value))


# %% exercise 3 | the error is a root
# The share of the squares that is lost.
def least_error(P, R):
    squares = np.linalg.svd(P, compute_uv=False) ** 2
    return squares[R:].sum() / squares.sum()


# %% exercise 3 | divide by the size of P
# The error is not relative.
def least_error(P, R):
    return np.linalg.norm(np.linalg.svd(P, compute_uv=False)[R:])


# %% exercise 3 | what is kept
# The share that is kept.
def least_error(P, R):
    sizes = np.linalg.svd(P, compute_uv=False)
    return np.linalg.norm(sizes[:R]) / np.linalg.norm(sizes)


# %% exercise 3 | one piece too many
# One piece too many is kept.
def least_error(P, R):
    sizes = np.linalg.svd(P, compute_uv=False)
    return np.linalg.norm(sizes[R + 1 :]) / np.linalg.norm(sizes)


# %% exercise 3 | the R largest are kept
# 1 − R/N, which holds for the identity only.
def least_error(P, R):
    return (1 - R / len(P)) ** 0.5


# %% exercise 3 | squares add up, not sizes
# The sizes of what is lost are added, not their squares.
def least_error(P, R):
    sizes = np.linalg.svd(P, compute_uv=False)
    return sizes[R:].sum() / sizes.sum()


# %% exercise 3 | the largest piece that is lost is not all that is lost
# The error in the other norm, that of the largest piece.
def least_error(P, R):
    sizes = np.append(np.linalg.svd(P, compute_uv=False), 0)
    return sizes[R] / sizes[0]


# %% exercise 3 | nothing is lost
# Counted from behind, where no piece at all means all of them.
def least_error(P, R):
    sizes = np.linalg.svd(P, compute_uv=False)
    lost = len(sizes) - R
    return np.linalg.norm(sizes[-lost:]) / np.linalg.norm(sizes)


# %% exercise 3 | right
# By the eigenvalues of PᵀP.
def least_error(P, R):
    squares = np.sort(np.linalg.eigvalsh(P.T @ P))[::-1]
    return (abs(squares[R:].sum()) / squares.sum()) ** 0.5


# %% exercise 3 | right
# The best table is built, in 32 bits, in the place of P.
def least_error(P, R):
    size = np.linalg.norm(P)
    u, s, v = np.linalg.svd(P.astype("float32"), full_matrices=False)
    P -= (u[:, :R] * s[:R]) @ v[:R]
    return np.linalg.norm(P) / size


# %% exercise 4 | which sum to 1
# Sums in place of means.
def pooling(N, size):
    return np.kron(np.eye(N // size), np.ones((1, size)))


# %% exercise 4 | E is R × N
# N × R, as in a formula that does not type-check.
def pooling(N, size):
    return np.kron(np.eye(N // size), np.full((size, 1), 1 / size))


# %% exercise 4 | a stretch is made of neighbours
# Every R-th token is in one mixture.
def pooling(N, size):
    return np.tile(np.eye(N // size), size) / size


# %% exercise 4 | a stretch and no more
# A moving mean, whose stretches overlap.
def pooling(N, size):
    place = np.arange(N)
    near = abs(place - np.arange(0, N, size)[:, None]) < size
    return near / near.sum(axis=1, keepdims=True)


# %% exercise 4 | all with one share
# The first tokens of a stretch weigh more.
def pooling(N, size):
    share = np.arange(size, 0, -1.0)
    return np.kron(np.eye(N // size), share / share.sum())


# %% exercise 4 | right
# One share after the other, in lists.
def pooling(N, size):
    own = [[n // size == r for n in range(N)] for r in range(N // size)]
    return [[1 / size if x else 0 for x in row] for row in own]
