"""Answers with which the checks of chapter 06 are tried, right and wrong."""


# %% exercise 2 | do not sum to the output
# Every H-th row of W_o is taken for a head's.
def contributions(layer, query, key):
    _, weights = layer(query, key=key, return_attention_scores=True)
    heads = np.einsum("bhts,bshv->bthv", weights, layer.project_value(key))
    kernel = layer.get_weights()[3]
    blocks = kernel.reshape(layer.value_dim, layer.num_heads, -1)
    return np.einsum("bthv,vhd->bthd", heads, blocks)


# %% exercise 2 | head 0's share is not
# The output is dealt out evenly.
def contributions(layer, query, key):
    output = np.array(layer(query, key=key))[:, :, None]
    return np.repeat(output, layer.num_heads, axis=2) / layer.num_heads


# %% exercise 2 | the shape is (B, T, H, D)
# What the heads return, before W_o.
def contributions(layer, query, key):
    _, weights = layer(query, key=key, return_attention_scores=True)
    return np.einsum("bhts,bshv->bthv", weights, layer.project_value(key))


# %% exercise 2 | head 1's share is not
# The order of the other heads is turned round.
def contributions(layer, query, key):
    _, weights = layer(query, key=key, return_attention_scores=True)
    heads = np.einsum("bhts,bshv->bthv", weights, layer.project_value(key))
    blocks = layer.get_weights()[3].reshape(heads.shape[2], heads.shape[3], -1)
    parts = np.einsum("bthv,hvd->bthd", heads, blocks)
    return np.concatenate([parts[:, :, :1], parts[:, :, :0:-1]], axis=2)


# %% exercise 2 | the layer's own kernel has changed
# All heads but one are silenced in turn, and the last stays alone.
def contributions(layer, query, key):
    *others, kernel = layer.get_weights()
    parts, head = [], np.arange(len(kernel))[:, None] // layer.value_dim
    for h in range(layer.num_heads):
        layer.set_weights([*others, kernel * (head == h)])
        parts.append(np.array(layer(query, key=key)))
    return np.stack(parts, axis=2)


# %% exercise 2 | right
# All heads but one are silenced in turn, and wake up afterwards.
def contributions(layer, query, key):
    *others, kernel = layer.get_weights()
    parts, head = [], np.arange(len(kernel))[:, None] // layer.value_dim
    for h in range(layer.num_heads):
        layer.set_weights([*others, kernel * (head == h)])
        parts.append(np.array(layer(query, key=key)))
    layer.set_weights([*others, kernel])
    return np.stack(parts, axis=2)


# %% exercise 3 | has every kernel its bias
# No biases at all.
def parameters(num_heads, key_dim, value_dim, output_dim, query_dim, input_dim):
    keys, values = num_heads * key_dim, num_heads * value_dim
    return query_dim * keys + input_dim * (keys + values) + values * output_dim


# %% exercise 3 | one head is right
# Sizes are taken for the whole layer, not for each head.
def parameters(num_heads, key_dim, value_dim, output_dim, query_dim, input_dim):
    return (
        (query_dim + 1) * key_dim
        + (input_dim + 1) * (key_dim + value_dim)
        + (value_dim + 1) * output_dim
    )


# %% exercise 3 | one head is right
# Every head has an output kernel, and a bias, of its own.
def parameters(num_heads, key_dim, value_dim, output_dim, query_dim, input_dim):
    keys, values = num_heads * key_dim, num_heads * value_dim
    return (
        (query_dim + 1) * keys
        + (input_dim + 1) * (keys + values)
        + num_heads * (value_dim + 1) * output_dim
    )


# %% exercise 3 | has every kernel its bias
# Keys are projected from the query's features.
def parameters(num_heads, key_dim, value_dim, output_dim, query_dim, input_dim):
    keys, values = num_heads * key_dim, num_heads * value_dim
    return (
        2 * (query_dim + 1) * keys
        + (input_dim + 1) * values
        + (values + 1) * output_dim
    )


# %% exercise 3 | has every kernel its bias
# 4 D², as in the text, which holds for K = V = D / H only.
def parameters(num_heads, key_dim, value_dim, output_dim, query_dim, input_dim):
    return 4 * query_dim**2 + 4 * query_dim


# %% exercise 4 | the largest error
# Both heads look left.
def kernels_by_hand(N):
    same = np.eye(N)
    left = np.roll(same, -1, axis=1)
    W_q = 20 * N**0.5 * np.concatenate([left, left], axis=1)
    W_k = np.concatenate([same, same], axis=1)
    return [W_q, W_k, np.ones((1, 2)), np.array([[1.0], [-1.0]])]


# %% exercise 4 | the largest error
# Both heads have the same sign.
def kernels_by_hand(N):
    same = np.eye(N)
    left, right = np.roll(same, -1, axis=1), np.roll(same, 1, axis=1)
    W_q = 20 * N**0.5 * np.concatenate([left, right], axis=1)
    W_k = np.concatenate([same, same], axis=1)
    return [W_q, W_k, np.ones((1, 2)), np.ones((2, 1))]


# %% exercise 4 | the largest error
# Left and right are exchanged.
def kernels_by_hand(N):
    same = np.eye(N)
    left, right = np.roll(same, -1, axis=1), np.roll(same, 1, axis=1)
    W_q = 20 * N**0.5 * np.concatenate([right, left], axis=1)
    W_k = np.concatenate([same, same], axis=1)
    return [W_q, W_k, np.ones((1, 2)), np.array([[1.0], [-1.0]])]


# %% exercise 4 | the largest error
# The scores are too small for a softmax to choose.
def kernels_by_hand(N):
    same = np.eye(N)
    left, right = np.roll(same, -1, axis=1), np.roll(same, 1, axis=1)
    W_q = 5 * np.concatenate([left, right], axis=1)
    W_k = np.concatenate([same, same], axis=1)
    return [W_q, W_k, np.ones((1, 2)), np.array([[1.0], [-1.0]])]


# %% exercise 4 | the largest error
# The ends of the line are not joined to a circle.
def kernels_by_hand(N):
    same = np.eye(N)
    left, right = np.eye(N, k=-1), np.eye(N, k=1)
    W_q = 20 * N**0.5 * np.concatenate([left, right], axis=1)
    W_k = np.concatenate([same, same], axis=1)
    return [W_q, W_k, np.ones((1, 2)), np.array([[1.0], [-1.0]])]


# %% exercise 4 | right
# Lists, a larger factor, and the keys in place of the queries shifted.
def kernels_by_hand(N):
    W_q = [[1000 * (i == j % N) for j in range(2 * N)] for i in range(N)]
    W_k = [[0] * (2 * N) for _ in range(N)]
    for i in range(N):
        W_k[i][(i + 1) % N] = W_k[i][N + (i - 1) % N] = 1
    return W_q, W_k, [[1, 1]], [[1], [-1]]
