"""Plausible wrong answers to the exercises of chapter 25.

Each cell begins with its exercise and what the check must say; the comment
names the slip.
"""


# %% exercise 2 | with a mask nothing moves
# The outputs of the padding are compared, too, with zeros.
def padding_effect(model, sentence, length):
    alone = np.array(model(sentence[None]))[0]
    more = length - len(sentence)
    together = np.array(model(np.pad(sentence, (0, more))[None]))[0]
    return np.abs(together - np.pad(alone, ((0, more), (0, 0)))).max()


# %% exercise 2 | pad at the end
# The padding stands in front.
def padding_effect(model, sentence, length):
    alone = np.array(model(sentence[None]))[0]
    padded = np.pad(sentence, (length - len(sentence), 0))
    together = np.array(model(padded[None]))[0]
    return np.abs(together[-len(sentence) :] - alone).max()


# %% exercise 2 | every token and feature counts
# The mean movement, not the largest.
def padding_effect(model, sentence, length):
    alone = np.array(model(sentence[None]))[0]
    padded = np.pad(sentence, (0, length - len(sentence)))
    together = np.array(model(padded[None]))[0]
    return np.abs(together[: len(sentence)] - alone).mean()


# %% exercise 2 | up or down
# The largest rise; what falls is missed.
def padding_effect(model, sentence, length):
    alone = np.array(model(sentence[None]))[0]
    padded = np.pad(sentence, (0, length - len(sentence)))
    together = np.array(model(padded[None]))[0]
    return (together[: len(sentence)] - alone).max()


# %% exercise 2 | padded to `length`
# `length` zeros are added.
def padding_effect(model, sentence, length):
    alone = np.array(model(sentence[None]))[0]
    together = np.array(model(np.pad(sentence, (0, length))[None]))[0]
    return np.abs(together[: len(sentence)] - alone).max()


# %% exercise 2 | pad with zeros
# The last word is repeated.
def padding_effect(model, sentence, length):
    alone = np.array(model(sentence[None]))[0]
    padded = np.pad(sentence, (0, length - len(sentence)), mode="edge")
    together = np.array(model(padded[None]))[0]
    return np.abs(together[: len(sentence)] - alone).max()


# %% exercise 2 | one number
# A movement for each token.
def padding_effect(model, sentence, length):
    alone = np.array(model(sentence[None]))[0]
    padded = np.pad(sentence, (0, length - len(sentence)))
    together = np.array(model(padded[None]))[0]
    return np.abs(together[: len(sentence)] - alone).max(-1)


# %% exercise 2 | right
# Lists of ids, and one number after the other.
def padding_effect(model, sentence, length):
    words = [int(x) for x in sentence]
    padded = words + [0] * (length - len(words))
    alone, together = (
        np.array(model(np.array([x])))[0] for x in (words, padded)
    )
    moves = [
        abs(float(together[t, d] - alone[t, d]))
        for t in range(len(words))
        for d in range(alone.shape[1])
    ]
    return max(moves)


# %% exercise 2 | right
# In Keras.
def padding_effect(model, sentence, length):
    ids = ops.convert_to_tensor(sentence, "int32")[None]
    padded = ops.pad(ids, [[0, 0], [0, length - len(sentence)]])
    return ops.max(ops.abs(model(padded)[:, : len(sentence)] - model(ids)))


# %% exercise 3 | the rows do not sum to 1
# The weights are noted as the layer keeps them.
def keys_first_adapter(layer, record):
    original = layer.compare

    def compare(x):
        weights = original(x)
        record(weights)
        return weights

    return [(layer, "compare", compare)]


# %% exercise 3 | must return what the method returned
# The layer gets the transposed weights, too.
def keys_first_adapter(layer, record):
    original = layer.compare

    def compare(x):
        weights = ops.swapaxes(original(x), 1, 2)
        record(weights)
        return weights

    return [(layer, "compare", compare)]


# %% exercise 3 | do not set it yourself
# The stand-in stays on the layer.
def keys_first_adapter(layer, record):
    original = layer.compare

    def compare(x):
        weights = original(x)
        record(ops.swapaxes(weights, 1, 2))
        return weights

    layer.compare = compare
    return [(layer, "compare", compare)]


# %% exercise 3 | own method run, once
# The method runs twice.
def keys_first_adapter(layer, record):
    original = layer.compare

    def compare(x):
        record(ops.swapaxes(original(x), 1, 2))
        return original(x)

    return [(layer, "compare", compare)]


