"""Linear attention: a state instead of a cache, and what it forgets.

Without the softmax, all earlier keys and values fit in one matrix K × V a
head. Decay and gates shrink it, the delta rule corrects what it holds.
"""

import math

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import check_shapes, wide
from d2l_attention.layers.compiled_loops import scan_states
from d2l_attention.layers.masking import causal_mask, key_mask_of, token_mask
from d2l_attention.layers.multi_head import SelfAttentionByPattern
from d2l_attention.layers.reshaping import join_chunks, split_into_chunks
import keras
from keras import ops


def recurrent_attention(
    query, key, value, log_decay=None, strength=None, state=None
):
    """Causal linear attention, token by token: the equation as it stands.

        S ← α S
        v' = v, or with a strength the delta rule: v' = β (v − Sᵀ k)
        S ← S + k v'ᵀ
        output = Sᵀ q

    It keeps the states of all tokens: for small inputs, and as the measure of
    `linear_attention` and `delta_attention`.

    Source: Katharopoulos et al. (2020), arXiv:2006.16236, section 3.4; with a
    decay Sun et al. (2023), arXiv:2307.08621; with a gate of each feature
    Yang et al. (2023), arXiv:2312.06635; the delta rule Schlag et al. (2021),
    arXiv:2102.11174; both Yang et al. (2024), arXiv:2412.06464. Nothing is
    normalized and no feature map is applied.

    Args:
        query, key: Float tensors `(B, T, H, K)`.
        value: Float tensor `(B, T, H, V)`.
        log_decay: Float tensor `(B, T, H)`, ln α, or `(B, T, H, K)`, one of
            each feature of the keys; None = no decay.
        strength: Float tensor `(B, T, H)`, β; None = no delta rule.
        state: Float tensor `(B, H, K, V)`, S before the first token; None =
            zeros.

    Returns:
        Float tensor `(B, T, H, V)`, and the last state `(B, H, K, V)`, of
        float32 or wider.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import recurrent_attention
        >>> key = np.ones((1, 2, 1, 1))  # the same key, two values
        >>> value = np.array([3.0, 5.0]).reshape(1, 2, 1, 1)
        >>> output, _ = recurrent_attention(key, key, value)
        >>> np.array(output).ravel().tolist()  # their sum
        [3.0, 8.0]
        >>> beta = np.ones((1, 2, 1))
        >>> output, _ = recurrent_attention(key, key, value, strength=beta)
        >>> np.array(output).ravel().tolist()  # the last one
        [3.0, 5.0]
    """
    inputs = {"query": query, "key": key, "value": value}
    if log_decay is not None:
        log_decay = ops.convert_to_tensor(log_decay)
        if len(log_decay.shape) == 3:
            log_decay = ops.expand_dims(log_decay, -1)
        inputs["log_decay"] = log_decay  # (B, T, H, 1) or (B, T, H, K)
    if strength is not None:
        inputs["strength"] = ops.expand_dims(strength, -1)
    dtype, inputs = _widen(inputs)
    state = _first_state(inputs["key"], inputs["value"], state)

    def step(state_and_output, token):
        state, _ = state_and_output
        query, key, value = (token[x] for x in ("query", "key", "value"))
        if "log_decay" in token:
            state = ops.exp(token["log_decay"])[..., None] * state
        if "strength" in token:
            held = ops.einsum("bhk,bhkv->bhv", key, state)
            value = token["strength"] * (value - held)
        state = state + key[..., None] * value[..., None, :]
        return state, ops.einsum("bhk,bhkv->bhv", query, state)

    tokens = {name: ops.moveaxis(x, 1, 0) for name, x in inputs.items()}
    first = state, ops.zeros_like(state[:, :, 0])
    states, outputs = scan_states(step, first, tokens)
    states = ops.concatenate([state[None], states])  # of no tokens, too
    return ops.cast(ops.moveaxis(outputs, 0, 1), dtype), states[-1]


