"""Wrong answers to the exercises of chapter 14; each check refuses them."""


# %% exercise 2 | is a row the one that hears
# Rows are read as sources.
def layers_needed(adjacency, source):
    reached = np.arange(len(adjacency)) == source
    for depth in range(len(adjacency)):
        if reached.all():
            return depth
        reached = reached | adjacency[reached].any(axis=0)
    return None


# %% exercise 2 | takes three layers, not 4
# Nodes are counted, not edges.
def layers_needed(adjacency, source):
    reached = np.arange(len(adjacency)) == source
    for depth in range(1, len(adjacency) + 1):
        if reached.all():
            return depth
        reached = reached | adjacency[:, reached].any(axis=1)
    return None


# %% exercise 2 | is each edge used in one direction
# Each edge is used in both directions.
def layers_needed(adjacency, source):
    both = adjacency | adjacency.T
    reached = np.arange(len(both)) == source
    for depth in range(len(both)):
        if reached.all():
            return depth
        reached = reached | both[:, reached].any(axis=1)
    return None


# %% exercise 2 | Does a node keep what it has heard
# Walks of exactly so many steps: a node forgets what it has heard.
def layers_needed(adjacency, source):
    reached = np.arange(len(adjacency)) == source
    for depth in range(len(adjacency)):
        if reached.all():
            return depth
        reached = adjacency[:, reached].any(axis=1)
    return None


# %% exercise 2 | the adjacency matrix was changed
# The self-loops are written into what was given.
def layers_needed(adjacency, source):
    np.fill_diagonal(adjacency, True)
    reached = np.arange(len(adjacency)) == source
    for depth in range(len(adjacency)):
        if reached.all():
            return depth
        reached = adjacency[:, reached].any(axis=1)
    return None


# %% exercise 2 | edges one way: node
# The club's five layers are taken for the most that a graph can need.
def layers_needed(adjacency, source):
    reached = np.arange(len(adjacency)) == source
    for depth in range(6):
        if reached.all():
            return depth
        reached = reached | adjacency[:, reached].any(axis=1)
    return None


# %% exercise 2 | alone needs no layer
# At least one layer, even for a graph of one node.
def layers_needed(adjacency, source):
    reached = np.arange(len(adjacency)) == source
    for depth in range(1, len(adjacency) + 1):
        reached = reached | adjacency[:, reached].any(axis=1)
        if reached.all():
            return depth
    return None


# %% exercise 2 | takes three layers, not 1
# What a node hears in a layer is passed on in the same layer.
def layers_needed(adjacency, source):
    reached = np.arange(len(adjacency)) == source
    for depth in range(len(adjacency)):
        if reached.all():
            return depth
        for node in range(len(adjacency)):
            reached[node] |= adjacency[node, reached].any()
    return None


# %% exercise 2 | right
# Sets and loops, until nobody new is reached.
def layers_needed(adjacency, source):
    known, depth = {source}, 0
    nodes = range(len(adjacency))
    while len(known) < len(adjacency):
        new = {t for t in nodes if any(adjacency[t, s] for s in known)} - known
        if not new:
            return None
        known, depth = known | new, depth + 1
    return depth


# %% exercise 2 | right
# Distances, in one product of matrices for each layer.
def layers_needed(adjacency, source):
    hears = np.asarray(adjacency, dtype=float) + np.eye(len(adjacency))
    features = np.eye(len(hears))[source]
    for depth in range(len(hears)):
        if (features > 0).all():
            return depth
        features = np.minimum(hears @ features, 1)
    return None


# %% exercise 3 | an array of N × N numbers was made
# The table of scores, with a mask.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    table = np.full((len(values), len(values)), -np.inf)
    table[targets, sources] = scores
    highest = np.maximum(table.max(axis=1, keepdims=True), -1e30)
    exponentials = np.exp(table - highest)
    total = exponentials.sum(axis=1, keepdims=True)
    return exponentials @ values / np.where(total == 0, 1, total)


# %% exercise 3 | a loop over nodes or edges
# The list is read once for each node.
def attend_edges(scores, edges, values):
    output = np.zeros(values.shape)
    for node in range(len(values)):
        own = edges[:, 1] == node
        if own.any():
            exponentials = np.exp(scores[own] - scores[own].max())
            weights = exponentials / exponentials.sum()
            output[node] = weights @ values[edges[own, 0]]
    return output


# %% exercise 3 | wrong outputs
# One softmax over all edges of the graph.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    exponentials = np.exp(scores - scores.max())
    weights = exponentials / exponentials.sum()
    output = np.zeros(values.shape)
    np.add.at(output, targets, weights[:, None] * values[sources])
    return output