# %% exercise 3 | hand the weights to `record`, once
# The weights are not noted.
def keys_first_adapter(layer, record):
    original = layer.compare

    def compare(x):
        return original(x)

    return [(layer, "compare", compare)]


# %% exercise 3 | weights times input must be the output
# The rows are made to sum to 1, but they are still the keys.
def keys_first_adapter(layer, record):
    original = layer.compare

    def compare(x):
        weights = original(x)
        record(weights / ops.sum(weights, axis=-1, keepdims=True))
        return weights

    return [(layer, "compare", compare)]


# %% exercise 3 | return a list of one
# The triple without a list.
def keys_first_adapter(layer, record):
    original = layer.compare

    def compare(x):
        weights = original(x)
        record(ops.swapaxes(weights, 1, 2))
        return weights

    return (layer, "compare", compare)


# %% exercise 3 | replaces `compare` of the layer
# The call is replaced, which returns outputs.
def keys_first_adapter(layer, record):
    original = layer.call

    def call(x):
        record(ops.swapaxes(layer.compare(x), 1, 2))
        return original(x)

    return [(layer, "call", call)]


# %% exercise 3 | the stand-in calls itself
# The method is looked up when the stand-in has taken its place.
def keys_first_adapter(layer, record):
    def compare(x):
        weights = layer.compare(x)
        record(ops.swapaxes(weights, 1, 2))
        return weights

    return [(layer, "compare", compare)]


# %% exercise 3 | right
# The method of the class, and NumPy.
def keys_first_adapter(layer, record):
    def stand_in(*inputs):
        columns = type(layer).compare(layer, *inputs)
        record(np.array(columns).transpose(0, 2, 1))
        return columns

    return [(layer, "compare", stand_in)]


# %% exercise 4 | they must differ
# The weights themselves.
def other_weights(weights, values):
    return weights.copy()


# %% exercise 4 | the output must stay
# The first key's weight is handed to the second key.
def other_weights(weights, values):
    return np.array([0.0, weights[0] + weights[1], *weights[2:]])


# %% exercise 4 | no weight may be negative
# The walk goes too far.
def other_weights(weights, values):
    conditions = np.vstack([values.T, np.ones(len(weights))])
    return weights + 2 * np.linalg.svd(conditions)[2][-1]


# %% exercise 4 | they must sum to 1
# The direction keeps the output only.
def other_weights(weights, values):
    direction = np.linalg.svd(values.T)[2][-1]
    direction = direction if (direction < 0).any() else -direction
    down = direction < 0
    step = (weights[down] / -direction[down]).min()
    return np.maximum(weights + step * direction, 0.0)


# %% exercise 4 | walk on
# The walk stops half-way.
def other_weights(weights, values):
    conditions = np.vstack([values.T, np.ones(len(weights))])
    direction = np.linalg.svd(conditions)[2][-1]
    down = direction < 0
    step = (weights[down] / -direction[down]).min()
    return weights + step / 2 * direction


# %% exercise 4 | work on a copy
# The right walk, in the array that was given.
def other_weights(weights, values):
    conditions = np.vstack([values.T, np.ones(len(weights))])
    direction = np.linalg.svd(conditions)[2][-1]
    down = direction < 0
    weights += (weights[down] / -direction[down]).min() * direction
    return np.maximum(weights, 0.0)


# %% exercise 4 | right
# A direction by least squares, in 32 bits, and one weight after the other.
def other_weights(weights, values):
    conditions = np.column_stack([values, np.ones(len(values))])
    direction = np.random.default_rng(0).normal(size=len(values))
    direction -= conditions @ np.linalg.lstsq(conditions, direction)[0]
    steps = [-w / d for w, d in zip(weights, direction) if d < 0]
    return [np.float32(w + min(steps) * d) for w, d in zip(weights, direction)]


# %% exercise 4 | right
# In Keras.
def other_weights(weights, values):
    values = ops.convert_to_tensor(values)
    ones = ops.ones((1, len(weights)), values.dtype)
    direction = ops.svd(ops.concatenate([ops.transpose(values), ones]))[2][-1]
    steps = ops.where(direction < 0, weights / -direction, np.inf)
    return ops.maximum(weights + ops.min(steps) * direction, 0)