def linear_attention(
    query, key, value, log_decay=None, *, state=None, chunk_size=64
):
    """Causal linear attention with a decay, in chunks of C tokens.

        output = (Λ ∘ Q Kᵀ) V,   Λ_ts = α_{s+1} ⋯ α_t for s ≤ t, otherwise 0

    as `recurrent_attention` has it. Within a chunk, the formula is computed
    directly; everything before the chunk enters as one state. The cost grows
    with T. Products of decays are exponentials of sums of logarithms, never
    quotients, which overflow.

    Source: Dao and Gu (2024), arXiv:2405.21060, section 6; Katharopoulos et
    al. (2020), arXiv:2006.16236.

    Args:
        query, key, value, log_decay, state: As in `recurrent_attention`; the
            decay `(B, T, H)` is one number for each token and head.
        chunk_size: Positive int, C.

    Returns:
        As `recurrent_attention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import linear_attention
        >>> key = np.ones((1, 3, 1, 1))
        >>> value = np.array([8.0, 4.0, 1.0]).reshape(1, 3, 1, 1)
        >>> half = np.full((1, 3, 1), np.log(0.5))
        >>> output, state = linear_attention(key, key, value, half)
        >>> np.array(output).ravel().tolist()  # 8, 4 + 4, 2 + 2 + 1
        [8.0, 8.0, 5.0]
    """
    return _in_chunks(query, key, value, log_decay, None, state, chunk_size)


def delta_attention(
    query, key, value, strength, log_decay=None, *, state=None, chunk_size=64
):
    """The delta rule, or with a decay the gated delta rule, in chunks.

        S ← α S,   S ← S + β k (v − Sᵀ k)ᵀ,   output = Sᵀ q

    as `recurrent_attention` has it. What the tokens of a chunk write solves a
    triangular system, since each corrects what those before it wrote. Its
    matrix is inverted by blocks of 1, 2, 4 … tokens.

    Source: Yang et al. (2024), arXiv:2406.06484 (chunks), and arXiv:2412.06464
    (the decay). The caller must normalize the keys: where β ‖k‖² is outside of
    [0, 2], the state may grow without bound.

    Args:
        query, key, value, log_decay, state: As in `linear_attention`.
        strength: Float tensor `(B, T, H)`, β; where it is 0 and α is 1, a
            token changes nothing.
        chunk_size: Positive int, C.

    Returns:
        As `recurrent_attention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import delta_attention
        >>> key = np.eye(2)[[0, 1, 0]].reshape(1, 3, 1, 2)
        >>> value = np.array([8.0, 4.0, 1.0]).reshape(1, 3, 1, 1)
        >>> output, state = delta_attention(key, key, value, np.ones((1, 3, 1)))
        >>> np.array(state).ravel().tolist()  # the 8 is written over
        [1.0, 4.0]
    """
    return _in_chunks(query, key, value, log_decay, strength, state, chunk_size)


def linear_attention_weights(query, key, log_decay=None, strength=None):
    """The weights that linear attention never forms, for small inputs.

        weights = Λ ∘ Q Kᵀ, or with the delta rule
        weights = (Λ ∘ Q Kᵀ) (I + tril(diag(β) (Λ ∘ K Kᵀ), −1))⁻¹ diag(β)

    They have signs, and rows need not sum to 1.

    Source: Dao and Gu (2024), arXiv:2405.21060, section 3; Yang et al.
    (2024), arXiv:2412.06464, section 3.3.

    Args:
        query, key, log_decay, strength: As in `linear_attention` and
            `delta_attention`, from an empty state.

    Returns:
        Float tensor `(B, H, T, T)`; weights times values are the output.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import linear_attention_weights
        >>> key = np.ones((1, 3, 1, 1))
        >>> half = np.full((1, 3, 1), np.log(0.5))
        >>> np.array(linear_attention_weights(key, key, half))[0, 0].tolist()
        [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]]
    """
    dtype, parts = _widen(_parts(query, key, log_decay, strength))
    parts = {name: ops.moveaxis(x, 1, 2) for name, x in parts.items()}
    between = _products_of_decays(parts["log_decay"])  # (B, H, T, T)
    key = parts["key"]  # (B, H, T, K)
    weights = between * _products(parts["query"], key)
    if strength is not None:
        weights = weights @ _writes(key, parts["strength"], between)
    return ops.cast(weights, dtype)


