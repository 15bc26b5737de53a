"""What the blocks of a Transformer share.

The output of a sublayer f is norm(x + f(x)), as in Vaswani et al. (2017) and
the documents (post-norm), or x + f(norm(x)) with `normalize_first` (pre-norm).
"""

from d2l_attention._checks import check_positive, check_rate
from d2l_attention.attention_layer import QueryLayer, check_shapes, drop
from d2l_attention.efficient.cache import contiguous_cache
from d2l_attention.models.blocks.sublayers import AddNorm, PositionWiseFFN
from d2l_attention.multi_head import MultiHeadAttention
import keras


class TransformerBlock(QueryLayer):
    """Self-attention, the position-wise net, and the residuals around them.

    The docstrings of the subclasses list the arguments.
    """

    def __init__(
        self,
        dim,
        num_heads,
        ffn_dim,
        *,
        dropout=0.0,
        activation="relu",
        use_bias=False,
        normalize_first=False,
        epsilon=1e-5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dim = check_positive("dim", dim)
        self.num_heads = check_positive("num_heads", num_heads)
        if dim % num_heads:
            raise ValueError(
                "`num_heads` must divide `dim`. Received: "
                f"num_heads={num_heads}, dim={dim}."
            )
        self.ffn_dim = check_positive("ffn_dim", ffn_dim)
        self.dropout = check_rate("dropout", dropout)
        self.use_bias = use_bias
        self.normalize_first = normalize_first
        self.epsilon = epsilon
        self.activation = keras.activations.get(activation)
        self.supports_masking = True

    def add_sublayers(self, attention_class=MultiHeadAttention, **arguments):
        """Make the sublayers; a subclass chooses its self-attention."""
        self.self_attention = self.make_attention(
            "self_attention", attention_class, **arguments
        )
        self.ffn = PositionWiseFFN(
            self.ffn_dim,
            self.dim,
            activation=self.activation,
            dtype=self.dtype_policy,
        )
        self.self_attention_norm = self.make_add_norm("self_attention_norm")
        self.ffn_norm = self.make_add_norm("ffn_norm")

    def make_attention(
        self, name, attention_class=MultiHeadAttention, **arguments
    ):
        return attention_class(
            num_heads=self.num_heads,
            key_dim=self.dim // self.num_heads,
            dropout=self.dropout,
            use_bias=self.use_bias,
            dtype=self.dtype_policy,
            name=name,
            **arguments,
        )

    def make_add_norm(self, name):
        return AddNorm(
            dropout=self.dropout,
            epsilon=self.epsilon,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, query_shape):
        check_shapes(query_shape)
        if query_shape[-1] != self.dim:
            raise ValueError(
                f"The block was made for dim={self.dim}. Received: query "
                f"{tuple(query_shape)}."
            )
        self.self_attention.build(query_shape)
        for layer in (self.ffn, self.self_attention_norm, self.ffn_norm):
            layer.build(query_shape)

    def sublayer_input(self, add_norm, x):
        """What a sublayer reads: x, or norm(x) with `normalize_first`."""
        return add_norm.norm(x) if self.normalize_first else x

    def add_residual(self, add_norm, x, y, training=None):
        """norm(x + dropout(y)), or with `normalize_first` x + dropout(y)."""
        if self.normalize_first:
            return x + drop(add_norm.dropout_layer, y, training)
        return add_norm(x, y, training=training)

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values for `max_length` tokens."""
        attention = self.self_attention
        rows = (batch_size, max_length, attention.num_kv_heads)
        return contiguous_cache(
            (*rows, attention.key_dim), attention.value_dim, self.compute_dtype
        )

    def compute_output_shape(self, query_shape, key_shape=None):
        return tuple(query_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "dim": self.dim,
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "normalize_first": self.normalize_first,
            "epsilon": self.epsilon,
        }


def attend_to_itself(attention, x, mask, training=None):
    """Output `(B, T, D)` and weights `(B, H, T, T)` of self-attention.

    The block has merged all masks, so it does not go through `call`.
    """
    query = attention.project_query(x)  # (B, T, H, K)
    key, value = attention.project_key(x), attention.project_value(x)
    return attention.attend(query, key, value, mask, training)
