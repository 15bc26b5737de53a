"""Wrong answers to the exercises of chapter 21; each check refuses them."""


# %% exercise 1 | a global in the window counts once
# Window and globals are joined as lists: a near global counts twice.
def longformer_row(q, k, v, t, window, chosen):
    near = range(max(0, t - window), min(len(k), t + window + 1))
    seen = [*range(len(k))] if t in chosen else [*near, *chosen]
    scores = k[seen] @ q[t] / q.shape[1] ** 0.5
    powers = np.exp(scores - scores.max())
    return powers / powers.sum() @ v[seen]


# %% exercise 1 | a global token sees all tokens
# A global token is seen by all, and sees its own window only.
def longformer_row(q, k, v, t, window, chosen):
    near = range(max(0, t - window), min(len(k), t + window + 1))
    seen = list(set(near) | set(chosen))
    scores = k[seen] @ q[t] / q.shape[1] ** 0.5
    powers = np.exp(scores - scores.max())
    return powers / powers.sum() @ v[seen]


# %% exercise 1 | divided by √K
# The scores are not scaled.
def longformer_row(q, k, v, t, window, chosen):
    near = range(max(0, t - window), min(len(k), t + window + 1))
    seen = list(range(len(k)) if t in chosen else set(near) | set(chosen))
    scores = k[seen] @ q[t]
    powers = np.exp(scores - scores.max())
    return powers / powers.sum() @ v[seen]


# %% exercise 1 | one softmax over window and globals
# Two attentions are added.
def longformer_row(q, k, v, t, window, chosen):
    def attend_to(seen):
        scores = k[seen] @ q[t] / q.shape[1] ** 0.5
        powers = np.exp(scores - scores.max())
        return powers / powers.sum() @ v[seen]

    if t in chosen:
        return attend_to(list(range(len(k))))
    near = set(range(max(0, t - window), min(len(k), t + window + 1)))
    local = attend_to(list(near - set(chosen)))
    return local + attend_to(list(chosen)) if chosen else local


# %% exercise 1 | the window ends at the first token
# A window that begins before token 0 goes on at the end of the text.
def longformer_row(q, k, v, t, window, chosen):
    near = np.arange(t - window, t + window + 1)
    near = near[near < len(k)] % len(k)
    seen = list(range(len(k)) if t in chosen else {*near} | {*chosen})
    scores = k[seen] @ q[t] / q.shape[1] ** 0.5
    powers = np.exp(scores - scores.max())
    return powers / powers.sum() @ v[seen]


# %% exercise 1 | one softmax over the window
# The window's last token is forgotten: a range ends before its end.
def longformer_row(q, k, v, t, window, chosen):
    near = range(max(0, t - window), min(len(k), t + window))
    seen = list(range(len(k)) if t in chosen else set(near) | set(chosen))
    scores = k[seen] @ q[t] / q.shape[1] ** 0.5
    powers = np.exp(scores - scores.max())
    return powers / powers.sum() @ v[seen]


# %% exercise 1 | no array of N × N
# The forbidden table, of which one row is taken; the result is right.
def longformer_row(q, k, v, t, window, chosen):
    places = np.arange(len(k))
    mask = np.abs(places[:, None] - places) <= window
    mask = mask | np.isin(places, chosen) | np.isin(places, chosen)[:, None]
    scores = q @ k.T / q.shape[1] ** 0.5
    powers = np.exp(scores - scores.max()) * mask
    return powers[t] / powers[t].sum() @ v


# %% exercise 1 | without the package
# The package does it; the result is right.
def longformer_row(q, k, v, t, window, chosen):
    arrays = (x[None, :, None] for x in (q, k, v))
    found = longformer_attention(*arrays, window, global_positions=chosen)
    return np.array(found)[0, t, 0]


# %% exercise 1 | the first global token sees all tokens, too
# The last global token alone sees all.
def longformer_row(q, k, v, t, window, chosen):
    near = range(max(0, t - window), min(len(k), t + window + 1))
    seen = range(len(k)) if [t] == chosen[-1:] else {*near, *chosen}
    seen = list(seen)
    powers = np.exp(k[seen] @ q[t] / q.shape[1] ** 0.5)
    return powers / powers.sum() @ v[seen]


# %% exercise 1 | a window of 0 is the token itself
# A window reaches one token at least.
def longformer_row(q, k, v, t, window, chosen):
    place = np.arange(len(k))
    seen = np.abs(place - t) <= max(window, 1)
    seen |= np.isin(place, chosen) | (t in chosen)
    powers = np.exp(k[seen] @ q[t] / q.shape[1] ** 0.5)
    return powers / powers.sum() @ v[seen]


# %% exercise 1 | right
# One token after the other.
def longformer_row(q, k, v, t, window, chosen):
    total, output = 0.0, [0.0] * v.shape[1]
    for s in range(len(k)):
        if t in chosen or s in chosen or abs(s - t) <= window:
            score = sum(a * b for a, b in zip(q[t], k[s]))
            power = np.exp(score / len(q[t]) ** 0.5)
            total += power
            output = [x + power * y for x, y in zip(output, v[s])]
    return [x / total for x in output]


# %% exercise 1 | right
# A mask of the row, arrays in 32 bits, and the query divided in place.
def longformer_row(q, k, v, t, window, chosen):
    q /= q.shape[1] ** 0.5
    q, k, v = (np.asarray(x, "float32") for x in (q, k, v))
    place = np.arange(len(k))
    seen = (np.abs(place - t) <= window) | np.isin(place, chosen)
    scores = np.where(seen | (t in chosen), k @ q[t], -np.inf)
    powers = np.exp(scores - scores.max())
    return powers @ v / powers.sum()


