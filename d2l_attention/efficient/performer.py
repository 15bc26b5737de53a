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

    Example:
        >>> import numpy as np
        >>> from d2l_attention import orthogonal_directions
        >>> w = np.array(orthogonal_directions(num_features=3, size=3, seed=0))
        >>> products = w @ w.T
        >>> off_diagonal = products[~np.eye(3, dtype=bool)]
        >>> bool(np.allclose(off_diagonal, 0, atol=1e-5))
        True
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

    Example:
        >>> import numpy as np
        >>> from d2l_attention import log_features
        >>> x, directions = np.array([[2.0]]), np.array([[3.0]])
        >>> np.array(log_features(x, directions)).round(2).tolist()  # 6 − 4/2
        [[4.0]]
    """
    num_features, size = directions.shape
    x = x / size**0.25
    half = ops.sum(x * x, axis=-1, keepdims=True) / 2
    projected = ops.matmul(x, ops.transpose(directions))
    return projected - half - math.log(num_features) / 2


def performer_weights(
    query, key, directions, *, key_mask=None, use_causal_mask=False
):
    """The weights that `performer_attention` never forms, for small inputs.

        weights[t, s] = φ(q_t)·φ(k_s) / Σ_s φ(q_t)·φ(k_s)

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.
        directions: Float tensor `(M, K)`, from `orthogonal_directions`.
        key_mask: Bool tensor `(B, S)`, True = may be attended.
        use_causal_mask: Whether no query sees a later key; then S = T.

    Returns:
        Float tensor `(B, H, T, S)`; rows sum to 1, or to 0 where nothing may
        be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import orthogonal_directions, performer_weights
        >>> alike = np.ones((1, 2, 1, 4), "float32")
        >>> directions = orthogonal_directions(8, 4, seed=0)
        >>> weights = performer_weights(
        ...     alike, alike, directions, use_causal_mask=True
        ... )
        >>> np.array(weights)[0, 0].round(2).tolist()
        [[1.0, 0.0], [0.5, 0.5]]
    """
    query, key = (
        ops.transpose(log_features(x, directions), (0, 2, 1, 3))
        for x in (query, key)
    )
    products = ops.logsumexp(query[:, :, :, None] + key[:, :, None], axis=-1)
    seen = ops.ones_like(products, "bool")
    if key_mask is not None:
        seen = ops.logical_and(seen, key_mask[:, None, None])
    if use_causal_mask:
        seen = ops.logical_and(seen, causal_mask(*ops.shape(products)[2:]))
    return masked_softmax(products, seen)


def performer_attention(
    query,
    key,
    value,
    directions,
    *,
    key_mask=None,
    use_causal_mask=False,
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
        use_causal_mask: Whether no query sees a later key; then S = T.
        chunk_size: Positive int, tokens between two prefix sums.

    Returns:
        Float tensor `(B, T, H, V)` of the query's dtype, computed in float32;
        zeros where nothing may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import orthogonal_directions, performer_attention
        >>> alike = np.ones((1, 3, 1, 4), "float32")
        >>> value = np.array([1.0, 3.0, 8.0]).reshape(1, 3, 1, 1)
        >>> directions = orthogonal_directions(8, 4, seed=0)
        >>> output = performer_attention(alike, alike, value, directions)
        >>> np.array(output).ravel().round(2).tolist()  # equal keys: the mean
        [4.0, 4.0, 4.0]
    """
    dtype = query.dtype
    query, key, value = (ops.cast(x, "float32") for x in (query, key, value))
    directions = ops.cast(directions, "float32")
    query, key = (log_features(x, directions) for x in (query, key))
    if key_mask is not None:
        key = ops.where(key_mask[:, :, None, None], key, -float("inf"))
    query = ops.exp(query - _largest(query, -1))
    value = ops.concatenate([value, ops.ones_like(value[..., :1])], axis=-1)
    highest = _largest(key, -1)  # (B, S, H, 1)
    if use_causal_mask:
        sums = _prefix_sums(query, key, value, highest, chunk_size)
    else:
        highest = _largest(highest, 1)
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
    running = ops.where(past, highest[:, :, None], NOTHING)
    running = _largest(running, 3)[:, :, :, 0]
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


def _largest(x, axis):
    """The maximum; with `initial` an empty batch has one too."""
    return ops.max(x, axis=axis, keepdims=True, initial=-float("inf"))


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

        head_h = an estimate of softmax(Q W_q,h (K W_k,h)ᵀ / √K) V W_v,h
        output = [head_1; …; head_H] W_o

    All heads share the directions, which are saved with the layer, are no
    parameters, and change in `redraw` only; see `performer_attention`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`.

    Source: Choromanski et al. (2021), arXiv:2009.14794; document 004,
    section 8.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        num_features: Positive int, M random features.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        use_bias: Whether the four projections have biases.
        seed: Int, of the directions; None = others each time.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        key: Float tensor `(B, S, D')`; defaults to `query`.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        attention_mask: Bool tensor `(1, S)` or `(B, 1, S)`, the same for
            every query and head; True = may attend.
        key_mask, value_mask: Bool tensors `(B, S)`, True at keys and values
            that exist.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise. Keras fills
            `mask` or the masks of query, key and value from implicit masks.
        use_causal_mask: Whether no query sees a later key; then S = T.

    Returns:
        Float tensor `(B, T, output_dim)`.

    Raises:
        ValueError: If a size is not positive, a mask differs between queries,
            or there are not as many keys as queries in the causal form.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PerformerAttention
        >>> layer = PerformerAttention(2, key_dim=3, num_features=16, seed=0)
        >>> x = np.ones((1, 5, 4))
        >>> before = np.array(layer(x, use_causal_mask=True))
        >>> x[:, 4] = 3.0  # no earlier token sees another last one
        >>> after = np.array(layer(x, use_causal_mask=True))
        >>> bool(np.allclose(after[:, :4], before[:, :4], atol=1e-5))
        True
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        num_features,
        *,
        value_dim=None,
        output_dim=None,
        use_bias=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim=value_dim,
            output_dim=output_dim,
            use_bias=use_bias,
            **kwargs,
        )
        self.num_features = check_positive("num_features", num_features)
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

    def mix(self, query, key, value, mask, use_causal_mask):
        t, s = query.shape[1], key.shape[1]
        if use_causal_mask and None not in (t, s) and t != s:
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
            use_causal_mask=use_causal_mask,
        )

    def get_config(self):
        config = {"num_features": self.num_features, "seed": self.seed}
        return {**super().get_config(), **config}
