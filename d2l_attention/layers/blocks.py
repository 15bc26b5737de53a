"""What a Transformer is stacked from.

The output of a sublayer f is norm(x + f(x)), as in Vaswani et al. (2017) and
the documents (post-norm), or x + f(norm(x)) with `normalize_first` (pre-norm).
"""

from d2l_attention._checks import check_positive, check_rate, differ
from d2l_attention._config import Configurable
from d2l_attention.layers.base import (
    QueryLayer,
    check_shapes,
    drop,
    output_spec,
)
from d2l_attention.layers.masking import merge_masks
from d2l_attention.layers.multi_head import MultiHeadAttention
from d2l_attention.layers.multi_query import GroupedQueryAttention
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class PositionWiseFFN(Configurable, keras.Layer):
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

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PositionWiseFFN
        >>> ffn = PositionWiseFFN(ffn_dim=8, output_dim=3)
        >>> output = np.array(ffn(np.ones((1, 2, 4))))
        >>> output.shape, bool(np.allclose(output[:, 0], output[:, 1]))
        ((1, 2, 3), True)
    """

    def __init__(
        self,
        ffn_dim,
        output_dim=None,
        *,
        activation="relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.ffn_dim = check_positive("ffn_dim", ffn_dim)
        self.output_dim = check_positive("output_dim", output_dim, None)
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

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-1], self.output_dim or x_shape[-1])


@keras.saving.register_keras_serializable("d2l_attention")
class AddNorm(Configurable, keras.Layer):
    """A residual connection, then layer normalization.

        norm(x + dropout(y))

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 5.4; Ba et al.
    (2016), arXiv:1607.06450; document 001, Transformer.

    Args:
        dropout: Float in [0, 1), rate of dropout on y.
        epsilon: Float, added to the variance.

    Call arguments:
        x, y: Float tensors of one shape `(..., D)`: what goes in, and what
            the sublayer made of it.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AddNorm
        >>> x, y = np.array([[1.0, 2.0]]), np.array([[0.0, 3.0]])
        >>> np.array(AddNorm()(x, y)).round(3).tolist()  # of [1, 5]
        [[-1.0, 1.0]]
    """

    norm_class = keras.layers.LayerNormalization

    def __init__(self, *, dropout=0.0, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.epsilon = epsilon
        policy = {"dtype": self.dtype_policy}
        self.dropout_layer = keras.layers.Dropout(dropout, **policy)
        self.norm = self.norm_class(epsilon=epsilon, **policy)
        self.supports_masking = True

    def build(self, x_shape, y_shape=None):
        self.norm.build(x_shape)

    def call(self, x, y, training=None):
        _check_same_shape(x.shape, y.shape)
        return self.norm(x + drop(self.dropout_layer, y, training))

    def compute_output_shape(self, x_shape, y_shape=None):
        _check_same_shape(x_shape, x_shape if y_shape is None else y_shape)
        return tuple(x_shape)


def _check_same_shape(x, y):
    if len(x) != len(y) or any(map(differ, x, y)):
        raise ValueError(
            "A residual connection adds tensors of one shape. Received: "
            f"x {tuple(x)}, y {tuple(y)}."
        )


class ResidualBlock(QueryLayer):
    """Self-attention, a position-wise net, and the residuals around them.

    No token sees a later one, so the block can keep a cache. A subclass says
    in `make_attention` what attends.
    """

    add_norm_class = AddNorm

    def __init__(
        self,
        dim,
        ffn_dim,
        *,
        dropout=0.0,
        activation="relu",
        normalize_first=False,
        epsilon=1e-5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dim = check_positive("dim", dim)
        self.ffn_dim = check_positive("ffn_dim", ffn_dim)
        self.dropout = check_rate("dropout", dropout)
        self.normalize_first = normalize_first
        self.epsilon = epsilon
        self.activation = keras.activations.get(activation)

    def make_attention(self, name):
        raise NotImplementedError

    def make_ffn(self):
        return PositionWiseFFN(
            self.ffn_dim,
            self.dim,
            activation=self.activation,
            dtype=self.dtype_policy,
        )

    def make_add_norm(self, name):
        return self.add_norm_class(
            dropout=self.dropout,
            epsilon=self.epsilon,
            dtype=self.dtype_policy,
            name=name,
        )

    def add_sublayers(self):
        self.self_attention = self.make_attention("self_attention")
        self.ffn = self.make_ffn()
        self.self_attention_norm = self.make_add_norm("self_attention_norm")
        self.ffn_norm = self.make_add_norm("ffn_norm")

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

    def transform(self, x, training=None):
        """x after the position-wise net and its residual."""
        y = self.ffn(self.sublayer_input(self.ffn_norm, x))
        return self.add_residual(self.ffn_norm, x, y, training)

    def call(
        self,
        query,
        *,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        mask=None,
        return_attention_scores=False,
        training=None,
    ):
        self._check_forms_weights(return_attention_scores)
        mask = merge_masks(attention_mask, query_mask, key_mask, mask)
        x, weights = self.attend_to_itself(query, mask, True, training)
        x = self.transform(x, training)  # (B, T, D)
        return (x, weights) if return_attention_scores else x

    def attend_to_itself(self, x, mask, use_causal_mask, training=None):
        """x after self-attention and its residual; and the weights."""
        norm = self.self_attention_norm
        y, weights = self.self_attention.attend_to_itself(
            self.sublayer_input(norm, x),
            mask,
            use_causal_mask=use_causal_mask,
            training=training,
        )
        return self.add_residual(norm, x, y, training), weights

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values for `max_length` tokens."""
        return self.self_attention.make_cache(batch_size, max_length)

    def step(self, x, positions, cache, query_mask=None):
        """Process tokens `(B, T, D)` at `positions` `(B, T)`.

        `query_mask` `(B, T)` is True at tokens, and False at the padding after
        them. What comes back is `(B, T, D)`, and the cache with the new tokens.
        """
        x, cache = self.attend_with_cache(x, positions, cache, query_mask)
        return self.transform(x), cache

    def attend_with_cache(self, x, positions, cache, query_mask=None):
        """x after self-attention to itself and to the cache; and the cache."""
        x = ops.convert_to_tensor(x)
        y = self.sublayer_input(self.self_attention_norm, x)
        y, cache = self.self_attention.step(y, positions, cache, query_mask)
        return self.add_residual(self.self_attention_norm, x, y), cache

    @property
    def forms_weights(self):
        """Whether the block's attention forms weights that it can return."""
        return self.self_attention.weights_from is None

    def _check_forms_weights(self, asked):
        if asked and not self.forms_weights:
            self.self_attention._refuse("return_attention_scores", asked)

    def compute_output_shape(self, query_shape, key_shape=None):
        return tuple(query_shape)

    def compute_output_spec(
        self, query, *, return_attention_scores=False, **masks_and_mode
    ):
        self._check_forms_weights(return_attention_scores)
        batch, t, _ = query.shape
        weights_shape = (batch, self.num_heads, t, t)
        return output_spec(
            self, query.shape, weights_shape, return_attention_scores
        )


