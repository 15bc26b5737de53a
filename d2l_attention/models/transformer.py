"""The Transformer: an encoder and a decoder of attention alone."""

from d2l_attention._checks import check_dict, check_positive
from d2l_attention.models.decoder import TransformerDecoder
from d2l_attention.models.encoder import TransformerEncoder
from d2l_attention.models.seq2seq import Seq2Seq
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class Transformer(Seq2Seq):
    """The encoder–decoder of attention alone.

        logits = W decoder(embedded target, encoder(embedded source)) + b

    Embeddings are multiplied by √D and positions are sinusoidal.

    Source: Vaswani et al. (2017), arXiv:1706.03762; document 001,
    Transformer.

    Args:
        source_vocab_size: Positive int, number of source token ids.
        target_vocab_size: Positive int, number of target token ids.
        dim: Positive int, features D of embeddings and blocks.
        num_layers: Positive int, number of blocks on each side.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width of the position-wise nets; None = 4 `dim`.
        dropout: Float in [0, 1), rate of dropout on embedded tokens, weights
            and residuals.
        activation: Name or function of the position-wise nets' activation.
        use_bias: Whether attention's projections have biases. The nets always
            have b₁ and b₂.
        max_length: Positive int, longest source and longest target; decoding
            reserves a cache of this many keys and values.
        normalize_first: Whether each sublayer reads a normalized input
            ("pre-norm"), instead of normalizing after each residual.

    Call arguments:
        inputs: Dict of int tensors: `"source"` `(B, S)` and `"target"`
            `(B, T)`, the target as the decoder sees it, beginning with the
            start token. Id 0 is padding.
        training: Whether dropout is active.
        return_attention_scores: If True, also return a dict of weights:
            `"encoder/block_i/self_attention"` `(B, H, S, S)`,
            `"decoder/block_i/self_attention"` `(B, H, T, T)` and
            `"decoder/block_i/cross_attention"` `(B, H, T, S)`. Row t of the
            last two belongs to the token that step t predicts.

    Returns:
        Logits `(B, T, target_vocab_size)`, of float32 or wider.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `dropout` is outside [0, 1), or there are more tokens than
            `max_length`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import Transformer
        >>> model = Transformer(9, 7, dim=8, num_layers=1)
        >>> source, target = np.array([[3, 4, 0]]), np.array([[1, 5]])
        >>> logits, maps = model(
        ...     {"source": source, "target": target},
        ...     return_attention_scores=True,
        ... )
        >>> tuple(logits.shape)
        (1, 2, 7)
        >>> tuple(maps["decoder/block_0/cross_attention"].shape)
        (1, 4, 2, 3)
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        dim,
        num_layers,
        num_heads=4,
        ffn_dim=None,
        *,
        dropout=0.0,
        activation="relu",
        use_bias=False,
        max_length=256,
        normalize_first=False,
        **kwargs,
    ):
        super().__init__(
            source_vocab_size,
            target_vocab_size,
            dim,
            num_layers,
            dropout=dropout,
            **kwargs,
        )
        self.add_embeddings(self.dim)
        self.num_heads = check_positive("num_heads", num_heads)
        self.ffn_dim = check_positive(
            "ffn_dim", 4 * dim if ffn_dim is None else ffn_dim
        )
        self.max_length = check_positive("max_length", max_length)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.normalize_first = normalize_first
        self.encoder = self._stack(TransformerEncoder, "encoder")
        self.decoder = self._stack(TransformerDecoder, "decoder")

    def _stack(self, stack_class, name):
        return stack_class(
            self.dim,
            self.num_layers,
            self.num_heads,
            self.ffn_dim,
            dropout=self.dropout,
            activation=self.activation,
            use_bias=self.use_bias,
            max_length=self.max_length,
            normalize_first=self.normalize_first,
            dtype=self.dtype_policy,
            name=name,
        )

    @property
    def embedding_stddev(self):
        return self.dim**-0.5

    def build(self, input_shape):
        shape = (None, None, self.dim)
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.build((None, None))
        self.encoder.build(shape)
        self.decoder.build(shape, shape)
        self.output_layer.build(shape)

    def embed(self, ids, embedding):
        return embedding(ids) * self.dim**0.5

    def call(self, inputs, training=None, return_attention_scores=False):
        check_dict(inputs, "source", "target")
        mask = ops.not_equal(inputs["source"], 0)
        encoded, encoder_maps = self.encoder(
            self.embed(inputs["source"], self.source_embedding),
            key_mask=mask,
            return_attention_scores=True,
            training=training,
        )
        x, decoder_maps = self.decoder(
            self.embed(inputs["target"], self.target_embedding),
            key=encoded,
            key_mask=mask,
            return_attention_scores=True,
            training=training,
        )
        logits = self.output_layer(x)
        maps = {f"encoder/{path}": w for path, w in encoder_maps.items()}
        maps |= {f"decoder/{path}": w for path, w in decoder_maps.items()}
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
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "max_length": self.max_length,
            "normalize_first": self.normalize_first,
        }
