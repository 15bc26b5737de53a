"""Wrong answers to the exercises of chapter 30; each check refuses them."""


# %% exercise 2 | has infinities or NaN
# The two factors: right for short texts, and infinite for long ones.
def table_of_decays(log_decay):
    sums = np.cumsum(log_decay)
    return np.tril(np.outer(np.exp(sums), np.exp(-sums)))


# %% exercise 2 | the diagonal is 1
# A token's own decay is counted as well.
def table_of_decays(log_decay):
    sums = np.cumsum(log_decay)
    before = sums - log_decay
    past = np.tril(np.ones((len(sums), len(sums)), bool))
    return np.exp(np.where(past, sums[:, None] - before, -np.inf))


# %% exercise 2 | above the diagonal
# Later tokens are not hidden.
def table_of_decays(log_decay):
    sums = np.cumsum(log_decay)
    return np.exp(-np.abs(sums[:, None] - sums))


# %% exercise 2 | the decays after s
# The decays from s on, without that of t.
def table_of_decays(log_decay):
    sums = np.cumsum(log_decay) - log_decay
    past = np.tril(np.ones((len(sums), len(sums)), bool))
    return np.exp(np.where(past, sums[:, None] - sums, -np.inf))


# %% exercise 2 | the decays after s
# The sum of the logarithms is not made an exponential of.
def table_of_decays(log_decay):
    sums = np.cumsum(log_decay)
    return np.tril(1 + sums[:, None] - sums)


# %% exercise 2 | far from the beginning
# The largest sum is taken off, as in a softmax: it vanishes elsewhere.
def table_of_decays(log_decay):
    sums = np.cumsum(log_decay)
    shifted = np.clip(sums, -80, None)
    return np.tril(np.outer(np.exp(shifted), np.exp(-shifted)))


# %% exercise 2 | make a table (4, 4)
# Only the last row.
def table_of_decays(log_decay):
    sums = np.cumsum(log_decay)
    return np.exp(sums[-1] - sums)


# %% exercise 2 | right
# By a loop over pairs, with sums of slices.
def table_of_decays(log_decay):
    table = np.zeros((len(log_decay), len(log_decay)), "float32")
    for t in range(len(log_decay)):
        for s in range(t + 1):
            table[t, s] = np.exp(log_decay[s + 1 : t + 1].sum())
    return table


# %% exercise 2 | right
# By products, since no logarithm is needed.
def table_of_decays(log_decay):
    alpha = np.exp(log_decay)
    table = np.eye(len(alpha))
    for t in range(1, len(alpha)):
        table[t, :t] = alpha[t] * table[t - 1, :t]
    return table


# %% exercise 3 | does it still decay
# Padding writes nothing, and decays what was there.
def without_padding(log_decay, strength, tokens):
    return log_decay, strength * tokens[:, :, None]


# %% exercise 3 | padding is written
# Padding decays nothing, and is written.
def without_padding(log_decay, strength, tokens):
    return log_decay * tokens[:, :, None], strength


# %% exercise 3 | wipes the state out
# The logarithm of 0, as in a mask of scores.
def without_padding(log_decay, strength, tokens):
    real = tokens[:, :, None]
    return np.where(real, log_decay, -np.inf), np.where(real, strength, 0)


# %% exercise 3 | does it still decay
# The decay 1 is given, and its logarithm wanted.
def without_padding(log_decay, strength, tokens):
    real = tokens[:, :, None]
    return np.where(real, log_decay, 1.0), np.where(real, strength, 0)


# %% exercise 3 | of real tokens stay
# The mask is read the wrong way round.
def without_padding(log_decay, strength, tokens):
    padding = tokens[:, :, None]
    return np.where(padding, 0.0, log_decay), np.where(padding, 0.0, strength)


# %% exercise 3 | keep their shape
# Padding is taken out.
def without_padding(log_decay, strength, tokens):
    return log_decay[:, tokens[0]], strength[:, tokens[0]]


# %% exercise 3 | right
# By writing into copies.
def without_padding(log_decay, strength, tokens):
    log_decay, strength = np.array(log_decay), np.array(strength)
    log_decay[~tokens] = 0
    strength[~tokens] = 0
    return log_decay, strength


# %% exercise 5 | two mirrors turn by twice the angle
# The angle of the whole turn lies between the keys.
def two_mirrors(order):
    angle = 2 * np.pi / order
    return [1.0, 0.0], [np.cos(angle), np.sin(angle)]


# %% exercise 5 | two mirrors turn by twice the angle
# Degrees are taken for radians.
def two_mirrors(order):
    return [1.0, 0.0], [np.cos(180 / order), np.sin(180 / order)]


# %% exercise 5 | is no mirror
# The second key is not of length 1.
def two_mirrors(order):
    return [1.0, 0.0], [1.0, np.tan(np.pi / order)]


# %% exercise 5 | two mirrors turn by twice the angle
# The same key twice: the second mirror undoes the first.
def two_mirrors(order):
    return [1.0, 0.0], [1.0, 0.0]


# %% exercise 5 | return two keys
# One rotation matrix in place of two keys.
def two_mirrors(order):
    angle = 2 * np.pi / order
    return [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), 0, 1]]


# %% exercise 5 | right
# From any first key, in the other direction, in float32.
def two_mirrors(order):
    angles = np.array([0.3, 0.3 - np.pi / order])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype("float32")