@keras.saving.register_keras_serializable("d2l_attention")
class LinearAttention(SelfAttentionByPattern):
    """Multi-head causal self-attention without the softmax.

        head_h = (Λ ∘ Q_h K_hᵀ) V_h / √K,   Λ_ts = 1 for s ≤ t, otherwise 0
        output = [head_1; …; head_H] W_o

    Keys and values of all earlier tokens are one matrix `(K, V)` a head, so a
    decoder's cache does not grow. Padding changes no state.

    Source: Katharopoulos et al. (2020), arXiv:2006.16236, section 3. Unlike
    there, keys and queries have no feature map, and no sum divides the
    output: weights have signs, and rows need not sum to 1. Norms of the
    output and short convolutions, which models put around it, are left out.

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Unlike `AttentionLayer`, it takes the queries alone, which are the keys and
    values, and no `attention_mask`; it is always causal. It forms no weights
    `(B, H, T, T)`, so it has neither `dropout` nor `return_attention_scores`.
    It does not export to TFLite, which cannot take its loop over an unknown
    number of chunks.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LinearAttention
        >>> layer = LinearAttention(num_heads=2, key_dim=3)
        >>> x = np.ones((1, 5, 4))
        >>> tuple(layer(x).shape)
        (1, 5, 4)
        >>> cache = layer.make_cache(batch_size=1, max_length=100_000)
        >>> tuple(cache["state"].shape)  # of however many tokens
        (1, 2, 3, 3)
    """

    weights_from = (
        "linear_attention_weights of d2l_attention.layers.linear gives the "
        "weights, which have signs, for small inputs, and MultiHeadAttention "
        "has dropout."
    )

    def log_decay(self, x):
        """ln α of each token and head, `(B, T, H)`; None = no decay."""
        return None

    def strength(self, x):
        """β of each token and head, `(B, T, H)`; None = no delta rule."""
        return None

    def read_on(self, x, tokens=None, state=None):
        """Output `(B, T, D)` and state of tokens x `(B, T, D)` after `state`.

        Padding, where `tokens` `(B, T)` is False, writes and decays nothing.
        """
        query = self.project_query(x) / self.key_dim**0.5  # (B, T, H, K)
        key = self.project_key(x)  # (B, T, H, K)
        value = self.project_value(x)  # (B, T, H, V)
        log_decay, strength = self.log_decay(x), self.strength(x)
        if tokens is not None:
            tokens = ops.expand_dims(tokens, -1)  # (B, T, 1)
            key = ops.where(tokens[..., None], key, 0.0)
            if log_decay is not None:
                log_decay = ops.where(tokens, log_decay, 0.0)
        if strength is None:
            heads, state = linear_attention(
                query, key, value, log_decay, state=state
            )
        else:
            heads, state = delta_attention(
                query, key, value, strength, log_decay, state=state
            )
        return self.join_heads(heads), state

    def call(
        self,
        query,
        *,
        query_mask=None,
        key_mask=None,
        mask=None,
        use_causal_mask=True,
    ):
        check_shapes(query.shape)
        self._check_causal(use_causal_mask)
        return self.read_on(query, token_mask(query_mask, key_mask, mask))[0]

    def attend_to_itself(
        self, x, mask=None, *, use_causal_mask=False, training=None
    ):
        """Output of x `(B, T, D)`, and None for the weights; for blocks.

        It calls the layer, where heatmaps see it.
        """
        tokens = key_mask_of(mask)
        return self(x, key_mask=tokens, use_causal_mask=use_causal_mask), None

    def _check_causal(self, use_causal_mask):
        if not use_causal_mask:
            raise ValueError(
                f"{type(self).__name__} sums up keys in their order, and so "
                "is always causal. Received: use_causal_mask="
                f"{use_causal_mask}."
            )

    def make_cache(self, batch_size, max_length):
        """An empty state, of one size for any `max_length`."""
        shape = (batch_size, self.num_heads, self.key_dim, self.value_dim)
        return {"state": ops.zeros(shape, wide(self.compute_dtype))}

    def step(self, x, positions, cache, query_mask=None):
        """Attend from tokens `(B, T, D)` to themselves and to the state.

        What comes back is `(B, T, D)`, and the cache with the state after them.
        Padding, where `query_mask` `(B, T)` is False, does not enter the state.
        `positions` are ignored.
        """
        output, state = self.read_on(x, query_mask, cache["state"])
        return output, {"state": state}


