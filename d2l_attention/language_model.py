"""A decoder-only language model: each token from those before it."""

from d2l_attention._checks import check_positive, check_room
from d2l_attention.blocks import TransformerEncoderBlock
from d2l_attention.efficient.blockwise import over_written
from d2l_attention.efficient.multi_query import GroupedQueryAttention
from d2l_attention.efficient.paged import (
    contiguous_cache,
    read_cache,
    write_cache,
)
from d2l_attention.masking import causal_mask
from d2l_attention.positional_encoding import PositionalEncoding
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


@_register
class CausalBlock(TransformerEncoderBlock):
    """An encoder block that sees no later token, and so can keep a cache.

        y = AddNorm(x, self_attention(x) up to each position)
        output = AddNorm(y, FFN(y))

    Source: Liu et al. (2018), arXiv:1801.10198, section 4.2.1; document 004,
    section 5.

    Args:
        num_kv_heads: Positive int, G heads of keys and values that the query
            heads share; None = `num_heads`.

    Further args, call arguments, returns and errors: see
    `TransformerEncoderBlock`; a mask comes on top of the causal one.
    """

    def __init__(self, *args, num_kv_heads=None, **kwargs):
        self.num_kv_heads = num_kv_heads
        super().__init__(*args, **kwargs)

    def _attention(self, name):
        if self.num_kv_heads is None:
            return super()._attention(name)
        return GroupedQueryAttention(
            self.num_heads,
            self.num_kv_heads,
            self.dim // self.num_heads,
            dropout=self.dropout,
            use_bias=self.use_bias,
            dtype=self.dtype_policy,
            name=name,
        )

    def call(
        self,
        x,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        past = causal_mask(ops.shape(x)[1])
        if attention_mask is not None:
            past = ops.logical_and(past, attention_mask)
        return super().call(x, past, return_attention_scores, training)

    def start(self, batch, max_length):
        """An empty cache of keys and values for `max_length` tokens."""
        attention = self.self_attention
        heads, size = attention.num_kv_heads, attention.key_dim
        shape = (batch, max_length, heads, size)
        return contiguous_cache(shape, size, self.compute_dtype)

    def step(self, x, positions, cache):
        """Tokens `(B, T, D)` at `positions` `(B, T)`: output and cache."""
        attention = self.self_attention
        cache = write_cache(
            cache,
            positions,
            attention.project_key(x),
            attention.project_value(x),
        )
        key, value = read_cache(cache)
        size, query = ops.shape(key)[1], attention.project_query(x)
        slots = ops.arange(size, dtype="int32")

        def attend(n):
            seen = slots[:n] <= positions[..., None]  # (B, T, S)
            return attention.attend(query, key[:, :n], value[:, :n], seen)[0]

        y = over_written(attend, ops.max(positions) + 1, size)
        x = self.self_attention_norm(x, y)
        return self.ffn_norm(x, self.ffn(x)), cache

    def get_config(self):
        return {**super().get_config(), "num_kv_heads": self.num_kv_heads}


@_register
class LanguageModel(keras.Model):
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
        dropout: Float in [0, 1).
        max_length: Positive int, most tokens of a sequence; so many keys and
            values does a decoding reserve.
        num_kv_heads: Positive int, G heads of keys and values; None = H.

    Call arguments:
        ids: Int tensor `(B, T)`; id 0 is padding, behind the tokens.
        return_attention_scores: If True, also return a dict of
            `"block_i/self_attention"`, weights `(B, H, T, T)`.

    Returns:
        Logits of the next token `(B, T, vocab_size)`, of float32 or wider.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, or there are more tokens than `max_length`.
    """

    continues_source = True  # what is decoded stands behind it, in one row

    def __init__(
        self,
        vocab_size,
        dim,
        num_layers,
        num_heads=4,
        ffn_dim=None,
        dropout=0.0,
        max_length=256,
        num_kv_heads=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sizes = {
            "vocab_size": vocab_size,
            "dim": dim,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "ffn_dim": 4 * dim if ffn_dim is None else ffn_dim,
            "max_length": max_length,
        }
        for name, size in self.sizes.items():
            check_positive(name, size)
        self.options = {"dropout": dropout, "num_kv_heads": num_kv_heads}
        self.max_length = max_length
        policy = {"dtype": self.dtype_policy}  # Keras does not hand it down
        self.embedding = keras.layers.Embedding(
            vocab_size,
            dim,
            keras.initializers.RandomNormal(stddev=dim**-0.5),
            **policy,
        )
        self.positions = PositionalEncoding(max_length, **policy)
        self.dropout_layer = keras.layers.Dropout(dropout, **policy)
        self.blocks = [
            CausalBlock(
                num_heads,
                dim,
                self.sizes["ffn_dim"],
                dropout,
                num_kv_heads=num_kv_heads,
                name=f"block_{i}",
                **policy,
            )
            for i in range(num_layers)
        ]
        self.output_layer = keras.layers.Dense(
            vocab_size, dtype=self.dtype_policy.variable_dtype
        )

    def build(self, input_shape):
        shape = (None, None, self.sizes["dim"])
        self.embedding.build((None, None))
        self.positions.build(shape)
        for block in self.blocks:
            block.build(shape)
        self.output_layer.build(shape)

    def embed(self, ids, start=0):
        x = self.embedding(ids) * self.sizes["dim"] ** 0.5
        return self.positions(x, start=start)

    def call(self, ids, training=None, return_attention_scores=False):
        x = self.dropout_layer(self.embed(ids), training=training)
        tokens, maps = ops.not_equal(ids, 0)[:, None], {}
        for block in self.blocks:
            x, maps[f"{block.name}/self_attention"] = block(
                x,
                attention_mask=tokens,
                return_attention_scores=True,
                training=training,
            )
        logits = self.output_layer(x)
        return (logits, maps) if return_attention_scores else logits

    def start(self, source, caches=None):
        """Read the prompts `source` `(B, S)`; the state behind them.

        Args:
            source: Int tensor, padded with 0 behind each prompt.
            caches: Of each block a cache to write to, as those of
                `PagedKVCache.caches`; None makes one of `max_length` slots a
                sequence.

        Returns:
            Dict of `"position"` `(B,)`, where the next token stands, and
            `"caches"`. The first `step` takes the token after the prompt.

        Raises:
            ValueError: If there are more tokens than `max_length`.
        """
        if not self.built:
            self.build((None, None))
        batch, size = ops.shape(source)
        if caches is None:
            check_room(self, size)
            caches = [b.start(batch, self.max_length) for b in self.blocks]
        tokens = ops.cast(ops.not_equal(source, 0), "int32")
        first = ops.zeros((batch,), "int32")
        _, state = self._read(
            source, {"position": first, "caches": caches}, size
        )
        return {**state, "position": ops.sum(tokens, axis=1)}

    def step(self, token, state):
        """One token `(B,)` further: `(logits (B, vocab_size), state)`."""
        x, state = self._read(token[:, None], state, 1)
        return self.output_layer(x)[:, 0], state

    def _read(self, ids, state, num_tokens):
        """The blocks' output for ids `(B, T)` from `position` on."""
        start = state["position"]
        positions = start[:, None] + ops.arange(num_tokens, dtype="int32")
        x, caches = self.embed(ids, start), []
        for block, cache in zip(self.blocks, state["caches"], strict=True):
            x, cache = block.step(x, positions, cache)
            caches.append(cache)
        return x, {"position": start + num_tokens, "caches": caches}

    def get_config(self):
        return {**super().get_config(), **self.sizes, **self.options}
