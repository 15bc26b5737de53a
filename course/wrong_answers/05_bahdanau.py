"""Answers with which the checks of chapter 05 are tried, right and wrong."""


# %% exercise 1 | equal sets have error 0
# The share of right links instead of the share of errors.
def error_rate(sure, found):
    return 2 * len(sure & found) / (len(sure) + len(found))


# %% exercise 1 | (0, 1) and (1, 0) differ
# A link is compared without regard to its direction.
def error_rate(sure, found):
    a, s = ({tuple(sorted(link)) for link in x} for x in (found, sure))
    return 1 - 2 * len(a & s) / (len(a) + len(s))


# %% exercise 1 | a link not found is an error too
# Precision: only the links that were found are judged.
def error_rate(sure, found):
    return 1 - len(sure & found) / len(found)


# %% exercise 1 | a link too many is an error too
# Recall: a link too many costs nothing.
def error_rate(sure, found):
    return 1 - len(sure & found) / len(sure)


# %% exercise 1 | counts twice above and twice below
# The Jaccard distance: divided by the union.
def error_rate(sure, found):
    return 1 - len(sure & found) / len(sure | found)


# %% exercise 1 | divide by the sum of the sizes
# Precision and recall are averaged.
def error_rate(sure, found):
    right = len(sure & found)
    return 1 - (right / len(sure) + right / len(found)) / 2


# %% exercise 1 | count links, not words
# One source word is kept for each target word.
def error_rate(sure, found):
    a, s = ({j: i for i, j in sorted(links)} for links in (found, sure))
    right = sum(a.get(j) == i for j, i in s.items())
    return 1 - 2 * right / (len(a) + len(s))


# %% exercise 1 | the sets have changed
# The intersection overwrites the set of the caller.
def error_rate(sure, found):
    total = len(sure) + len(found)
    found &= sure
    return 1 - 2 * len(found) / total


# %% exercise 1 | right
# Two loops over the links.
def error_rate(sure, found):
    both = 0
    for link in sure:
        for other in found:
            both += link == other
    return (len(sure) + len(found) - 2 * both) / (len(sure) + len(found))


# %% exercise 2 | never choose id 0
# Padding may win.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    while len(ids) < max_length and token != end_id:
        logits, state = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0]))
        ids.append(token)
    return ids


# %% exercise 2 | never choose id 0, whatever its score
# The score of padding is set to 0, but the others may be negative.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    while len(ids) < max_length and token != end_id:
        logits, state = model.step(np.array([token]), state)
        scores = np.array(logits)[0]
        scores[0] = 0
        token = int(np.argmax(scores))
        ids.append(token)
    return ids


# %% exercise 2 | logits[0, 1:] begins at 1
# The place among the words without padding is taken for the id.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    while len(ids) < max_length and token != end_id:
        logits, state = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0, 1:]))
        ids.append(token)
    return ids


# %% exercise 2 | pass the new state to each step
# Every step begins from the state behind the source.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    while len(ids) < max_length and token != end_id:
        logits, _ = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0, 1:])) + 1
        ids.append(token)
    return ids


# %% exercise 2 | read the source once
# The source is read anew before each step.
def decode(model, source, start_id, end_id, max_length):
    token, ids = start_id, []
    while len(ids) < max_length and token != end_id:
        logits, _ = model.step(np.array([token]), model.start(source))
        token = int(np.argmax(np.array(logits)[0, 1:])) + 1
        ids.append(token)
    return ids


# %% exercise 2 | 6 was chosen first, but 7 was fed
# The start id is fed at every step.
def decode(model, source, start_id, end_id, max_length):
    state, ids = model.start(source), []
    while len(ids) < max_length and end_id not in ids:
        logits, state = model.step(np.array([start_id]), state)
        ids.append(int(np.argmax(np.array(logits)[0, 1:])) + 1)
    return ids


# %% exercise 2 | the list holds chosen ids, not the start id
# The list begins with the start id.
def decode(model, source, start_id, end_id, max_length):
    state, ids = model.start(source), [start_id]
    while len(ids) <= max_length and ids[-1] != end_id:
        logits, state = model.step(np.array(ids[-1:]), state)
        ids.append(int(np.argmax(np.array(logits)[0, 1:])) + 1)
    return ids