@keras.saving.register_keras_serializable("d2l_attention")
class DecayedAttention(LinearAttention):
    """Linear attention in which each head forgets at a rate of its own.

        head_h = (Λ_h ∘ Q_h K_hᵀ) V_h / √K,   Λ_ts = γ_h^(t − s) for s ≤ t
        γ_h = 1 − 2^(−5 − h),  h = 0 … H − 1

    The rates are fixed. It is RetNet's retention without the rotation of
    queries and keys, the norm of each head and the output gate.

    Source: Sun et al. (2023), arXiv:2307.08621, sections 2.1 and 2.2.

    Args:
        num_heads, key_dim: As in `LinearAttention`.
        value_dim, output_dim, use_bias: As there.

    The call is that of `LinearAttention`; nor does it export to TFLite.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import DecayedAttention
        >>> layer = DecayedAttention(num_heads=2, key_dim=3)
        >>> decays = np.exp(np.array(layer.log_decay(np.ones((1, 1, 4)))))
        >>> print(decays.round(4))
        [[[0.9688 0.9844]]]
    """

    def log_decay(self, x):
        rates = [math.log1p(-(2.0 ** (-5 - h))) for h in range(self.num_heads)]
        rates = ops.convert_to_tensor(rates, wide(self.compute_dtype))
        return ops.broadcast_to(rates, (*ops.shape(x)[:-1], self.num_heads))


@keras.saving.register_keras_serializable("d2l_attention")
class GatedLinearAttention(LinearAttention):
    """Linear attention that decides from each token how much to forget.

        α = sigmoid(x W_a + b_a)
        S ← α S,   S ← S + k vᵀ,   output of a head = Sᵀ q / √K

    The gate is one number for each token and head, as in Mamba-2, whose
    formula for it is another one and also scales what is written; in the
    paper with the name of gated linear attention it is one for each feature
    of the keys, which `recurrent_attention` computes. b_a begins at 4, and so
    α near 0.98.

    Source: Dao and Gu (2024), arXiv:2405.21060; Yang et al. (2023),
    arXiv:2312.06635.

    Args:
        num_heads, key_dim: As in `LinearAttention`.
        value_dim, output_dim, use_bias: As there; the gate always has a bias.

    The call is that of `LinearAttention`; nor does it export to TFLite.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GatedLinearAttention
        >>> layer = GatedLinearAttention(num_heads=2, key_dim=3)
        >>> x = np.zeros((1, 1, 4))  # the bias alone
        >>> _ = layer(x)
        >>> print(np.exp(np.array(layer.log_decay(x))).round(3))
        [[[0.982 0.982]]]
    """

    def build(self, query_shape):
        super().build(query_shape)
        self.gate_layer = _gate(self, "W_a", query_shape[-1], bias=4.0)

    def log_decay(self, x):
        gate = ops.cast(self.gate_layer(x), wide(self.compute_dtype))
        return ops.log_sigmoid(gate)


@keras.saving.register_keras_serializable("d2l_attention")
class DeltaAttention(LinearAttention):
    """Linear attention that writes what is missing: the delta rule.

        β = sigmoid(x W_b + b_b),   k and q divided by their lengths
        S ← S + β k (v − Sᵀ k)ᵀ,   output of a head = Sᵀ q / √K

    With β = 1, the state gives v back for k right after it is written.

    Source: Schlag et al. (2021), arXiv:2102.11174; Yang et al. (2024),
    arXiv:2406.06484.

    Args:
        num_heads, key_dim: As in `LinearAttention`.
        value_dim, output_dim, use_bias: As there; β always has a bias.

    The call is that of `LinearAttention`; nor does it export to TFLite.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import DeltaAttention
        >>> layer = DeltaAttention(num_heads=2, key_dim=3)
        >>> x = np.ones((1, 1, 4))
        >>> _ = layer(x)
        >>> lengths = np.linalg.norm(layer.project_key(x), axis=-1)
        >>> print(lengths.round(4))
        [[[1. 1.]]]
    """

    def build(self, query_shape):
        super().build(query_shape)
        self.strength_layer = _gate(self, "W_b", query_shape[-1], bias=0.0)

    def strength(self, x):
        beta = ops.cast(self.strength_layer(x), wide(self.compute_dtype))
        return ops.sigmoid(beta)

    def project_query(self, query, start=0):
        """Queries `(B, T, H, K)` of length 1."""
        return _of_length_1(super().project_query(query))

    def project_key(self, key, start=0):
        """Keys `(B, T, H, K)` of length 1."""
        return _of_length_1(super().project_key(key))


