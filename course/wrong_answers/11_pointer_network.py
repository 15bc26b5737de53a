"""Answers with which the checks of chapter 11 are tried, right and wrong."""


# %% exercise 2 | a chosen place has weight
# What was chosen is forgotten.
def point_once(s, h, W_q, W_k, v, chosen):
    e = np.tanh(s @ W_q + h @ W_k) @ v
    exponentials = np.exp(e - e.max())
    return exponentials / exponentials.sum()


# %% exercise 2 | the free weights must sum to 1
# The weights are struck out after the softmax.
def point_once(s, h, W_q, W_k, v, chosen):
    e = np.tanh(s @ W_q + h @ W_k) @ v
    exponentials = np.exp(e - e.max())
    weights = exponentials / exponentials.sum()
    weights[chosen] = 0
    return weights


# %% exercise 2 | the weights differ
# The state and the items exchange their matrices.
def point_once(s, h, W_q, W_k, v, chosen):
    e = np.tanh(s @ W_k + h @ W_q) @ v
    e[chosen] = -np.inf
    exponentials = np.exp(e - e.max())
    return exponentials / exponentials.sum()


# %% exercise 2 | subtract the largest free score
# Large scores overflow.
def point_once(s, h, W_q, W_k, v, chosen):
    e = np.tanh(s @ W_q + h @ W_k) @ v
    e[chosen] = -np.inf
    with np.errstate(all="ignore"):
        exponentials = np.exp(e)
        return exponentials / exponentials.sum()


# %% exercise 2 | one weight for each item
# The average of the items, as in chapter 05.
def point_once(s, h, W_q, W_k, v, chosen):
    e = np.tanh(s @ W_q + h @ W_k) @ v
    e[chosen] = -np.inf
    exponentials = np.exp(e - e.max())
    return exponentials / exponentials.sum() @ h


# %% exercise 2 | not a number
# The largest score is sought among the free ones and 0.
def point_once(s, h, W_q, W_k, v, chosen):
    e = np.tanh(s @ W_q + h @ W_k) @ v
    e[chosen] = -np.inf
    exponentials = np.exp(e - max(0, e.max()))
    return exponentials / exponentials.sum()


# %% exercise 2 | right
# One item after the other, into a list.
def point_once(s, h, W_q, W_k, v, chosen):
    free = [j for j in range(len(h)) if j not in chosen]
    e = {j: float(np.tanh(s @ W_q + h[j] @ W_k) @ v) for j in free}
    top = max(e.values())
    total = sum(np.exp(e[j] - top) for j in free)
    return [np.exp(e.get(j, -np.inf) - top) / total for j in range(len(h))]


# %% exercise 2 | right
# In float32, with the chapter's own functions.
def point_once(s, h, W_q, W_k, v, chosen):
    s, h, W_q, W_k, v = (x.astype("float32") for x in (s, h, W_q, W_k, v))
    free = ~np.isin(np.arange(len(h)), chosen)
    return masked_softmax(additive_scores(s[None], h, W_q, W_k, v), free)[0]


# %% exercise 3 | does the score depend on the state?
# The state is let in: in a large state tanh is flat.
def largest_first(D, which):
    W_k = np.zeros((D, 1))
    W_k[which] = 1
    return [np.ones((D, 1)), W_k, np.ones(1)]


# %% exercise 3 | from the smallest to the largest
# The score falls with the number.
def largest_first(D, which):
    W_k = np.zeros((D, 1))
    W_k[which] = 1
    return [np.zeros((D, 1)), W_k, -np.ones(1)]


# %% exercise 3 | with no other
# All features are read, the noise too.
def largest_first(D, which):
    return [np.zeros((D, 1)), np.ones((D, 1)), np.ones(1)]


# %% exercise 3 | is tanh nowhere flat
# So sharp that most numbers have the score 1 or −1.
def largest_first(D, which):
    W_k = np.zeros((D, 1))
    W_k[which] = 1000
    return [np.zeros((D, 1)), W_k, np.ones(1)]


# %% exercise 3 | does the score depend on the state
# The state's other features move the score.
def largest_first(D, which):
    W_k = np.zeros((D, 1))
    W_k[which] = 1
    return [1 - W_k, W_k, np.ones(1)]


# %% exercise 3 | shapes
# As many units as features.
def largest_first(D, which):
    W_k = np.zeros((D, D))
    W_k[which, which] = 1
    return [np.zeros((D, D)), W_k, np.ones(D)]


# %% exercise 3 | right for the state 0
# The state's last feature is taken off its first, which may cancel.
def largest_first(D, which):
    unit = np.eye(D)[:, :, None]
    return [unit[0] - unit[-1], unit[which], np.ones(1)]


# %% exercise 3 | right
# Whole numbers, in lists.
def largest_first(D, which):
    return [[0]] * D, [[-(i == which)] for i in range(D)], [-1]


# %% exercise 4 | another item is named
# `order` says which old place stands where, and not the opposite.
def moved_pointers(pointers, order):
    return order[pointers]


# %% exercise 4 | another item is named
# A pointer is taken to name an item, which stays what it is.
def moved_pointers(pointers, order):
    return pointers


# %% exercise 4 | another item is named
# The answers are permuted as the items are.
def moved_pointers(pointers, order):
    return np.resize(pointers[order % len(pointers)], len(pointers))


# %% exercise 4 | one pointer for each answer
# A mask of the new list in place of the places.
def moved_pointers(pointers, order):
    return np.isin(order, pointers)[None]


# %% exercise 4 | places are integers
# Places as floats.
def moved_pointers(pointers, order):
    place = np.zeros(len(order))
    place[order] = np.arange(len(order))
    return place[pointers]


# %% exercise 4 | right
# A search for each pointer.
def moved_pointers(pointers, order):
    return [list(order).index(pointer) for pointer in pointers]
