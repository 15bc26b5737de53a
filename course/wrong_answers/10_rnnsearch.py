"""Answers with which the checks of chapter 10 are tried, right and wrong."""


# %% exercise 1 | pairs are neighbours
# The first half competes with the second.
def maxout(t):
    return t.reshape(*t.shape[:-1], 2, t.shape[-1] // 2).max(-2)


# %% exercise 1 | compare with the neighbour, not with 0
# A ReLU on top: 0 competes, too.
def maxout(t):
    return np.maximum(np.maximum(t[..., ::2], t[..., 1::2]), 0)


# %% exercise 1 | two numbers make one
# Each number competes with the next: windows that overlap.
def maxout(t):
    return np.maximum(t[..., :-1], t[..., 1:])


# %% exercise 1 | axes before the last stay
# Right for a vector; a batch is flattened.
def maxout(t):
    return t.reshape(-1, 2).max(-1)


# %% exercise 1 | becomes
# Pairs along the first axis.
def maxout(t):
    return np.maximum(t[::2], t[1 : t.shape[0] // 2 * 2 : 2])


# %% exercise 1 | t itself has changed
# The maxima are written into the argument.
def maxout(t):
    t[..., ::2] = np.maximum(t[..., ::2], t[..., 1::2])
    return t[..., ::2].copy()


# %% exercise 1 | right
# A list of lists, row by row.
def maxout(t):
    t = np.asarray(t)
    if t.ndim > 1:
        return [maxout(row) for row in t]
    return [max(t[i], t[i + 1]) for i in range(0, len(t), 2)]


# %% exercise 2 | so negate all that goes into z
# Copied as it is.
def from_keras(cell):
    parts = {}
    for letter, array in zip("WUb", cell.get_weights(), strict=True):
        z, r, candidate = np.split(array, 3, axis=-1)
        parts |= {letter + "_z": z.T, letter + "_r": r.T, letter: candidate.T}
    return parts


# %% exercise 2 | b_z: 1 − σ(a) = σ(−a)
# The bias keeps its sign.
def from_keras(cell):
    parts = {}
    for letter, array in zip("WUb", cell.get_weights(), strict=True):
        z, r, candidate = np.split(array, 3, axis=-1)
        parts |= {letter + "_z": -z.T, letter + "_r": r.T, letter: candidate.T}
    return parts | {"b_z": -parts["b_z"]}


# %% exercise 2 | transpose
# Inputs × units, as Keras keeps them.
def from_keras(cell):
    parts = {}
    for letter, array in zip("WUb", cell.get_weights(), strict=True):
        z, r, candidate = np.split(array, 3, axis=-1)
        parts |= {letter + "_z": -z, letter + "_r": r, letter: candidate}
    return parts


# %% exercise 2 | only z has another meaning
# The candidate is negated, too.
def from_keras(cell):
    parts = {}
    for letter, array in zip("WUb", cell.get_weights(), strict=True):
        z, r, candidate = np.split(array, 3, axis=-1)
        parts |= {letter + "_z": -z.T, letter + "_r": r.T}
        parts[letter] = -candidate.T
    return parts


# %% exercise 2 | Keras's order is z, r, candidate
# The gates are taken in the order r, z.
def from_keras(cell):
    parts = {}
    for letter, array in zip("WUb", cell.get_weights(), strict=True):
        r, z, candidate = np.split(array, 3, axis=-1)
        parts |= {letter + "_z": -z.T, letter + "_r": r.T, letter: candidate.T}
    return parts


# %% exercise 2 | the names are
# The biases are left out, as in the paper.
def from_keras(cell):
    parts = {}
    for letter, array in zip("WU", cell.get_weights(), strict=False):
        z, r, candidate = np.split(array, 3, axis=-1)
        parts |= {letter + "_z": -z.T, letter + "_r": r.T, letter: candidate.T}
    return parts


# %% exercise 2 | right
# Tensors, from the variables of the cell.
def from_keras(cell):
    parts = {}
    for letter, variable in zip("WUb", cell.weights):
        z, r, new = keras.ops.split(keras.ops.transpose(variable), 3)
        parts |= {letter + "_z": -z, letter + "_r": r, letter: new}
    return parts


# %% exercise 3 | numbers off
# W_s is forgotten.
def count(state, word, scoring, pairs, num_english, num_french):
    embeddings = word * (num_english + num_french)
    encoder = 2 * 3 * (state * word + state * state)
    decoder = 3 * (state * word + state * state + state * 2 * state)
    search = scoring * (state + 2 * state) + scoring
    output = 2 * pairs * (state + word + 2 * state)
    last = num_french * pairs + num_french
    return embeddings + encoder + decoder + search + output + last


# %% exercise 3 | numbers off
# V_o is forgotten, as in the document.
def count(state, word, scoring, pairs, num_english, num_french):
    embeddings = word * (num_english + num_french)
    encoder = 2 * 3 * (state * word + state * state)
    decoder = 3 * (state * word + state * state + state * 2 * state)
    search = scoring * (state + 2 * state) + scoring
    output = 2 * pairs * (state + 2 * state)
    last = num_french * pairs + num_french
    return embeddings + encoder + decoder + state**2 + search + output + last


# %% exercise 3 | numbers off
# An annotation is taken for one state.
def count(state, word, scoring, pairs, num_english, num_french):
    embeddings = word * (num_english + num_french)
    encoder = 2 * 3 * (state * word + state * state)
    decoder = 3 * (state * word + state * state + state * state)
    search = scoring * (state + state) + scoring
    output = 2 * pairs * (state + word + state)
    last = num_french * pairs + num_french
    return embeddings + encoder + decoder + state**2 + search + output + last


# %% exercise 3 | numbers off
# One unit reads the source in both directions.
def count(state, word, scoring, pairs, num_english, num_french):
    embeddings = word * (num_english + num_french)
    encoder = 3 * (state * word + state * state)
    decoder = 3 * (state * word + state * state + state * 2 * state)
    search = scoring * (state + 2 * state) + scoring
    output = 2 * pairs * (state + word + 2 * state)
    last = num_french * pairs + num_french
    return embeddings + encoder + decoder + state**2 + search + output + last


# %% exercise 3 | make no model and no layer
# The model is built and asked.
def count(state, word, scoring, pairs, num_english, num_french):
    model = RNNSearch(
        num_english,
        num_french,
        dim=state,
        embedding_dim=word,
        alignment_dim=scoring,
        maxout_dim=pairs,
    )
    ids = np.array([[1]])
    model({"source": ids, "target": ids})
    return model.count_params()
