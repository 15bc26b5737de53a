"""W_q, W_k, W_v and W_o: what every layer with heads owns."""

from d2l_attention._checks import check_positive
from d2l_attention.attention_layer import QueryLayer, default_shapes
from d2l_attention.loops import reshape
import keras
from keras import ops


class HeadProjections(QueryLayer):
    """W_q, W_k, W_v and W_o of H heads: what all multi-head layers own.

    In W_q, W_k and W_v the heads lie side by side, head h in the columns
    hK … (h + 1)K − 1, so one matrix product projects for all heads. In W_o
    they lie below each other, in rows.

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
        self.num_kv_heads = self.num_heads  # G; fewer where heads share keys
        self.key_dim = check_positive("key_dim", key_dim)
        self.value_dim = self.key_dim
        if value_dim is not None:
            self.value_dim = check_positive("value_dim", value_dim)
        self.output_dim = output_dim
        if output_dim is not None:
            self.output_dim = check_positive("output_dim", output_dim)
        self.use_bias = use_bias
        self.supports_masking = True

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

    def project_query(self, query):
        """Queries of all heads, `(B, T, D)` to `(B, T, H, K)`."""
        return split_heads(self.query_layer(query), self.num_heads)

    def project_key(self, key):
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

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "output_dim": self.output_dim,
            "use_bias": self.use_bias,
        }


def split_heads(x, num_heads):
    """`(B, T, H K)` to `(B, T, H, K)`."""
    size = x.shape[-1] // num_heads
    return reshape(x, (*ops.shape(x)[:-1], num_heads, size))
