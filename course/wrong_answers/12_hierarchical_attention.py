"""Answers with which the checks of chapter 12 are tried, right and wrong."""


# %% exercise 2 | share out each
# The weights in the sentences alone.
def document_weights(of_words, of_sentences):
    return np.array(of_words)


# %% exercise 2 | the shape is (B, sentences, S)
# One row for the whole document.
def document_weights(of_words, of_sentences):
    product = of_words * of_sentences[..., None]
    return product.reshape(len(product), -1)


# %% exercise 2 | a padded sentence has weight
# A second softmax over all words.
def document_weights(of_words, of_sentences):
    product = np.exp(of_words * of_sentences[..., None])
    return product / product.sum((1, 2), keepdims=True)


# %% exercise 2 | average to another document vector
# The words' weights are shared out again, and the sentences' are forgotten.
def document_weights(of_words, of_sentences):
    return of_words / of_words.sum((1, 2), keepdims=True)


# %% exercise 2 | of_words itself has changed
# The sentences' weights are multiplied into the caller's own array.
def document_weights(of_words, of_sentences):
    of_words *= of_sentences[..., None]
    return of_words


# %% exercise 2 | right
# Loops, into lists.
def document_weights(of_words, of_sentences):
    return [
        [[float(w) * share for w in row] for row, share in zip(rows, shares)]
        for rows, shares in zip(of_words, of_sentences)
    ]


# %% exercise 3 | a step goes from row to column
# Rows and columns of the transitions are exchanged.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        onward = np.logaddexp.reduce(message[:, None] + transitions.T, axis=0)
        message = onward + scores
    return np.logaddexp.reduce(message)


# %% exercise 3 | each place pays its score
# The scores of the later places are not paid.
def log_partition(unary, transitions):
    message = unary[0]
    for _ in unary[1:]:
        message = np.logaddexp.reduce(message[:, None] + transitions, axis=0)
    return np.logaddexp.reduce(message)


# %% exercise 3 | the best assignment alone
# The best assignment (Viterbi), not the sum of all.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        message = (message[:, None] + transitions).max(axis=0) + scores
    return message.max()


# %% exercise 3 | 1000 more at each place
# Sums of exponentials, and one logarithm at the end.
def log_partition(unary, transitions):
    f = np.exp(unary[0])
    for scores in unary[1:]:
        f = np.exp(scores) * (f @ np.exp(transitions))
    return np.log(f.sum())


# %% exercise 3 | all assignments are listed
# The sum over all assignments.
def log_partition(unary, transitions):
    S, states = unary.shape
    z = np.array(list(itertools.product(range(states), repeat=S)))
    paid = unary[np.arange(S), z].sum(-1)
    paid = paid + transitions[z[:, :-1], z[:, 1:]].sum(-1)
    return np.logaddexp.reduce(paid)


# %% exercise 3 | all 3 ** 9 assignments are visited
# The same sum, with indices in place of a product.
def log_partition(unary, transitions):
    S, states = unary.shape
    z = np.indices((states,) * S).reshape(S, -1).T
    paid = unary[np.arange(S), z].sum(-1)
    paid = paid + transitions[z[:, :-1], z[:, 1:]].sum(-1)
    return np.logaddexp.reduce(paid)


# %% exercise 3 | log Z is one number
# The last message, not summed over its states.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        onward = np.logaddexp.reduce(message[:, None] + transitions, axis=0)
        message = onward + scores
    return message


# %% exercise 3 | this is Z
# The logarithm is forgotten.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        onward = np.logaddexp.reduce(message[:, None] + transitions, axis=0)
        message = onward + scores
    return np.exp(np.logaddexp.reduce(message))


# %% exercise 3 | place 0 pays its score
# The recursion begins with nothing paid.
def log_partition(unary, transitions):
    message = np.zeros_like(unary[0])
    for scores in unary[1:]:
        onward = np.logaddexp.reduce(message[:, None] + transitions, axis=0)
        message = onward + scores
    return np.logaddexp.reduce(message)


# %% exercise 3 | a step pays its transition
# The places are taken to be independent.
def log_partition(unary, transitions):
    return np.logaddexp.reduce(unary, axis=1).sum()


