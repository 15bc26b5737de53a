"""Wrong answers to the exercises of chapter 33; each check refuses them."""


# %% exercise 2 | not read as it is alone
# No mask: padding is read as well, and so is a set without tokens.
def read_sets(queries, X, sizes):
    scores = np.einsum("td,bsd->bts", queries, X) / np.sqrt(X.shape[-1])
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True) @ X


# %% exercise 2 | not read as it is alone
# Padding is set to zeros, whose scores are 0 and whose weights are not.
def read_sets(queries, X, sizes):
    exists = np.arange(X.shape[1]) < sizes[:, None]
    X = X * exists[:, :, None]
    scores = np.einsum("td,bsd->bts", queries, X) / np.sqrt(X.shape[-1])
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True) @ X


# %% exercise 2 | not read as it is alone
# The mask comes after the softmax, so the weights no longer sum to 1.
def read_sets(queries, X, sizes):
    exists = np.arange(X.shape[1]) < sizes[:, None]
    scores = np.einsum("td,bsd->bts", queries, X) / np.sqrt(X.shape[-1])
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return (weights * exists[:, None]) @ X


# %% exercise 2 | gives NaN
# A set without tokens is divided by 0.
def read_sets(queries, X, sizes):
    exists = np.arange(X.shape[1]) < sizes[:, None]
    scores = np.einsum("td,bsd->bts", queries, X) / np.sqrt(X.shape[-1])
    weights = np.exp(scores) * exists[:, None]
    with np.errstate(all="ignore"):
        return weights / weights.sum(axis=-1, keepdims=True) @ X


# %% exercise 2 | must give zeros
# A large negative number: a set without tokens reads its padding.
def read_sets(queries, X, sizes):
    exists = np.arange(X.shape[1]) < sizes[:, None]
    scores = np.einsum("td,bsd->bts", queries, X) / np.sqrt(X.shape[-1])
    scores = np.where(exists[:, None], scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ X


# %% exercise 2 | read wrongly
# The scores are not divided by √D.
def read_sets(queries, X, sizes):
    exists = np.arange(X.shape[1]) < sizes[:, None]
    scores = np.einsum("td,bsd->bts", queries, X)
    weights = np.exp(scores) * exists[:, None]
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ X


# %% exercise 2 | two queries read each
# Only the first query.
def read_sets(queries, X, sizes):
    return np.stack([x[0] for x in X])


# %% exercise 2 | right
# By loops over sets and queries.
def read_sets(queries, X, sizes):
    found = np.zeros((len(X), *queries.shape))
    for i, size in enumerate(sizes):
        for t, query in enumerate(queries):
            if size:
                weights = np.exp(X[i, :size] @ query / len(query) ** 0.5)
                found[i, t] = weights @ X[i, :size] / weights.sum()
    return found


# %% exercise 2 | right
# By Keras, in float32.
def read_sets(queries, X, sizes):
    exists = np.arange(X.shape[1]) < np.asarray(sizes)[:, None]
    X = np.where(exists[:, :, None], X, 0).astype("float32")
    queries = np.asarray(queries, "float32")
    scores = keras.ops.einsum("td,bsd->bts", queries, X) / X.shape[-1] ** 0.5
    scores = keras.ops.where(exists[:, None], scores, -1e9)
    weights = keras.ops.softmax(scores)
    weights = keras.ops.where(exists[:, None], weights, 0.0)
    return keras.ops.matmul(weights, X)


# %% exercise 2 | changes what is read
# Weights of 0 in front of values that are NaN.
def read_sets(queries, X, sizes):
    exists = (np.arange(X.shape[1]) < sizes[:, None])[:, None]
    scores = np.einsum("td,bsd->bts", queries, X) / np.sqrt(X.shape[-1])
    scores = np.where(exists, scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True)) * exists
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ X


# %% exercise 2 | changes what is read
# Hidden after the exponential, which is infinite for large padding.
def read_sets(queries, X, sizes):
    exists = (np.arange(X.shape[1]) < sizes[:, None])[:, None]
    scores = np.einsum("td,bsd->bts", queries, X) / np.sqrt(X.shape[-1])
    with np.errstate(all="ignore"):
        weights = np.exp(scores) * exists
        total = weights.sum(axis=-1, keepdims=True)
        return weights / np.where(total == 0, 1, total) @ X


