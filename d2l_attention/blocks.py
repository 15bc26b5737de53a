"""What a Transformer is stacked from.

A residual is norm(x + f(x)), as in the paper and the documents (post-norm),
or x + f(norm(x)) with `normalize_first` (pre-norm).
"""

from d2l_attention._checks import check_positive, check_rate
from d2l_attention.attention_layer import (
    check_shapes,
    drop,
    query_and_key_size,
)
from d2l_attention.efficient.blockwise import over_written
from d2l_attention.efficient.multi_query import GroupedQueryAttention
from d2l_attention.masking import add_causal_mask, merge_masks
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
        use_bias: Whether there are b₁ and b₂.

    Call arguments:
        x: Float tensor `(..., D)`.

    Returns:
        Float tensor `(..., output_dim)`.

    Raises:
        ValueError: If a size is not positive.

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
        use_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.ffn_dim = check_positive("ffn_dim", ffn_dim)
        self.output_dim = output_dim
        if output_dim is not None:
            self.output_dim = check_positive("output_dim", output_dim)
        self.use_bias = use_bias
        self.activation = keras.activations.get(activation)
        self.supports_masking = True

    def build(self, input_shape):
        options = {"dtype": self.dtype_policy, "use_bias": self.use_bias}
        output_dim = self.output_dim or input_shape[-1]
        self.hidden = keras.layers.Dense(
            self.ffn_dim, self.activation, name="hidden", **options
        )
        self.output_layer = keras.layers.Dense(
            output_dim, name="output", **options
        )
        self.hidden.build(input_shape)
        self.output_layer.build((*input_shape[:-1], self.ffn_dim))

    def call(self, x):
        return self.output_layer(self.hidden(x))

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-1], self.output_dim or x_shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "ffn_dim": self.ffn_dim,
            "output_dim": self.output_dim,
            "use_bias": self.use_bias,
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
        x, y: Float tensors of one shape `(..., D)`: what goes in, and what
            the sublayer made of it.
        training: Whether dropout is active.

    Returns:
        Float tensor `(..., D)`.

    Raises:
        ValueError: If x and y differ in shape, or `dropout` is outside [0, 1).

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AddNorm
        >>> x, y = np.array([[1.0, 2.0]]), np.array([[0.0, 3.0]])
        >>> np.array(AddNorm()(x, y)).round(3).tolist()  # of [1, 5]
        [[-1.0, 1.0]]
    """

    def __init__(self, *, dropout=0.0, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.epsilon = epsilon
        policy = {"dtype": self.dtype_policy}
        self.dropout_layer = keras.layers.Dropout(dropout, **policy)
        self.norm = keras.layers.LayerNormalization(epsilon=epsilon, **policy)
        self.supports_masking = True

    def build(self, x_shape, y_shape=None):
        self.norm.build(x_shape)

    def call(self, x, y, training=None):
        _check_same_shape(x.shape, y.shape)
        return self.norm(x + drop(self.dropout_layer, y, training))

    def compute_output_shape(self, x_shape, y_shape=None):
        _check_same_shape(x_shape, x_shape if y_shape is None else y_shape)
        return tuple(x_shape)

    def get_config(self):
        config = {"dropout": self.dropout, "epsilon": self.epsilon}
        return {**super().get_config(), **config}


def _check_same_shape(x, y):
    if len(x) != len(y) or any(
        None not in pair and pair[0] != pair[1]
        for pair in zip(x, y, strict=True)
    ):
        raise ValueError(
            "A residual connection adds tensors of one shape. Received: "
            f"x {tuple(x)}, y {tuple(y)}."
        )


class _TransformerBlock(keras.Layer):
    """What encoder and decoder blocks share; their docstrings list the rest."""

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
        _num_kv_heads=None,  # a child's: fewer heads of keys than of queries
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
        self.self_attention = self._attention("self_attention", _num_kv_heads)
        self.ffn = PositionWiseFFN(
            ffn_dim,
            dim,
            activation=activation,
            use_bias=use_bias,
            dtype=self.dtype_policy,
        )
        self.activation = self.ffn.activation
        self.self_attention_norm = self._add_norm("self_attention_norm")
        self.ffn_norm = self._add_norm("ffn_norm")
        self.supports_masking = True

    def _attention(self, name, num_kv_heads=None):
        options = {
            "num_heads": self.num_heads,
            "key_dim": self.dim // self.num_heads,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "dtype": self.dtype_policy,
            "name": name,
        }
        if num_kv_heads is None:
            return MultiHeadAttention(**options)
        return GroupedQueryAttention(num_kv_heads=num_kv_heads, **options)

    def _add_norm(self, name):
        return AddNorm(
            dropout=self.dropout,
            epsilon=self.epsilon,
            dtype=self.dtype_policy,
            name=name,
        )

    def _build(self, query_shape):
        """Everything but cross-attention."""
        check_shapes(query_shape, query_shape, query_shape)
        if query_shape[-1] != self.dim:
            raise ValueError(
                f"The block was made for dim={self.dim}. Received: query "
                f"{tuple(query_shape)}."
            )
        self.self_attention.build(query_shape)
        for layer in (self.ffn, self.self_attention_norm, self.ffn_norm):
            layer.build(query_shape)

    def _read(self, add_norm, x):
        """What a sublayer reads: x, or norm(x)."""
        return add_norm.norm(x) if self.normalize_first else x

    def _add(self, add_norm, x, y, training=None):
        """norm(x + dropout(y)), or x + dropout(y) where x was normalized."""
        if self.normalize_first:
            return x + drop(add_norm.dropout_layer, y, training)
        return add_norm(x, y, training=training)

    def _attend_to_itself(self, x, mask, training=None):
        """x behind self-attention and its residual, and the weights."""
        attention = self.self_attention
        y = self._read(self.self_attention_norm, x)
        y, weights = attention.attend(
            attention.project_query(y),
            attention.project_key(y),
            attention.project_value(y),
            mask,
            training,
        )
        return self._add(self.self_attention_norm, x, y, training), weights

    def _feed_forward(self, x, training=None):
        y = self.ffn(self._read(self.ffn_norm, x))
        return self._add(self.ffn_norm, x, y, training)

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


@_register
class TransformerEncoderBlock(_TransformerBlock):
    """Self-attention and a position-wise net, each behind a residual.

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
        dropout: Float in [0, 1), rate of dropout on weights and residuals.
        activation: Name or function of the net's activation.
        use_bias: Whether attention's projections and the net have biases.
        normalize_first: Whether each sublayer reads a normalized input, in
            place of a norm behind each residual.
        epsilon: Float of the layer normalization.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`; True = may attend.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills two of them from implicit masks.
        use_causal_mask: Whether no token sees a later one.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked the weights `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerEncoderBlock
        >>> block = TransformerEncoderBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> x, tokens = np.ones((1, 3, 4)), np.array([[True, True, False]])
        >>> output, weights = block(
        ...     x, key_mask=tokens, return_attention_scores=True
        ... )
        >>> tuple(output.shape), np.array(weights)[0, 0, 0].round(2).tolist()
        ((1, 3, 4), [0.5, 0.5, 0.0])
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
        super().__init__(
            dim,
            num_heads,
            ffn_dim,
            dropout=dropout,
            activation=activation,
            use_bias=use_bias,
            normalize_first=normalize_first,
            epsilon=epsilon,
            **kwargs,
        )

    def build(self, query_shape):
        self._build(query_shape)

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
        if use_causal_mask:
            mask = add_causal_mask(mask, *query_and_key_size(query, query))
        x, weights = self._attend_to_itself(query, mask, training)
        x = self._feed_forward(x, training)
        return (x, weights) if return_attention_scores else x

    def compute_output_shape(self, query_shape):
        return tuple(query_shape)

    def compute_output_spec(
        self, query, *, return_attention_scores=False, **masks_and_mode
    ):
        batch, t, _ = query.shape
        output, weights = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in (query.shape, (batch, self.num_heads, t, t))
        )
        return (output, weights) if return_attention_scores else output


