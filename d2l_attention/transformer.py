"""The Transformer: an encoder and a decoder of attention alone."""

from d2l_attention._checks import check_positive
from d2l_attention.blocks import (
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from d2l_attention.positional_encoding import PositionalEncoding
from d2l_attention.seq2seq import Seq2Seq
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


class _Stack(keras.Layer):
    """Positions, dropout and blocks; the embedding is the caller's.

    Args:
        dim: Positive int, features D.
        num_layers: Positive int, number of blocks.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width U of the position-wise nets.
        dropout: Float in [0, 1).
        max_length: Positive int, number of positions.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, or the input is longer than `max_length`.
    """

    def __init__(
        self,
        dim,
        num_layers,
        num_heads,
        ffn_dim,
        dropout=0.0,
        max_length=256,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive("num_layers", num_layers)
        self.sizes = {
            "dim": dim,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "ffn_dim": ffn_dim,
            "dropout": dropout,
            "max_length": max_length,
        }
        self.max_length = max_length
        policy = {"dtype": self.dtype_policy}
        self.positions = PositionalEncoding(max_length, **policy)
        self.dropout_layer = keras.layers.Dropout(dropout, **policy)
        self.blocks = [
            self.block_class(
                num_heads, dim, ffn_dim, dropout, name=f"block_{i}", **policy
            )
            for i in range(num_layers)
        ]

    def get_config(self):
        return {**super().get_config(), **self.sizes}


@_register
class TransformerEncoder(_Stack):
    """A stack of `TransformerEncoderBlock` over embedded tokens.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3; document 001,
    Transformer.

    Args and errors: see `_Stack`.

    Call arguments:
        x: Float tensor `(B, S, D)`, embedded tokens without positions.
        key_mask: Bool tensor `(B, S)`, True at tokens.
        return_attention_scores: If True, also return the weights.

    Returns:
        Float tensor `(B, S, D)`, and if asked a dict of
        `"block_i/self_attention"` `(B, H, S, S)`.
    """

    block_class = TransformerEncoderBlock

    def build(self, x_shape):
        self.positions.build(x_shape)
        for block in self.blocks:
            block.build(x_shape)

    def call(
        self, x, key_mask=None, return_attention_scores=False, training=None
    ):
        x = self.dropout_layer(self.positions(x), training=training)
        mask = None if key_mask is None else key_mask[:, None]
        maps = {}
        for block in self.blocks:
            x, weights = block(
                x,
                attention_mask=mask,
                return_attention_scores=True,
                training=training,
            )
            maps[f"{block.name}/self_attention"] = weights
        return (x, maps) if return_attention_scores else x


@_register
class TransformerDecoder(_Stack):
    """A stack of `TransformerDecoderBlock` over embedded tokens.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3; document 001,
    Transformer.

    Args and errors: see `_Stack`.

    Call arguments:
        x: Float tensor `(B, T, D)`, embedded tokens without positions.
        encoded: Float tensor `(B, S, D)`, the encoder's output.
        encoded_mask: Bool tensor `(B, S)`, True at source tokens.
        return_attention_scores: If True, also return the weights.

    Returns:
        Float tensor `(B, T, D)`, and if asked a dict of
        `"block_i/self_attention"` `(B, H, T, T)` and
        `"block_i/cross_attention"` `(B, H, T, S)`.
    """

    block_class = TransformerDecoderBlock

    def build(self, x_shape, encoded_shape):
        self.positions.build(x_shape)
        for block in self.blocks:
            block.build(x_shape, encoded_shape)

    def call(
        self,
        x,
        encoded,
        encoded_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        x = self.dropout_layer(self.positions(x), training=training)
        maps = {}
        for block in self.blocks:
            x, weights = block(
                x,
                encoded,
                encoded_mask=encoded_mask,
                return_attention_scores=True,
                training=training,
            )
            for name, one in weights.items():
                maps[f"{block.name}/{name}"] = one
        return (x, maps) if return_attention_scores else x

    def start(self, encoded, encoded_mask):
        """The state before the first token; every tensor batch first."""
        batch = ops.shape(encoded)[0]
        return {
            "position": ops.zeros((batch,), "int32"),  # the same for all
            "cache": [b.start(batch, self.max_length) for b in self.blocks],
            "memory": [block.memorize(encoded) for block in self.blocks],
            "mask": encoded_mask,
        }

    def step(self, x, state):
        """One embedded token `(B, 1, D)`: output and state."""
        position, caches = state["position"][0], []
        x = self.positions(x, start=position)
        for block, cache, memory in zip(
            self.blocks, state["cache"], state["memory"], strict=True
        ):
            x, _, cache = block.step(x, position, cache, memory, state["mask"])
            caches.append(cache)
        return x, {**state, "position": state["position"] + 1, "cache": caches}


@_register
class Transformer(Seq2Seq):
    """The encoder–decoder of attention alone.

        logits = W decoder(embedded target, encoder(embedded source)) + b

    Embeddings are multiplied by √D and positions are sinusoidal.

    Source: Vaswani et al. (2017), arXiv:1706.03762; document 001,
    Transformer.

    Args:
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width of the position-wise nets; None = 4 `dim`.
        max_length: Positive int, most tokens of a source and of a target; so
            many keys and values does a decoding reserve.

    Further args, call arguments, returns and errors: see `Seq2Seq`. The
    weights are named `"encoder/block_i/self_attention"`,
    `"decoder/block_i/self_attention"` and `"decoder/block_i/cross_attention"`.
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        dim,
        num_layers,
        num_heads=4,
        ffn_dim=None,
        dropout=0.0,
        max_length=256,
        **kwargs,
    ):
        super().__init__(
            source_vocab_size,
            target_vocab_size,
            dim,
            num_layers,
            dropout,
            **kwargs,
        )
        self.options = {
            "num_heads": num_heads,
            "ffn_dim": 4 * dim if ffn_dim is None else ffn_dim,
            "max_length": max_length,
        }
        self.max_length = max_length
        self.encoder, self.decoder = (
            stack(
                dim,
                num_layers,
                dropout=dropout,
                dtype=self.dtype_policy,
                name=name,
                **self.options,
            )
            for stack, name in (
                (TransformerEncoder, "encoder"),
                (TransformerDecoder, "decoder"),
            )
        )

    @property
    def embedding_stddev(self):
        return self.sizes["dim"] ** -0.5

    def build(self, input_shape):
        shape = (None, None, self.sizes["dim"])
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.build((None, None))
        self.encoder.build(shape)
        self.decoder.build(shape, shape)
        self.output_layer.build(shape)

    def embed(self, ids, embedding):
        return embedding(ids) * self.sizes["dim"] ** 0.5

    def call(self, inputs, training=None, return_attention_scores=False):
        mask = ops.not_equal(inputs["source"], 0)
        encoded, encoder_maps = self.encoder(
            self.embed(inputs["source"], self.source_embedding),
            key_mask=mask,
            return_attention_scores=True,
            training=training,
        )
        x, decoder_maps = self.decoder(
            self.embed(inputs["target"], self.target_embedding),
            encoded,
            encoded_mask=mask,
            return_attention_scores=True,
            training=training,
        )
        logits = self.output_layer(x)
        maps = {
            f"{name}/{path}": weights
            for name, of_stack in (
                ("encoder", encoder_maps),
                ("decoder", decoder_maps),
            )
            for path, weights in of_stack.items()
        }
        return (logits, maps) if return_attention_scores else logits

    def start(self, source):
        mask = ops.not_equal(source, 0)
        x = self.embed(source, self.source_embedding)
        return self.decoder.start(self.encoder(x, key_mask=mask), mask)

    def step(self, token, state):
        x = self.embed(token[:, None], self.target_embedding)
        x, state = self.decoder.step(x, state)
        return self.output_layer(x)[:, 0], state

    def get_config(self):
        return {**super().get_config(), **self.options}
