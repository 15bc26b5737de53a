"""A decoder-only language model: each token from those before it."""

from d2l_attention._checks import check_positive, check_room
from d2l_attention.attention_layer import drop, query_and_key_size
from d2l_attention.blocks import TransformerEncoderBlock
from d2l_attention.efficient.blockwise import over_written
from d2l_attention.efficient.paged import (
    contiguous_cache,
    read_cache,
    write_cache,
)
from d2l_attention.masking import add_causal_mask, merge_masks
from d2l_attention.positional_encoding import PositionalEncoding
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


@_register
class CausalBlock(TransformerEncoderBlock):
    """An encoder block that sees no later token, and so can keep a cache.

        y = norm(x + self_attention(x) up to each position)
        output = norm(y + FFN(y))

    Source: Liu et al. (2018), arXiv:1801.10198, section 4.2.1; document 004,
    section 5.

    Args:
        dim: Positive int, features D of input and output.
        num_heads: Positive int, H; divides `dim`.
        ffn_dim: Positive int, width U of the position-wise net.
        num_kv_heads: Positive int, G heads of keys and values that the query
            heads share; divides `num_heads`. None = `num_heads`.
        dropout: Float in [0, 1), rate of dropout on weights and residuals.
        activation: Name or function of the net's activation.
        use_bias: Whether attention's projections and the net have biases.
        normalize_first: Whether each sublayer reads a normalized input, in
            place of a norm behind each residual.
        epsilon: Float of the layer normalization.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        attention_mask: Bool tensor `(T, T)`, `(B, 1, T)`, `(B, T, T)` or
            `(B, H, T, T)`; the causal mask comes on top.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills two of them from implicit masks.
        return_attention_scores: If True, also return the weights.
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`, and if asked the weights `(B, H, T, T)`.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `num_kv_heads` does not divide `num_heads`, `dropout` is
            outside [0, 1), or shapes do not match.

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

    def __init__(
        self,
        dim,
        num_heads,
        ffn_dim,
        *,
        num_kv_heads=None,
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
            _num_kv_heads=num_kv_heads,
            **kwargs,
        )
        self.num_kv_heads = None
        if num_kv_heads is not None:
            self.num_kv_heads = self.self_attention.num_kv_heads

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
        mask = merge_masks(attention_mask, query_mask, key_mask, mask)
        mask = add_causal_mask(mask, *query_and_key_size(query, query))
        x, weights = self._attend_to_itself(query, mask, training)
        x = self._feed_forward(x, training)
        return (x, weights) if return_attention_scores else x

    def make_cache(self, batch_size, max_length):
        """An empty cache of keys and values for `max_length` tokens."""
        attention = self.self_attention
        heads, size = attention.num_kv_heads, attention.key_dim
        shape = (batch_size, max_length, heads, size)
        return contiguous_cache(shape, size, self.compute_dtype)

    def step(self, x, positions, cache):
        """Tokens `(B, T, D)` at `positions` `(B, T)`: output and cache."""
        attention = self.self_attention
        y = self._read(self.self_attention_norm, x)
        cache = write_cache(
            cache,
            positions,
            attention.project_key(y),
            attention.project_value(y),
        )
        key, value = read_cache(cache)
        size, query = ops.shape(key)[1], attention.project_query(y)
        slots = ops.arange(size, dtype="int32")

        def attend(n):
            seen = slots[:n] <= positions[..., None]  # (B, T, S)
            return attention.attend(query, key[:, :n], value[:, :n], seen)[0]

        y = over_written(attend, ops.max(positions) + 1, size)
        x = self._add(self.self_attention_norm, x, y)
        return self._feed_forward(x), cache

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
        dropout: Float in [0, 1), rate of dropout on embedded tokens, weights
            and residuals.
        max_length: Positive int, most tokens of a sequence. A decoding
            reserves room for as many keys and values.
        num_kv_heads: Positive int, G heads of keys and values; divides H.
            None = H.

    Call arguments:
        ids: Int tensor `(B, T)`; id 0 is padding, behind the tokens.
        training: Whether dropout is active.
        return_attention_scores: If True, also return a dict of
            `"block_i/self_attention"`, weights `(B, H, T, T)`.

    Returns:
        Logits of the next token `(B, T, vocab_size)`, of float32 or wider.

    Raises:
        ValueError: If a size is not positive, `num_heads` does not divide
            `dim`, `num_kv_heads` does not divide `num_heads`, `dropout` is
            outside [0, 1), or there are more tokens than `max_length`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LanguageModel
        >>> model = LanguageModel(vocab_size=7, dim=4, num_layers=1)
        >>> state = model.start(np.array([[3, 5]]))  # reads the prompt
        >>> logits, state = model.step(np.array([6]), state)
        >>> whole = model(np.array([[3, 5, 6]]))
        >>> tuple(whole.shape)
        (1, 3, 7)
        >>> bool(np.allclose(logits, whole[:, -1], atol=1e-5))
        True
    """

    continues_source = True  # what is decoded stands behind it, in one row

    def __init__(
        self,
        vocab_size,
        dim,
        num_layers,
        num_heads=4,
        ffn_dim=None,
        *,
        dropout=0.0,
        max_length=256,
        num_kv_heads=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        sizes = {
            "vocab_size": vocab_size,
            "dim": dim,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "ffn_dim": 4 * dim if ffn_dim is None else ffn_dim,
            "max_length": max_length,
        }
        self.sizes = {
            name: check_positive(name, size) for name, size in sizes.items()
        }
        self.max_length = self.sizes["max_length"]
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
                dim,
                num_heads,
                self.sizes["ffn_dim"],
                dropout=dropout,
                num_kv_heads=num_kv_heads,
                name=f"block_{i}",
                **policy,
            )
            for i in range(num_layers)
        ]
        self.options = {
            "dropout": self.blocks[0].dropout,
            "num_kv_heads": self.blocks[0].num_kv_heads,
        }
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
        if not self.built:
            self.build((None, None))
        x = self.embedding(ids) * self.sizes["dim"] ** 0.5
        return self.positions(x, start=start)

    def call(self, ids, training=None, return_attention_scores=False):
        if len(ids.shape) != 2:
            raise ValueError(
                f"ids must be (B, T). Received: shape {tuple(ids.shape)}."
            )
        x = drop(self.dropout_layer, self.embed(ids), training)
        tokens = ops.not_equal(ids, 0)
        asked = {"return_attention_scores": True}
        asked, maps = asked if return_attention_scores else {}, {}
        for block in self.blocks:
            x = block(x, key_mask=tokens, training=training, **asked)
            if asked:
                x, maps[f"{block.name}/self_attention"] = x
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
            caches = [b.make_cache(batch, self.max_length) for b in self.blocks]
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