class TransformerBlock(ResidualBlock):
    """A residual block of multi-head attention.

    `TransformerEncoderBlock` describes the arguments.
    """

    def __init__(
        self,
        dim,
        num_heads,
        ffn_dim,
        *,
        num_kv_heads=None,
        use_bias=False,
        **options,
    ):
        super().__init__(dim, ffn_dim, **options)
        self.num_heads = check_positive("num_heads", num_heads)
        if dim % num_heads:
            raise ValueError(
                "`num_heads` must divide `dim`. Received: "
                f"num_heads={num_heads}, dim={dim}."
            )
        self.num_kv_heads = check_positive("num_kv_heads", num_kv_heads, None)
        self.use_bias = use_bias
        self.add_sublayers()

    def make_attention(self, name):
        attention_class, sharing = MultiHeadAttention, {}
        if self.num_kv_heads is not None:
            attention_class = GroupedQueryAttention
            sharing = {"num_kv_heads": self.num_kv_heads}
        return attention_class(
            num_heads=self.num_heads,
            key_dim=self.dim // self.num_heads,
            dropout=self.dropout,
            use_bias=self.use_bias,
            dtype=self.dtype_policy,
            name=name,
            **sharing,
        )


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerEncoderBlock(TransformerBlock):
    """Self-attention and a position-wise net, each with a residual.

        y = norm(x + self_attention(x)),  output = norm(y + FFN(y))

    and with `normalize_first`

        y = x + self_attention(norm(x)),  output = y + FFN(norm(y))

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.1; documents
    001 (Transformer) and 004, sections 3–5. Norms first: Xiong et al. (2020),
    arXiv:2002.04745.

    Args:
        dim: Positive int, features D of input and output.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width U of the position-wise net.
        num_kv_heads: Positive int, G heads of keys and values that the query
            heads share; divides `num_heads`. None = `num_heads`.
        use_bias: Whether attention's projections have biases. The net always
            has b₁ and b₂.
        dropout: Float in [0, 1), rate of dropout on weights and residuals.
        activation: Name or function of the net's activation.
        normalize_first: Whether each sublayer reads a normalized input, instead
            of normalizing after each residual.
        epsilon: Float, added to the variance of the layer normalization.

    Unlike `AttentionLayer`, it takes the queries alone, which are the keys and
    values.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerEncoderBlock
        >>> block = TransformerEncoderBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> x, tokens = np.ones((1, 3, 4)), np.array([[True, True, False]])
        >>> _, weights = block(x, key_mask=tokens, return_attention_scores=True)
        >>> np.array(weights)[0, 0, 0].round(2).tolist()
        [0.5, 0.5, 0.0]
    """

    def call(
        self,
        query,
        *,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        mask = merge_masks(attention_mask, query_mask, key_mask, mask)
        x, weights = self.attend_to_itself(
            query, mask, use_causal_mask, training
        )
        x = self.transform(x, training)  # (B, T, D)
        return (x, weights) if return_attention_scores else x


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerDecoderBlock(TransformerBlock):
    """Causal self-attention, cross-attention and a position-wise net.

        y = norm(x + self_attention(x) up to each position)
        z = norm(y + cross_attention(y, key))
        output = norm(z + FFN(z))

    With `normalize_first` each line is x + f(norm(x)). The block never
    normalizes `key`.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.1; documents
    001 (Transformer) and 004, sections 3–5. Norms first: Xiong et al. (2020),
    arXiv:2002.04745.

    Args:
        dim, num_heads, ffn_dim, num_kv_heads: As in `TransformerEncoderBlock`.
        use_bias, dropout, activation, normalize_first, epsilon: As there.

    Call arguments:
        query: Float tensor `(B, T, D)`, the target so far.
        key: Float tensor `(B, S, D')`, the encoder's output.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`. The causal mask is always on; there is no
            `use_causal_mask`.
        cross_attention_mask: Bool tensor `(T, S)`, `(B, 1, S)` or
            `(B, T, S)`.
        query_mask: Bool tensor `(B, T)`, True at target tokens.
        key_mask: Bool tensor `(B, S)`, True at source tokens.
        return_attention_scores, training: As in `AttentionLayer`.

    Returns:
        Float tensor `(B, T, D)`, and if asked a dict of `"self_attention"`
        `(B, H, T, T)` and `"cross_attention"` `(B, H, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerDecoderBlock
        >>> block = TransformerDecoderBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> target, source = np.ones((1, 3, 4)), np.ones((1, 5, 6))
        >>> _, maps = block(target, key=source, return_attention_scores=True)
        >>> {name: tuple(weights.shape) for name, weights in maps.items()}
        {'self_attention': (1, 2, 3, 3), 'cross_attention': (1, 2, 3, 5)}
    """

    def add_sublayers(self):
        super().add_sublayers()
        self.cross_attention = self.make_attention("cross_attention")
        self.cross_attention_norm = self.make_add_norm("cross_attention_norm")

    def build(self, query_shape, key_shape=None):
        check_source(self, key_shape)
        super().build(query_shape)
        self.cross_attention.build(query_shape, key_shape)
        self.cross_attention_norm.build(query_shape)

    def memorize(self, key):
        """Keys and values of the source, projected once for all steps."""
        return {
            "key": self.cross_attention.project_key(key),
            "value": self.cross_attention.project_value(key),
        }

    def step(self, x, positions, cache, memory, key_mask=None):
        """Process tokens `(B, T, D)` at `positions` `(B, T)`.

        The cache is that of `make_cache` or of the step before, the memory
        that of `memorize`. What comes back is `(B, T, D)`, and the new cache.
        """
        x, cache = self.attend_with_cache(x, positions, cache)
        mask = merge_masks(None, key_mask)  # (B, 1, S)
        x, _ = self.attend_to_memory(x, memory, mask)
        return self.transform(x), cache

    def call(
        self,
        query,
        key=None,
        *,
        query_mask=None,
        key_mask=None,
        attention_mask=None,
        cross_attention_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        check_source(self, key)
        check_shapes(query.shape, key.shape, key.shape)
        x, weights = self.attend_to_itself(
            query, merge_masks(attention_mask, query_mask), True, training
        )
        x, cross_weights = self.attend_to_memory(
            x,
            self.memorize(key),
            merge_masks(cross_attention_mask, key_mask),
            training,
        )
        x = self.transform(x, training)  # (B, T, D)
        maps = {"self_attention": weights, "cross_attention": cross_weights}
        return (x, maps) if return_attention_scores else x

    def attend_to_memory(self, x, memory, mask, training=None):
        """x after cross-attention and its residual; and the weights."""
        attention, norm = self.cross_attention, self.cross_attention_norm
        y, weights = attention.attend(
            attention.project_query(self.sublayer_input(norm, x)),
            memory["key"],  # (B, S, H, K)
            memory["value"],
            mask,
            training=training,
        )
        return self.add_residual(norm, x, y, training), weights

    def compute_output_spec(
        self,
        query,
        key=None,
        *,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        check_source(self, key)
        check_shapes(query.shape, key.shape, key.shape)
        batch, t, _ = query.shape
        rows, dtype = (batch, self.num_heads, t), self.compute_dtype
        output = keras.KerasTensor(query.shape, dtype)
        maps = {
            "self_attention": keras.KerasTensor((*rows, t), dtype),
            "cross_attention": keras.KerasTensor((*rows, key.shape[1]), dtype),
        }
        return (output, maps) if return_attention_scores else output


def check_source(layer, key):
    """Refuse a call of a decoder without a source."""
    if key is None:
        raise ValueError(
            f"{type(layer).__name__} attends to a source as well: write "
            "layer(query, key), with key the encoder's output. Received: "
            "key=None."
        )


@keras.saving.register_keras_serializable("d2l_attention")
class CausalBlock(TransformerBlock):
    """An encoder block that sees no later token, and so can keep a cache.

        y = norm(x + self_attention(x) up to each position)
        output = norm(y + FFN(y))

    Source: Liu et al. (2018), arXiv:1801.10198, section 4.2.1; document 004,
    section 5.

    Args:
        dim, num_heads, ffn_dim, num_kv_heads: As in `TransformerEncoderBlock`.
        use_bias, dropout, activation, normalize_first, epsilon: As there.

    Unlike `TransformerEncoderBlock`, there is no `use_causal_mask`: the causal
    mask is always on.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import CausalBlock
        >>> block = CausalBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> x = np.arange(12.0).reshape(1, 3, 4)
        >>> whole, cache = block(x), block.make_cache(1, max_length=3)
        >>> for t in range(3):  # token by token, at position t
        ...     y, cache = block.step(x[:, t : t + 1], np.array([[t]]), cache)
        >>> bool(np.allclose(y[:, 0], whole[:, 2], atol=1e-5))
        True
    """


@keras.saving.register_keras_serializable("d2l_attention")
class AttentionBlock(ResidualBlock):
    """A causal block around any attention layer with heads.

        y = norm(x + attention(x) up to each position)
        output = norm(y + FFN(y))

    With `normalize_first` each line is x + f(norm(x)).

    Args:
        attention: Attention layer, as a pattern: the block makes one of its
            own with the same config, named `"self_attention"`.
        dim: Positive int, features D of input and output.
        ffn_dim: Positive int, width U of the position-wise net.
        dropout: Float in [0, 1), rate of dropout on residuals; `attention`
            has a rate of its own.
        activation, normalize_first, epsilon: As in `TransformerEncoderBlock`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AttentionBlock, RotaryAttention
        >>> block = AttentionBlock(RotaryAttention(2, key_dim=4), 8, 16)
        >>> x = np.arange(24.0).reshape(1, 3, 8)
        >>> whole, cache = block(x), block.make_cache(1, max_length=3)
        >>> for t in range(3):  # token by token, at position t
        ...     y, cache = block.step(x[:, t : t + 1], np.array([[t]]), cache)
        >>> bool(np.allclose(y[:, 0], whole[:, 2], atol=1e-5))
        True
    """

    def __init__(self, attention, dim, ffn_dim, **options):
        super().__init__(dim, ffn_dim, **options)
        if not hasattr(attention, "make_cache"):
            raise ValueError(
                "`attention` must be an attention layer with heads and a "
                f"cache, such as RotaryAttention. Received: {attention!r}."
            )
        self.pattern = keras.saving.serialize_keras_object(attention)
        self.num_heads = attention.num_heads
        self.add_sublayers()

    @property
    def attention(self):
        """Another layer of the pattern, without parameters."""
        return keras.saving.deserialize_keras_object(self.pattern)

    def make_attention(self, name):
        attention = self.attention
        config = {"name": name, "dtype": self.dtype_policy}
        return type(attention).from_config(attention.get_config() | config)