# %% exercise 3 | give the new size itself
# A factor, rounded down: right for most sizes, and one too few for 39.
def resize_positions(table, old, new):
    size = int(new / old * old)
    grid = table[1:].reshape(old, old, -1)
    grid = np.array(keras.ops.image.resize(grid, (size, size)))
    return np.concatenate([table[:1], grid.reshape(size * size, -1)])


# %% exercise 3 | got into the grid
# [CLS] is taken for the first patch.
def resize_positions(table, old, new):
    grid = table[:-1].reshape(old, old, -1)
    grid = np.array(keras.ops.image.resize(grid, (new, new)))
    return np.concatenate([table[:1], grid.reshape(new * new, -1)])


# %% exercise 3 | must keep its row
# [CLS] is put after the patches.
def resize_positions(table, old, new):
    grid = table[1:].reshape(old, old, -1)
    grid = np.array(keras.ops.image.resize(grid, (new, new)))
    return np.concatenate([grid.reshape(new * new, -1), table[:1]])


# %% exercise 3 | now they differ
# The grid is read as a row, and resized along this row.
def resize_positions(table, old, new):
    places = np.linspace(0, old * old - 1, new * new)
    columns = [np.interp(places, np.arange(old * old), x) for x in table[1:].T]
    return np.concatenate([table[:1], np.stack(columns, axis=1)])


# %% exercise 3 | only a part of the old one
# Halved numbers, which end in the middle of the old grid.
def resize_positions(table, old, new):
    grid = table[1:].reshape(old, old, -1) / 2
    grid = np.array(keras.ops.image.resize(grid, (new, new)))
    return np.concatenate([table[:1], grid.reshape(new * new, -1)])