@keras.saving.register_keras_serializable("d2l_attention")
class GatedDeltaAttention(GatedLinearAttention, DeltaAttention):
    """Linear attention with a gate and the delta rule.

        α = sigmoid(x W_a + b_a),   β = sigmoid(x W_b + b_b)
        S ← α S,   S ← S + β k (v − Sᵀ k)ᵀ,   output of a head = Sᵀ q / √K

    The state decays first, so that v − Sᵀ k is the error of what is left.
    Queries and keys are as in `DeltaAttention`. It is the rule of the linear
    layers of Qwen3.5, without their short convolution, output norm and output
    gate, and with a plain sigmoid for α.

    Source: Yang et al. (2024), arXiv:2412.06464.

    Args:
        num_heads, key_dim: As in `LinearAttention`.
        value_dim, output_dim, use_bias: As there; the gates always have a
            bias.

    The call is that of `LinearAttention`; nor does it export to TFLite.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GatedDeltaAttention
        >>> layer = GatedDeltaAttention(num_heads=2, key_dim=3)
        >>> x = np.random.default_rng(0).normal(size=(1, 5, 4))
        >>> whole, cache = layer(x), layer.make_cache(1, max_length=5)
        >>> for t in range(5):  # token by token
        ...     y, cache = layer.step(x[:, t : t + 1], None, cache)
        >>> bool(np.allclose(y[:, 0], whole[:, 4], atol=1e-5))
        True
    """


def _gate(layer, name, input_size, bias):
    """A dense layer with one number for each head, which starts at `bias`."""
    gate = keras.layers.Dense(
        layer.num_heads,
        bias_initializer=keras.initializers.Constant(bias),
        name=name,
        dtype=layer.dtype_policy,
    )
    gate.build((None, None, input_size))
    return gate


def _of_length_1(x):
    """x `(…, K)` divided by its length; zeros stay zeros."""
    dtype, x = x.dtype, ops.cast(x, wide(x.dtype))
    squares = ops.sum(x * x, axis=-1, keepdims=True)
    return ops.cast(x * ops.rsqrt(squares + 1e-6), dtype)


def _parts(query, key, log_decay, strength):
    """The arguments by name, all with four axes; no decay is ln 1 = 0."""
    query, key = (ops.convert_to_tensor(x) for x in (query, key))
    if log_decay is None:
        log_decay = ops.zeros_like(key[..., 0])
    if len(log_decay.shape) != 3:
        raise ValueError(
            "In chunks, a decay is one number for each token and head, "
            "(B, T, H); recurrent_attention takes one for each feature. "
            f"Received: log_decay {tuple(log_decay.shape)}."
        )
    parts = {
        "query": query,
        "key": key,
        "log_decay": ops.expand_dims(log_decay, -1),
    }
    if strength is not None:
        parts["strength"] = ops.expand_dims(strength, -1)
    return parts


def _widen(parts):
    """The dtype of the query, and all tensors in float32 or wider."""
    parts = {name: ops.convert_to_tensor(x) for name, x in parts.items()}
    dtype = parts["query"].dtype
    return dtype, {n: ops.cast(x, wide(dtype)) for n, x in parts.items()}


def _first_state(key, value, state=None):
    """The state as given, or zeros `(B, H, K, V)`, of the keys' dtype."""
    if state is None:
        batch, _, heads, width = ops.shape(key)
        return ops.zeros((batch, heads, width, value.shape[-1]), key.dtype)
    return ops.cast(state, key.dtype)


