"""Wrong answers to the exercises of chapter 31; each check refuses them."""


# %% exercise 2 | nothing better is left
# A finite mark, and the best of all: too few blocks, and later ones win.
def choose(scores, own, top):
    marked = scores.astype("float64")
    marked[own + 1 :] = -1e9
    marked[own] = np.inf
    chosen = np.zeros(len(scores), bool)
    chosen[np.argsort(-marked, kind="stable")[:top]] = True
    return chosen


# %% exercise 2 | scores below your mark
# A finite mark, with the number of blocks bounded.
def choose(scores, own, top):
    marked = scores.astype("float64")
    marked[own + 1 :] = -1e9
    marked[own] = np.inf
    chosen = np.zeros(len(scores), bool)
    best = np.argsort(-marked, kind="stable")[: min(top, own + 1)]
    chosen[best] = True
    return chosen


# %% exercise 2 | counts the own block
# The own block comes on top of `top` others.
def choose(scores, own, top):
    chosen = np.arange(len(scores)) == own
    before = np.argsort(-scores[:own], kind="stable")
    chosen[before[:top]] = True
    return chosen


# %% exercise 2 | the own block is always read
# The best of the past and the own block, by their scores.
def choose(scores, own, top):
    chosen = np.zeros(len(scores), bool)
    chosen[np.argsort(-scores[:own], kind="stable")[:top]] = True
    return chosen


# %% exercise 2 | the score of the own block is not read
# The own block competes with the others.
def choose(scores, own, top):
    chosen = np.zeros(len(scores), bool)
    chosen[np.argsort(-scores[: own + 1], kind="stable")[:top]] = True
    return chosen


# %% exercise 2 | comes after the query's own block
# Later blocks are chosen as well.
def choose(scores, own, top):
    others = scores.astype("float64")
    others[own] = -np.inf
    chosen = np.arange(len(scores)) == own
    chosen[np.argsort(-others, kind="stable")[: top - 1]] = True
    return chosen


# %% exercise 2 | take the first
# Of equal scores the last are taken.
def choose(scores, own, top):
    chosen = np.arange(len(scores)) == own
    if top > 1:
        chosen[np.argsort(scores[:own], kind="stable")[-(top - 1) :]] = True
    return chosen


# %% exercise 2 | return one bool
# The numbers of the blocks.
def choose(scores, own, top):
    before = np.argsort(-scores[:own], kind="stable")
    return np.append(before[: top - 1], own)


# %% exercise 2 | is your way of sorting stable
# A sort that exchanges equal scores.
def choose(scores, own, top):
    chosen = np.arange(len(scores)) == own
    before = np.argsort(-np.asarray(scores)[:own], kind="heapsort")
    chosen[before[: top - 1]] = True
    return chosen


# %% exercise 2 | right
# By a loop that takes the best one after the other.
def choose(scores, own, top):
    chosen = [False] * len(scores)
    chosen[own] = True
    for _ in range(top - 1):
        best = None
        for j in range(own):
            if not chosen[j] and (best is None or scores[j] > scores[best]):
                best = j
        if best is not None:
            chosen[best] = True
    return chosen


# %% exercise 2 | right
# With −inf, which is below every score.
def choose(scores, own, top):
    marked = np.array(scores, "float64")
    marked[own + 1 :] = -np.inf
    marked[own] = np.inf
    chosen = np.zeros(len(marked), bool)
    chosen[np.argsort(-marked, kind="stable")[:top]] = True
    return chosen & (marked > -np.inf)


# %% exercise 3 | takes the 20 HCA layers for CSA
# One kind of compressed layer.
def all_entries(n):
    return 2 * min(128, n) + 41 * (min(128, n) + min(512, n // 4))


# %% exercise 3 | each layer has its window
# Compressed layers without windows.
def all_entries(n):
    return 2 * min(128, n) + 21 * min(512, n // 4) + 20 * (n // 128)


# %% exercise 3 | is not the number
# CSA reads all its entries.
def all_entries(n):
    return 43 * min(128, n) + 21 * (n // 4) + 20 * (n // 128)


# %% exercise 3 | fewer than 512
# 512 entries, however short the text.
def all_entries(n):
    return 43 * min(128, n) + 21 * 512 + 20 * (n // 128)


# %% exercise 3 | each window has 100
# 128 tokens in the window, however short the text.
def all_entries(n):
    return 43 * 128 + 21 * min(512, n // 4) + 20 * (n // 128)


# %% exercise 3 | right
# Layer by layer.
def all_entries(n):
    total = 0
    for kind in ["window"] * 2 + ["csa"] * 21 + ["hca"] * 20:
        total += np.minimum(128, n)
        if kind == "csa":
            total += np.minimum(512, n // 4)
        if kind == "hca":
            total += n // 128
    return total


# %% exercise 4 | is loaded once
# Each head loads what it chose.
def blocks_loaded(selected, num_groups):
    return int(np.sum(selected))


# %% exercise 4 | count each group
# One union of all heads.
def blocks_loaded(selected, num_groups):
    return int(np.any(selected, axis=0).sum())


# %% exercise 4 | heads 0 and 1 load
# The heads of a group are taken from all over.
def blocks_loaded(selected, num_groups):
    return int(
        sum(
            selected[g::num_groups].any(axis=0).sum() for g in range(num_groups)
        )
    )


# %% exercise 4 | heads 0 and 1 load
# Only what all heads of a group chose.
def blocks_loaded(selected, num_groups):
    heads, blocks = selected.shape
    groups = selected.reshape(num_groups, heads // num_groups, blocks)
    return int(groups.all(axis=1).sum())


# %% exercise 4 | heads 0 and 1 load
# The group that loads most.
def blocks_loaded(selected, num_groups):
    parts = np.split(selected, num_groups)
    return max(int(part.any(axis=0).sum()) for part in parts)


# %% exercise 4 | right
# By sets of numbers.
def blocks_loaded(selected, num_groups):
    size, total = len(selected) // num_groups, 0
    for g in range(num_groups):
        union = set()
        for row in selected[g * size : (g + 1) * size]:
            union |= {j for j, is_chosen in enumerate(row) if is_chosen}
        total += len(union)
    return total


# %% exercise 4 | right
# A number of NumPy.
def blocks_loaded(selected, num_groups):
    parts = np.split(np.asarray(selected), num_groups)
    return np.sum([part.max(axis=0).sum() for part in parts])