@_register
class TransformerDecoderBlock(_TransformerBlock):
    """Causal self-attention, cross-attention and a position-wise net.

        y = norm(x + self_attention(x) up to each position)
        z = norm(y + cross_attention(y, key))
        output = norm(z + FFN(z))

    With `normalize_first` each is x + f(norm(x)) instead; the keys are never
    normalized here.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.1; documents
    001 (Transformer) and 004, sections 3–5. Norms first: Xiong et al. (2020),
    arXiv:2002.04745.

    Args:
        dim: Positive int, features D of input and output.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width U of the position-wise net.
        dropout: Float in [0, 1), rate of dropout on weights and residuals.
        activation: Name or function of the net's activation.
        use_bias: Whether attention's projections and the net have biases.
        normalize_first: Whether each sublayer reads a normalized input, in
            place of a norm behind each residual.
        epsilon: Float of the layer normalization.

    Call arguments:
        query: Float tensor `(B, T, D)`, the target so far.
        key: Float tensor `(B, S, D')`, the encoder's output.
        attention_mask: Bool tensor over target and target, `(T, T)`,
            `(B, 1, T)`, `(B, T, T)` or `(B, H, T, T)`. The causal mask is
            always on; there is no `use_causal_mask`.
        cross_attention_mask: Bool tensor over target and source, `(T, S)`,
            `(B, 1, S)` or `(B, T, S)`.
        query_mask: Bool tensor `(B, T)`, True at target tokens.
        key_mask: Bool tensor `(B, S)`, True at source tokens. Keras fills
            both from implicit masks.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked a dict of `"self_attention"`
        `(B, H, T, T)` and `"cross_attention"` `(B, H, T, S)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerDecoderBlock
        >>> block = TransformerDecoderBlock(dim=4, num_heads=2, ffn_dim=8)
        >>> target, source = np.ones((1, 3, 4)), np.ones((1, 5, 6))
        >>> _, maps = block(target, key=source, return_attention_scores=True)
        >>> {name: tuple(weights.shape) for name, weights in maps.items()}
        {'self_attention': (1, 2, 3, 3), 'cross_attention': (1, 2, 3, 5)}
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
        super().__init__(
            dim,
            num_heads,
            ffn_dim,
            dropout=dropout,
            activation=activation,
            use_bias=use_bias,
            normalize_first=normalize_first,
            epsilon=epsilon,
            **kwargs,
        )
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention_norm = self._add_norm("cross_attention_norm")

    def build(self, query_shape, key_shape):
        self._build(query_shape)
        self.cross_attention.build(query_shape, key_shape)
        self.cross_attention_norm.build(query_shape)

    def memorize(self, key):
        """Keys and values of the source, projected once a sentence."""
        return {
            "key": self.cross_attention.project_key(key),
            "value": self.cross_attention.project_value(key),
        }

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values for `max_length` tokens."""
        heads, features = self.num_heads, self.dim // self.num_heads
        shape = (batch_size, max_length, heads, features)
        return {
            name: ops.zeros(shape, self.compute_dtype)
            for name in ("key", "value")
        }

    def step(self, x, position, cache, memory, memory_mask=None):
        """One token `(B, 1, D)` at `position`: output, weights, cache."""
        attention = self.self_attention
        y = self._read(self.self_attention_norm, x)
        written = {
            "key": attention.project_key(y),
            "value": attention.project_value(y),
        }
        cache = {
            name: ops.slice_update(cache[name], (0, position, 0, 0), new)
            for name, new in written.items()
        }
        size, query = cache["key"].shape[1], attention.project_query(y)
        slots = ops.arange(size, dtype="int32")

        def attend(n):
            key, value = (cache[name][:, :n] for name in ("key", "value"))
            seen = (slots[:n] <= position)[None]  # (T, S) with T = 1
            return attention.attend(query, key, value, seen)[0]

        y = over_written(attend, position + 1, size)
        x = self._add(self.self_attention_norm, x, y)
        x, weights = self._attend_to(memory, x, merge_masks(None, memory_mask))
        return self._feed_forward(x), weights, cache

    def call(
        self,
        query,
        *,
        key,
        query_mask=None,
        key_mask=None,
        attention_mask=None,
        cross_attention_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        check_shapes(query.shape, key.shape, key.shape)
        own_mask = add_causal_mask(
            merge_masks(attention_mask, query_mask),
            *query_and_key_size(query, query),
        )
        cross_mask = merge_masks(cross_attention_mask, key_mask)
        x, own_weights = self._attend_to_itself(query, own_mask, training)
        x, cross_weights = self._attend_to(
            self.memorize(key), x, cross_mask, training
        )
        x = self._feed_forward(x, training)
        weights = {
            "self_attention": own_weights,
            "cross_attention": cross_weights,
        }
        return (x, weights) if return_attention_scores else x

    def _attend_to(self, memory, x, mask, training=None):
        """x behind cross-attention and its residual, and the weights."""
        attention = self.cross_attention
        y = self._read(self.cross_attention_norm, x)
        y, weights = attention.attend(
            attention.project_query(y),
            memory["key"],
            memory["value"],
            mask,
            training,
        )
        return self._add(self.cross_attention_norm, x, y, training), weights

    def compute_output_shape(self, query_shape, key_shape=None):
        return tuple(query_shape)

    def compute_output_spec(
        self, query, *, key, return_attention_scores=False, **masks_and_mode
    ):
        check_shapes(query.shape, key.shape, key.shape)
        batch, t, _ = query.shape
        rows = (batch, self.num_heads, t)
        output, own, cross = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in (query.shape, (*rows, t), (*rows, key.shape[1]))
        )
        weights = {"self_attention": own, "cross_attention": cross}
        return (output, weights) if return_attention_scores else output
