"""Wrong answers to the exercises of chapter 15; each check refuses them."""


# %% exercise 1 | change the inputs from each t on
# Only the last input is changed.
def sees_future(f, x):
    changed = np.array(x)
    changed[:, -1] = np.random.default_rng(0).normal(size=x.shape[-1])
    return not np.allclose(f(changed)[:, :-1], f(x)[:, :-1], atol=1e-5)


# %% exercise 1 | compare just the outputs before t
# The outputs from t on are compared as well, which may move.
def sees_future(f, x):
    noise = np.random.default_rng(0)
    for t in range(1, x.shape[1]):
        changed = np.array(x)
        changed[:, t:] = noise.normal(size=changed[:, t:].shape)
        if not np.allclose(f(changed), f(x), atol=1e-5):
            return True
    return False


# %% exercise 1 | a norm hides a shift
# All features are raised alike.
def sees_future(f, x):
    for t in range(1, x.shape[1]):
        changed = np.array(x)
        changed[:, t:] += 1.0
        if not np.allclose(f(changed)[:, :t], f(x)[:, :t], atol=1e-5):
            return True
    return False


# %% exercise 1 | in some features alone: compare each
# The first feature of the outputs stands for all.
def sees_future(f, x):
    noise = np.random.default_rng(0)
    for t in range(1, x.shape[1]):
        changed = np.array(x)
        changed[:, t:] = noise.normal(size=changed[:, t:].shape)
        if not np.allclose(f(changed)[:, :t, 0], f(x)[:, :t, 0], atol=1e-5):
            return True
    return False


# %% exercise 1 | work on a copy
# The caller's array is changed.
def sees_future(f, x):
    noise = np.random.default_rng(0)
    before = np.array(f(x))
    for t in range(x.shape[1] - 1, 0, -1):
        x[:, t:] = noise.normal(size=x[:, t:].shape)
        if not np.allclose(f(x)[:, :t], before[:, :t], atol=1e-5):
            return True
    return False


# %% exercise 1 | a leak may be small
# What moves by less than 0.05 is taken for unmoved.
def sees_future(f, x):
    noise = np.random.default_rng(0)
    for t in range(1, x.shape[1]):
        changed = np.array(x)
        changed[:, t:] = noise.normal(size=changed[:, t:].shape)
        if not np.allclose(f(changed)[:, :t], f(x)[:, :t], atol=0.05):
            return True
    return False


# %% exercise 1 | change them all
# The first feature of the inputs is changed, the others stay.
def sees_future(f, x):
    noise = np.random.default_rng(0)
    for t in range(1, x.shape[1]):
        changed = np.array(x)
        changed[:, t:, 0] = noise.normal(size=changed[:, t:, 0].shape)
        if not np.allclose(f(changed)[:, :t], f(x)[:, :t], atol=1e-5):
            return True
    return False


# %% exercise 1 | compare each
# The sums of the features are compared: what rises may hide what falls.
def sees_future(f, x):
    noise = np.random.default_rng(0)
    before = np.sum(f(x), axis=-1)
    for t in range(1, x.shape[1]):
        changed = np.array(x)
        changed[:, t:] = noise.normal(size=changed[:, t:].shape)
        after = np.sum(f(changed), axis=-1)
        if not np.allclose(after[:, :t], before[:, :t], atol=1e-5):
            return True
    return False


# %% exercise 1 | right
# Tensors go in, and the output just before t is enough.
def sees_future(f, x):
    x = ops.convert_to_tensor(x)
    before = ops.convert_to_tensor(f(x))
    for t in range(1, x.shape[1]):
        noise = keras.random.normal(x[:, t:].shape)
        after = f(ops.concatenate([x[:, :t], noise], axis=1))
        if ops.max(ops.abs(after - before)[:, t - 1]) > 1e-5:
            return True
    return False


# %% exercise 1 | right
# One input after the other, in 64 bits.
def sees_future(f, x):
    x = np.asarray(x, "float64")
    before = np.array(f(x))
    for s in range(x.shape[1]):
        changed = x.copy()
        changed[0, s] = np.random.default_rng(s).normal(size=x.shape[-1])
        after = np.array(f(changed))
        for t in range(s):
            if np.abs(after[0, t] - before[0, t]).max() > 1e-5:
                return True
    return False


