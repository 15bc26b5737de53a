"""Multi-head attention: several attentions side by side, one output."""

import math

from d2l_attention._checks import check_positive
from d2l_attention.attention_layer import AttentionLayer
from d2l_attention.masking import masked_softmax
import keras
from keras import ops

# Up to so many multiplications, adding up products beats a matrix product.
SMALL = 6_000
LONG = 256  # keys


def multi_head_scores(query, key):
    """Scaled dot products of every head, `(B, T, H, K)` to `(B, H, T, S)`."""
    if _is_small(query.shape[1], key.shape[1], key.shape[3]):
        scores = ops.sum(query[:, :, None] * key[:, None], axis=-1)
        scores = ops.transpose(scores, (0, 3, 1, 2))
    else:
        scores = ops.einsum("bthk,bshk->bhts", query, key)
    return scores / key.shape[-1] ** 0.5


def multi_head_sum(weights, value):
    """Weighted sums of every head, `(B, S, H, V)` to `(B, T, H, V)`."""
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


@keras.saving.register_keras_serializable("d2l_attention")
class MultiHeadAttention(AttentionLayer):
    """H scaled dot-product attentions, each in a subspace of its own.

        head_h = softmax(Q W_q,h (K W_k,h)ᵀ / √K) V W_v,h
        output = [head_1; …; head_H] W_o

    The heads of a kernel lie side by side, head h in the columns
    hK … (h + 1)K − 1: one matrix product projects for all of them.

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

    Call arguments: see `AttentionLayer`; `attention_mask` may also be of
    shape `(B, H, T, S)`. All other masks hold for every head.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, S)`.

    Raises:
        ValueError: If a size is not positive, `dropout` is outside [0, 1), or
            shapes do not match.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        output_dim=None,
        dropout=0.0,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(dropout=dropout, **kwargs)
        self.sizes = {
            "num_heads": num_heads,
            "key_dim": key_dim,
            "value_dim": value_dim,
            "output_dim": output_dim,
        }
        for name, size in self.sizes.items():
            if size is not None or name in ("num_heads", "key_dim"):
                check_positive(name, size)
        self.num_heads = num_heads
        self.num_kv_heads = num_heads  # fewer where heads share keys
        self.key_dim = key_dim
        self.value_dim = key_dim if value_dim is None else value_dim
        self.output_dim = output_dim
        self.use_bias = use_bias

    def build(self, query_shape, key_shape=None, value_shape=None):
        key_shape = query_shape if key_shape is None else key_shape
        value_shape = key_shape if value_shape is None else value_shape
        h, g = self.num_heads, self.num_kv_heads
        k, v = self.key_dim, self.value_dim
        output = self.output_dim or query_shape[-1]
        self.query_layer = self._dense("W_q", h * k, query_shape[-1])
        self.key_layer = self._dense("W_k", g * k, key_shape[-1])
        self.value_layer = self._dense("W_v", g * v, value_shape[-1])
        self.output_layer = self._dense("W_o", output, h * v)

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

    def score(self, query, key):
        return multi_head_scores(query, key)

    def average(self, weights, value):
        """Weighted sums `(B, T, H, V)` of projected values."""
        return multi_head_sum(weights, value)

    def attend(self, query, key, value, mask=None, training=None):
        """Output and weights for projected queries, keys and values."""
        if mask is not None and len(mask.shape) == 3:
            mask = mask[:, None]  # the same for every head
        weights = masked_softmax(self.score(query, key), mask)
        kept = self.dropout_layer(weights, training=training)
        return self.join_heads(self.average(kept, value)), weights

    def join_heads(self, heads):
        """The layer's output from `(B, T, H, V)`."""
        joined = (*ops.shape(heads)[:-2], self.num_heads * self.value_dim)
        return self.output_layer(ops.reshape(heads, joined))

    def compute_output_spec(self, query, **arguments):
        asked = arguments.pop("return_attention_scores", False)
        _, weights = super().compute_output_spec(
            query, return_attention_scores=True, **arguments
        )
        batch, t, s = weights.shape
        features = self.output_dim or query.shape[-1]
        output, weights = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in ((batch, t, features), (batch, self.num_heads, t, s))
        )
        return (output, weights) if asked else output

    def get_config(self):
        config = {**self.sizes, "use_bias": self.use_bias}
        return {**super().get_config(), **config}


def split_heads(x, num_heads):
    """`(B, T, H K)` to `(B, T, H, K)`."""
    size = x.shape[-1] // num_heads
    return ops.reshape(x, (*ops.shape(x)[:-1], num_heads, size))
