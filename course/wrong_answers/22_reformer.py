"""Wrong answers to the exercises of chapter 22; each check refuses them."""


# %% exercise 1 | `miss` is the share that all rounds have missed
# The share that is found is taken for the share that is missed.
def rounds_needed(p, miss):
    rounds = 1
    while 1 - (1 - p) ** rounds < miss:
        rounds += 1
    return rounds


# %% exercise 1 | a share of exactly `miss` is allowed
# Strictly fewer pairs are asked for.
def rounds_needed(p, miss):
    rounds = 1
    while (1 - p) ** rounds >= miss:
        rounds += 1
    return rounds


# %% exercise 1 | those still missing
# Each round is taken to find as many new pairs as the first.
def rounds_needed(p, miss):
    return max(1, int(np.ceil((1 - miss) / p - 1e-9)))


# %% exercise 1 | that all rounds have missed
# A pair would have to collide in every round.
def rounds_needed(p, miss):
    rounds = 1
    while p**rounds > miss:
        rounds += 1
    return rounds


# %% exercise 1 | rounds come in whole numbers
# The formula is right, and nobody can make 0.4 of a round.
def rounds_needed(p, miss):
    return np.log(miss) / np.log(1 - p)


# %% exercise 1 | a single round is enough
# Counts the rounds after the first.
def rounds_needed(p, miss):
    rounds = 0
    while (1 - p) ** (rounds + 1) > miss:
        rounds += 1
    return rounds


# %% exercise 1 | still missing
# The search stops at a hundred rounds.
def rounds_needed(p, miss):
    for rounds in range(1, 100):
        if (1 - p) ** rounds <= miss:
            return rounds
    return 100


# %% exercise 1 | two rounds miss 0.25
# Rounded to the nearest number.
def rounds_needed(p, miss):
    return max(1, round(np.log(miss) / np.log(1 - p)))


# %% exercise 1 | right
# Solved by logarithms.
def rounds_needed(p, miss):
    return max(1, np.ceil(np.log(miss) / np.log(1 - p)))


# %% exercise 1 | right
# What is left after each round.
def rounds_needed(p, miss):
    missing, rounds = 1.0, 0
    while missing > miss:
        missing, rounds = missing * (1 - p), rounds + 1
    return rounds


# %% exercise 2 | is there a table of N × N
# The package's mask: right, and a table of all pairs.
def tokens_seen(buckets, chunk_size):
    buckets = np.asarray(buckets, "int32")
    mask = np.array(reformer_mask(buckets[None, :, None, None], chunk_size))
    rows = np.full((len(buckets), 2 * chunk_size), -1)
    for i, row in enumerate(mask[0, 0]):
        seen = np.flatnonzero(row)
        rows[i, : len(seen)] = seen
    return rows


# %% exercise 2 | comparisons for 3,000 tokens
# Right and without a table, but each token is compared with all.
def tokens_seen(buckets, chunk_size):
    chunk = np.argsort(np.argsort(buckets, kind="stable")) // chunk_size
    rows = np.full((len(buckets), 2 * chunk_size), -1)
    for i in range(len(buckets)):
        same = np.flatnonzero(buckets == buckets[i])
        back = np.asarray(chunk[i]) - np.asarray(chunk)[same]
        seen = same[(back == 0) | (back == 1)]
        rows[i, : len(seen)] = seen
    return rows


# %% exercise 2 | no circle
# Before the first chunk stands the last.
def tokens_seen(buckets, chunk_size):
    order = np.argsort(buckets, kind="stable")
    chunks = [
        order[start : start + chunk_size]
        for start in range(0, len(order), chunk_size)
    ]
    rows = np.full((len(buckets), 2 * chunk_size), -1)
    for c, own in enumerate(chunks):
        before = chunks[c - 1] if len(chunks) > 1 else own[:0]
        near = np.concatenate([before, own])
        for i in own:
            mates = near[buckets[near] == buckets[i]]
            rows[i, : len(mates)] = mates
    return rows


# %% exercise 2 | sees its whole bucket
# The chunk alone decides, whatever the buckets.
def tokens_seen(buckets, chunk_size):
    order = np.argsort(buckets, kind="stable")
    rows = np.full((len(buckets), 2 * chunk_size), -1)
    for start in range(0, len(order), chunk_size):
        near = order[max(start - chunk_size, 0) : start + chunk_size]
        rows[order[start : start + chunk_size], : len(near)] = near
    return rows