# %% exercise 2 | does the last query stand at the last key
# The first query of a piece is put at the first key.
def in_pieces(layer, x, size):
    pieces = []
    for start in range(0, x.shape[1], size):
        seen = x[:, : start + size]
        new = seen[:, start:]
        mask = causal_mask(seen.shape[1])[: new.shape[1]]
        pieces.append(layer(new, key=seen, attention_mask=mask))
    return np.concatenate(pieces, axis=1)


# %% exercise 2 | does a piece see what is before it
# A piece attends to itself alone.
def in_pieces(layer, x, size):
    pieces = []
    for start in range(0, x.shape[1], size):
        new = x[:, start : start + size]
        mask = causal_mask(new.shape[1])
        pieces.append(layer(new, key=new, attention_mask=mask))
    return np.concatenate(pieces, axis=1)


# %% exercise 2 | differ from the whole
# No mask: inside a piece, queries see later keys.
def in_pieces(layer, x, size):
    pieces = []
    for start in range(0, x.shape[1], size):
        seen = x[:, : start + size]
        pieces.append(layer(seen[:, start:], key=seen))
    return np.concatenate(pieces, axis=1)


# %% exercise 2 | one call for each piece
# The whole at once.
def in_pieces(layer, x, size):
    return np.array(layer(x, attention_mask=causal_mask(x.shape[1])))


# %% exercise 2 | is the last, shorter piece there
# What does not fill a piece is lost.
def in_pieces(layer, x, size):
    pieces = []
    for end in range(size, x.shape[1] + 1, size):
        mask = causal_mask(size, end)
        new = x[:, end - size : end]
        pieces.append(layer(new, key=x[:, :end], attention_mask=mask))
    return np.concatenate(pieces or [x[:, :0]], axis=1)


# %% exercise 2 | keys behind its piece
# Every piece is given all keys, and a mask.
def in_pieces(layer, x, size):
    mask, pieces = np.array(causal_mask(x.shape[1])), []
    for start in range(0, x.shape[1], size):
        own = slice(start, start + size)
        pieces.append(layer(x[:, own], key=x, attention_mask=mask[own]))
    return np.concatenate(pieces, axis=1)


# %% exercise 2 | right
# Tensors, a mask by comparison, and the value said once more.
def in_pieces(layer, x, size):
    x, pieces = ops.convert_to_tensor(x), []
    for start in range(0, x.shape[1], size):
        seen = x[:, : start + size]
        last = ops.arange(start, seen.shape[1])
        mask = ops.arange(seen.shape[1]) <= last[:, None]
        pieces.append(
            layer(seen[:, start:], key=seen, value=seen, attention_mask=mask)
        )
    return ops.concatenate(pieces, axis=1)


# %% exercise 2 | right
# Written into an array of 64 bits, with the layer's own causal mask.
def in_pieces(layer, x, size):
    x = np.asarray(x, "float64")
    output = np.zeros(x.shape)
    for start in range(0, x.shape[1], size):
        seen = x[:, : start + size]
        output[:, start : start + size] = layer(
            seen[:, start:], key=seen, use_causal_mask=True
        )
    return output


# %% exercise 3 | the last earlier occurrence counts
# The first earlier occurrence.
def induced(ids):
    return [
        ids[ids.index(x) + 1] if x in ids[:t] else 0 for t, x in enumerate(ids)
    ]


# %% exercise 3 | the future is hidden
# The token that really follows: the future.
def induced(ids):
    return [*ids[1:], 0]


# %% exercise 3 | 5 was followed by 7
# The token before the earlier occurrence, not after it.
def induced(ids):
    guesses = []
    for t, current in enumerate(ids):
        places = [s for s in range(1, t) if ids[s] == current]
        guesses.append(ids[places[-1] - 1] if places else 0)
    return guesses


# %% exercise 3 | a token may follow itself
# The last earlier occurrence must not be the neighbour.
def induced(ids):
    guesses = []
    for t, current in enumerate(ids):
        places = [s for s in range(t - 1) if ids[s] == current]
        guesses.append(ids[places[-1] + 1] if places else 0)
    return guesses


# %% exercise 3 | the one that followed last
# The id that has followed most often.
def induced(ids):
    guesses = []
    for t, current in enumerate(ids):
        after = [ids[s + 1] for s in range(t) if ids[s] == current][::-1]
        guesses.append(max(after, key=after.count) if after else 0)
    return guesses


