"""What a Transformer is stacked from.

Post-norm, as in the paper and the documents: norm(x + f(x)).
"""

from d2l_attention._checks import check_positive, check_rate
from d2l_attention.efficient.blockwise import over_written
from d2l_attention.masking import causal_mask
from d2l_attention.multi_head import MultiHeadAttention
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


@_register
class PositionWiseFFN(keras.Layer):
    """The same two dense layers at every position.

        FFN(x) = W₂ activation(W₁ x + b₁) + b₂

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.3; document
    001, Transformer.

    Args:
        ffn_dim: Positive int, width U of the hidden layer.
        output_dim: Positive int; None = the features of the input.
        activation: Name or function of the activation.

    Call arguments:
        x: Float tensor `(..., D)`.

    Returns:
        Float tensor `(..., output_dim)`.

    Raises:
        ValueError: If a size is not positive.
    """

    def __init__(self, ffn_dim, output_dim=None, activation="relu", **kwargs):
        super().__init__(**kwargs)
        check_positive("ffn_dim", ffn_dim)
        if output_dim is not None:
            check_positive("output_dim", output_dim)
        self.ffn_dim = ffn_dim
        self.output_dim = output_dim
        self.activation = keras.activations.get(activation)
        self.supports_masking = True

    def build(self, input_shape):
        policy = {"dtype": self.dtype_policy}
        output_dim = self.output_dim or input_shape[-1]
        self.hidden = keras.layers.Dense(
            self.ffn_dim, self.activation, name="hidden", **policy
        )
        self.output_layer = keras.layers.Dense(
            output_dim, name="output", **policy
        )
        self.hidden.build(input_shape)
        self.output_layer.build((*input_shape[:-1], self.ffn_dim))

    def call(self, x):
        return self.output_layer(self.hidden(x))

    def get_config(self):
        return {
            **super().get_config(),
            "ffn_dim": self.ffn_dim,
            "output_dim": self.output_dim,
            "activation": keras.activations.serialize(self.activation),
        }


@_register
class AddNorm(keras.Layer):
    """A residual connection, then layer normalization.

        norm(x + dropout(y))

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 5.4; Ba et al.
    (2016), arXiv:1607.06450; document 001, Transformer.

    Args:
        dropout: Float in [0, 1), rate of dropout on y.
        epsilon: Float, added to the variance.

    Call arguments:
        x, y: Float tensors of one shape `(..., D)`.

    Returns:
        Float tensor `(..., D)`.

    Raises:
        ValueError: If x and y differ in rank or in D, or `dropout` is outside
            [0, 1).
    """

    def __init__(self, dropout=0.0, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        check_rate("dropout", dropout)
        self.dropout = dropout
        self.epsilon = epsilon
        policy = {"dtype": self.dtype_policy}
        self.dropout_layer = keras.layers.Dropout(dropout, **policy)
        self.norm = keras.layers.LayerNormalization(epsilon=epsilon, **policy)
        self.supports_masking = True

    def build(self, x_shape, y_shape=None):
        self.norm.build(x_shape)

    def call(self, x, y, training=None):
        if x.shape[-1] != y.shape[-1] or len(x.shape) != len(y.shape):
            raise ValueError(
                "A residual connection adds tensors of one shape. Received: "
                f"x {tuple(x.shape)}, y {tuple(y.shape)}."
            )
        return self.norm(x + self.dropout_layer(y, training=training))

    def compute_output_spec(self, x, y, training=None):
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)

    def get_config(self):
        config = {"dropout": self.dropout, "epsilon": self.epsilon}
        return {**super().get_config(), **config}