def _in_chunks(query, key, value, log_decay, strength, state, chunk_size):
    """`recurrent_attention` without a loop over the tokens of a chunk."""
    parts = _parts(query, key, log_decay, strength)
    dtype, parts = _widen({**parts, "value": value})
    length = ops.shape(parts["query"])[1]
    size = check_positive("chunk_size", chunk_size)
    if isinstance(length, int):
        size = max(1, min(size, length))
    state = _first_state(parts["key"], parts["value"], state)
    parts = {  # (B, N, H, C, ·)
        name: ops.moveaxis(split_into_chunks(x, size), 2, 3)
        for name, x in parts.items()
    }
    query, key, value = (parts[x] for x in ("query", "key", "value"))
    between = _products_of_decays(parts["log_decay"])  # (B, N, H, C, C)
    since_start = ops.exp(ops.cumsum(parts["log_decay"], axis=-2))
    until_end = ops.swapaxes(between[..., -1:, :], -1, -2)  # (B, N, H, C, 1)
    chunks = {
        "key": key * until_end,
        "value": value,
        "decay": since_start[..., -1:, :],  # (B, N, H, 1, 1)
    }
    if strength is not None:
        writes = _writes(key, parts["strength"], between)
        chunks["value"] = writes @ value
        chunks["reads"] = writes @ (key * since_start)

    def after_chunk(state, chunk):
        of_chunk = ops.swapaxes(chunk["key"], -1, -2) @ _written(chunk, state)
        return chunk["decay"] * state + of_chunk

    by_number = {name: ops.moveaxis(x, 1, 0) for name, x in chunks.items()}
    if by_number["key"].shape[0] == 1:  # such as one token: no loop
        only = {name: x[0] for name, x in by_number.items()}
        states = after_chunk(state, only)[None]
    else:
        states = scan_states(after_chunk, state, by_number)  # (N, B, H, K, V)
    states = ops.concatenate([state[None], states])
    before = ops.moveaxis(states[:-1], 0, 1)  # (B, N, H, K, V)
    within = (between * _products(query, key)) @ _written(chunks, before)
    heads = (since_start * query) @ before + within  # (B, N, H, C, V)
    heads = join_chunks(ops.moveaxis(heads, 3, 2), length)
    return ops.cast(heads, dtype), states[-1]


def _products(a, b):
    """a bᵀ of the last two axes."""
    return a @ ops.swapaxes(b, -1, -2)


def _products_of_decays(log_decay):
    """Λ of chunks `(…, C, 1)`: α_{s+1} ⋯ α_t for s ≤ t, otherwise 0.

    The logarithms between s and t are summed up for each pair. A difference
    of two sums from the chunk's beginning would lose digits to a strong decay
    before s, and be NaN where a decay is 0.
    """
    size = log_decay.shape[-2]
    past = causal_mask(size)
    strictly = ops.logical_and(past, ops.logical_not(ops.transpose(past)))
    summands = ops.where(strictly, log_decay, 0.0)  # ln α_t where s < t
    sums = ops.cumsum(summands, axis=-2)  # (…, C, C)
    return ops.exp(ops.where(past, sums, -float("inf")))


def _writes(key, strength, between):
    """The matrix `(…, C, C)` that turns values into what is written.

    (I + L)⁻¹ diag(β),   L = tril(diag(β) (Λ ∘ K Kᵀ), −1)
    """
    lower = strength * between * _products(key, key)
    size = key.shape[-2]
    places = ops.arange(size, dtype="int32")

    def joining(block):
        """Of L what lies between two blocks that are joined next."""
        joined = _same_block(places, 2 * block)
        joined = ops.logical_and(joined, causal_mask(size))
        inside = _same_block(places, block)
        joined = ops.logical_and(joined, ops.logical_not(inside))
        return ops.where(joined, lower, 0.0)

    inverse = ops.eye(size, dtype=key.dtype) - joining(1)
    block = 2
    while block < size:  # the inverse holds within blocks of this many tokens
        inverse = inverse - inverse @ joining(block) @ inverse
        block = 2 * block
    return inverse * ops.swapaxes(strength, -1, -2)


def _same_block(places, size):
    blocks = places // size
    return ops.equal(blocks[:, None], blocks)


def _written(chunk, state):
    """What the tokens of a chunk add, given the state before it."""
    if "reads" not in chunk:
        return chunk["value"]
    return chunk["value"] - chunk["reads"] @ state
