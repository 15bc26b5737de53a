"""Attention through random features, at a cost linear in the length."""

import math

from d2l_attention._checks import check_positive, differ
from d2l_attention.layers.base import AttentionLayer
from d2l_attention.layers.compiled_loops import scan_states
from d2l_attention.layers.masking import (
    NO_SCORE,
    causal_mask,
    key_mask_of,
    masked_softmax,
    merge_masks,
)
from d2l_attention.layers.multi_head import HeadProjections
from d2l_attention.layers.reshaping import (
    ceil_divide,
    join_chunks,
    split_into_chunks,
)
import keras
from keras import ops


def performer_weights(
    query, key, directions, *, key_mask=None, use_causal_mask=False
):
    """The weights that `performer_attention` never forms, for small inputs.

        weights[t, s] = φ(q_t)·φ(k_s) / Σ_s φ(q_t)·φ(k_s)

    Args:
        query, key: Float tensors `(B, T, H, K)` and `(B, S, H, K)`.
        directions, key_mask, use_causal_mask: As in `performer_attention`.

    Returns:
        Float tensor `(B, H, T, S)`; rows sum to 1, or to 0 where nothing may
        be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.performer import (
        ...     orthogonal_directions,
        ...     performer_weights,
        ... )
        >>> alike = np.ones((1, 2, 1, 4), "float32")
        >>> directions = orthogonal_directions(8, 4, seed=0)
        >>> weights = performer_weights(
        ...     alike, alike, directions, use_causal_mask=True
        ... )
        >>> np.array(weights)[0, 0].round(2).tolist()
        [[1.0, 0.0], [0.5, 0.5]]
    """
    query = ops.transpose(log_features(query, directions), (0, 2, 1, 3))
    key = ops.transpose(log_features(key, directions), (0, 2, 1, 3))
    exponents = ops.add(ops.expand_dims(query, 3), ops.expand_dims(key, 2))
    # exponents: (B, H, T, S, F)
    scores = ops.logsumexp(exponents, axis=-1)  # log φ(q)·φ(k), (B, H, T, S)
    seen = ops.ones_like(scores, "bool")
    if key_mask is not None:
        seen = ops.logical_and(seen, merge_masks(None, key_mask)[:, None])
    if use_causal_mask:
        seen = ops.logical_and(seen, causal_mask(*ops.shape(scores)[2:]))
    return masked_softmax(scores, seen)


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
    """An estimate of softmax attention, through F random features a token.

        output = D⁻¹ φ(Q) (φ(K)ᵀ V),   D = diag(φ(Q) φ(K)ᵀ 1)

    The cost grows with T + S, not with T S. In the causal form the sums over
    keys are prefix sums, chunk by chunk.

    Before exp, the largest exponent is subtracted: each query has its own,
    all keys share one (in the causal form, all keys up to the query). Both
    cancel in the quotient. No ε is added to a feature.

    Source: Choromanski et al. (2021), arXiv:2009.14794; document 004,
    section 8.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, H, K)` and `(B, S, H, V)`.
        directions: Float tensor `(F, K)`, from `orthogonal_directions`.
        key_mask: Bool tensor `(B, S)`, True = may be attended.
        use_causal_mask: Whether no query sees a later key; then S = T.
        chunk_size: Positive int, tokens of a chunk in the causal form.

    Returns:
        Float tensor `(B, T, H, V)` of the query's dtype, computed in float32;
        zeros where nothing may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import performer_attention
        >>> from d2l_attention.layers.performer import orthogonal_directions
        >>> alike = np.ones((1, 3, 1, 4), "float32")
        >>> value = np.array([1.0, 3.0, 8.0]).reshape(1, 3, 1, 1)
        >>> directions = orthogonal_directions(8, 4, seed=0)
        >>> output = performer_attention(alike, alike, value, directions)
        >>> np.array(output).ravel().round(2).tolist()  # equal keys: the mean
        [4.0, 4.0, 4.0]
    """
    dtype = query.dtype
    directions = ops.cast(directions, "float32")
    query = log_features(ops.cast(query, "float32"), directions)
    key = log_features(ops.cast(key, "float32"), directions)  # (B, S, H, F)
    value = ops.cast(value, "float32")
    if key_mask is not None:
        seen = ops.expand_dims(ops.expand_dims(key_mask, -1), -1)
        key = ops.where(seen, key, -float("inf"))
    query = ops.exp(query - largest(query, -1))  # φ(Q), (B, T, H, F)
    highest = largest(key, -1)  # (B, S, H, 1)
    ones = ops.ones_like(value[..., :1])  # their sum is the diagonal of D
    value = ops.concatenate([value, ones], axis=-1)  # (B, S, H, V + 1)
    if use_causal_mask:
        sums = prefix_sums(query, key, value, highest, chunk_size)
    else:
        key = ops.exp(key - as_constant(largest(highest, 1)))  # φ(K)
        of_keys = ops.einsum("bshm,bshv->bhmv", key, value)
        sums = ops.einsum("bthm,bhmv->bthv", query, of_keys)
    output, total = sums[..., :-1], sums[..., -1:]
    return ops.cast(output / ops.where(total == 0.0, 1.0, total), dtype)


