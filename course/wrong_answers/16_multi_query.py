"""Wrong answers to the exercises of chapter 16; each check refuses them."""


# %% exercise 2 | keys and values are kept
# Keys are counted, values forgotten.
def tokens_that_fit(memory, num_layers, num_kv_heads, key_dim, bytes_each=2):
    return memory // (num_layers * num_kv_heads * key_dim * bytes_each)


# %% exercise 2 | for each key head
# One key head, whatever their number.
def tokens_that_fit(memory, num_layers, num_kv_heads, key_dim, bytes_each=2):
    return memory // (2 * num_layers * key_dim * bytes_each)


# %% exercise 2 | does every layer
# One layer's cache is counted.
def tokens_that_fit(memory, num_layers, num_kv_heads, key_dim, bytes_each=2):
    return memory // (2 * num_kv_heads * key_dim * bytes_each)


# %% exercise 2 | with 8 bytes each
# The size of a number is fixed at 16 bits.
def tokens_that_fit(memory, num_layers, num_kv_heads, key_dim, bytes_each=2):
    return memory // (2 * num_layers * num_kv_heads * key_dim * 2)


# %% exercise 2 | 15 whole tokens
# A part of a token is counted, too.
def tokens_that_fit(memory, num_layers, num_kv_heads, key_dim, bytes_each=2):
    return memory / (2 * num_layers * num_kv_heads * key_dim * bytes_each)


# %% exercise 2 | hold 5 tokens
# Rounded to the nearest number: the last token does not fit.
def tokens_that_fit(memory, num_layers, num_kv_heads, key_dim, bytes_each=2):
    per_token = 2 * num_layers * num_kv_heads * key_dim * bytes_each
    return memory // per_token + (memory % per_token > 0.7 * per_token)


# %% exercise 2 | right
# Divided by one number after the other, in floats.
def tokens_that_fit(memory, num_layers, num_kv_heads, key_dim, bytes_each=2):
    for size in (2, num_layers, num_kv_heads, key_dim, bytes_each):
        memory = np.floor(memory / size)
    return memory