# %% exercise 3 | take off each target's largest score
# The largest score is not taken off.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    exponentials = np.exp(scores)
    total = np.zeros(len(values))
    np.add.at(total, targets, exponentials)
    weights = exponentials / total[targets]
    output = np.zeros(values.shape)
    np.add.at(output, targets, weights[:, None] * values[sources])
    return output


# %% exercise 3 | node 3 hears nobody
# Sums first, division last: 0/0 for a node without neighbours.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    highest = np.full(len(values), -np.inf)
    np.maximum.at(highest, targets, scores)
    exponentials = np.exp(scores - highest[targets])
    total, output = np.zeros(len(values)), np.zeros(values.shape)
    np.add.at(total, targets, exponentials)
    np.add.at(output, targets, exponentials[:, None] * values[sources])
    return output / total[:, None]


# %% exercise 3 | clip no exponent
# Exponents are cut off where they would overflow.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    exponentials = np.exp(np.clip(scores, -700, 700))
    total = np.zeros(len(values))
    np.add.at(total, targets, exponentials)
    weights = exponentials / total[targets]
    output = np.zeros(values.shape)
    np.add.at(output, targets, weights[:, None] * values[sources])
    return output


# %% exercise 3 | use NumPy alone
# The package does it; the result is right.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    weights = np.array(edge_softmax(scores, targets, len(values)))
    output = np.zeros(values.shape)
    np.add.at(output, targets, weights[:, None] * values[sources])
    return output


# %% exercise 3 | take off each target's largest score
# The mean of a target's scores is taken off.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    number, mean, total = np.zeros((3, len(values)))
    np.add.at(number, targets, 1)
    np.add.at(mean, targets, scores)
    exponentials = np.exp(scores - (mean / np.maximum(number, 1))[targets])
    np.add.at(total, targets, exponentials)
    weights = exponentials / total[targets]
    output = np.zeros(values.shape)
    np.add.at(output, targets, weights[:, None] * values[sources])
    return output


# %% exercise 3 | right
# Sorted by targets, and summed in stretches.
def attend_edges(scores, edges, values):
    scores, edges, values = map(np.asarray, (scores, edges, values))
    order = np.argsort(edges[:, 1])
    sources, targets = edges[order].T
    nodes, begin, sizes = np.unique(
        targets, return_index=True, return_counts=True
    )
    highest = np.repeat(np.maximum.reduceat(scores[order], begin), sizes)
    exponentials = np.exp(scores[order] - highest)[:, None]
    total = np.add.reduceat(exponentials, begin)
    output = np.zeros(values.shape)
    output[nodes] = np.add.reduceat(exponentials * values[sources], begin)
    output[nodes] /= total
    return output


# %% exercise 3 | right
# In 32 bits, and in the place of the scores.
def attend_edges(scores, edges, values):
    sources, targets = edges.T
    highest = np.full(len(values), -np.inf)
    np.maximum.at(highest, targets, scores)
    scores -= highest[targets]
    exponentials = np.exp(scores, out=scores).astype("float32")
    total = np.bincount(targets, exponentials, len(values))
    output = np.zeros(values.shape, "float32")
    np.add.at(output, targets, exponentials[:, None] * values[sources])
    return output / np.where(total == 0, 1, total)[:, None]


# %% exercise 4 | all queries have the same weights
# No query decides anything.
def heads_by_hand(size):
    return np.zeros((size, size)), 5 * np.eye(size)


# %% exercise 4 | some key is preferred by no head
# All heads have one ranking.
def heads_by_hand(size):
    offer = np.tile(5.0 * np.arange(size), (size, 1))
    return np.where(np.eye(size), 0.0, -60.0), offer


# %% exercise 4 | an own key leads by
# The slopes are exchanged: sharp for all queries but the own.
def heads_by_hand(size):
    same = np.eye(size)
    return np.where(same, -10.0, 0.0), 5 * same


# %% exercise 4 | two arrays (size, size)
# One head.
def heads_by_hand(size):
    return np.zeros((1, size)), 5 * np.eye(size)[:1]


# %% exercise 4 | 13 keys: an own key leads by
# The lead is large enough for a few keys, and not for thirteen.
def heads_by_hand(size):
    same = np.eye(size)
    return np.where(same, 0.0, -3.0), 3 * same


# %% exercise 4 | right
# Lists of whole numbers, and head h prefers another key than h.
def heads_by_hand(size):
    other = [[(h + 1) % size == t for t in range(size)] for h in range(size)]
    ask = [[0 if own else -20 for own in row] for row in other]
    return ask, [[5 if own else 0 for own in row] for row in other]


# %% exercise 4 | right
# Asks so low that 32 bits could not hold the offer beside them.
def heads_by_hand(size):
    return np.where(np.eye(size), 0, -1e9), 5 * np.eye(size)
