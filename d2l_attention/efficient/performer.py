"""Attention through random features, at a cost linear in the length."""

from d2l_attention._checks import check_positive
from d2l_attention.efficient.performer_features import (
    OrthogonalDirections,
    log_features,
    orthogonal_directions,
)
from d2l_attention.efficient.prefix_sums import (
    as_constant,
    largest,
    prefix_sums,
)
from d2l_attention.efficient.weightless import (
    WeightlessAttention,
    key_mask_of,
)
from d2l_attention.masking import causal_mask, masked_softmax, merge_masks
import keras
from keras import ops


def performer_weights(
    query, key, directions, *, key_mask=None, use_causal_mask=False
):
    """The weights that `performer_attention` never forms, for small inputs.

        weights[t, s] = φ(q_t)·φ(k_s) / Σ_s φ(q_t)·φ(k_s)

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.
        directions: Float tensor `(F, K)`, from `orthogonal_directions`.
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
        key: Float tensor `(B, S, H, K)`.
        value: Float tensor `(B, S, H, V)`.
        directions: Float tensor `(F, K)`, from `orthogonal_directions`.
        key_mask: Bool tensor `(B, S)`, True = may be attended.
        use_causal_mask: Whether no query sees a later key; then S = T.
        chunk_size: Positive int, tokens of a chunk in the causal form.

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
class PerformerAttention(WeightlessAttention):
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
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        num_features: Positive int, F random features.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        use_bias: Whether the four projections have biases.
        seed: Int, seed of the directions; None = new ones each time.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        key: Float tensor `(B, S, D')`; defaults to `value`. Without both, the
            queries are the keys and values.
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
            or T ≠ S in the causal form.

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

    instead = (
        "performer_weights gives the weights for small inputs, and "
        "MultiHeadAttention has dropout."
    )

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