# %% exercise 3 | be spread over the old ones
# Where the grid grows, the last row and column are repeated.
def resize_positions(table, old, new):
    places = np.minimum(np.arange(new) * max(1, old // new), old - 1)
    grid = table[1:].reshape(old, old, -1)[places][:, places]
    return np.concatenate([table[:1], grid.reshape(new * new, -1)])


# %% exercise 3 | give the new size itself
# The row of [CLS] is left out.
def resize_positions(table, old, new):
    grid = table[1:].reshape(old, old, -1)
    grid = np.array(keras.ops.image.resize(grid, (new, new)))
    return grid.reshape(new * new, -1)


# %% exercise 3 | right
# The nearest position of the old grid, by a loop.
def resize_positions(table, old, new):
    rows = [table[0]]
    for r in range(new):
        for c in range(new):
            row, column = int((r + 0.5) * old / new), int((c + 0.5) * old / new)
            rows.append(table[1 + row * old + column])
    return np.array(rows)


# %% exercise 3 | right
# Bicubic, and without smoothing.
def resize_positions(table, old, new):
    grid = table[1:].reshape(1, old, old, -1)
    grid = keras.ops.image.resize(grid, (new, new), "bicubic")
    rows = keras.ops.reshape(grid, (new * new, -1))
    return keras.ops.concatenate([table[:1], rows])


# %% exercise 4 | patch (r, c) is token
# [CLS] is taken for patch 0.
def share_on_shape(weights, shape, first=1):
    row = weights[0, : shape.size]
    return row[shape.ravel()].sum() / row.sum()


# %% exercise 4 | share of all weight
# The weight on [CLS] is counted as well.
def share_on_shape(weights, shape, first=1):
    return weights[0, first:][shape.ravel()].sum()


# %% exercise 4 | patch (r, c) is token
# The patches are read column by column.
def share_on_shape(weights, shape, first=1):
    row = weights[0, first:]
    return row[shape.T.ravel()].sum() / row.sum()


# %% exercise 4 | patch (r, c) is token
# One token before the patches, whatever `first` says.
def share_on_shape(weights, shape, first=1):
    row = weights[0, 1 : 1 + shape.size]
    return row[shape.ravel()].sum() / row.sum()


# %% exercise 4 | patch (r, c) is token
# What each patch gives to [CLS]: the column in the place of the row.
def share_on_shape(weights, shape, first=1):
    column = weights[first:, 0]
    return column[shape.ravel()].sum() / column.sum()


# %% exercise 4 | is query 0
# The row of the last token before the patches, or of the first patch.
def share_on_shape(weights, shape, first=1):
    row = weights[1, first:]
    return row[shape.ravel()].sum() / row.sum()


# %% exercise 4 | return one number
# One number for each query.
def share_on_shape(weights, shape, first=1):
    rows = weights[:, first:]
    return rows[:, shape.ravel()].sum(1) / rows.sum(1)


# %% exercise 4 | right
# By a loop over patches.
def share_on_shape(weights, shape, first=1):
    on = total = 0.0
    rows, columns = shape.shape
    for r in range(rows):
        for c in range(columns):
            weight = weights[0][first + r * columns + c]
            total += weight
            on += weight * shape[r][c]
    return on / total


# %% exercise 5 | each row is a question
# Pictures ask for captions, and captions for nothing.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = scale * u @ v.T
    return (np.log(np.exp(scores).sum(1)) - np.diag(scores)).mean()


# %% exercise 5 | each row is a question
# Captions ask for pictures only.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = scale * u @ v.T
    return (np.log(np.exp(scores).sum(0)) - np.diag(scores)).mean()


# %% exercise 5 | divide each by its length
# Dot products in the place of cosines.
def loss_of_pairs(u, v, scale):
    scores = scale * u @ v.T
    rows = np.log(np.exp(scores).sum(1)).mean()
    columns = np.log(np.exp(scores).sum(0)).mean()
    return (rows + columns) / 2 - np.diag(scores).mean()


# %% exercise 5 | not their sum
# The sum of both.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = scale * u @ v.T
    rows = np.log(np.exp(scores).sum(1)).mean()
    columns = np.log(np.exp(scores).sum(0)).mean()
    return rows + columns - 2 * np.diag(scores).mean()


# %% exercise 5 | the scale multiplies
# The scale is taken for the temperature.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = u @ v.T / scale
    rows = np.log(np.exp(scores).sum(1)).mean()
    columns = np.log(np.exp(scores).sum(0)).mean()
    return (rows + columns) / 2 - np.diag(scores).mean()


# %% exercise 5 | not a sum
# A sum over the pairs.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = scale * u @ v.T
    rows = np.log(np.exp(scores).sum(1)).sum()
    columns = np.log(np.exp(scores).sum(0)).sum()
    return (rows + columns) / 2 - np.diag(scores).sum()


# %% exercise 5 | the loss of the check's pairs
# The softmax runs over all pairs at once.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = scale * u @ v.T
    return (np.log(np.exp(scores).sum()) - np.diag(scores)).mean()


# %% exercise 5 | take each row's and each column's largest score off
# One largest score for all: what is far below it is 0, and its log −∞.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = scale * u @ v.T
    powers = np.exp(scores - scores.max())
    rows, columns = np.log(powers.sum(1)), np.log(powers.sum(0))
    loss = (rows + columns) / 2 + scores.max() - np.diag(scores)
    return loss.mean()


# %% exercise 5 | take each row's and each column's largest score off
# As the formula stands: exp(100) is infinite in float32.
def loss_of_pairs(u, v, scale):
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    scores = scale * u @ v.T
    rows = np.log(np.exp(scores).sum(axis=1))
    columns = np.log(np.exp(scores).sum(axis=0))
    return ((rows + columns) / 2 - np.diag(scores)).mean()


# %% exercise 5 | right
# By a loop, in 64 bits.
def loss_of_pairs(u, v, scale):
    u, v = np.asarray(u, "float64"), np.asarray(v, "float64")
    total = 0.0
    for i in range(len(u)):
        lengths = np.linalg.norm(v, axis=1) * np.linalg.norm(u[i])
        row = scale * (v @ u[i]) / lengths
        lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v[i])
        column = scale * (u @ v[i]) / lengths
        total += np.logaddexp.reduce(row) - row[i]
        total += np.logaddexp.reduce(column) - column[i]
    return total / (2 * len(u))


# %% exercise 5 | right
# By Keras, in float32.
def loss_of_pairs(u, v, scale):
    u, v = (keras.utils.normalize(np.asarray(x, "float32")) for x in (u, v))
    return contrastive_loss(u, v, float(scale))
