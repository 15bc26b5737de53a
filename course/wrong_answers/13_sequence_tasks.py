"""Wrong answers to the exercises of chapter 13; each check refuses them."""


# %% exercise 1 | a key of its own
# The commonest tag of all words together.
def best_accuracy(keys, tags):
    return max(Counter(tags).values()) / len(tags)


# %% exercise 1 | two of three a
# The mean of the keys' shares: a key that occurs once counts as much.
def best_accuracy(keys, tags):
    shares = []
    for key in set(keys):
        own = [tag for k, tag in zip(keys, tags, strict=True) if k == key]
        shares.append(max(Counter(own).values()) / len(own))
    return sum(shares) / len(shares)


# %% exercise 1 | divide by the number of words
# A number of words, not a share.
def best_accuracy(keys, tags):
    seen = {}
    for key, tag in zip(keys, tags, strict=True):
        seen.setdefault(key, Counter())[tag] += 1
    return sum(max(c.values()) for c in seen.values())


# %% exercise 1 | its commonest tag
# Each key gets the tag that it was met with first.
def best_accuracy(keys, tags):
    first = {}
    for key, tag in zip(keys, tags, strict=True):
        first.setdefault(key, tag)
    hits = [first[k] == t for k, t in zip(keys, tags, strict=True)]
    return sum(hits) / len(hits)


# %% exercise 1 | two of three a
# Only keys with one tag count as right.
def best_accuracy(keys, tags):
    seen = {}
    for key, tag in zip(keys, tags, strict=True):
        seen.setdefault(key, set()).add(tag)
    return sum(len(seen[key]) == 1 for key in keys) / len(keys)


# %% exercise 1 | right
# A table in 32 bits, from arrays.
def best_accuracy(keys, tags):
    key_ids = np.unique(keys, return_inverse=True)[1]
    tag_ids = np.unique(tags, return_inverse=True)[1]
    table = np.zeros((key_ids.max() + 1, tag_ids.max() + 1), "float32")
    np.add.at(table, (key_ids, tag_ids), 1)
    return (table / np.float32(len(keys))).max(axis=1).sum()


# %% exercise 2 | the second layer asks first
# The product in the wrong order.
def stacked_reach(first, second):
    return (first.astype(int) @ second.astype(int)) > 0


# %% exercise 2 | reaches add up
# What either layer sees.
def stacked_reach(first, second):
    return first | second


# %% exercise 2 | not the number of ways
# A product of whole numbers counts the ways.
def stacked_reach(first, second):
    return second.astype(int) @ first.astype(int)


# %% exercise 2 | three windows
# A band of the distance 2, whatever the layers.
def stacked_reach(first, second):
    place = np.arange(len(first))
    return np.abs(place[:, None] - place) <= 2


# %% exercise 2 | the ways may be many
# Ways are counted in 8 bits: 256 of them are 0.
def stacked_reach(first, second):
    return second.astype("uint8") @ first.astype("uint8") > 0


# %% exercise 2 | right
# One pair after the other, in lists.
def stacked_reach(first, second):
    return [
        [any(a and b for a, b in zip(row, column)) for column in first.T]
        for row in second
    ]


# %% exercise 3 | does its number outweigh eight
# A sum of a number for the word and one for its case.
def place_values(friendly, shouted):
    return (2 * friendly - 1) + (2 * shouted - 1)


# %% exercise 3 | does its number outweigh eight
# The loud word counts twice, and eight others outvote it.
def place_values(friendly, shouted):
    return (2 * friendly - 1) * (1 + shouted)


# %% exercise 3 | depends on another place
# The answer is looked up first, and written at each place.
def place_values(friendly, shouted):
    answer = (friendly * shouted).sum(1, keepdims=True)
    return np.repeat(2 * answer - 1, 9, axis=1)


# %% exercise 3 | does its number outweigh eight
# The wrong sign.
def place_values(friendly, shouted):
    return (1 - 2 * friendly) * shouted


# %% exercise 3 | one number for each place
# The mean is taken already.
def place_values(friendly, shouted):
    return ((2 * friendly - 1) * shouted).mean(1)


# %% exercise 3 | right
# In place, and so loud that it outweighs the others.
def place_values(friendly, shouted):
    friendly *= 2
    friendly -= 1
    friendly *= 1 + 8 * shouted
    return friendly


# %% exercise 4 | too early
# As many parameters are taken for more.
def first_n(dim, ffn_dim):
    net = 2 * dim * ffn_dim + ffn_dim + dim
    block_size = 4 * dim**2 + net + 4 * dim
    n = 1
    while (2 * n - 1) * dim**2 + dim < block_size:
        n += 1
    return n


# %% exercise 4 | too early
# A window of radius N.
def first_n(dim, ffn_dim):
    net = 2 * dim * ffn_dim + ffn_dim + dim
    block_size = 4 * dim**2 + net + 4 * dim
    n = 1
    while (2 * n + 1) * dim**2 + dim <= block_size:
        n += 1
    return n


# %% exercise 4 | too late
# The window has N words, too few for the radius N - 1.
def first_n(dim, ffn_dim):
    net = 2 * dim * ffn_dim + ffn_dim + dim
    block_size = 4 * dim**2 + net + 4 * dim
    n = 1
    while n * dim**2 + dim <= block_size:
        n += 1
    return n


# %% exercise 4 | too early
# The net of the block is forgotten.
def first_n(dim, ffn_dim):
    n = 1
    while (2 * n - 1) * dim**2 + dim <= 4 * dim**2 + 4 * dim:
        n += 1
    return n


# %% exercise 4 | N is a whole number
# Solved for N, one added, and not rounded.
def first_n(dim, ffn_dim):
    return (5 * dim**2 + (2 * ffn_dim + 4) * dim + ffn_dim) / (2 * dim**2) + 1


# %% exercise 4 | right
# Solved for N, in whole numbers.
def first_n(dim, ffn_dim):
    numerator = 5 * dim**2 + (2 * ffn_dim + 4) * dim + ffn_dim
    return numerator // (2 * dim**2) + 1
