"""The Transformer: an encoder and a decoder of attention alone."""

from d2l_attention._checks import check_dict, check_positive
from d2l_attention.layers.base import QueryLayer, drop
from d2l_attention.layers.blocks import (
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    check_source,
)
from d2l_attention.layers.masking import (
    first_tokens,
    join_causal_mask,
    merge_masks,
    token_mask,
)
from d2l_attention.layers.positional_encoding import PositionalEncoding
from d2l_attention.models.seq2seq import Seq2Seq
import keras
from keras import ops


class TransformerStack(QueryLayer):
    """Positions, dropout and blocks; the embedding is the caller's."""

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
        self.dim = dim
        self.num_layers = check_positive("num_layers", num_layers)
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.normalize_first = normalize_first
        self.epsilon = epsilon
        self.max_length = check_positive("max_length", max_length, None)
        policy = {"dtype": self.dtype_policy}
        self.positions = None
        if max_length is not None:
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
        self.norm = None  # after the last block, whose sum it normalizes
        if normalize_first:
            self.norm = keras.layers.LayerNormalization(
                epsilon=epsilon, name="norm", **policy
            )

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

    def place_tokens(self, x, tokens):
        """The same, counted from the first of the tokens: `(B, T)` or None."""
        return self.place(x, 0 if tokens is None else -first_tokens(tokens))

    def end(self, x):
        """x, normalized if the blocks normalize first."""
        return x if self.norm is None else self.norm(x)

    def compute_output_shape(self, query_shape, key_shape=None):
        return tuple(query_shape)


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerEncoder(TransformerStack):
    """A stack of `TransformerEncoderBlock` over embedded tokens.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3; document 001,
    Transformer.

    Args:
        dim: Positive int, features D.
        num_layers: Positive int, number of blocks.
        num_heads, ffn_dim: As in `TransformerEncoderBlock`.
        dropout: Float in [0, 1), rate of dropout on the input, on weights and
            on residuals.
        activation, use_bias, normalize_first, epsilon: As there. Where blocks
            normalize first, one more norm follows the last block.
        max_length: Positive int, number of sinusoidal positions that are
            added to the input, from its first token on that no mask hides;
            None adds none.

    The call is that of `TransformerEncoderBlock`, but the weights come as a
    dict of `"block_i/self_attention"` `(B, H, T, T)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerEncoder
        >>> encoder = TransformerEncoder(4, 2, num_heads=2, ffn_dim=8)
        >>> _, maps = encoder(np.ones((1, 3, 4)), return_attention_scores=True)
        >>> sorted(maps), tuple(maps["block_0/self_attention"].shape)
        (['block_0/self_attention', 'block_1/self_attention'], (1, 2, 3, 3))
    """

    block_class = TransformerEncoderBlock

    def build(self, query_shape):
        self.build_blocks(query_shape)

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
        tokens = token_mask(query_mask, key_mask, mask)
        x = self.place_tokens(query, tokens)
        x = drop(self.dropout_layer, x, training)
        mask = merge_masks(attention_mask, tokens)
        if use_causal_mask:
            mask = join_causal_mask(mask, query, query)
        maps = {}
        for block in self.blocks:
            x = block(
                x,
                attention_mask=mask,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            if return_attention_scores:
                x, maps[f"{block.name}/self_attention"] = x
        x = self.end(x)
        return (x, maps) if return_attention_scores else x

    def compute_output_spec(
        self, query, *, return_attention_scores=False, **masks_and_mode
    ):
        maps = {}
        for block in self.blocks:
            x, weights = block.compute_output_spec(
                query, return_attention_scores=True
            )
            maps[f"{block.name}/self_attention"] = weights
        return (x, maps) if return_attention_scores else x


@keras.saving.register_keras_serializable("d2l_attention")
class TransformerDecoder(TransformerStack):
    """A stack of `TransformerDecoderBlock` over embedded tokens.

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3; document 001,
    Transformer.

    Args:
        dim, num_layers, num_heads, ffn_dim: As in `TransformerEncoder`.
        dropout, activation, use_bias, normalize_first, epsilon: As there.
        max_length: Positive int, number of sinusoidal positions that are
            added to the input, and slots of a decoding's cache; None adds no
            positions, and then `start` must be told the slots.

    The call is that of `TransformerDecoderBlock`, but the weights come as a
    dict of `"block_i/self_attention"` `(B, H, T, T)` and
    `"block_i/cross_attention"` `(B, H, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import TransformerDecoder
        >>> decoder = TransformerDecoder(4, 2, num_heads=2, ffn_dim=8)
        >>> x, source = np.ones((1, 3, 4)), np.ones((1, 5, 4))
        >>> whole, state = decoder(x, key=source), decoder.start(source)
        >>> for t in range(3):  # token by token
        ...     last, state = decoder.step(x[:, t : t + 1], state)
        >>> bool(np.allclose(last[:, 0], whole[:, 2], atol=1e-5))
        True
    """

    block_class = TransformerDecoderBlock

    def build(self, query_shape, key_shape=None):
        check_source(self, key_shape)
        self.build_blocks(query_shape, key_shape)

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
        x = self.place_tokens(query, query_mask)
        x = drop(self.dropout_layer, x, training)
        maps = {}
        for block in self.blocks:
            x = block(
                x,
                key=key,
                query_mask=query_mask,
                key_mask=key_mask,
                attention_mask=attention_mask,
                cross_attention_mask=cross_attention_mask,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            if return_attention_scores:
                x, weights = x
                for name, one in weights.items():
                    maps[f"{block.name}/{name}"] = one
        x = self.end(x)
        return (x, maps) if return_attention_scores else x

    def compute_output_spec(
        self,
        query,
        key=None,
        *,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        check_source(self, key)
        maps = {}
        for block in self.blocks:
            x, weights = block.compute_output_spec(
                query, key=key, return_attention_scores=True
            )
            for name, one in weights.items():
                maps[f"{block.name}/{name}"] = one
        return (x, maps) if return_attention_scores else x

    def start(self, key, key_mask=None, max_length=None):
        """The state before the first token; every tensor batch first.

        `key` `(B, S, D)` is the encoder's output, `key_mask` `(B, S)` True at
        source tokens. The cache has `max_length` slots; None = as many as
        there are positions.
        """
        max_length = self.max_length if max_length is None else max_length
        if max_length is None:
            raise ValueError(
                "A stack without positions must be told how many tokens its "
                "cache holds. Received: max_length=None."
            )
        batch, size = ops.shape(key)[:2]
        if key_mask is None:
            key_mask = ops.ones((batch, size), "bool")
        return {
            "position": ops.zeros((batch,), "int32"),
            "caches": [b.make_cache(batch, max_length) for b in self.blocks],
            "memory": [block.memorize(key) for block in self.blocks],
            "mask": key_mask,
        }

    def step(self, x, state):
        """One embedded token `(B, 1, D)` further: output and state."""
        position, caches = state["position"], []
        x = self.place(x, position)
        for block, cache, memory in zip(
            self.blocks, state["caches"], state["memory"], strict=True
        ):
            x, cache = block.step(
                x, position[:, None], cache, memory, state["mask"]
            )
            caches.append(cache)
        state = {**state, "position": position + 1, "caches": caches}
        return self.end(x), state


@keras.saving.register_keras_serializable("d2l_attention")
class Transformer(Seq2Seq):
    """The encoder–decoder of attention alone.

        logits = W decoder(embedded target, encoder(embedded source)) + b

    Embeddings are multiplied by √D and positions are sinusoidal.

    Source: Vaswani et al. (2017), arXiv:1706.03762; document 001,
    Transformer.

    Args:
        source_vocab_size, target_vocab_size: Positive ints, numbers of ids.
        dim: Positive int, features D of embeddings and blocks.
        num_layers: Positive int, number of blocks on each side.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width of the position-wise nets; None = 4 `dim`.
        activation, use_bias: As in `TransformerEncoderBlock`.
        max_length: Positive int, longest source and longest target; decoding
            reserves a cache of this many keys and values.
        normalize_first: As in `TransformerEncoderBlock`, "pre-norm".
        dropout: Float in [0, 1), rate of dropout on embedded tokens, weights
            and residuals.

    The call is that of `FixedContextSeq2Seq`, but the dict of weights holds
    `"encoder/block_i/self_attention"` `(B, H, S, S)`,
    `"decoder/block_i/self_attention"` `(B, H, T, T)` and
    `"decoder/block_i/cross_attention"` `(B, H, T, S)`. Row t of the last two
    belongs to the token that step t predicts.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import Transformer
        >>> model = Transformer(9, 7, dim=8, num_layers=1)
        >>> source, target = np.array([[3, 4, 0]]), np.array([[1, 5]])
        >>> inputs = {"source": source, "target": target}
        >>> _, maps = model(inputs, return_attention_scores=True)
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
        activation="relu",
        use_bias=False,
        max_length=256,
        normalize_first=False,
        **options,
    ):
        super().__init__(
            source_vocab_size, target_vocab_size, dim, num_layers, **options
        )
        self.add_embeddings(self.dim)
        self.num_heads = check_positive("num_heads", num_heads)
        self.ffn_dim = check_positive("ffn_dim", ffn_dim, 4 * self.dim)
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