# %% exercise 2 | the one before, after a stable sort
# Looks ahead in place of back.
def tokens_seen(buckets, chunk_size):
    order = np.argsort(buckets, kind="stable")
    rows = np.full((len(buckets), 2 * chunk_size), -1)
    for start in range(0, len(order), chunk_size):
        near = order[start : start + 2 * chunk_size]
        for i in order[start : start + chunk_size]:
            mates = near[buckets[near] == buckets[i]]
            rows[i, : len(mates)] = mates
    return rows


# %% exercise 2 | empty places hold -1
# Empty places hold 0.
def tokens_seen(buckets, chunk_size):
    order = np.argsort(buckets, kind="stable")
    rows = np.zeros((len(buckets), 2 * chunk_size), int)
    for start in range(0, len(order), chunk_size):
        near = order[max(start - chunk_size, 0) : start + chunk_size]
        for i in order[start : start + chunk_size]:
            mates = near[buckets[near] == buckets[i]]
            rows[i, : len(mates)] = mates
    return rows


# %% exercise 2 | each row has 2m numbers
# Rows of different lengths.
def tokens_seen(buckets, chunk_size):
    order = np.argsort(buckets, kind="stable")
    rows = [None] * len(buckets)
    for start in range(0, len(order), chunk_size):
        near = order[max(start - chunk_size, 0) : start + chunk_size]
        for i in order[start : start + chunk_size]:
            rows[i] = near[buckets[near] == buckets[i]]
    return rows


# %% exercise 2 | right
# Lists, sorted by Python.
def tokens_seen(buckets, chunk_size):
    buckets = list(buckets)
    order = sorted(range(len(buckets)), key=buckets.__getitem__)
    rows = [None] * len(buckets)
    for place, i in enumerate(order):
        chunk = place // chunk_size
        near = order[max(chunk - 1, 0) * chunk_size : (chunk + 1) * chunk_size]
        mates = [j for j in near if buckets[j] == buckets[i]]
        rows[i] = [-1] * (2 * chunk_size - len(mates)) + mates
    return rows


# %% exercise 2 | right
# All rows at once, by the place of each token.
def tokens_seen(buckets, chunk_size):
    buckets = np.asarray(buckets)
    order = np.argsort(buckets, kind="stable")
    chunk, _ = divmod(np.argsort(order), chunk_size)
    places = (chunk[:, None] - 1) * chunk_size + np.arange(2 * chunk_size)
    there = (places >= 0) & (places < len(order))
    rows = order[np.where(there, places, 0)]
    return np.where(there & (buckets[rows] == buckets[:, None]), rows, -1)


# %% exercise 3 | twice the columns of R1
# The number of columns is taken for the number of buckets.
def two_hashes(x, R1, R2):
    first, second = (
        np.argmax(np.concatenate([x @ R, -x @ R], axis=1), axis=1)
        for R in (R1, R2)
    )
    return first + R1.shape[1] * second


# %% exercise 3 | is the second bucket multiplied by a
# The second hash's buckets are counted in place of the first's.
def two_hashes(x, R1, R2):
    first, second = (
        np.argmax(np.concatenate([x @ R, -x @ R], axis=1), axis=1)
        for R in (R1, R2)
    )
    return first + 2 * R2.shape[1] * second


# %% exercise 3 | the first bucket
# One hash with all columns: a + b buckets, not a times b.
def two_hashes(x, R1, R2):
    R = np.concatenate([R1, R2], axis=1)
    return np.argmax(np.concatenate([x @ R, -x @ R], axis=1), axis=1)


# %% exercise 3 | one number for each vector
# The two buckets side by side.
def two_hashes(x, R1, R2):
    return np.stack(
        [
            np.argmax(np.concatenate([x @ R, -x @ R], axis=1), axis=1)
            for R in (R1, R2)
        ],
        axis=1,
    )


# %% exercise 3 | take a from R1
# The number of buckets is taken from those that occur.
def two_hashes(x, R1, R2):
    first, second = (
        np.argmax(np.concatenate([x @ R, -x @ R], axis=1), axis=1)
        for R in (R1, R2)
    )
    return first + (first.max() + 1) * second


# %% exercise 3 | right
# One vector after the other.
def two_hashes(x, R1, R2):
    numbers = []
    for row in np.asarray(x):
        buckets = []
        for R in (R1, R2):
            products = [float(np.dot(row, column)) for column in R.T]
            products += [-product for product in products]
            buckets.append(products.index(max(products)))
        numbers.append(buckets[0] + 2 * R1.shape[1] * buckets[1])
    return numbers