@keras.saving.register_keras_serializable("d2l_attention")
class PerformerAttention(HeadProjections, AttentionLayer):
    """Multi-head attention through positive orthogonal random features.

        head_h = an estimate of softmax(Q W_q,h (K W_k,h)ᵀ / √K) V W_v,h
        output = [head_1; …; head_H] W_o

    All heads share the directions. They are saved with the layer, are not
    trained, and change only in `redraw`.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`. Its causal form does not export
    to TFLite, which cannot take its loop over an unknown number of chunks.

    Source: Choromanski et al. (2021), arXiv:2009.14794; document 004,
    section 8.

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        num_features: Positive int, F random features.
        seed: Int, seed of the directions; None = new ones each time.
        value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Unlike in `AttentionLayer`, a mask must be the same for every query and
    head, `(1, S)` or `(B, 1, S)`; with `use_causal_mask`, S = T.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PerformerAttention
        >>> layer = PerformerAttention(2, key_dim=3, num_features=16, seed=0)
        >>> x = np.ones((1, 5, 4))
        >>> before = np.array(layer(x, use_causal_mask=True))
        >>> x[:, 4] = 3.0  # the earlier tokens do not see this one
        >>> after = np.array(layer(x, use_causal_mask=True))
        >>> bool(np.allclose(after[:, :4], before[:, :4], atol=1e-5))
        True
    """

    weights_from = (
        "performer_weights of d2l_attention.layers.performer gives the "
        "weights for small inputs, and "
        "MultiHeadAttention has dropout."
    )

    def __init__(
        self, num_heads, key_dim, num_features, *, seed=None, **options
    ):
        super().__init__(num_heads, key_dim, **options)
        self.num_features = check_positive("num_features", num_features)
        self.seed = seed

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
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

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
    ):
        t, s = query.shape[1], key.shape[1]
        if use_causal_mask and differ(t, s):
            raise ValueError(
                "The causal form needs as many keys as queries. Received: "
                f"{t} queries and {s} keys."
            )
        heads = performer_attention(
            query,
            key,
            value,
            self.directions,
            key_mask=key_mask_of(mask),
            use_causal_mask=use_causal_mask,
        )
        return self.join_heads(heads), None


def orthogonal_directions(num_features, size, seed=None, dtype="float32"):
    """Random directions, orthogonal in blocks, each distributed as N(0, I).

        W_block = diag(r) Q sign(diag R),   Q R = a normal matrix,
        r = the lengths of other normal vectors

    Without the signs, the rows are not distributed as N(0, I), since QR
    decompositions fix the sign of R or of Q. Estimates are then biased, most
    of all where `size` is small.

    Source: Choromanski et al. (2021), arXiv:2009.14794, section 2.4;
    Mezzadri (2007), arXiv:math-ph/0609050, for the signs.

    Args:
        num_features, size: Positive ints, F and K.
        seed: Int or `keras.random.SeedGenerator`.
        dtype: Dtype of the result.

    Returns:
        Float tensor `(F, K)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.performer import orthogonal_directions
        >>> w = np.array(orthogonal_directions(num_features=3, size=3, seed=0))
        >>> products = w @ w.T
        >>> off_diagonal = products[~np.eye(3, dtype=bool)]
        >>> bool(np.allclose(off_diagonal, 0, atol=1e-5))
        True
    """
    if not isinstance(seed, keras.random.SeedGenerator):
        seed = keras.random.SeedGenerator(seed)
    blocks = ceil_divide(num_features, size)
    shape = (blocks, size, size)
    q, r = ops.qr(keras.random.normal(shape, seed=seed, dtype="float32"))
    signs = ops.sign(ops.diagonal(r, axis1=1, axis2=2))[:, None]
    normal = keras.random.normal(shape, seed=seed, dtype="float32")
    lengths = ops.sqrt(ops.sum(normal**2, axis=-1, keepdims=True))
    directions = q * signs * lengths  # (blocks, K, K)
    directions = ops.reshape(directions, (blocks * size, size))
    return ops.cast(directions[:num_features], dtype)


