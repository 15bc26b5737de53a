"""Multi-head attention: several attentions side by side, one output."""

import math

from d2l_attention._checks import check_positive, check_rate
from d2l_attention.attention_layer import (
    default_inputs,
    default_shapes,
    drop,
    query_and_key_size,
)
from d2l_attention.masking import (
    add_causal_mask,
    masked_softmax,
    merge_masks,
)
import keras
from keras import ops

# Up to so many multiplications, adding up products beats a matrix product.
SMALL = 6_000
LONG = 256  # keys


def multi_head_scores(query, key):
    """Scaled dot products of queries and keys, for every head.

        scores[b, h, t, s] = query[b, t, h] · key[b, s, h] / √K

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.2.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, H, K)`.

    Returns:
        Float tensor `(B, H, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import multi_head_scores
        >>> query, key = np.ones((1, 2, 1, 4)), np.ones((1, 3, 1, 4))
        >>> np.array(multi_head_scores(query, key)).tolist()  # 4 / 2
        [[[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]]]
    """
    if _is_small(query.shape[1], key.shape[1], key.shape[3]):
        scores = ops.sum(query[:, :, None] * key[:, None], axis=-1)
        scores = ops.transpose(scores, (0, 3, 1, 2))
    else:
        scores = ops.einsum("bthk,bshk->bhts", query, key)
    return scores / key.shape[-1] ** 0.5


def multi_head_sum(weights, value):
    """Weighted sums of the values, for every head.

        output[b, t, h] = Σ_s weights[b, h, t, s] value[b, s, h]

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.2.

    Args:
        weights: Float tensor `(B, H, T, S)`.
        value: Float tensor `(B, S, H, V)`.

    Returns:
        Float tensor `(B, T, H, V)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import multi_head_sum
        >>> weights = np.array([[[[0.25, 0.75]]]])  # one head, one query
        >>> value = np.array([[[[4.0]], [[8.0]]]])
        >>> np.array(multi_head_sum(weights, value)).tolist()  # 1 + 6
        [[[[7.0]]]]
    """
    sizes = (weights.shape[2], value.shape[1], value.shape[3])
    if _is_small(*sizes) and not _is_long(value.shape[1]):
        weights = ops.transpose(weights, (0, 2, 3, 1))
        return ops.sum(weights[..., None] * value[:, None], axis=2)
    return ops.einsum("bhts,bshv->bthv", weights, value)


def _is_small(num_queries, num_keys, features):
    """Whether starting a matrix product costs more than what it computes.

    There are thousands, one for each sentence and head; a compiler fuses the
    sum of products instead. One query, as in decoding, makes no matrix.
    """
    sizes = (num_queries, num_keys, features)
    # An unknown length is None, or a symbol to JAX: it has no answer to `<=`.
    known = all(isinstance(size, int) for size in sizes)
    return num_queries == 1 or known and math.prod(sizes) <= SMALL


def _is_long(num_keys):
    """Whether a matrix product sums values faster even for one query."""
    return isinstance(num_keys, int) and num_keys >= LONG


