"""Attention through random features, at a cost linear in the length."""

import math

from d2l_attention._checks import check_positive
from d2l_attention.efficient.blockwise import pages, prefixes, unpage
from d2l_attention.efficient.weightless import (
    WeightlessAttention,
    key_mask_of,
)
from d2l_attention.masking import causal_mask, masked_softmax
import keras
from keras import ops

NOTHING = -1e30  # the largest exponent among no keys; finite, unlike −inf


def orthogonal_directions(num_features, size, seed=None, dtype="float32"):
    """Random directions, orthogonal in blocks, each normal by itself.

        W_block = diag(r) Q sign(diag R),   Q R = a normal matrix,
        r = lengths of normal vectors of their own

    Each row is distributed as N(0, I). Without the signs it is not, since
    QR decompositions fix the sign of R or of Q: estimates are then biased,
    most of all where `size` is small.

    Source: Choromanski et al. (2021), arXiv:2009.14794, section 2.4;
    Mezzadri (2007), arXiv:math-ph/0609050, for the signs.

    Args:
        num_features: Positive int, M.
        size: Positive int, K.
        seed: Int or `keras.random.SeedGenerator`.
        dtype: Dtype of the result.

    Returns:
        Float tensor `(M, K)`.
    """
    if not isinstance(seed, keras.random.SeedGenerator):
        seed = keras.random.SeedGenerator(seed)
    blocks = -(-num_features // size)
    shape = (blocks, size, size)
    q, r = ops.qr(keras.random.normal(shape, seed=seed, dtype="float32"))
    rotations = q * ops.sign(ops.diagonal(r, axis1=1, axis2=2))[:, None]
    normal = keras.random.normal(shape, seed=seed, dtype="float32")
    lengths = ops.sqrt(ops.sum(normal**2, axis=-1, keepdims=True))
    directions = ops.reshape(rotations * lengths, (blocks * size, size))
    return ops.cast(directions[:num_features], dtype)


def log_features(x, directions):
    """Logarithms of positive random features, whose products make exp(q·k).

        log φ(x)_m = w_m·x / K^¼ − ‖x‖² / 2√K − log √M
        E[φ(q)·φ(k)] = exp(q·k / √K)   for w_m ~ N(0, I)

    Source: Choromanski et al. (2021), arXiv:2009.14794, lemma 1.

    Args:
        x: Float tensor `(…, K)`.
        directions: Float tensor `(M, K)`, rows w_m.

    Returns:
        Float tensor `(…, M)`.
    """
    num_features, size = directions.shape
    x = x / size**0.25
    half = ops.sum(x * x, axis=-1, keepdims=True) / 2
    projected = ops.matmul(x, ops.transpose(directions))
    return projected - half - math.log(num_features) / 2


def performer_weights(query, key, directions, *, key_mask=None, causal=False):
    """The weights that `performer_attention` never forms, for small inputs.

        weights[t, s] = φ(q_t)·φ(k_s) / Σ_s φ(q_t)·φ(k_s)

    Args: see `performer_attention`.

    Returns:
        Float tensor `(B, H, T, S)`; rows sum to 1, or to 0 where nothing may
        be attended.
    """
    query, key = (
        ops.transpose(log_features(x, directions), (0, 2, 1, 3))
        for x in (query, key)
    )
    products = ops.logsumexp(query[:, :, :, None] + key[:, :, None], axis=-1)
    seen = ops.ones_like(products, "bool")
    if key_mask is not None:
        seen = ops.logical_and(seen, key_mask[:, None, None])
    if causal:
        seen = ops.logical_and(seen, causal_mask(*ops.shape(products)[2:]))
    return masked_softmax(products, seen)


def performer_attention(
    query,
    key,
    value,
    directions,
    *,
    key_mask=None,
    causal=False,
    chunk_size=128,
):
    """An estimate of softmax attention at a cost of M features a token.

        output = D⁻¹ φ(Q) (φ(K)ᵀ V),   D = diag(φ(Q) φ(K)ᵀ 1)

    In the causal form the sums over keys are prefix sums, chunk by chunk.

    Largest exponents are taken out before exp: of each query its own, of the
    keys one for all of them (in the causal form for all so far), so that
    they cancel. There is no ε in a feature.

    Source: Choromanski et al. (2021), arXiv:2009.14794; document 004,
    section 8.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.
        value: Float tensor `(B, S, H, V)`.
        directions: Float tensor `(M, K)`, from `orthogonal_directions`.
        key_mask: Bool tensor `(B, S)`, True = may be attended.
        causal: Whether no query sees a later key; then S = T.
        chunk_size: Positive int, tokens between two prefix sums.

    Returns:
        Float tensor `(B, T, H, V)` of the query's dtype, computed in float32;
        zeros where nothing may be attended.
    """
    dtype = query.dtype
    query, key, value = (ops.cast(x, "float32") for x in (query, key, value))
    directions = ops.cast(directions, "float32")
    query, key = (log_features(x, directions) for x in (query, key))
    if key_mask is not None:
        key = ops.where(key_mask[:, :, None, None], key, -float("inf"))
    query = ops.exp(query - ops.max(query, axis=-1, keepdims=True))
    value = ops.concatenate([value, ops.ones_like(value[..., :1])], axis=-1)
    highest = ops.max(key, axis=-1, keepdims=True)  # (B, S, H, 1)
    if causal:
        sums = _prefix_sums(query, key, value, highest, chunk_size)
    else:
        highest = ops.max(highest, axis=1, keepdims=True)
        key = ops.exp(key - _constant(highest))
        keys_and_values = ops.einsum("bshm,bshv->bhmv", key, value)
        sums = ops.einsum("bthm,bhmv->bthv", query, keys_and_values)
    output, total = sums[..., :-1], sums[..., -1:]
    return ops.cast(output / ops.where(total == 0.0, 1.0, total), dtype)


def _prefix_sums(query, key, value, highest, size):
    """Σ over s ≤ t of φ(q_t)·φ(k_s) v_s / exp(the highest so far)."""
    length = ops.shape(query)[1]
    query, key, value, highest = (
        pages(x, size) for x in (query, key, value, _constant(highest))
    )  # (B, N, C, H, ·)
    past = causal_mask(size)[:, :, None, None]
    running = ops.max(ops.where(past, highest[:, :, None], NOTHING), axis=3)
    last = running[:, :, -1:]
    key = ops.exp(key - running)
    of_chunk = ops.einsum(
        "bnshm,bnshv->bnhmv", key * ops.exp(running - last), value
    )
    before, sums = _of_chunks_before(last, of_chunk)
    highest = ops.maximum(running, before)
    rows, columns = (
        ops.transpose(x, (0, 1, 3, *axes))
        for x, axes in ((highest, (2, 4)), (running, (4, 2)))
    )
    shrink = ops.where(causal_mask(size), columns - rows, -float("inf"))
    within = ops.einsum("bnthm,bnshm->bnhts", query, key) * ops.exp(shrink)
    sums = ops.einsum(
        "bnthm,bnhmv->bnthv", query * ops.exp(before - highest), sums
    ) + ops.einsum("bnhts,bnshv->bnthv", within, value)
    return unpage(sums, length)


def _of_chunks_before(highest, sums):
    """Of all chunks before each: the highest exponent, and the sums by it."""

    def add_chunk(before, chunk):
        highest = ops.maximum(before[0], chunk[0])
        total = sum(
            ops.exp(ops.transpose(m - highest, (0, 2, 1, 3))) * x
            for m, x in (before, chunk)
        )
        return highest, total

    chunks = tuple(ops.moveaxis(x, 1, 0) for x in (highest, sums))
    nothing = (
        ops.zeros_like(chunks[0][0]) + NOTHING,
        ops.zeros_like(chunks[1][0]),
    )
    before = prefixes(add_chunk, nothing, chunks)
    return tuple(ops.moveaxis(x, 0, 1) for x in before)


def _constant(x):
    """Finite, and without a gradient: it cancels."""
    return ops.stop_gradient(ops.maximum(x, NOTHING))


@keras.saving.register_keras_serializable("d2l_attention")
class OrthogonalDirections(keras.initializers.Initializer):
    """Initializer by `orthogonal_directions`."""

    def __init__(self, seed=None):
        self.seed = seed

    def __call__(self, shape, dtype=None):
        return orthogonal_directions(*shape, self.seed, dtype or "float32")

    def get_config(self):
        return {"seed": self.seed}


@keras.saving.register_keras_serializable("d2l_attention")
class PerformerAttention(WeightlessAttention):
    """Multi-head attention through positive orthogonal random features.

    See `performer_attention`. All heads share the directions, which are
    saved with the layer, are no parameters, and change in `redraw` only.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features a head.
        num_features: Positive int, M random features.
        causal: Whether no query sees a later key.
        seed: Int or None, of the directions.

    Further args: see `WeightlessAttention`.

    Call arguments and returns: see `LinformerAttention`, also for masks.

    Raises:
        ValueError: If a size is not positive, a mask differs between queries,
            or there are not as many keys as queries in the causal form.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        num_features,
        causal=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_positive("num_features", num_features)
        self.num_features = num_features
        self.causal = causal
        self.seed = seed

    def build(self, query_shape, key_shape=None, value_shape=None):
        super().build(query_shape, key_shape, value_shape)
        self.directions = self.add_weight(
            shape=(self.num_features, self.key_dim),
            initializer=OrthogonalDirections(self.seed),
            trainable=False,
            autocast=False,
            name="directions",
        )

    def redraw(self, seed=None):
        """New directions, as between two phases of training."""
        shape = self.directions.shape
        self.directions.assign(orthogonal_directions(*shape, seed))

    def mix(self, query, key, value, mask):
        t, s = query.shape[1], key.shape[1]
        if self.causal and None not in (t, s) and t != s:
            raise ValueError(
                "The causal form needs as many keys as queries. Received: "
                f"{t} queries and {s} keys."
            )
        return performer_attention(
            query,
            key,
            value,
            self.directions,
            key_mask=key_mask_of(mask),
            causal=self.causal,
        )

    def get_config(self):
        config = {
            "num_features": self.num_features,
            "causal": self.causal,
            "seed": self.seed,
        }
        return {**super().get_config(), **config}
