"""Wrong answers to the exercises of chapter 12; each check refuses them."""


# %% exercise 2 | share out each
# The weights in the sentences alone.
def document_weights(of_words, of_sentences):
    return np.array(of_words)


# %% exercise 2 | share out each
# The two weights are averaged.
def document_weights(of_words, of_sentences):
    return (of_words + of_sentences[..., None]) / 2


# %% exercise 2 | the shape is (B, sentences, S)
# One row for the whole document.
def document_weights(of_words, of_sentences):
    product = of_words * of_sentences[..., None]
    return product.reshape(len(product), -1)


# %% exercise 2 | share out each
# Each sentence counts alike.
def document_weights(of_words, of_sentences):
    return of_words / of_words.shape[1]


# %% exercise 2 | a padded sentence has weight
# A second softmax over all words.
def document_weights(of_words, of_sentences):
    product = np.exp(of_words * of_sentences[..., None])
    return product / product.sum((1, 2), keepdims=True)


# %% exercise 2 | average to another document vector
# The words' weights are shared out again, and the sentences' are forgotten.
def document_weights(of_words, of_sentences):
    return of_words / of_words.sum((1, 2), keepdims=True)


# %% exercise 2 | average to another document vector
# A sentence's weight is shared out evenly among its words.
def document_weights(of_words, of_sentences):
    words = of_words.shape[2]
    return np.repeat(of_sentences[..., None], words, axis=2) / words


# %% exercise 2 | average to another document vector
# Sentences in the wrong order.
def document_weights(of_words, of_sentences):
    product = of_words * of_sentences[..., None]
    product[:, :-1] = product[:, :-1][:, ::-1]
    return product


# %% exercise 3 | each step pays the transition
# Rows and columns of the transitions are exchanged.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        onward = np.logaddexp.reduce(message[:, None] + transitions.T, axis=0)
        message = onward + scores
    return np.logaddexp.reduce(message)


# %% exercise 3 | each step pays the transition
# The scores of the later places are not paid.
def log_partition(unary, transitions):
    message = unary[0]
    for _ in unary[1:]:
        message = np.logaddexp.reduce(message[:, None] + transitions, axis=0)
    return np.logaddexp.reduce(message)


# %% exercise 3 | wrong for one place
# The best assignment (Viterbi), not the sum of all.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        message = (message[:, None] + transitions).max(axis=0) + scores
    return message.max()


# %% exercise 3 | stay in logarithms
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


# %% exercise 3 | all 3 ** 9 assignments are visited
# A recursion that walks through every assignment.
def log_partition(unary, transitions):
    def walk(j, state, paid):
        if j == len(unary):
            return paid
        return np.logaddexp.reduce(
            [
                walk(
                    j + 1, b, paid + unary[j, b] + (j and transitions[state, b])
                )
                for b in range(unary.shape[1])
            ]
        )

    return walk(0, 0, 0.0)


# %% exercise 3 | log Z is one number
# The last message, not summed over its states.
def log_partition(unary, transitions):
    message = unary[0]
    for scores in unary[1:]:
        onward = np.logaddexp.reduce(message[:, None] + transitions, axis=0)
        message = onward + scores
    return message


# %% exercise 4 | no place at all is allowed
# The chain may begin after the span and end before it.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])


# %% exercise 4 | no place at all is allowed
# Before may jump to after.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, 0], [no, 0, 0], [no, no, 0]])


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


# %% exercise 4 | is forbidden
# A span may not touch the ends of the sequence.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    if len(scores) > 2:
        unary[0, 1:] = unary[-1, :2] = no
    else:
        unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])


# %% exercise 4 | only scores inside count
# Every state pays the score.
def one_span(scores):
    no = -1e9
    unary = np.stack([scores] * 3, axis=-1)
    unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])


# %% exercise 4 | only scores inside count
# The transitions reward a long span.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing], axis=-1)
    unary[0, 2] = unary[-1, 0] = no
    return unary, np.array([[0, 0, no], [no, 1, 0], [no, no, 0]])


# %% exercise 4 | the shapes are (S, 3) and (3, 3)
# States as rows of the scores.
def one_span(scores):
    no, nothing = -1e9, np.zeros_like(scores)
    unary = np.stack([nothing, scores, nothing, nothing])
    return unary, np.array([[0, 0, no], [no, 0, 0], [no, no, 0]])