class _TransformerBlock(keras.Layer):
    """What encoder and decoder blocks share.

    Args:
        num_heads: Positive int, H; divides `dim`.
        dim: Positive int, features D of input and output.
        ffn_dim: Positive int, width U of the position-wise net.
        dropout: Float in [0, 1), rate of dropout on weights and residuals.
        activation: Name or function of the net's activation.
        use_bias: Whether the projections of attention have biases.
        epsilon: Float of the layer normalization.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, or `dropout` is outside [0, 1).
    """

    def __init__(
        self,
        num_heads,
        dim,
        ffn_dim,
        dropout=0.0,
        activation="relu",
        use_bias=False,
        epsilon=1e-5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive("num_heads", num_heads)
        check_positive("dim", dim)
        if dim % num_heads:
            raise ValueError(
                "`num_heads` must divide `dim`. Received: "
                f"num_heads={num_heads}, dim={dim}."
            )
        self.num_heads = num_heads
        self.dim = dim
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.epsilon = epsilon
        self.self_attention = self._attention("self_attention")
        self.ffn = PositionWiseFFN(
            ffn_dim, dim, activation, dtype=self.dtype_policy
        )
        self.activation = self.ffn.activation
        self.self_attention_norm = self._add_norm()
        self.ffn_norm = self._add_norm()

    def _attention(self, name):
        return MultiHeadAttention(
            self.num_heads,
            self.dim // self.num_heads,
            dropout=self.dropout,
            use_bias=self.use_bias,
            dtype=self.dtype_policy,
            name=name,
        )

    def _add_norm(self):
        return AddNorm(self.dropout, self.epsilon, dtype=self.dtype_policy)

    def build(self, x_shape):
        if x_shape[-1] != self.dim:
            raise ValueError(
                f"The block was made for dim={self.dim}. Received: input "
                f"{tuple(x_shape)}."
            )
        self.self_attention.build(x_shape)
        for layer in (self.ffn, self.self_attention_norm, self.ffn_norm):
            layer.build(x_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dim": self.dim,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "epsilon": self.epsilon,
        }


@_register
class TransformerEncoderBlock(_TransformerBlock):
    """Self-attention and a position-wise net, each behind a residual.

        y = AddNorm(x, self_attention(x)),  output = AddNorm(y, FFN(y))

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.1; documents
    001 (Transformer) and 004, sections 3–5.

    Args and errors: see `_TransformerBlock`.

    Call arguments:
        x: Float tensor `(B, S, D)`.
        attention_mask: Bool tensor, see `MultiHeadAttention`.
        return_attention_scores: If True, also return the weights.

    Returns:
        Float tensor `(B, S, D)`, and if asked the weights `(B, H, S, S)`.
    """

    def call(
        self,
        x,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        y, weights = self.self_attention(
            x,
            attention_mask=attention_mask,
            return_attention_scores=True,
            training=training,
        )
        x = self.self_attention_norm(x, y, training=training)
        x = self.ffn_norm(x, self.ffn(x), training=training)
        return (x, weights) if return_attention_scores else x


@_register
class TransformerDecoderBlock(_TransformerBlock):
    """Causal self-attention, cross-attention and a position-wise net.

        y = AddNorm(x, self_attention(x) up to each position)
        z = AddNorm(y, cross_attention(y, encoded))
        output = AddNorm(z, FFN(z))

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.1; documents
    001 (Transformer) and 004, sections 3–5.

    Args and errors: see `_TransformerBlock`.

    Call arguments:
        x: Float tensor `(B, T, D)`.
        encoded: Float tensor `(B, S, D')`, the encoder's output.
        encoded_mask: Bool tensor `(B, S)`, True at source tokens.
        return_attention_scores: If True, also return the weights.

    Returns:
        Float tensor `(B, T, D)`, and if asked a dict of `"self_attention"`
        `(B, H, T, T)` and `"cross_attention"` `(B, H, T, S)`.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention_norm = self._add_norm()

    def build(self, x_shape, encoded_shape):
        super().build(x_shape)
        self.cross_attention.build(x_shape, encoded_shape)
        self.cross_attention_norm.build(x_shape)

    def memorize(self, encoded):
        """Keys and values of the source, projected once a sentence."""
        return {
            "key": self.cross_attention.project_key(encoded),
            "value": self.cross_attention.project_value(encoded),
        }

    def start(self, batch, max_length):
        """An empty cache of keys and values for `max_length` tokens."""
        shape = (batch, max_length, self.num_heads, self.dim // self.num_heads)
        return {
            name: ops.zeros(shape, self.compute_dtype)
            for name in ("key", "value")
        }

    def step(self, x, position, cache, memory, memory_mask=None):
        """One token `(B, 1, D)` at `position`: output, weights, cache."""
        written = {
            "key": self.self_attention.project_key(x),
            "value": self.self_attention.project_value(x),
        }
        cache = {
            name: ops.slice_update(cache[name], (0, position, 0, 0), new)
            for name, new in written.items()
        }
        attention, size = self.self_attention, cache["key"].shape[1]
        query = attention.project_query(x)
        slots = ops.arange(size, dtype="int32")

        def attend(n):
            key, value = (cache[name][:, :n] for name in ("key", "value"))
            seen = (slots[:n] <= position)[None]  # (T, S) with T = 1
            return attention.attend(query, key, value, seen)[0]

        y = over_written(attend, position + 1, size)
        x = self.self_attention_norm(x, y)
        x, weights = self._read_memory(x, memory, memory_mask)
        return x, weights, cache

    def call(
        self,
        x,
        encoded,
        encoded_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        attention = self.self_attention
        y, own_weights = attention.attend(
            attention.project_query(x),
            attention.project_key(x),
            attention.project_value(x),
            causal_mask(ops.shape(x)[1]),
            training,
        )
        x = self.self_attention_norm(x, y, training=training)
        x, memory_weights = self._read_memory(
            x, self.memorize(encoded), encoded_mask, training
        )
        weights = {
            "self_attention": own_weights,
            "cross_attention": memory_weights,
        }
        return (x, weights) if return_attention_scores else x

    def _read_memory(self, x, memory, memory_mask=None, training=None):
        """Cross-attention and the net: output, and weights of the memory."""
        if memory_mask is not None:
            memory_mask = memory_mask[:, None]  # the same for every query
        attention = self.cross_attention
        y, weights = attention.attend(
            attention.project_query(x),
            memory["key"],
            memory["value"],
            memory_mask,
            training,
        )
        x = self.cross_attention_norm(x, y, training=training)
        return self.ffn_norm(x, self.ffn(x), training=training), weights
