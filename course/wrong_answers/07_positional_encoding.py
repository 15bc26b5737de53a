"""Answers with which the checks of chapter 07 are tried, right and wrong."""


# %% exercise 2 | down each column of A'
# The softmax runs along rows, as it does for tokens in rows.
def column_attention(x, W_q, W_k, W_v):
    q, k, v = W_q @ x, W_k @ x, W_v @ x
    return v @ np.array(masked_softmax(k.T @ q / np.sqrt(len(k))))


# %% exercise 2 | keys are W_k x, not W_q x
# Keys are made with the matrix of the queries (a slip of document 002).
def column_attention(x, W_q, W_k, W_v):
    q, k, v = W_q @ x, W_q @ x, W_v @ x
    weights = np.exp(k.T @ q / np.sqrt(len(k)))
    return v @ (weights / weights.sum(0))


# %% exercise 2 | in A, a column is a query
# Queries stand in the rows, but the softmax runs down the columns.
def column_attention(x, W_q, W_k, W_v):
    q, k, v = W_q @ x, W_k @ x, W_v @ x
    weights = np.exp(q.T @ k / np.sqrt(len(k)))
    return v @ (weights / weights.sum(0))


# %% exercise 2 | divide each score by √K
# The root of D, the features of a token, not of a key.
def column_attention(x, W_q, W_k, W_v):
    q, k, v = W_q @ x, W_k @ x, W_v @ x
    weights = np.exp(k.T @ q / np.sqrt(len(x)))
    return v @ (weights / weights.sum(0))


# %% exercise 2 | the output is (V, T)
# Tokens in rows after all.
def column_attention(x, W_q, W_k, W_v):
    q, k, v = W_q @ x, W_k @ x, W_v @ x
    return np.array(masked_softmax(q.T @ k / np.sqrt(len(k)))) @ v.T


# %% exercise 2 | right
# One query after the other, into a list.
def column_attention(x, W_q, W_k, W_v):
    keys, values = W_k @ x, W_v @ x
    columns = []
    for token in x.T:
        scores = [W_q @ token @ key / len(keys) ** 0.5 for key in keys.T]
        weights = np.exp(scores) / np.sum(np.exp(scores))
        columns.append(sum(w * v for w, v in zip(weights, values.T)))
    return np.transpose(columns).tolist()


# %% exercise 3 | reaches (k − 1) / 2 to each side
# The whole width is taken as the reach to one side.
def layers_needed(n, k):
    return -(-(n - 1) // (k - 1))


# %% exercise 3 | layers add up
# Each layer multiplies the reach (true of dilated convolutions).
def layers_needed(n, k):
    layers, reach = 0, 1
    while reach < n:
        layers, reach = layers + 1, reach * k
    return layers


# %% exercise 3 | the way is n − 1 steps long
# n steps from the first of n to the last.
def layers_needed(n, k):
    return -(-n // (k // 2))


# %% exercise 3 | round up
# Rounded down.
def layers_needed(n, k):
    return (n - 1) // (k // 2)


# %% exercise 3 | no layer comes on top
# Rounded up by adding one, even where the division is exact.
def layers_needed(n, k):
    return (n - 1) // (k // 2) + 1


# %% exercise 3 | layers are counted: an int
# Rounded up, but still a float.
def layers_needed(n, k):
    return float(np.ceil((n - 1) / (k // 2)))


# %% exercise 3 | one input is the first and the last
# One layer at least, also where no step is needed.
def layers_needed(n, k):
    return max(1, -(-(n - 1) // (k // 2)))


# %% exercise 3 | did not end within
# The reach is multiplied by what one layer adds, which is 1 for k = 3.
def layers_needed(n, k):
    layers, reach = 0, 1
    while reach < n:
        layers, reach = layers + 1, reach * (k // 2)
    return layers


# %% exercise 3 | right
# Layer upon layer, until the reach is long enough.
def layers_needed(n, k):
    layers, reach = 0, 0
    while reach < n - 1:
        layers, reach = layers + 1, reach + k // 2
    return layers


# %% exercise 4 | a rotation keeps a row's length
# The encoding is added, as before.
def rotate(x):
    return x + sinusoidal_encoding(*x.shape)


# %% exercise 4 | turn the other way
# The matrix of "A shift is a rotation", which turns (sin, cos), not (cos, sin).
def rotate(x):
    waves = sinusoidal_encoding(*x.shape)
    sin, cos = waves[:, ::2], waves[:, 1::2]
    a, b = x[:, ::2], x[:, 1::2]
    turned = [a * cos + b * sin, b * cos - a * sin]
    return np.stack(turned, axis=-1).reshape(x.shape)


# %% exercise 4 | a pair keeps its length and its place
# The pairs are made of the two halves of a row.
def rotate(x):
    waves = sinusoidal_encoding(*x.shape)
    sin, cos = waves[:, ::2], waves[:, 1::2]
    a, b = np.split(x, 2, axis=1)
    turned = [a * cos - b * sin, a * sin + b * cos]
    return np.concatenate(turned, axis=1)


# %% exercise 4 | each pair has a frequency of its own
# One angle for all pairs.
def rotate(x):
    t = np.arange(len(x))[:, None]
    a, b = x[:, ::2], x[:, 1::2]
    turned = [a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)]
    return np.stack(turned, axis=-1).reshape(x.shape)


# %% exercise 4 | row 0 is turned by angle 0
# Positions count from 1.
def rotate(x):
    waves = sinusoidal_encoding(len(x) + 1, x.shape[1])[1:]
    sin, cos = waves[:, ::2], waves[:, 1::2]
    a, b = x[:, ::2], x[:, 1::2]
    turned = [a * cos - b * sin, a * sin + b * cos]
    return np.stack(turned, axis=-1).reshape(x.shape)


# %% exercise 4 | all pairs turn
# Only the first pair is turned.
def rotate(x):
    sin, cos = sinusoidal_encoding(*x.shape)[:, :2].T
    out = x.copy()
    out[:, 0] = x[:, 0] * cos - x[:, 1] * sin
    out[:, 1] = x[:, 0] * sin + x[:, 1] * cos
    return out


# %% exercise 4 | x itself has changed
# The result is written into x.
def rotate(x):
    waves = sinusoidal_encoding(*x.shape)
    sin, cos = waves[:, ::2], waves[:, 1::2]
    a, b = x[:, ::2].copy(), x[:, 1::2].copy()
    x[:, ::2], x[:, 1::2] = a * cos - b * sin, a * sin + b * cos
    return x


# %% exercise 4 | right
# Two loops, into lists.
def rotate(x):
    rows = []
    for t, row in enumerate(x):
        rows.append([])
        for j in range(0, len(row), 2):
            angle = t * 10000 ** (-j / len(row))
            z = (row[j] + 1j * row[j + 1]) * np.exp(1j * angle)
            rows[-1] += [z.real, z.imag]
    return rows