class HeadProjections(keras.Layer):
    """W_q, W_k, W_v and W_o of H heads: what all multi-head layers own.

    The heads of a kernel lie side by side, head h in the columns
    hK … (h + 1)K − 1: one matrix product projects for all of them.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        use_bias: Whether the four projections have biases.

    Raises:
        ValueError: If a size is not positive, or shapes do not match.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        value_dim=None,
        output_dim=None,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive("num_heads", num_heads)
        self.num_kv_heads = self.num_heads  # fewer where heads share keys
        self.key_dim = check_positive("key_dim", key_dim)
        self.value_dim = self.key_dim
        if value_dim is not None:
            self.value_dim = check_positive("value_dim", value_dim)
        self.output_dim = output_dim
        if output_dim is not None:
            self.output_dim = check_positive("output_dim", output_dim)
        self.use_bias = use_bias
        self.supports_masking = True

    def build(self, query_shape, key_shape=None, value_shape=None):
        shapes = default_shapes(query_shape, key_shape, value_shape)
        query_size, key_size, value_size = (shape[-1] for shape in shapes)
        h, g = self.num_heads, self.num_kv_heads
        k, v = self.key_dim, self.value_dim
        self.query_layer = self._dense("W_q", h * k, query_size)
        self.key_layer = self._dense("W_k", g * k, key_size)
        self.value_layer = self._dense("W_v", g * v, value_size)
        output_size = self.output_dim or query_size
        self.output_layer = self._dense("W_o", output_size, h * v)

    def _dense(self, name, size, input_size):
        layer = keras.layers.Dense(
            size, use_bias=self.use_bias, name=name, dtype=self.dtype_policy
        )
        layer.build((None, None, input_size))
        return layer

    def project_query(self, query):
        """Queries of all heads, `(B, T, D)` to `(B, T, H, K)`."""
        return split_heads(self.query_layer(query), self.num_heads)

    def project_key(self, key):
        """Keys of all heads, `(B, S, D')` to `(B, S, H, K)`."""
        return split_heads(self.key_layer(key), self.num_kv_heads)

    def project_value(self, value):
        """Values of all heads, to `(B, S, H, V)`."""
        return split_heads(self.value_layer(value), self.num_kv_heads)

    def join_heads(self, heads):
        """The layer's output from `(B, T, H, V)`."""
        joined = (*ops.shape(heads)[:-2], self.num_heads * self.value_dim)
        return self.output_layer(ops.reshape(heads, joined))

    def compute_output_shape(
        self, query_shape, key_shape=None, value_shape=None
    ):
        query, *_ = default_shapes(query_shape, key_shape, value_shape)
        return (*query[:-1], self.output_dim or query[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "output_dim": self.output_dim,
            "use_bias": self.use_bias,
        }


@keras.saving.register_keras_serializable("d2l_attention")
class MultiHeadAttention(HeadProjections):
    """H scaled dot-product attentions, each in a subspace of its own.

        head_h = softmax(Q W_q,h (K W_k,h)ᵀ / √K) V W_v,h
        output = [head_1; …; head_H] W_o

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.2; documents
    001 (multi-head attention), 000, section 2.2.3, 002 and 004, section 2.
    Unlike `keras.layers.MultiHeadAttention`, a query with nothing to attend
    to gets zeros before W_o, there are no biases unless asked for, and the
    initial weights are those of a `Dense` layer of all heads.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        dropout: Float in [0, 1), rate of dropout on the weights.
        use_bias: Whether the four projections have biases.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        key: Float tensor `(B, S, D')`; defaults to `query`, not to `value`
            as in Keras.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        attention_mask: Bool tensor `(T, S)`, `(B, 1, S)` or `(B, T, S)`, the
            same for every head, or `(B, H, T, S)`; True = may attend.
        key_mask: Bool tensor `(B, S)`, True at keys that exist.
        value_mask: Bool tensor `(B, S)`; it masks the keys of these values.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise. Keras fills
            `mask` or the masks of query, key and value from implicit masks,
            such as that of `Embedding(mask_zero=True)`.
        use_causal_mask: Whether query t sees no key behind t + S − T.
        return_attention_scores: If True, also return the weights, as they
            were before dropout. (The name is that of Keras; what it calls
            scores are the weights, after the softmax.)
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, S)`. A query with nothing to attend to
        has weights 0.

    Raises:
        ValueError: If a size is not positive, `dropout` is outside [0, 1), or
            shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MultiHeadAttention
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=3)
        >>> x = np.ones((1, 3, 4))  # three tokens that are all alike
        >>> output, weights = layer(
        ...     x, use_causal_mask=True, return_attention_scores=True
        ... )
        >>> tuple(output.shape), tuple(weights.shape)
        ((1, 3, 4), (1, 2, 3, 3))
        >>> np.array(weights)[0, 0].round(2).tolist()[1]  # of token 1
        [0.5, 0.5, 0.0]
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        value_dim=None,
        output_dim=None,
        dropout=0.0,
        use_bias=False,
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
        self.dropout = check_rate("dropout", dropout)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )

    def score(self, query, key):
        """Scores `(B, H, T, S)` of projected queries and keys."""
        return multi_head_scores(query, key)

    def average(self, weights, value):
        """Weighted sums `(B, T, H, V)` of projected values."""
        return multi_head_sum(weights, value)

    def attend(self, query, key, value, mask=None, training=None):
        """Output and weights for projected queries, keys and values."""
        if mask is not None and len(mask.shape) == 3:
            mask = mask[:, None]  # the same for every head
        weights = masked_softmax(self.score(query, key), mask)  # (B, H, T, S)
        kept = drop(self.dropout_layer, weights, training)
        heads = self.average(kept, value)  # (B, T, H, V)
        return self.join_heads(heads), weights

    def call(
        self,
        query,
        *,
        key=None,
        value=None,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        own_masks = [query_mask, mask] if key is None else []
        key, value = default_inputs(query, key, value)
        mask = merge_masks(attention_mask, key_mask, value_mask, *own_masks)
        if use_causal_mask:
            mask = add_causal_mask(mask, *query_and_key_size(query, key))
        output, weights = self.attend(
            self.project_query(query),  # (B, T, H, K)
            self.project_key(key),  # (B, S, H, K)
            self.project_value(value),  # (B, S, H, V)
            mask,
            training,
        )
        return (output, weights) if return_attention_scores else output

    def compute_output_spec(
        self,
        query,
        *,
        key=None,
        value=None,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        key, value = default_inputs(query, key, value)
        batch, t, features = query.shape
        shapes = (
            (batch, t, self.output_dim or features),
            (batch, self.num_heads, t, key.shape[1]),
        )
        output, weights = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in shapes
        )
        return (output, weights) if return_attention_scores else output

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}


def split_heads(x, num_heads):
    """`(B, T, H K)` to `(B, T, H, K)`."""
    size = x.shape[-1] // num_heads
    return ops.reshape(x, (*ops.shape(x)[:-1], num_heads, size))
