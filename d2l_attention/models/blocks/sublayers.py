"""The parts of a Transformer block other than attention."""

from d2l_attention._checks import check_positive, check_rate
from d2l_attention.attention_layer import drop
import keras


@keras.saving.register_keras_serializable("d2l_attention")
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
        self.output_dim = output_dim
        if output_dim is not None:
            self.output_dim = check_positive("output_dim", output_dim)
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

    def get_config(self):
        return {
            **super().get_config(),
            "ffn_dim": self.ffn_dim,
            "output_dim": self.output_dim,
            "activation": keras.activations.serialize(self.activation),
        }


@keras.saving.register_keras_serializable("d2l_attention")
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
