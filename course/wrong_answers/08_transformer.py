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
    from d2l_attention import TransformerEncoderBlock

    x = np.zeros((1, 2, dim), "float32")
    if cross:
        block = TransformerDecoderBlock(dim, 1, ffn_dim)
        block(x, key=x)
    else:
        block = TransformerEncoderBlock(dim, 1, ffn_dim)
        block(x)
    return block.count_params()


# %% exercise 1 | without building a block
# A helper builds the block, and the sizes of its weights are added up.
def built_block(dim, ffn_dim, cross):
    from d2l_attention import TransformerEncoderBlock

    kind = TransformerDecoderBlock if cross else TransformerEncoderBlock
    block, x = kind(dim, 1, ffn_dim), np.zeros((1, 2, dim), "float32")
    block(x, **({"key": x} if cross else {}))
    return block


def block_parameters(dim, ffn_dim, cross):
    weights = built_block(dim, ffn_dim, cross).get_weights()
    return sum(weight.size for weight in weights)


# %% exercise 1 | right
# A helper adds up the shapes of the weights.
def shapes(dim, ffn_dim, attentions, norms):
    yield from attentions * 4 * [(dim, dim)]
    yield from norms * 2 * [(dim,)]
    yield from ((dim, ffn_dim), (ffn_dim,), (ffn_dim, dim), (dim,))


def block_parameters(dim, ffn_dim, cross):
    numbers = (2, 3) if cross else (1, 2)
    return sum(int(np.prod(x)) for x in shapes(dim, ffn_dim, *numbers))


# %% exercise 2 | norm 0 must read x, before part 0
# The norm stands behind the part, inside the residual.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x = x + norm(part(x))
    return norms[-1](x)


# %% exercise 2 | norm 1 must read the sum of what norm 0 read and part 0
# The normed x goes through the residual.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x = norm(x)
        x = x + part(x)
    return norms[-1](x)


# %% exercise 2 | norm 1 must read the sum of what norm 0 read and part 0
# No residual.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x = part(norm(x))
    return norms[-1](x)


# %% exercise 2 | norm 1 must read the sum of what norm 0 read and part 0
# Side by side: each part reads the x of the beginning.
def pre_norm(x, parts, norms):
    out = x
    for part, norm in zip(parts, norms[:-1], strict=True):
        out = out + part(norm(x))
    return norms[-1](out)


# %% exercise 2 | part 0 must read what norm 0 returned
# The norm is added instead of x, and the part reads x.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x = norm(x) + part(x)
    return norms[-1](x)


# %% exercise 2 | norm 0 must read x, before part 0
# The paper's post-norm.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x = norm(x + part(x))
    return norms[-1](x)


# %% exercise 2 | norm 0 must be used once, not 2 times
# The norm before and behind the part.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x = x + norm(part(norm(x)))
    return norms[-1](x)


# %% exercise 2 | norm 0 must be used once, not 0 times
# A norm of its own, without the learned γ and β.
def pre_norm(x, parts, norms):
    for part in parts:
        mean, std = x.mean(-1, keepdims=True), x.std(-1, keepdims=True)
        x = x + part((x - mean) / std)
    return norms[-1](x)


# %% exercise 2 | norm 0 must be used once, not 3 times
# One norm for all parts.
def pre_norm(x, parts, norms):
    for part in parts:
        x = x + part(norms[0](x))
    return norms[-1](x)


# %% exercise 2 | norm 3 must be used once, not 0 times
# The last norm is forgotten.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms, strict=False):
        x = x + part(norm(x))
    return x


# %% exercise 2 | the stack must return what the last norm returned
# The last norm is called, and its result is thrown away.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x = x + part(norm(x))
    norms[-1](x)
    return x


# %% exercise 2 | x itself has changed
# The sums overwrite the input.
def pre_norm(x, parts, norms):
    for part, norm in zip(parts, norms[:-1], strict=True):
        x += part(norm(x))
    return norms[-1](x)


# %% exercise 2 | right
# Float32 tensors, and the first part split off.
def pre_norm(x, parts, norms):
    x = keras.ops.convert_to_tensor(x, "float32")
    if not parts:
        return norms[0](x)
    x = keras.ops.add(parts[0](norms[0](x)), x)
    return pre_norm(x, parts[1:], norms[1:])


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
