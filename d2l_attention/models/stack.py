"""What the Transformer's encoder and decoder share."""

from d2l_attention._checks import check_positive
from d2l_attention._signature import ConstructorSignature
from d2l_attention.attention_layer import QueryLayer
from d2l_attention.positional_encoding import PositionalEncoding
import keras


class TransformerStack(QueryLayer):
    """Positions, dropout and blocks; the embedding is the caller's."""

    __signature__ = ConstructorSignature()

    def __init__(
        self,
        dim,
        num_layers,
        num_heads,
        ffn_dim,
        *,
        dropout=0.0,
        activation="relu",
        use_bias=False,
        normalize_first=False,
        epsilon=1e-5,
        max_length=256,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_layers = check_positive("num_layers", num_layers)
        self.max_length = max_length
        policy = {"dtype": self.dtype_policy}
        self.positions = None
        if max_length is not None:
            self.max_length = check_positive("max_length", max_length)
            self.positions = PositionalEncoding(max_length, **policy)
        self.dropout_layer = keras.layers.Dropout(dropout, **policy)
        self.blocks = [
            self.block_class(
                dim,
                num_heads,
                ffn_dim,
                dropout=dropout,
                activation=activation,
                use_bias=use_bias,
                normalize_first=normalize_first,
                epsilon=epsilon,
                name=f"block_{i}",
                **policy,
            )
            for i in range(self.num_layers)
        ]
        self.norm = None  # behind the last block, whose sum it normalizes
        if normalize_first:
            self.norm = keras.layers.LayerNormalization(
                epsilon=epsilon, name="norm", **policy
            )
        self.supports_masking = True

    def build_blocks(self, *shapes):
        for block in self.blocks:
            block.build(*shapes)
        if self.positions is not None:
            self.positions.build(shapes[0])
        if self.norm is not None:
            self.norm.build(shapes[0])

    def place(self, x, start=0):
        """x with its positions, if the stack has any."""
        return x if self.positions is None else self.positions(x, start=start)

    def end(self, x):
        """x, normalized if the blocks normalize first."""
        return x if self.norm is None else self.norm(x)

    def compute_output_shape(self, query_shape, key_shape=None):
        return tuple(query_shape)

    def get_config(self):
        block = self.blocks[0].get_config()
        names = ("dim", "num_heads", "ffn_dim", "dropout", "activation")
        names += ("use_bias", "normalize_first", "epsilon")
        return {
            **super().get_config(),
            **{name: block[name] for name in names},
            "num_layers": self.num_layers,
            "max_length": self.max_length,
        }


def asking_for_weights(return_attention_scores):
    """The arguments of a block's call, none unless weights are asked for.

    Under `keras.RematScope` JAX traces every argument, and a block must know
    whether weights are asked for.
    """
    return {"return_attention_scores": True} if return_attention_scores else {}