# %% exercise 2 | feed start_id first
# The ids of chapter 05's vocabulary, whatever the arguments say.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), 1, []
    while len(ids) < max_length and token != 2:
        logits, state = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0, 1:])) + 1
        ids.append(token)
    return ids


# %% exercise 2 | the end id belongs to the list
# The loop leaves before the end id is kept.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    for _ in range(max_length):
        logits, state = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0, 1:])) + 1
        if token == end_id:
            break
        ids.append(token)
    return ids


# %% exercise 2 | nothing follows the end id
# Nothing ends a sentence but its greatest length.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    for _ in range(max_length):
        logits, state = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0, 1:])) + 1
        ids.append(token)
    return ids


# %% exercise 2 | stop when there are max_length ids
# Only the end id ends a sentence; one without it never ends.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    while token != end_id:
        logits, state = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0, 1:])) + 1
        ids.append(token)
    return ids


# %% exercise 2 | without an end, write 7 ids
# The start word is counted as one of max_length.
def decode(model, source, start_id, end_id, max_length):
    state, ids = model.start(source), [start_id]
    while len(ids) < max_length and ids[-1] != end_id:
        logits, state = model.step(np.array(ids[-1:]), state)
        ids.append(int(np.argmax(np.array(logits)[0, 1:])) + 1)
    return ids[1:]


# %% exercise 2 | write the loop
# The package's decoder does the work.
def decode(model, source, start_id, end_id, max_length):
    ids = np.array(GreedyDecoder(model, start_id, end_id, max_length)(source))
    return [int(i) for i in ids[0] if i != 0]


# %% exercise 2 | did not end within
# After the end id the loop goes on, and does nothing.
def decode(model, source, start_id, end_id, max_length):
    state, token, ids = model.start(source), start_id, []
    while len(ids) < max_length:
        if token == end_id:
            continue
        logits, state = model.step(np.array([token]), state)
        token = int(np.argmax(np.array(logits)[0, 1:])) + 1
        ids.append(token)
    return ids


# %% exercise 2 | right
# Tokens stay tensors, and the ids come back in an array.
def decode(model, source, start_id, end_id, max_length):
    token = keras.ops.convert_to_tensor([start_id])
    state, ids = model.start(keras.ops.convert_to_tensor(source)), []
    for _ in range(max_length):
        logits, state = model.step(token, state)
        token = keras.ops.argmax(logits[:, 1:], axis=-1) + 1
        ids.append(token[0])
        if token[0] == end_id:
            break
    return np.array(ids)


# %% exercise 3 | all weights count
# The distance of the largest weight alone.
def mean_distance(weights):
    return np.abs(np.arange(len(weights)) - weights.argmax(1)).mean()


# %% exercise 3 | do not cancel
# The distance of the mean position.
def mean_distance(weights):
    positions = weights @ np.arange(weights.shape[1])
    return np.abs(np.arange(len(weights)) - positions).mean()


# %% exercise 3 | not its square
# The squared distance.
def mean_distance(weights):
    t, j = np.indices(weights.shape)
    return (weights * (t - j) ** 2).sum(1).mean()


# %% exercise 3 | take the mean over the T rows
# The mean over all cells, not over rows.
def mean_distance(weights):
    t, j = np.indices(weights.shape)
    return (weights * np.abs(t - j)).mean()


# %% exercise 3 | also where T is not S
# Only the square at the left is read.
def mean_distance(weights):
    n = min(weights.shape)
    t, j = np.indices((n, n))
    return (weights[:n, :n] * np.abs(t - j)).sum(1).mean()


# %% exercise 3 | the identity looks straight ahead
# Target words are counted from 1, source words from 0.
def mean_distance(weights):
    t, j = np.indices(weights.shape)
    return (weights * np.abs(t + 1 - j)).sum(1).mean()


# %% exercise 3 | the weights have changed
# The distances are multiplied into the caller's own weights.
def mean_distance(weights):
    t, j = np.indices(weights.shape)
    weights *= np.abs(t - j)
    return weights.sum(1).mean()


# %% exercise 3 | right
# Two loops.
def mean_distance(weights):
    total = 0.0
    for t, row in enumerate(weights):
        for j, weight in enumerate(row):
            total += float(weight) * abs(t - j)
    return total / len(weights)