# %% exercise 3 | and then the score of the state that is reached
# The sum runs over the states that are reached.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        onward = np.logaddexp.reduce(message[:, None] + transitions, axis=1)
        message = onward + scores
    return np.logaddexp.reduce(message)


# %% exercise 3 | one lone score of 3000
# One maximum is taken out for all places.
def log_partition(unary, transitions):
    top = unary.max()
    f = np.exp(unary[0] - top)
    for scores in unary[1:]:
        f = np.exp(scores - top) * (f @ np.exp(transitions))
    return np.log(f.sum()) + len(unary) * top


# %% exercise 3 | 1000 less at each place
# A running maximum that starts at 0.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        paid = message[:, None] + transitions
        top = np.maximum(0, paid.max(axis=0))
        message = top + np.log(np.exp(paid - top).sum(axis=0)) + scores
    return np.logaddexp.reduce(message)


# %% exercise 3 | after a cost of 1000
# One maximum for all states of a place; the transitions are exponentiated.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        top = message.max()
        onward = np.log(np.exp(message - top) @ np.exp(transitions))
        message = top + onward + scores
    return np.logaddexp.reduce(message)


# %% exercise 3 | 600 places
# A maximum for each place, but the sums themselves grow from step to step.
def log_partition(unary, transitions):
    tops = unary.max(axis=1, keepdims=True)
    f = np.exp(unary[0] - tops[0])
    for scores in unary[1:] - tops[1:]:
        f = np.exp(scores) * (f @ np.exp(transitions))
    return np.log(f.sum()) + tops.sum()


# %% exercise 3 | unary itself has changed
# The messages are added to the caller's own scores.
def log_partition(unary, transitions):
    for j in range(1, len(unary)):
        paid = unary[j - 1][:, None] + transitions
        unary[j] += np.logaddexp.reduce(paid, axis=0)
    return np.logaddexp.reduce(unary[-1])


# %% exercise 3 | right
# Two loops, and each sum's own maximum taken out.
def log_partition(unary, transitions):
    unary, transitions = np.asarray(unary), np.asarray(transitions)
    message = list(unary[0])
    for scores in unary[1:]:
        onward = []
        for b in range(len(scores)):
            paid = [message[a] + transitions[a, b] for a in range(len(scores))]
            total = sum(np.exp(p - max(paid)) for p in paid)
            onward.append(max(paid) + np.log(total) + scores[b])
        message = onward
    return max(message) + np.log(sum(np.exp(m - max(message)) for m in message))


# %% exercise 3 | right
# Backwards, by a function that calls itself, in float32.
def log_partition(unary, transitions):
    unary = keras.ops.convert_to_tensor(unary, "float32")
    transitions = keras.ops.convert_to_tensor(transitions, "float32")

    def rest(j):
        if j == len(unary) - 1:
            return unary[j]
        paid = transitions + rest(j + 1)
        return unary[j] + keras.ops.logsumexp(paid, axis=1)

    return keras.ops.logsumexp(rest(0))


# %% exercise 4 | no place at all is allowed
# The chain may begin after the span and end before it.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])


# %% exercise 4 | two spans are allowed
# The chain may come back from after.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, 0, 0]])


# %% exercise 4 | is forbidden
# One place only, as in the table of the text.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, no], [no, no, 0], [no, no, 0]])


# %% exercise 4 | only scores inside count
# Every state pays the score.
def one_span(scores):
    no = -1e9
    unary = np.stack([scores] * 3, axis=-1)
    unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])


# %% exercise 4 | the shapes are (S, 3) and (3, 3)
# States as rows of the scores.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing, nothing])
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])


# %% exercise 4 | only -1e9 forbids it
# A thousand is taken for as good as minus infinity.
def one_span(scores):
    no, nothing = -1e3, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])


# %% exercise 4 | right
# Lists, and a number that all states share.
def one_span(scores):
    no = -1e9
    unary = [[5.0, score + 5, 5.0] for score in scores]
    unary[0][2] = unary[-1][0] = no
    return unary, [[1, 1, no], [no, 1, 1], [no, no, 1]]
