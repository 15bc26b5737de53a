"""A decoder-only language model: each token from those before it."""

from d2l_attention._checks import check_positive, check_rate, check_room
from d2l_attention._config import Configurable
from d2l_attention.layers.base import drop, wide
from d2l_attention.layers.blocks import CausalBlock
from d2l_attention.layers.masking import first_tokens
from d2l_attention.layers.modern_block import ModernBlock, rms_norm
from d2l_attention.layers.positional_encoding import PositionalEncoding
import keras
from keras import ops


class _LanguageModel(Configurable, keras.Model):
    """What language models of causal blocks share; `blocks` is the stack."""

    continues_source = True  # a decoder appends its tokens to it

    def __init__(
        self,
        vocab_size,
        dim,
        *,
        dropout=0.0,
        max_length=256,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocab_size = check_positive("vocab_size", vocab_size)
        self.dim = check_positive("dim", dim)
        self.dropout = check_rate("dropout", dropout)
        self.max_length = check_positive("max_length", max_length)

    @property
    def embedding_stddev(self):
        """The standard deviation of new embeddings."""
        return self.dim**-0.5

    def stack(self, blocks):
        """Make the embedding, the blocks above it and the output above them."""
        policy = {"dtype": self.dtype_policy}  # Keras does not hand it down
        self.embedding = keras.layers.Embedding(
            self.vocab_size,
            self.dim,
            keras.initializers.RandomNormal(stddev=self.embedding_stddev),
            **policy,
        )
        self.dropout_layer = keras.layers.Dropout(self.dropout, **policy)
        self.blocks = list(blocks)
        self.output_layer = self.make_output_layer()

    def make_output_layer(self):
        return keras.layers.Dense(
            self.vocab_size, dtype=wide(self.dtype_policy.variable_dtype)
        )

    def build(self, input_shape):
        shape = (None, None, self.dim)
        self.embedding.build((None, None))
        for block in self.blocks:
            if not block.built:  # a block of a file is, and a given one may be
                block.build(shape)
        self.output_layer.build(shape)

    def embed(self, ids, start=0):
        if not self.built:
            self.build((None, None))
        return self.embedding(ids) * self.dim**0.5

    def logits(self, x):
        """Logits `(B, T, vocab_size)` from what the last block wrote."""
        return self.output_layer(x)

    def call(self, ids, training=None, return_attention_scores=False):
        if len(ids.shape) != 2:
            raise ValueError(
                f"ids must be (B, T). Received: shape {tuple(ids.shape)}."
            )
        tokens = ops.not_equal(ids, 0)
        x = self.embed(ids, -first_tokens(tokens))
        x = drop(self.dropout_layer, x, training)
        maps = {}
        for i, block in enumerate(self.blocks):
            asked = return_attention_scores and block.forms_weights
            x = block(
                x,
                key_mask=tokens,
                return_attention_scores=asked,
                training=training,
            )
            if asked:
                x, maps[f"block_{i}/self_attention"] = x
        logits = self.logits(x)
        return (logits, maps) if return_attention_scores else logits

    def start(self, source, caches=None):
        """Read the prompts `source` `(B, S)`; the state after them.

        Id 0 is padding, on either side of a prompt; the caches hold the
        tokens alone, from slot 0 on. `caches` has one for each block, as
        `PagedKVCache.caches` gives them; None makes caches of `max_length`
        slots. The first `step` takes the token after the prompt.
        """
        if not self.built:
            self.build((None, None))
        batch, size = ops.shape(source)
        if caches is None:
            check_room(self, size)
            caches = [b.make_cache(batch, self.max_length) for b in self.blocks]
        padding = ops.cast(ops.equal(source, 0), "int32")
        tokens_first = ops.argsort(padding, axis=1)  # stable
        source = ops.take_along_axis(source, tokens_first, axis=1)
        tokens = ops.not_equal(source, 0)  # (B, S)
        first = ops.zeros((batch,), "int32")
        _, state = self._read(
            source, {"position": first, "caches": caches}, size, tokens
        )
        lengths = ops.sum(ops.cast(tokens, "int32"), axis=1)
        return {**state, "position": lengths}

    def step(self, token, state):
        """One token `(B,)` further: `(logits (B, vocab_size), state)`.

        A token for which a cache has no slot, or the model no position, is
        refused; in a graph, which knows no values, its logits are NaN.
        """
        x, state = self._read(token[:, None], state, 1)
        return self.logits(x)[:, 0], state

    def _read(self, ids, state, num_tokens, query_mask=None):
        """The blocks' output for ids `(B, T)` from `position` on."""
        start = state["position"]
        positions = start[:, None] + ops.arange(num_tokens, dtype="int32")
        x, caches = self.embed(ids, start), []
        for block, cache in zip(self.blocks, state["caches"], strict=True):
            x, cache = block.step(x, positions, cache, query_mask)
            caches.append(cache)
        return x, {"position": start + num_tokens, "caches": caches}


@keras.saving.register_keras_serializable("d2l_attention")
class LanguageModel(_LanguageModel):
    """A stack of causal blocks over tokens and their positions.

        x = √D E[ids] + positions
        logits = W block_L(… block_1(x)) + b

    Source: Liu et al. (2018), arXiv:1801.10198; Radford et al. (2018);
    document 004, section 5.

    Args:
        vocab_size: Positive int, number of token ids.
        dim: Positive int, features D.
        num_layers: Positive int, L blocks.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width of the position-wise nets; None = 4 `dim`.
        activation, use_bias, num_kv_heads: As in `TransformerEncoderBlock`.
        dropout: Float in [0, 1), rate of dropout on embedded tokens, weights
            and residuals.
        max_length: Positive int, longest sequence; decoding reserves a cache of
            this many keys and values.

    Call arguments:
        ids: Int tensor `(B, T)`; id 0 is padding, on either side of a text.
            Positions count from its first token.
        training: Whether dropout is active.
        return_attention_scores: If True, also return a dict of
            `"block_i/self_attention"`, weights `(B, H, T, T)`, of the blocks
            that form some.

    Returns:
        Logits of the next token `(B, T, vocab_size)`, of float32 or wider.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LanguageModel
        >>> model = LanguageModel(vocab_size=7, dim=4, num_layers=1)
        >>> state = model.start(np.array([[3, 5]]))  # reads the prompt
        >>> logits, state = model.step(np.array([6]), state)
        >>> whole = model(np.array([[3, 5, 6]]))
        >>> bool(np.allclose(logits, whole[:, -1], atol=1e-5))
        True
    """

    def __init__(
        self,
        vocab_size,
        dim,
        num_layers,
        num_heads=4,
        ffn_dim=None,
        *,
        activation="relu",
        use_bias=False,
        num_kv_heads=None,
        **options,
    ):
        super().__init__(vocab_size, dim, **options)
        self.num_layers = check_positive("num_layers", num_layers)
        self.num_heads = check_positive("num_heads", num_heads)
        self.ffn_dim = check_positive("ffn_dim", ffn_dim, 4 * self.dim)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        policy = {"dtype": self.dtype_policy}
        self.positions = PositionalEncoding(self.max_length, **policy)
        self.stack(
            CausalBlock(
                dim,
                num_heads,
                self.ffn_dim,
                dropout=self.dropout,
                activation=activation,
                use_bias=use_bias,
                num_kv_heads=num_kv_heads,
                name=f"block_{i}",
                **policy,
            )
            for i in range(num_layers)
        )
        self.num_kv_heads = self.blocks[0].num_kv_heads

    def build(self, input_shape):
        self.positions.build((None, None, self.dim))
        super().build(input_shape)

    def embed(self, ids, start=0):
        return self.positions(super().embed(ids), start=start)


@keras.saving.register_keras_serializable("d2l_attention")
class BlockLanguageModel(_LanguageModel):
    """A language model of the causal blocks that are given.

        x = √D E[ids]
        logits = W block_L(… block_1(x)) + b

    No positions are added to the embedding, so that the blocks alone decide
    about them. Blocks may differ from each other.

    Args:
        vocab_size: Positive int, number of token ids.
        dim: Positive int, features D.
        blocks: List of causal blocks, such as `AttentionBlock`, each a layer
            of its own.
        dropout: Float in [0, 1), rate of dropout on embedded tokens.
        max_length: Positive int; decoding reserves a cache of this many keys
            and values.

    Call arguments, returns and decoding are those of `LanguageModel`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import AttentionBlock, BlockLanguageModel
        >>> from d2l_attention import RotaryAttention
        >>> pattern = RotaryAttention(2, key_dim=2)
        >>> blocks = [AttentionBlock(pattern, 4, 16) for _ in range(2)]
        >>> model = BlockLanguageModel(vocab_size=7, dim=4, blocks=blocks)
        >>> state = model.start(np.array([[3, 5]]))  # reads the prompt
        >>> logits, state = model.step(np.array([6]), state)
        >>> whole = model(np.array([[3, 5, 6]]))
        >>> bool(np.allclose(logits, whole[:, -1], atol=1e-5))
        True
    """

    def __init__(self, vocab_size, dim, blocks, **options):
        super().__init__(vocab_size, dim, **options)
        if not all(hasattr(block, "make_cache") for block in blocks):
            raise ValueError(
                "`blocks` must be causal blocks, such as AttentionBlock. "
                f"Received: {blocks!r}."
            )
        self.stack(blocks)


class _TiedLogits(keras.Layer):
    """x Eᵀ, by a layer of its own: within the model's, Keras would round E."""

    def __init__(self, embedding, **kwargs):
        super().__init__(**kwargs)
        self.embedding = embedding

    def call(self, x):
        kernel = ops.convert_to_tensor(self.embedding.embeddings)
        return ops.matmul(x, ops.transpose(kernel))


@keras.saving.register_keras_serializable("d2l_attention")
class ModernLanguageModel(_LanguageModel):
    """A small language model with the architecture of large modern ones.

        x = E[ids]
        logits = rms(block_L(… block_1(x))) W

    Each block is a `ModernBlock`. Positions are in its rotation alone, so
    nothing is added to the embedding. New embeddings have a standard deviation
    of 1, as large as what a norm makes; with `tie_embeddings`, where they make
    the logits as well, of 1/√D.

    Args:
        vocab_size, dim, num_layers, num_heads: As in `LanguageModel`.
        ffn_dim: Positive int, width of the `SwiGLU` nets.
        num_kv_heads, key_dim, frequencies, window: As in `ModernBlock`.
        use_sinks, use_gate, soft_cap: As there, the same in each block.
        tie_embeddings: Whether W is Eᵀ, and no kernel of its own.
        epsilon: Float, added to the mean squares.
        dropout, max_length: As in `LanguageModel`.

    Call arguments, returns and decoding are those of `LanguageModel`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ModernLanguageModel
        >>> model = ModernLanguageModel(7, 8, 1, num_heads=2, ffn_dim=16)
        >>> state = model.start(np.array([[3, 5]]))  # reads the prompt
        >>> logits, state = model.step(np.array([6]), state)
        >>> whole = model(np.array([[3, 5, 6]]))
        >>> bool(np.allclose(logits, whole[:, -1], atol=1e-5))
        True
    """

    def __init__(
        self,
        vocab_size,
        dim,
        num_layers,
        num_heads,
        ffn_dim,
        *,
        num_kv_heads=None,
        key_dim=None,
        frequencies=None,
        window=None,
        use_sinks=False,
        use_gate=False,
        soft_cap=None,
        tie_embeddings=False,
        epsilon=1e-6,
        **options,
    ):
        super().__init__(vocab_size, dim, **options)
        self.num_layers = check_positive("num_layers", num_layers)
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.key_dim = key_dim
        self.window = window
        self.use_sinks = use_sinks
        self.use_gate = use_gate
        self.soft_cap = soft_cap
        self.tie_embeddings = tie_embeddings
        self.epsilon = epsilon
        policy = {"dtype": self.dtype_policy}
        self.stack(
            ModernBlock(
                dim,
                num_heads,
                ffn_dim,
                num_kv_heads=num_kv_heads,
                key_dim=key_dim,
                frequencies=frequencies,
                window=window,
                use_sinks=use_sinks,
                use_gate=use_gate,
                soft_cap=soft_cap,
                dropout=self.dropout,
                epsilon=epsilon,
                name=f"block_{i}",
                **policy,
            )
            for i in range(num_layers)
        )
        self.num_kv_heads = self.blocks[0].num_kv_heads
        self.frequencies = self.blocks[0].frequencies
        self.final_norm = rms_norm(epsilon=epsilon, name="final_norm", **policy)

    @property
    def embedding_stddev(self):
        return self.dim**-0.5 if self.tie_embeddings else 1.0

    def make_output_layer(self):
        policy = {"dtype": wide(self.dtype_policy.variable_dtype)}
        if self.tie_embeddings:
            return _TiedLogits(self.embedding, **policy)
        return keras.layers.Dense(self.vocab_size, use_bias=False, **policy)

    def build(self, input_shape):
        super().build(input_shape)
        self.final_norm.build((None, None, self.dim))

    def embed(self, ids, start=0):
        if not self.built:
            self.build((None, None))
        return self.embedding(ids)

    def logits(self, x):
        return self.output_layer(self.final_norm(x))