# %% exercise 2 | outside the token's own window
# The global token's own window counts again.
def allowed_pairs(N, window, place):
    w = min(window, N - 1)
    return (2 * w + 1) * N - w * (w + 1) + 2 * N


# %% exercise 2 | a band, and twice
# The corners of the band stick out of the table.
def allowed_pairs(N, window, place):
    w = min(window, N - 1)
    own = min(place, w) + min(N - 1 - place, w) + 1
    return (2 * w + 1) * N + 2 * (N - own)


# %% exercise 2 | at an end the token's own window is cut off
# The formula of the text, which holds far from the ends.
def allowed_pairs(N, window, place):
    w = min(window, N - 1)
    return (2 * w + 1) * N - w * (w + 1) + 2 * max(0, N - 2 * w - 1)


# %% exercise 2 | cannot be wider than the text
# The window may be wider than the text.
def allowed_pairs(N, window, place):
    w = window
    own = min(place, w) + min(N - 1 - place, w) + 1
    return (2 * w + 1) * N - w * (w + 1) + 2 * (N - own)


# %% exercise 2 | and twice what lies outside
# The column only: all see the token, which sees its window.
def allowed_pairs(N, window, place):
    w = min(window, N - 1)
    own = min(place, w) + min(N - 1 - place, w) + 1
    return (2 * w + 1) * N - w * (w + 1) + N - own


# %% exercise 2 | an array of N × N
# The forbidden mask, counted; the result is right.
def allowed_pairs(N, window, place):
    t, s = np.arange(N)[:, None], np.arange(N)
    return int(((np.abs(t - s) <= window) | (t == place) | (s == place)).sum())


# %% exercise 2 | count without it
# The package's mask; the result is right.
def allowed_pairs(N, window, place):
    return int(np.array(longformer_mask(N, window, [place])).sum())


# %% exercise 2 | right
# Every pair is asked.
def allowed_pairs(N, window, place):
    count = 0
    for t in range(N):
        for s in range(N):
            count += place in (t, s) or abs(t - s) <= window
    return count


# %% exercise 2 | right
# One row after the other, in NumPy.
def allowed_pairs(N, window, place):
    s = np.arange(N)
    rows = (
        (abs(s - t) <= window) | (s == place) | (t == place) for t in range(N)
    )
    return sum(float(row.sum()) for row in rows)


# %% exercise 3 | one layer to the global, one from it
# A global token passes on at once what it hears.
def layers_needed(t, s, windows, some_global=False):
    reach = 0
    for layers, w in enumerate([0, *windows]):
        reach += w
        if reach >= abs(t - s) or (some_global and layers == 1):
            return layers
    return None


# %% exercise 3 | 12 windows of 7 reach 84
# The last token in reach is missed.
def layers_needed(t, s, windows, some_global=False):
    if t == s:
        return 0
    reach = 0
    for layers, w in enumerate([0, *windows]):
        reach += w
        if reach > abs(t - s) or (some_global and layers == 2):
            return layers
    return None


# %% exercise 3 | reach 84, to one side
# A window's two sides are added.
def layers_needed(t, s, windows, some_global=False):
    reach = 0
    for layers, w in enumerate([0, *windows]):
        reach += 2 * w
        if reach >= abs(t - s) or (some_global and layers == 2):
            return layers
    return None


# %% exercise 3 | windows add up from below
# The widest window is taken for all.
def layers_needed(t, s, windows, some_global=False):
    layers = -(-abs(t - s) // max(windows))
    if some_global:
        layers = min(layers, 2)
    return layers if layers <= len(windows) else None


# %% exercise 3 | the stack is shallow
# A stack that is too shallow returns all its layers.
def layers_needed(t, s, windows, some_global=False):
    reach = 0
    for layers, w in enumerate([0, *windows]):
        reach += w
        if reach >= abs(t - s) or (some_global and layers == 2):
            return layers
    return len(windows)


# %% exercise 3 | a near token needs no relay
# With a global token every path takes two layers.
def layers_needed(t, s, windows, some_global=False):
    if some_global:
        return 0 if t == s else 2 if len(windows) >= 2 else None
    reach = 0
    for layers, w in enumerate([0, *windows]):
        reach += w
        if reach >= abs(t - s):
            return layers
    return None


# %% exercise 3 | the shorter way counts
# The global token is used only where windows never reach.
def layers_needed(t, s, windows, some_global=False):
    reach = 0
    for layers, w in enumerate([0, *windows]):
        reach += w
        if reach >= abs(t - s):
            return layers
    return 2 if some_global and len(windows) > 1 else None


# %% exercise 3 | before any layer
# A token must have a layer at least to depend on itself.
def layers_needed(t, s, windows, some_global=False):
    reach = 0
    for layers, w in enumerate(windows, 1):
        reach += w
        if reach >= abs(t - s) or (some_global and layers == 2):
            return layers if t != s else 0
    return None


# %% exercise 3 | right
# What is left of the way, until the windows are used up.
def layers_needed(t, s, windows, some_global=False):
    way, layers = abs(t - s), 0
    while way > 0 and not (some_global and layers == 2):
        if not windows:
            return None
        way -= windows.pop(0)
        layers += 1
    return layers


# %% exercise 3 | right
# All reaches at once.
def layers_needed(t, s, windows, some_global=False):
    reaches = np.cumsum([0, *windows]) >= abs(t - s)
    if some_global:
        reaches[2:] = True
    return reaches.argmax() if reaches.any() else None