# %% exercise 3 | for each head
# The forbidden repeat; the result is right.
def decode_in_groups(query, key, value, lengths):
    size = query.shape[1] // key.shape[2]
    key, value = np.repeat(key, size, axis=2), np.repeat(value, size, axis=2)
    scores = np.einsum("bhk,bshk->bhs", query, key) / key.shape[-1] ** 0.5
    filled = np.arange(key.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    return np.einsum("bhs,bshv->bhv", weights, value)


# %% exercise 3 | not the package's
# Keras makes the copies; the result is right.
def decode_in_groups(query, key, value, lengths):
    size = query.shape[1] // key.shape[2]
    key = np.array(ops.repeat(key, size, axis=2))
    value = np.array(ops.repeat(value, size, axis=2))
    scores = np.einsum("bhk,bshk->bhs", query, key) / key.shape[-1] ** 0.5
    filled = np.arange(key.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    return np.einsum("bhs,bshv->bhv", weights, value)


# %% exercise 3 | does head h use key head
# Query heads are dealt out in turn, as by tile.
def decode_in_groups(query, key, value, lengths):
    b, h, size = query.shape
    slots, groups = key.shape[1:3]
    query = query.reshape(b, h // groups, groups, size)
    scores = np.einsum("brgk,bsgk->brgs", query, key) / size**0.5
    filled = np.arange(slots) < np.reshape(lengths, (b, 1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    output = np.einsum("brgs,bsgv->brgv", weights, value)
    return output.reshape(b, h, -1)


# %% exercise 3 | divided by the root of K
# The scale is forgotten.
def decode_in_groups(query, key, value, lengths):
    b, h, size = query.shape
    slots, groups = key.shape[1:3]
    query = query.reshape(b, groups, h // groups, size)
    scores = np.einsum("bgrk,bsgk->bgrs", query, key)
    filled = np.arange(slots) < np.reshape(lengths, (b, 1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    output = np.einsum("bgrs,bsgv->bgrv", weights, value)
    return output.reshape(b, h, -1)


# %% exercise 3 | slots that its sequence has filled
# The empty slots are read as well.
def decode_in_groups(query, key, value, lengths):
    b, h, size = query.shape
    groups = key.shape[2]
    query = query.reshape(b, groups, h // groups, size)
    scores = np.einsum("bgrk,bsgk->bgrs", query, key) / size**0.5
    weights = np.array(masked_softmax(scores))
    output = np.einsum("bgrs,bsgv->bgrv", weights, value)
    return output.reshape(b, h, -1)


# %% exercise 3 | the shape is (B, H, V)
# The group axis is left in the result.
def decode_in_groups(query, key, value, lengths):
    b, h, size = query.shape
    slots, groups = key.shape[1:3]
    query = query.reshape(b, groups, h // groups, size)
    scores = np.einsum("bgrk,bsgk->bgrs", query, key) / size**0.5
    filled = np.arange(slots) < np.reshape(lengths, (b, 1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    return np.einsum("bgrs,bsgv->bgrv", weights, value)


# %% exercise 3 | no copies
# `take` copies keys and values for each head.
def decode_in_groups(query, key, value, lengths):
    heads, slots = query.shape[1], key.shape[1]
    own = np.arange(heads) // (heads // key.shape[2])
    key, value = ops.take(key, own, axis=2), ops.take(value, own, axis=2)
    scores = ops.einsum("bhk,bshk->bhs", query, key) / query.shape[-1] ** 0.5
    filled = np.arange(slots) < np.reshape(lengths, (-1, 1, 1))
    weights = masked_softmax(scores, filled)
    return np.array(ops.einsum("bhs,bshv->bhv", weights, value))


# %% exercise 3 | an input was changed
# The rubbish in the cache is overwritten.
def decode_in_groups(query, key, value, lengths):
    b, h, size = query.shape
    slots, groups = key.shape[1:3]
    filled = np.arange(slots) < np.reshape(lengths, (b, 1))
    key[~filled] = 0
    value[~filled] = 0
    query = query.reshape(b, groups, h // groups, size)
    scores = np.einsum("bgrk,bsgk->bgrs", query, key) / size**0.5
    weights = np.array(masked_softmax(scores, filled[:, None, None]))
    return np.einsum("bgrs,bsgv->bgrv", weights, value).reshape(b, h, -1)


# %% exercise 3 | right
# One head of one sequence after the other.
def decode_in_groups(query, key, value, lengths):
    query, key, value = map(np.asarray, (query, key, value))
    b, h, size = query.shape
    output = np.zeros((b, h, value.shape[-1]))
    for i in range(b):
        for j in range(h):
            group = j // (h // key.shape[2])
            scores = key[i, : lengths[i], group] @ query[i, j] / size**0.5
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            output[i, j] = weights @ value[i, : lengths[i], group]
    return output


# %% exercise 3 | right
# With a group axis in Keras.
def decode_in_groups(query, key, value, lengths):
    b, h, size = query.shape
    slots, groups = key.shape[1:3]
    query = ops.reshape(query, (b, groups, h // groups, size))
    scores = ops.einsum("bgrk,bsgk->bgrs", query, key) / size**0.5
    filled = np.arange(slots) < np.reshape(lengths, (b, 1, 1, 1))
    weights = masked_softmax(scores, filled)
    return ops.reshape(
        ops.einsum("bgrs,bsgv->bgrv", weights, value), (b, h, -1)
    )


# %% exercise 4 | D weights in, D out and a bias
# No biases at all.
def width_of_equal_size(dim, num_heads, num_kv_heads, key_dim, ffn_dim):
    return ffn_dim + (num_heads - num_kv_heads) * key_dim


# %% exercise 4 | D weights in, D out and a bias
# The bias of the net alone, as in the text, where attention has none.
def width_of_equal_size(dim, num_heads, num_kv_heads, key_dim, ffn_dim):
    saved = 2 * dim * (num_heads - num_kv_heads) * key_dim
    return ffn_dim + round(saved / (2 * dim + 1))


# %% exercise 4 | leave room for a wider net
# The net becomes narrower.
def width_of_equal_size(dim, num_heads, num_kv_heads, key_dim, ffn_dim):
    columns = 2 * (num_heads - num_kv_heads) * key_dim
    return ffn_dim - round((dim + 1) * columns / (2 * dim + 1))


# %% exercise 4 | a width is a whole number
# The quotient is not rounded.
def width_of_equal_size(dim, num_heads, num_kv_heads, key_dim, ffn_dim):
    columns = 2 * (num_heads - num_kv_heads) * key_dim
    return ffn_dim + (dim + 1) * columns / (2 * dim + 1)


# %% exercise 4 | Round to the nearest number
# Rounded down.
def width_of_equal_size(dim, num_heads, num_kv_heads, key_dim, ffn_dim):
    saved = 2 * (dim + 1) * (num_heads - num_kv_heads) * key_dim
    return ffn_dim + saved // (2 * dim + 1)


# %% exercise 4 | right
# All widths are tried.
def width_of_equal_size(dim, num_heads, num_kv_heads, key_dim, ffn_dim):
    saved = 2 * (dim + 1) * (num_heads - num_kv_heads) * key_dim
    units = range(4 * num_heads * key_dim)
    return ffn_dim + min(units, key=lambda u: abs(u * (2 * dim + 1) - saved))


# %% exercise 5 | sharing changes the values
# The keys agree, the values do not.
def kernels_that_agree(num_heads, num_kv_heads, key_dim, dim):
    draw, size = np.random.default_rng(0), num_heads * key_dim
    shared = draw.standard_normal((dim, num_kv_heads, key_dim))
    W_k = np.repeat(shared, num_heads // num_kv_heads, axis=1)
    W_q, W_v = draw.standard_normal((2, dim, size))
    W_o = draw.standard_normal((size, dim))
    return [W_q, W_k.reshape(dim, size), W_v, W_o]


# %% exercise 5 | sharing changes the keys
# The values agree, the keys do not.
def kernels_that_agree(num_heads, num_kv_heads, key_dim, dim):
    draw, size = np.random.default_rng(0), num_heads * key_dim
    shared = draw.standard_normal((dim, num_kv_heads, key_dim))
    W_v = np.repeat(shared, num_heads // num_kv_heads, axis=1)
    W_q, W_k = draw.standard_normal((2, dim, size))
    W_o = draw.standard_normal((size, dim))
    return [W_q, W_k, W_v.reshape(dim, size), W_o]


# %% exercise 5 | groups have the same keys
# All heads are one group.
def kernels_that_agree(num_heads, num_kv_heads, key_dim, dim):
    draw, size = np.random.default_rng(0), num_heads * key_dim
    shared = draw.standard_normal((2, dim, key_dim))
    W_k, W_v = np.tile(shared, (1, 1, num_heads))
    W_q, W_o = draw.standard_normal((2, dim, size))
    return [W_q, W_k, W_v, W_o.T]


# %% exercise 5 | two query heads are alike
# The queries of a group are shared as well.
def kernels_that_agree(num_heads, num_kv_heads, key_dim, dim):
    draw, size = np.random.default_rng(0), num_heads * key_dim
    shared = draw.standard_normal((3, dim, num_kv_heads, key_dim))
    copies = np.repeat(shared, num_heads // num_kv_heads, axis=2)
    W_o = draw.standard_normal((size, dim))
    return [*copies.reshape(3, dim, size), W_o]


# %% exercise 5 | always 0 says nothing
# Nothing reaches the output.
def kernels_that_agree(num_heads, num_kv_heads, key_dim, dim):
    draw, size = np.random.default_rng(0), num_heads * key_dim
    shared = draw.standard_normal((2, dim, num_kv_heads, key_dim))
    copies = np.repeat(shared, num_heads // num_kv_heads, axis=2)
    W_k, W_v = copies.reshape(2, dim, size)
    return [draw.standard_normal((dim, size)), W_k, W_v, np.zeros((size, dim))]


# %% exercise 5 | the shapes are
# The kernels that the shared layer would have.
def kernels_that_agree(num_heads, num_kv_heads, key_dim, dim):
    draw, size = np.random.default_rng(0), num_heads * key_dim
    W_q, W_o = draw.standard_normal((2, dim, size))
    W_k, W_v = draw.standard_normal((2, dim, num_kv_heads * key_dim))
    return [W_q, W_k, W_v, W_o.T]


# %% exercise 5 | right
# Lists, filled head by head.
def kernels_that_agree(num_heads, num_kv_heads, key_dim, dim):
    draw = np.random.default_rng(0)
    share = num_heads // num_kv_heads
    kernels = [draw.random((dim, num_heads * key_dim)) for _ in range(4)]
    for kernel in kernels[1:3]:
        for head in range(num_heads):
            first = (head - head % share) * key_dim  # of its group
            own = kernel[:, head * key_dim : (head + 1) * key_dim]
            own[:] = kernel[:, first : first + key_dim]
    kernels[3] = kernels[3].T
    return [kernel.tolist() for kernel in kernels]
