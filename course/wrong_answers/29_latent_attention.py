"""Wrong answers to the exercises of chapter 29; each check refuses them."""


# %% exercise 1 | the turned key is kept, too
# The latent alone is counted.
def bytes_kept(tokens, num_layers, latent_dim, rotary_dim, bytes_each=2):
    return tokens * num_layers * latent_dim * bytes_each


# %% exercise 1 | it is kept once
# A latent for the keys and one for the values.
def bytes_kept(tokens, num_layers, latent_dim, rotary_dim, bytes_each=2):
    return 2 * tokens * num_layers * (latent_dim + rotary_dim) * bytes_each


# %% exercise 1 | for each token and layer
# One layer is counted.
def bytes_kept(tokens, num_layers, latent_dim, rotary_dim, bytes_each=2):
    return tokens * (latent_dim + rotary_dim) * bytes_each


# %% exercise 1 | 4 bytes a number
# The size of a number is fixed at 16 bits.
def bytes_kept(tokens, num_layers, latent_dim, rotary_dim, bytes_each=2):
    return tokens * num_layers * (latent_dim + rotary_dim) * 2


# %% exercise 1 | for each token and layer
# Latent and turned key are multiplied.
def bytes_kept(tokens, num_layers, latent_dim, rotary_dim, bytes_each=2):
    return tokens * num_layers * latent_dim * max(rotary_dim, 1) * bytes_each


# %% exercise 1 | right
# One number after the other.
def bytes_kept(tokens, num_layers, latent_dim, rotary_dim, bytes_each=2):
    total = 0
    for _ in range(num_layers):
        total += tokens * bytes_each * latent_dim
        total += tokens * bytes_each * rotary_dim
    return total


