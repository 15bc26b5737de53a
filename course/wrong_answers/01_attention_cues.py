"""Answers with which the checks of chapter 01 are tried, right and wrong."""


# %% exercise 1 | sum to 1 over the keys
# The softmax runs over the queries: the columns sum to 1.
def attend(query, key, value):
    weights = np.array(masked_softmax(key @ query.T)).T
    return weights @ value


# %% exercise 1 | sum to 1 over the keys
# All weights together sum to 1.
def attend(query, key, value):
    exponentials = np.exp(query @ key.T)
    return exponentials / exponentials.sum() @ value


# %% exercise 1 | is there a scale?
# The layer divides the scores by the root of D unless told otherwise.
def attend(query, key, value):
    layer = DotProductAttention()
    return np.array(layer(query[None], key=key[None], value=value[None])[0])


# %% exercise 1 | a softmax of the scores?
# The scores are divided by their sum, without the exponential.
def attend(query, key, value):
    scores = query @ key.T
    return scores / scores.sum(axis=1, keepdims=True) @ value


# %% exercise 1 | a column for each feature of the values
# The keys are averaged instead of the values.
def attend(query, key, value):
    return np.array(masked_softmax(query @ key.T)) @ key


# %% exercise 1 | right
# One number after the other, in arrays of its own.
def attend(query, key, value):
    query, key, value = map(np.asarray, (query, key, value))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        exponentials = [np.exp(np.dot(query[t], k)) for k in key]
        for s in range(len(key)):
            output[t] += exponentials[s] * value[s] / sum(exponentials)
    return output


# %% exercise 2 | With a single colour
# The bound of the chapter, where the colours always differ.
def best_without_query(num_colours):
    return 1 / 2


# %% exercise 2 | one half at least
# Always the same colour, whatever the picture.
def best_without_query(num_colours):
    return 1 / num_colours


# %% exercise 2 | the book has the cup's colour?
# The two are taken to agree with probability 1/C².
def best_without_query(num_colours):
    return (1 + 1 / num_colours**2) / 2


# %% exercise 2 | one half at least
# The chance that at least one of two blind guesses is right.
def best_without_query(num_colours):
    return 1 - (1 - 1 / num_colours) ** 2


# %% exercise 2 | the book has the cup's colour?
# Red cup and green book counts as one picture with green cup and red book.
def best_without_query(num_colours):
    return (1 + 2 / (num_colours + 1)) / 2


# %% exercise 3 | One-hot weights have variance 0
# The values are taken to be equally likely.
def draws_needed(weights, values, tolerance):
    return max(1, int(np.ceil(np.var(values) / tolerance**2)))


# %% exercise 3 | one look is still needed
# No draw at all where the variance is 0.
def draws_needed(weights, values, tolerance):
    variance = weights @ values**2 - (weights @ values) ** 2
    return int(np.ceil(variance / tolerance**2))


# %% exercise 3 | four times the draws
# The standard deviation over the tolerance, not squared.
def draws_needed(weights, values, tolerance):
    variance = weights @ values**2 - (weights @ values) ** 2
    return max(1, int(np.ceil(np.sqrt(variance) / tolerance)))


# %% exercise 3 | round up
# int() cuts off what is behind the point.
def draws_needed(weights, values, tolerance):
    variance = weights @ (values - weights @ values) ** 2
    return max(1, int(variance / tolerance**2))


# %% exercise 3 | no second one
# Plus one instead of rounding up: one too many where the division is even.
def draws_needed(weights, values, tolerance):
    variance = weights @ (values - weights @ values) ** 2
    return int(variance / tolerance**2) + 1


# %% exercise 3 | did not end within
# The loop draws once more and once more, and compares what never falls.
def draws_needed(weights, values, tolerance):
    variance = weights @ values**2 - (weights @ values) ** 2
    n = 1
    while variance > tolerance**2:
        n += 1
    return n


# %% exercise 3 | The arrays have changed
# The expectation is taken off in place.
def draws_needed(weights, values, tolerance):
    values -= weights @ values
    return max(1, int(np.ceil(weights @ values**2 / tolerance**2)))


# %% exercise 3 | right
# One draw more until the error is small enough.
def draws_needed(weights, values, tolerance):
    expected = sum(w * x for w, x in zip(weights, values))
    variance = sum(w * (x - expected) ** 2 for w, x in zip(weights, values))
    n = 1
    while np.sqrt(variance / n) > tolerance:
        n += 1
    return n


# %% exercise 4 | takes it from the others
# The softmax's sum is forgotten: only the own exponential moves.
def soft_gradient(scores, values):
    return np.array(masked_softmax(scores)) * values


# %% exercise 4 | takes it from the others
# Only the diagonal of the Jacobian.
def soft_gradient(scores, values):
    weights = np.array(masked_softmax(scores))
    return weights * (1 - weights) * values


# %% exercise 4 | the slopes sum to 0
# The plain mean of the values instead of the output.
def soft_gradient(scores, values):
    weights = np.array(masked_softmax(scores))
    return weights * (values - values.mean())


# %% exercise 4 | towards its value
# The sign is turned round.
def soft_gradient(scores, values):
    weights = np.array(masked_softmax(scores))
    return weights * (weights @ values - values)


# %% exercise 4 | One number for each score
# The Jacobian of the weights, not yet multiplied by the values.
def soft_gradient(scores, values):
    weights = np.array(masked_softmax(scores))
    return np.diag(weights) - np.outer(weights, weights)


# %% exercise 4 | right
# The matrix of all derivatives, by two loops.
def soft_gradient(scores, values):
    exponentials = [np.exp(float(s)) for s in scores]
    weights = [e / sum(exponentials) for e in exponentials]
    slopes = [0.0] * len(weights)
    for i in range(len(weights)):
        for n in range(len(weights)):
            slopes[i] += weights[n] * ((n == i) - weights[i]) * values[n]
    return slopes
