"""Multi-head attention: the function, the projections and the layer."""

import math

from d2l_attention._checks import check_positive, check_rate
from d2l_attention.layers.base import (
    AttentionLayer,
    QueryLayer,
    default_shapes,
    drop,
)
from d2l_attention.layers.cache import attend_with_cache, contiguous_cache
from d2l_attention.layers.masking import join_causal_mask, masked_softmax
from d2l_attention.layers.reshaping import reshape
import keras
from keras import ops

# Up to this many multiplications, a sum of products beats a matrix product.
SMALL = 6_000
LONG = 256  # from this many keys on, a matrix product sums the values faster


def multi_head_attention(query, key, value, mask=None, dropout=None):
    """Scaled dot-product attention in each of H heads.

        weights = softmax(query keyᵀ / √K)
        output  = dropout(weights) value

    Source: Vaswani et al. (2017), arXiv:1706.03762, sections 3.2.1 and
    3.2.2; document 001, multi-head attention.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, H, K)` and `(B, S, H, V)`.
        mask: Bool tensor `(T, S)`, `(B, 1, S)` or `(B, T, S)`, the same for
            every head, or `(B, H, T, S)`; True = may attend.
        dropout: Callable on the weights; None = no dropout.

    Returns:
        Float tensor `(B, T, H, V)`, and the weights `(B, H, T, S)` as they
        were before dropout. A query with nothing to attend to gets zeros.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import multi_head_attention
        >>> query, key = np.zeros((1, 1, 1, 2)), np.ones((1, 3, 1, 2))
        >>> value = np.array([1.0, 3.0, 9.0]).reshape(1, 3, 1, 1)
        >>> mask = np.array([[True, True, False]])
        >>> output, _ = multi_head_attention(query, key, value, mask)
        >>> np.array(output).tolist()  # the mean of 1 and 3
        [[[[2.0]]]]
    """
    # Scaled first: in float16 a product of 65,520 would be infinite.
    query = query / key.shape[-1] ** 0.5
    scores = einsum("bthk,bshk->bhts", query, key)
    weights = masked_softmax(scores, mask)  # (B, H, T, S)
    dropped = weights if dropout is None else dropout(weights)
    return einsum("bhts,bshv->bthv", dropped, value), weights