# %% exercise 3 | one guess for each position
# Only the positions that have an earlier occurrence are answered.
def induced(ids):
    follower, guesses = {}, []
    for before, current in zip(ids, ids[1:], strict=False):
        follower[before] = current
        if current in follower:
            guesses.append(follower[current])
    return guesses


# %% exercise 3 | an id may be large
# A table of the first hundred ids.
def induced(ids):
    follower, guesses = [0] * 100, []
    for before, current in zip([100, *ids], ids):
        if before < 100:
            follower[before] = current
        guesses.append(follower[current] if current < 100 else 0)
    return guesses


# %% exercise 3 | right
# Each position looks back for itself, in an array.
def induced(ids):
    ids = np.asarray(ids)
    guesses = np.zeros(len(ids))
    for t in range(len(ids)):
        earlier = np.flatnonzero(ids[:t] == ids[t])
        if len(earlier):
            guesses[t] = ids[earlier[-1] + 1]
    return guesses


# %% exercise 6 | is a replacement drawn by v
# The replacement is drawn from p.
def checked(p, q, drafted, u, v):
    if u < min(1, p[drafted] / q[drafted]):
        return drafted
    return int(np.searchsorted(np.cumsum(p), v))


# %% exercise 6 | sum to 1
# The positive part of p - q is not normalized.
def checked(p, q, drafted, u, v):
    if u < min(1, p[drafted] / q[drafted]):
        return drafted
    return int(np.searchsorted(np.cumsum(np.maximum(p - q, 0)), v))


# %% exercise 6 | normalized positive part of p - q
# What does not sum to 1 falls to the last token.
def checked(p, q, drafted, u, v):
    if u < min(1, p[drafted] / q[drafted]):
        return drafted
    borders = np.cumsum(np.maximum(p - q, 0))
    return min(int(np.searchsorted(borders, v)), len(p) - 1)


# %% exercise 6 | drawn by v
# The same random number decides twice.
def checked(p, q, drafted, u, v):
    if u < min(1, p[drafted] / q[drafted]):
        return drafted
    missing = np.maximum(p - q, 0)
    return int(np.searchsorted(np.cumsum(missing) / missing.sum(), u))


# %% exercise 6 | positive part of p - q
# The positive part of q - p.
def checked(p, q, drafted, u, v):
    if u < min(1, p[drafted] / q[drafted]):
        return drafted
    extra = np.maximum(q - p, 0)
    return int(np.searchsorted(np.cumsum(extra) / extra.sum(), v))


# %% exercise 6 | positive part of p - q
# The likeliest replacement in place of a random one.
def checked(p, q, drafted, u, v):
    if u < min(1, p[drafted] / q[drafted]):
        return drafted
    return int(np.argmax(p - q))


# %% exercise 6 | comes out too seldom
# Accepted with probability p, as if q were 1.
def checked(p, q, drafted, u, v):
    if u < p[drafted]:
        return drafted
    missing = np.maximum(p - q, 0)
    return int(np.searchsorted(np.cumsum(missing) / missing.sum(), v))


# %% exercise 6 | comes out too seldom
# Accepted only where the large model likes the token as much.
def checked(p, q, drafted, u, v):
    if p[drafted] >= q[drafted]:
        return drafted
    missing = np.maximum(p - q, 0)
    return int(np.searchsorted(np.cumsum(missing) / missing.sum(), v))


# %% exercise 6 | what comes out has the probabilities
# Always the drafted token.
def checked(p, q, drafted, u, v):
    return drafted


# %% exercise 6 | comes out too seldom
# Always a token of p, whatever was drafted: right in law, and no token of
# the draft is kept.
def checked(p, q, drafted, u, v):
    return int(np.searchsorted(np.cumsum(p), v))


# %% exercise 6 | right
# A loop over the replacements, from the end.
def checked(p, q, drafted, u, v):
    if u <= min(1.0, p[drafted] / q[drafted]):
        return np.int64(drafted)
    missing = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
    left = v * sum(missing)
    for token in reversed(range(len(missing))):
        if left < missing[token]:
            return token
        left -= missing[token]


# %% exercise 6 | right
# Tensors, and 1 - u in place of u.
def checked(p, q, drafted, u, v):
    p, q = ops.convert_to_tensor(p), ops.convert_to_tensor(q)
    if 1 - u <= float(p[drafted] / q[drafted]):
        return drafted
    missing = ops.maximum(p - q, 0)
    borders = ops.cumsum(missing / ops.sum(missing))
    return np.sum(np.array(borders) < v)
