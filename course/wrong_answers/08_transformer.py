"""Answers with which the checks of chapter 08 are tried, right and wrong."""


# %% exercise 1 | an encoder block: 1 · 4 matrices
# The output projection of attention is forgotten.
def block_parameters(dim, ffn_dim, cross):
    attentions, norms = (2, 3) if cross else (1, 2)
    net = 2 * dim * ffn_dim + ffn_dim + dim
    return attentions * 3 * dim**2 + net + norms * 2 * dim


# %% exercise 1 | a row of W_2: for dim = 6 that is 13, not 7
# The net has one matrix.
def block_parameters(dim, ffn_dim, cross):
    attentions, norms = (2, 3) if cross else (1, 2)
    net = dim * ffn_dim + ffn_dim + dim
    return attentions * 4 * dim**2 + net + norms * 2 * dim


# %% exercise 1 | a row of W_2: for dim = 6 that is 13, not 0
# The net is taken to be twice as wide as a token, whatever ffn_dim says.
def block_parameters(dim, ffn_dim, cross):
    attentions, norms = (2, 3) if cross else (1, 2)
    net = 4 * dim**2 + 3 * dim
    return attentions * 4 * dim**2 + net + norms * 2 * dim


# %% exercise 1 | a number of b_1
# The biases of the net are forgotten.
def block_parameters(dim, ffn_dim, cross):
    attentions, norms = (2, 3) if cross else (1, 2)
    return attentions * 4 * dim**2 + 2 * dim * ffn_dim + norms * 2 * dim


# %% exercise 1 | the net's b_2, but no biases in attention: 5 vectors, not 4
# The second bias of the net is forgotten.
def block_parameters(dim, ffn_dim, cross):
    attentions, norms = (2, 3) if cross else (1, 2)
    net = 2 * dim * ffn_dim + ffn_dim
    return attentions * 4 * dim**2 + net + norms * 2 * dim


# %% exercise 1 | no biases in attention: 5 vectors, not 9
# Biases in the attention.
def block_parameters(dim, ffn_dim, cross):
    attentions, norms = (2, 3) if cross else (1, 2)
    attention = 4 * dim**2 + 4 * dim
    net = 2 * dim * ffn_dim + ffn_dim + dim
    return attentions * attention + net + norms * 2 * dim


# %% exercise 1 | 2 norms with γ and β
# A norm has γ only.
def block_parameters(dim, ffn_dim, cross):
    attentions, norms = (2, 3) if cross else (1, 2)
    net = 2 * dim * ffn_dim + ffn_dim + dim
    return attentions * 4 * dim**2 + net + norms * dim


# %% exercise 1 | a decoder block: 2 · 4 matrices
# Cross-attention takes its keys and values ready-made.
def block_parameters(dim, ffn_dim, cross):
    matrices, norms = (6, 3) if cross else (4, 2)
    net = 2 * dim * ffn_dim + ffn_dim + dim
    return matrices * dim**2 + net + norms * 2 * dim


# %% exercise 1 | a decoder block: 3 norms
# The third norm of a decoder block is forgotten.
def block_parameters(dim, ffn_dim, cross):
    attentions = 2 if cross else 1
    net = 2 * dim * ffn_dim + ffn_dim + dim
    return attentions * 4 * dim**2 + net + 4 * dim


# %% exercise 1 | without building a block
# A block is built, and asked.
def block_parameters(dim, ffn_dim, cross):
    x = np.zeros((1, 2, dim), "float32")
    if cross:
        block = TransformerDecoderBlock(dim, 1, ffn_dim)
        block(x, key=x)
    else:
        block = TransformerEncoderBlock(dim, 1, ffn_dim)
        block(x)
    return block.count_params()


# %% exercise 2 | the norm reads x, before f
# The norm stands behind f, inside the residual.
def pre_norm(x, f, norm):
    return x + norm(f(x))


# %% exercise 2 | x itself is added
# The normed x goes through the residual.
def pre_norm(x, f, norm):
    x = norm(x)
    return x + f(x)


# %% exercise 2 | the residual is missing
# No residual.
def pre_norm(x, f, norm):
    return f(norm(x))


# %% exercise 2 | f reads the normed x
# The norm is added instead of x, and f reads x.
def pre_norm(x, f, norm):
    return norm(x) + f(x)


# %% exercise 2 | no second norm
# The norm before and behind f.
def pre_norm(x, f, norm):
    return x + norm(f(norm(x)))


# %% exercise 2 | the norm that is given
# A norm of its own, without the learned γ and β.
def pre_norm(x, f, norm):
    mean, std = x.mean(-1, keepdims=True), x.std(-1, keepdims=True)
    return x + f((x - mean) / std)


# %% exercise 2 | x itself has changed
# The sum overwrites the input.
def pre_norm(x, f, norm):
    x += f(norm(x))
    return x


# %% exercise 2 | right
# A float32 tensor.
def pre_norm(x, f, norm):
    x = keras.ops.convert_to_tensor(x, "float32")
    return keras.ops.add(f(norm(x)), x)


# %% exercise 3 | id 0 is never chosen
# Padding may win.
def next_id(model, source, written):
    logits = model({"source": source, "target": np.array([written])})
    return int(np.argmax(np.array(logits)[0, -1]))


# %% exercise 3 | id 0 is never chosen, whatever its score
# The score of padding is set to 0, but the others may be negative.
def next_id(model, source, written):
    logits = model({"source": source, "target": np.array([written])})
    scores = np.array(logits)[0, -1]
    scores[0] = 0
    return int(np.argmax(scores))


# %% exercise 3 | no cache
# Token by token, with the cache.
def next_id(model, source, written):
    state = model.start(source)
    for token in written:
        logits, state = model.step(np.array([token]), state)
    return int(np.argmax(np.array(logits)[0, 1:])) + 1


# %% exercise 3 | read the row of the last one
# The first row is read.
def next_id(model, source, written):
    logits = model({"source": source, "target": np.array([written])})
    return int(np.argmax(np.array(logits)[0, 0, 1:])) + 1


# %% exercise 3 | give all written words to the model
# Only the last word is given, as with a cache.
def next_id(model, source, written):
    logits = model({"source": source, "target": np.array([written[-1:]])})
    return int(np.argmax(np.array(logits)[0, -1, 1:])) + 1


# %% exercise 3 | one call is enough
# One call for each word written.
def next_id(model, source, written):
    for length in range(1, len(written) + 1):
        target = np.array([written[:length]])
        logits = model({"source": source, "target": target})
    return int(np.argmax(np.array(logits)[0, -1, 1:])) + 1


# %% exercise 3 | written has changed
# The id is also put into the caller's list.
def next_id(model, source, written):
    logits = model({"source": source, "target": np.array([written])})
    written.append(int(np.argmax(np.array(logits)[0, -1, 1:])) + 1)
    return written[-1]


# %% exercise 3 | right
# Tensors, and the score of padding at minus infinity.
def next_id(model, source, written):
    source, target = map(keras.ops.convert_to_tensor, (source, [written]))
    row = np.array(model({"source": source, "target": target})[0, -1])
    row[0] = -np.inf
    return row.argmax()