class HeadProjections(QueryLayer):
    """W_q, W_k, W_v and W_o of H heads: what all multi-head layers own.

    In W_q, W_k and W_v the heads lie side by side, head h in the columns
    hK … (h + 1)K − 1, so one matrix product projects for all heads. In W_o
    they lie below each other, in rows.
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
        self.num_kv_heads = self.num_heads  # G; fewer where heads share keys
        self.key_dim = check_positive("key_dim", key_dim)
        self.value_dim = check_positive("value_dim", value_dim, self.key_dim)
        self.output_dim = check_positive("output_dim", output_dim, None)
        self.use_bias = use_bias

    def build(self, query_shape, value_shape=None, key_shape=None):
        query, value, key = default_shapes(query_shape, value_shape, key_shape)
        h, g = self.num_heads, self.num_kv_heads
        k, v = self.key_dim, self.value_dim
        self.query_layer = self._dense("W_q", h * k, query[-1])
        self.key_layer = self._dense("W_k", g * k, key[-1])
        self.value_layer = self._dense("W_v", g * v, value[-1])
        output_size = self.output_dim or query[-1]
        self.output_layer = self._dense("W_o", output_size, h * v)

    def _dense(self, name, size, input_size):
        layer = keras.layers.Dense(
            size, use_bias=self.use_bias, name=name, dtype=self.dtype_policy
        )
        layer.build((None, None, input_size))
        return layer

    def project_query(self, query, start=0):
        """Queries of all heads, `(B, T, D)` to `(B, T, H, K)`."""
        return split_heads(self.query_layer(query), self.num_heads)

    def project_key(self, key, start=0):
        """Keys of all heads, `(B, S, D')` to `(B, S, G, K)`."""
        return split_heads(self.key_layer(key), self.num_kv_heads)

    def project_value(self, value):
        """Values of all heads, to `(B, S, G, V)`."""
        return split_heads(self.value_layer(value), self.num_kv_heads)

    def join_heads(self, heads):
        """[head_1; …; head_H] W_o, `(B, T, H, V)` to `(B, T, output_dim)`."""
        joined = (*ops.shape(heads)[:-2], self.num_heads * self.value_dim)
        return self.output_layer(reshape(heads, joined))

    def compute_output_shape(
        self, query_shape, value_shape=None, key_shape=None
    ):
        query, *_ = default_shapes(query_shape, value_shape, key_shape)
        return (*query[:-1], self.output_dim or query[-1])


class SelfAttentionByPattern(HeadProjections):
    """Self-attention whose pattern says who sees whom.

    Unlike `AttentionLayer`, it takes the queries alone, which are the keys and
    values, and no `attention_mask`. A subclass implements `call(query, *, …)`.
    """

    # Keras looks for an argument of `call` for each shape that is named here.
    def build(self, query_shape):
        super().build(query_shape)

    def compute_output_shape(self, query_shape):
        return super().compute_output_shape(query_shape)


def split_heads(x, num_heads):
    """`(B, T, H K)` to `(B, T, H, K)`."""
    size = x.shape[-1] // num_heads
    return reshape(x, (*ops.shape(x)[:-1], num_heads, size))


@keras.saving.register_keras_serializable("d2l_attention")
class MultiHeadAttention(HeadProjections, AttentionLayer):
    """H scaled dot-product attentions, each in its own subspace.

        head_h = softmax(Q W_q,h (K W_k,h)ᵀ / √K) V W_v,h
        output = [head_1; …; head_H] W_o

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.2; documents
    001 (multi-head attention), 000, section 2.2.3, 002 and 004, section 2.
    Unlike `keras.layers.MultiHeadAttention`, a query with nothing to attend
    to gets zeros before W_o, there are no biases unless asked for, and the
    kernels of all heads are initialized as one `Dense` kernel (Keras does so
    from 3.15 on).

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        dropout: Float in [0, 1), rate of dropout on the weights.
        value_dim: Positive int, features V of a value; None = `key_dim`.
        output_dim: Positive int, features of the output; None = the query's.
        use_bias: Whether the four projections have biases.

    The call is that of `AttentionLayer`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MultiHeadAttention
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=3)
        >>> x = np.ones((1, 3, 4))  # three tokens that are all alike
        >>> output, weights = layer(
        ...     x, use_causal_mask=True, return_attention_scores=True
        ... )
        >>> np.array(weights)[0, 0].round(2).tolist()[1]  # of token 1
        [0.5, 0.5, 0.0]
    """

    def __init__(self, num_heads, key_dim, *, dropout=0.0, **options):
        super().__init__(num_heads, key_dim, **options)
        self.dropout = check_rate("dropout", dropout)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )

    equation = staticmethod(multi_head_attention)

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
        if use_causal_mask:
            mask = join_causal_mask(mask, query, key)
        heads, weights = self.equation(
            query,  # (B, T, H, K)
            key,  # (B, S, G, K), with G = H here
            value,  # (B, S, G, V)
            mask,
            lambda weights: drop(self.dropout_layer, weights, training),
        )
        return self.join_heads(heads), weights  # (B, T, D), (B, H, T, S)

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values for `max_length` tokens."""
        rows = (batch_size, max_length, self.num_kv_heads)
        return contiguous_cache(
            (*rows, self.key_dim), self.value_dim, self.compute_dtype
        )

    def step(self, x, positions, cache, query_mask=None):
        """Attend from tokens `(B, T, D)` at `positions` `(B, T)` to the cache.

        What comes back is `(B, T, D)`, and the cache with the new tokens.
        Padding, where `query_mask` `(B, T)` is False, need not be kept; here
        later tokens overwrite it.
        """
        return attend_with_cache(self, x, positions, cache)


def einsum(equation, a, b):
    """`ops.einsum` of queries and keys, or of weights and values.

    Each sentence and head needs a matrix product. Starting a small one costs
    more than it computes, so small products are written as sums, which a
    compiler fuses. A single query, as in decoding, makes no matrix.
    """
    inputs, output = equation.split("->")
    axes_a, axes_b = inputs.split(",")
    size = dict(zip(axes_a + axes_b, (*a.shape, *b.shape), strict=True))
    summed = next(x for x in inputs if x not in output)
    is_long = isinstance(size["s"], int) and size["s"] >= LONG
    sizes = (size["t"], size["s"], size[axes_b[-1]])
    # An unknown length is None, or on JAX a symbol, which `<=` cannot compare.
    known = all(isinstance(x, int) for x in sizes)
    is_small = size["t"] == 1 or (known and math.prod(sizes) <= SMALL)
    if not is_small or (summed == "s" and is_long):
        return ops.einsum(equation, a, b)
    letters = "btsh" + axes_b[-1]
    products = ops.multiply(
        _aligned(a, axes_a, letters), _aligned(b, axes_b, letters)
    )
    total = ops.sum(products, axis=letters.index(summed))
    return _reordered(total, letters.replace(summed, ""), output)


def _aligned(x, axes, letters):
    """x with its axes in the order of the letters, and 1 where it has none."""
    missing = next(i for i, x in enumerate(letters) if x not in axes)
    present = letters[:missing] + letters[missing + 1 :]
    return ops.expand_dims(_reordered(x, axes, present), missing)


def _reordered(x, axes, order):
    if axes == order:
        return x
    return ops.transpose(x, [axes.index(letter) for letter in order])