# %% exercise 3 | the size of a query before it was moved
# Divided by the root of the numbers that are compared.
def latent_step(query, cache, U_K, U_V, lengths):
    R, _, K = U_K.shape
    moved = np.einsum("bhk,rhk->bhr", query[..., :K], U_K)
    moved = np.concatenate([moved, query[..., K:]], axis=-1)
    scores = np.einsum("bhr,bsr->bhs", moved, cache)
    scores = scores / cache.shape[-1] ** 0.5
    filled = np.arange(cache.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    means = np.einsum("bhs,bsr->bhr", weights, cache[..., :R])
    return np.einsum("bhr,rhv->bhv", means, U_V)


# %% exercise 3 | divided by √(K + P)?
# Divided by the root of K alone.
def latent_step(query, cache, U_K, U_V, lengths):
    R, _, K = U_K.shape
    moved = np.einsum("bhk,rhk->bhr", query[..., :K], U_K)
    moved = np.concatenate([moved, query[..., K:]], axis=-1)
    scores = np.einsum("bhr,bsr->bhs", moved, cache) / K**0.5
    filled = np.arange(cache.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    means = np.einsum("bhs,bsr->bhr", weights, cache[..., :R])
    return np.einsum("bhr,rhv->bhv", means, U_V)


# %% exercise 3 | are the last P features of query and cache compared
# The position part is left out.
def latent_step(query, cache, U_K, U_V, lengths):
    R, _, K = U_K.shape
    moved = np.einsum("bhk,rhk->bhr", query[..., :K], U_K)
    scores = np.einsum("bhr,bsr->bhs", moved, cache[..., :R])
    scores = scores / query.shape[-1] ** 0.5
    filled = np.arange(cache.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    weights = np.array(masked_softmax(scores, filled))
    means = np.einsum("bhs,bsr->bhr", weights, cache[..., :R])
    return np.einsum("bhr,rhv->bhv", means, U_V)


# %% exercise 3 | slots that its sequence has filled
# The empty slots are read as well.
def latent_step(query, cache, U_K, U_V, lengths):
    R, _, K = U_K.shape
    moved = np.einsum("bhk,rhk->bhr", query[..., :K], U_K)
    moved = np.concatenate([moved, query[..., K:]], axis=-1)
    scores = np.einsum("bhr,bsr->bhs", moved, cache)
    weights = np.array(masked_softmax(scores / query.shape[-1] ** 0.5))
    means = np.einsum("bhs,bsr->bhr", weights, cache[..., :R])
    return np.einsum("bhr,rhv->bhv", means, U_V)


# %% exercise 3 | the shape is (B, H, V)
# The average of the latents is what comes back.
def latent_step(query, cache, U_K, U_V, lengths):
    R, _, K = U_K.shape
    moved = np.einsum("bhk,rhk->bhr", query[..., :K], U_K)
    moved = np.concatenate([moved, query[..., K:]], axis=-1)
    scores = np.einsum("bhr,bsr->bhs", moved, cache)
    filled = np.arange(cache.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    scores = scores / query.shape[-1] ** 0.5
    weights = np.array(masked_softmax(scores, filled))
    return np.einsum("bhs,bsr->bhr", weights, cache[..., :R])


# %% exercise 3 | are keys or values made for each head
# The expanded form; the result is right.
def latent_step(query, cache, U_K, U_V, lengths):
    R, _, K = U_K.shape
    key = np.einsum("bsr,rhk->bshk", cache[..., :R], U_K)
    value = np.einsum("bsr,rhv->bshv", cache[..., :R], U_V)
    scores = np.einsum("bhk,bshk->bhs", query[..., :K], key)
    scores = scores + np.einsum("bhp,bsp->bhs", query[..., K:], cache[..., R:])
    filled = np.arange(cache.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    scores = scores / query.shape[-1] ** 0.5
    weights = np.array(masked_softmax(scores, filled))
    return np.einsum("bhs,bshv->bhv", weights, value)


# %% exercise 3 | do not call the package's
# Another hand absorbs; the result is right.
def latent_step(query, cache, U_K, U_V, lengths):
    filled = np.arange(cache.shape[1]) < np.reshape(lengths, (-1, 1, 1))
    output, _ = absorbed_latent_attention(
        query[:, None], cache, U_K, U_V, filled
    )
    return np.array(output)[:, 0]


# %% exercise 3 | right
# One sequence and one head after the other.
def latent_step(query, cache, U_K, U_V, lengths):
    R, H, K = U_K.shape
    output = np.zeros((len(query), H, U_V.shape[-1]))
    for b, length in enumerate(lengths):
        rows = cache[b, :length]
        for h in range(H):
            moved = np.append(U_K[:, h] @ query[b, h, :K], query[b, h, K:])
            scores = rows @ moved / query.shape[-1] ** 0.5
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            output[b, h] = weights @ rows[:, :R] @ U_V[:, h]
    return output


# %% exercise 4 | Do all S latents go through
# The way up is forgotten in the expanded form.
def tokens_to_expand(S, K, V, R, P):
    for T in range(1, S + 1):
        if T * S * (K + P + V) < T * S * (2 * R + P) + T * R * (K + V):
            return T
    return None


# %% exercise 4 | and the averages through U^V
# Nothing leads through U in the absorbed form.
def tokens_to_expand(S, K, V, R, P):
    for T in range(1, 2 * S + 1):
        if T * S * (K + P + V) + S * R * (K + V) < T * S * (2 * R + P):
            return T
    return None


# %% exercise 4 | once, and not once for each query
# The latents go up anew for each query.
def tokens_to_expand(S, K, V, R, P):
    for T in range(1, S + 1):
        expand = T * S * (K + P + V) + T * S * R * (K + V)
        if expand < T * S * (2 * R + P) + T * R * (K + V):
            return T
    return S + 1


# %% exercise 4 | absorbing takes fewer for any T up to S
# It is not noticed that expanding may never take fewer.
def tokens_to_expand(S, K, V, R, P):
    up = R * (K + V)
    for T in range(1, S + 1):
        if T * S * (K + P + V) + S * up < T * S * (2 * R + P) + T * up:
            break
    return T


# %% exercise 4 | absorbing still takes no more
# The last number for which absorbing takes fewer.
def tokens_to_expand(S, K, V, R, P):
    saved = S * (2 * R - K - V) + R * (K + V)
    return max(S * R * (K + V) // saved, 1) if saved > 0 else None


# %% exercise 4 | absorbing still takes no more
# Solved for T, and rounded up where both take as many.
def tokens_to_expand(S, K, V, R, P):
    saved = S * (2 * R - K - V) + R * (K + V)
    if saved <= 0:
        return None
    T = -(-S * R * (K + V) // saved)
    return T if T <= S else None


# %% exercise 4 | right
# Solved for T, and rounded up.
def tokens_to_expand(S, K, V, R, P):
    saved = S * (2 * R - K - V) + R * (K + V)  # by expanding, for each query
    if saved <= 0:
        return None
    T = S * R * (K + V) // saved + 1
    return T if T <= S else None