def log_features(x, directions):
    """Logarithms of positive random features, which estimate exp(q·k / √K).

        log φ(x)_f = w_f·x / K^¼ − ‖x‖² / 2√K − log √F
        E[φ(q)·φ(k)] = exp(q·k / √K)   for w_f ~ N(0, I)

    Source: Choromanski et al. (2021), arXiv:2009.14794, lemma 1.

    Args:
        x: Float tensor `(…, K)`.
        directions: Float tensor `(F, K)`, rows w_f.

    Returns:
        Float tensor `(…, F)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.performer import log_features
        >>> x, directions = np.array([[2.0]]), np.array([[3.0]])
        >>> np.array(log_features(x, directions)).round(2).tolist()  # 6 − 4/2
        [[4.0]]
    """
    num_features, size = directions.shape
    x = x / size**0.25
    half = ops.sum(x * x, axis=-1, keepdims=True) / 2  # (…, 1)
    projected = ops.matmul(x, ops.transpose(directions))  # (…, F)
    return projected - half - math.log(num_features) / 2


@keras.saving.register_keras_serializable("d2l_attention")
class OrthogonalDirections(keras.initializers.Initializer):
    """Initializer that draws `orthogonal_directions`."""

    def __init__(self, seed=None):
        self.seed = seed

    def __call__(self, shape, dtype=None):
        return orthogonal_directions(*shape, self.seed, dtype or "float32")

    def get_config(self):
        return {"seed": self.seed}


def prefix_sums(query, key, value, highest, size):
    """For each query, a sum over its key and all earlier ones.

        sums_t = Σ_{s ≤ t} φ(q_t)·φ(k_s) v_s / exp(max_{s ≤ t} highest_s)

    Within a chunk, each query meets each key. The keys of all earlier chunks
    come as one sum.

    Here `query` holds φ(q), and `key` the logarithms of φ(k), both
    `(B, T, H, F)`; `highest` `(B, T, H, 1)` is the largest exponent of a key.
    """
    length = ops.shape(query)[1]
    query = split_into_chunks(query, size)  # (B, N, C, H, F)
    key = split_into_chunks(key, size)  # (B, N, C, H, F)
    value = split_into_chunks(value, size)  # (B, N, C, H, V)
    highest = split_into_chunks(as_constant(highest), size)  # (B, N, C, H, 1)

    past = causal_mask(size)  # (C, C)
    running = ops.where(
        past[..., None, None], ops.expand_dims(highest, 2), NO_SCORE
    )
    running = largest(running, 3)[:, :, :, 0]  # (B, N, C, H, 1)
    last = running[:, :, -1:]  # (B, N, 1, H, 1)
    key = ops.exp(key - running)
    shrunk = key * ops.exp(running - last)
    of_chunk = ops.einsum("bnshm,bnshv->bnhmv", shrunk, value)
    before, of_earlier = _earlier_chunks(last, of_chunk)

    highest = ops.maximum(running, before)
    rows = ops.transpose(highest, (0, 1, 3, 2, 4))  # (B, N, H, C, 1)
    columns = ops.transpose(running, (0, 1, 3, 4, 2))  # (B, N, H, 1, C)
    shrink = ops.exp(ops.where(past, columns - rows, -float("inf")))
    products = ops.einsum("bnthm,bnshm->bnhts", query, key) * shrink
    within = ops.einsum("bnhts,bnshv->bnthv", products, value)
    shrunk = query * ops.exp(before - highest)
    earlier = ops.einsum("bnthm,bnhmv->bnthv", shrunk, of_earlier)
    return join_chunks(earlier + within, length)


def _earlier_chunks(highest, sums):
    """For each chunk: the largest exponent over all earlier chunks, and their
    sums divided by its exponential.
    """

    def add_chunk(before, chunk):
        highest = ops.maximum(before[0], chunk[0])  # (B, 1, H, 1)
        sums = _shrink(*before, highest) + _shrink(*chunk, highest)
        return highest, sums

    highest = ops.moveaxis(highest, 1, 0)  # (N, B, 1, H, 1)
    sums = ops.moveaxis(sums, 1, 0)  # (N, B, H, F, V)
    no_key = ops.zeros_like(highest[0]) + NO_SCORE
    no_sum = ops.zeros_like(sums[0])
    highest, sums = scan_states(add_chunk, (no_key, no_sum), (highest, sums))
    return _one_later(highest, no_key), _one_later(sums, no_sum)


def _shrink(old, sums, new):
    """Sums `(B, H, F, V)` divided by exp(new), no longer by exp(old)."""
    return sums * ops.exp(ops.transpose(old - new, (0, 2, 1, 3)))


def _one_later(states, first):
    """The state before each of N chunks, `(B, N, …)`, from those after."""
    before = ops.concatenate([ops.expand_dims(first, 0), states[:-1]], axis=0)
    return ops.moveaxis(before, 0, 1)


def largest(x, axis):
    """The maximum, also of an empty batch: there `initial` is needed."""
    return ops.max(x, axis=axis, keepdims=True, initial=-float("inf"))


def as_constant(x):
    """Finite, and without a gradient, since it cancels in the result."""
    return ops.stop_gradient(ops.maximum(x, NO_SCORE))
