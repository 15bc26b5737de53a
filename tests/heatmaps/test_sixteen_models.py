"""Models as people write them: each map is the true one, or is named.

They follow tutorials and papers, whose authors never saw this package. Their
maps are computed once more, in NumPy, from the kernels of the layers and what
goes into them.
"""

import re
from typing import Any, NamedTuple
import warnings

from contract import draw, needs_none_in_tuples, needs_padding_mask, to_numpy
from d2l_attention.heatmaps import get_attention_weights
import keras
from keras import layers, ops, tree
import numpy as np
import pytest


class Case(NamedTuple):
    model: keras.Model
    inputs: tuple  # positional arguments of its call
    expected: Any  # function: dict of path → weights (B, H, T, S)
    named: dict = {}  # path → words of the reason
    options: dict = {}  # other arguments of the call


def trained(model, *inputs):
    """The model after a call, with other numbers than fresh ones."""
    model(*inputs)
    rng = np.random.default_rng(0)
    for v in model.trainable_variables:
        v.assign(rng.normal(size=v.shape) / 2)
    return model


def path(*parts):
    return "/".join(part.name for part in parts)


def softmax(x):
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def dense(layer, x):
    """What a `Dense` makes of an array."""
    y = to_numpy(x) @ to_numpy(layer.kernel)
    return y if layer.bias is None else y + to_numpy(layer.bias)


def split(x, num_heads):
    """`(B, T, H K)` as `(B, H, T, K)`."""
    x = to_numpy(x)
    return x.reshape(*x.shape[:2], num_heads, -1).swapaxes(1, 2)


def of_keras(layer, query, key, mask=True):
    """Weights of Keras's attention with heads, from its kernels."""
    kernel_q, bias_q, kernel_k, bias_k = map(to_numpy, layer.weights[:4])
    q = np.einsum("btd,dhk->bhtk", to_numpy(query), kernel_q)
    k = np.einsum("bsd,dhk->bhsk", to_numpy(key), kernel_k)
    q, k = q + bias_q[:, None], k + bias_k[:, None]
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    scores = q @ k.swapaxes(2, 3) / q.shape[-1] ** 0.5
    return softmax(np.where(mask, scores, -1e9))


def ids(*shape):
    return np.random.default_rng(shape).integers(1, 11, shape)


# 1. "Neural machine translation with a Transformer and Keras"


class BaseAttention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__()
        self.supports_masking = True
        self.mha = layers.MultiHeadAttention(**kwargs)
        self.layernorm = layers.LayerNormalization()
        self.add = layers.Add()


class CrossAttention(BaseAttention):
    def call(self, x, context):
        attn_output, attn_scores = self.mha(
            query=x, key=context, value=context, return_attention_scores=True
        )
        self.last_attn_scores = attn_scores
        return self.layernorm(self.add([x, attn_output]))


class GlobalSelfAttention(BaseAttention):
    def call(self, x):
        attn_output = self.mha(query=x, value=x, key=x)
        return self.layernorm(self.add([x, attn_output]))


class MaskedSelfAttention(BaseAttention):
    def call(self, x):
        y = self.mha(query=x, value=x, key=x, use_causal_mask=True)
        return self.layernorm(self.add([x, y]))


class DecoderLayer(layers.Layer):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.supports_masking = True
        options = {"num_heads": num_heads, "key_dim": d_model, "dropout": 0.1}
        self.causal_self_attention = MaskedSelfAttention(**options)
        self.cross_attention = CrossAttention(**options)
        self.ffn = layers.Dense(d_model, activation="relu")

    def call(self, x, context):
        x = self.causal_self_attention(x=x)
        x = self.cross_attention(x=x, context=context)
        self.last_attn_scores = self.cross_attention.last_attn_scores
        return x + self.ffn(x)


class TutorialTransformer(keras.Model):
    def __init__(self, d_model=8, num_heads=2):
        super().__init__()
        self.pos_embedding = layers.Embedding(11, d_model, mask_zero=True)
        self.encoder = GlobalSelfAttention(num_heads=num_heads, key_dim=d_model)
        self.decoder = DecoderLayer(d_model, num_heads)
        self.final_layer = layers.Dense(13)

    def call(self, inputs):
        context, x = inputs
        context = self.encoder(self.pos_embedding(context))
        return self.final_layer(self.decoder(self.pos_embedding(x), context))


def tutorial_transformer():
    source, target = ids(3, 7), ids(3, 5)
    source[1, 4:] = 0  # padding
    model = trained(TutorialTransformer(), (source, target))
    real = source != 0

    def expected():
        encoder, decoder = model.encoder, model.decoder
        x = model.pos_embedding(source)
        of_encoder = of_keras(encoder.mha, x, x, real[:, None, None])
        # Keras's fused operation looks at all keys where there is no query.
        of_encoder[1, :, 4:] = 1 / 7
        context = encoder(x)
        y = model.pos_embedding(target)
        first, cross = decoder.causal_self_attention, decoder.cross_attention
        of_first = of_keras(first.mha, y, y, np.tri(5, dtype=bool))
        y = first(y)
        of_cross = of_keras(cross.mha, y, context, real[:, None, None])
        return {
            path(encoder, encoder.mha): of_encoder,
            path(decoder, first, first.mha): of_first,
            path(decoder, cross, cross.mha): of_cross,
        }

    return Case(model, ((source, target),), expected)


# 2. "Neural machine translation with attention"


class BahdanauAttention(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.W1 = layers.Dense(units)
        self.W2 = layers.Dense(units)
        self.V = layers.Dense(1)

    def call(self, query, values):
        query_with_time_axis = ops.expand_dims(query, 1)
        score = self.V(
            ops.tanh(self.W1(query_with_time_axis) + self.W2(values))
        )
        attention_weights = ops.softmax(score, axis=1)
        context_vector = ops.sum(attention_weights * values, axis=1)
        return context_vector, attention_weights


class NMT(keras.Model):
    """Teacher forcing, one word of the target after the other."""

    def __init__(self, units=8):
        super().__init__()
        self.embedding = layers.Embedding(11, units)
        self.encoder = layers.GRU(
            units, return_sequences=True, return_state=True
        )
        self.attention = BahdanauAttention(units)
        self.decoder = layers.GRU(units, return_state=True)
        self.fc = layers.Dense(13)

    def call(self, inputs):
        source, target = inputs
        enc_output, hidden = self.encoder(self.embedding(source))
        logits = []
        for t in range(target.shape[1]):
            context, _ = self.attention(hidden, enc_output)
            x = ops.concatenate([context, self.embedding(target)[:, t]], -1)
            output, hidden = self.decoder(x[:, None], initial_state=hidden)
            logits.append(self.fc(output))
        return ops.stack(logits, axis=1)


def nmt_with_attention():
    source, target = ids(3, 7), ids(3, 2)
    model = trained(NMT(), (source, target))

    def expected():
        one = model.attention
        values, hidden = map(to_numpy, model.encoder(model.embedding(source)))
        maps = {}
        for t, name in enumerate([one.name, f"{one.name}#2"]):
            hidden = to_numpy(hidden)[:, None]
            both = np.tanh(dense(one.W1, hidden) + dense(one.W2, values))
            weights = softmax(dense(one.V, both)[..., 0])
            maps[name] = weights[:, None, None]
            context = np.einsum("bs,bsd->bd", weights, values)
            word = to_numpy(model.embedding(target[:, t]))
            x = np.concatenate([context, word], -1)[:, None]
            _, hidden = model.decoder(x, initial_state=hidden[:, 0])
        return maps

    return Case(model, ((source, target),), expected)


# 3. "Image classification with Vision Transformer", with a class token


class ClassToken(layers.Layer):
    def build(self, input_shape):
        d = input_shape[-1]
        self.cls = self.add_weight(shape=(1, 1, d), initializer="normal")
        self.pos = self.add_weight(
            shape=(1, input_shape[1] + 1, d), initializer="normal"
        )

    def call(self, x):
        cls = ops.repeat(self.cls, ops.shape(x)[0], axis=0)
        return ops.concatenate([cls, x], axis=1) + self.pos


def vision_transformer():
    image = keras.Input((12, 8, 3))
    x = layers.Conv2D(8, 4, strides=4, padding="valid")(image)
    x = ClassToken()(layers.Reshape((6, 8))(x))
    for i in range(2):
        x1 = layers.LayerNormalization(epsilon=1e-6)(x)
        y = layers.MultiHeadAttention(2, 4, dropout=0.1, name=f"block{i}_mha")(
            x1, x1
        )
        x = layers.Add()([y, x])
        y = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([layers.Dense(8)(y), x])
    x = layers.Lambda(lambda x: x[:, 0])(layers.LayerNormalization()(x))
    model = keras.Model(image, layers.Dense(7, activation="softmax")(x))
    pictures = draw(2, 12, 8, 3)
    trained(model, pictures)

    def expected():
        maps = {}
        for layer in model.layers:
            if isinstance(layer, layers.MultiHeadAttention):
                x = keras.Model(image, layer.input[0])(pictures)
                maps[layer.name] = of_keras(layer, x, x)
        return maps

    return Case(model, (pictures,), expected)


# 4. "Image classification with Swin Transformers"


class WindowAttention(layers.Layer):
    def __init__(self, dim, window_size, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.window_size, self.num_heads = window_size, num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = layers.Dense(dim * 3)
        self.proj = layers.Dense(dim)
        x, y = np.divmod(np.arange(window_size**2), window_size)
        dx, dy = x[:, None] - x + window_size - 1, y[:, None] - y
        self.index = dx * (2 * window_size - 1) + dy + window_size - 1

    def build(self, input_shape):
        self.bias_table = self.add_weight(
            shape=((2 * self.window_size - 1) ** 2, self.num_heads),
            initializer="normal",
        )
        self.qkv.build(input_shape)
        self.proj.build(input_shape)

    def call(self, x, attn_mask=None):
        _, size, channels = x.shape
        qkv = ops.reshape(
            self.qkv(x), (-1, size, 3, self.num_heads, channels // 2)
        )
        q, k, v = ops.unstack(ops.transpose(qkv, (2, 0, 3, 1, 4)), axis=0)
        attn = (q * self.scale) @ ops.transpose(k, (0, 1, 3, 2))
        bias = ops.take(self.bias_table, self.index.reshape(-1), axis=0)
        bias = ops.reshape(bias, (size, size, -1))
        attn = attn + ops.transpose(bias, (2, 0, 1))[None]
        if attn_mask is not None:
            nw = attn_mask.shape[0]
            attn = ops.reshape(attn, (-1, nw, self.num_heads, size, size))
            attn = attn + ops.cast(attn_mask, attn.dtype)[None, :, None]
            attn = ops.reshape(attn, (-1, self.num_heads, size, size))
        attn = keras.activations.softmax(attn, axis=-1)
        x = ops.transpose(attn @ v, (0, 2, 1, 3))
        return self.proj(ops.reshape(x, (-1, size, channels)))


def window_partition(x, size):
    _, height, width, channels = x.shape
    x = ops.reshape(
        x, (-1, height // size, size, width // size, size, channels)
    )
    x = ops.transpose(x, (0, 1, 3, 2, 4, 5))
    return ops.reshape(x, (-1, size * size, channels))


def window_reverse(windows, size, height, width):
    x = ops.reshape(windows, (-1, height // size, width // size, size, size, 8))
    return ops.reshape(
        ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, height, width, 8)
    )


class SwinBlock(layers.Layer):
    def __init__(self, shift, window=3, **kwargs):
        super().__init__(**kwargs)
        self.shift, self.window = shift, window
        self.norm = layers.LayerNormalization()
        self.attn = WindowAttention(8, window, 2)
        side = np.zeros(6, int)  # what the shift brings together
        side[-window:], side[-1] = 1, 2
        regions = (3 * side[:, None] + side)[None, ..., None]
        regions = to_numpy(window_partition(regions, window))
        apart = regions != regions.swapaxes(1, 2)
        self.mask = np.where(apart, -100.0, 0.0) if shift else None

    def call(self, x):
        y = ops.roll(self.norm(x), (-self.shift, -self.shift), axis=(1, 2))
        y = self.attn(window_partition(y, self.window), attn_mask=self.mask)
        y = window_reverse(y, self.window, 6, 6)
        return x + ops.roll(y, (self.shift, self.shift), axis=(1, 2))


class Swin(keras.Model):
    def __init__(self, window=3):
        super().__init__()
        self.blocks = [SwinBlock(0, window), SwinBlock(1, window)]
        self.head = layers.Dense(5)

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(ops.mean(x, axis=(1, 2)))


def swin(size=3):
    x = draw(2, 6, 6, 8)
    model = trained(Swin(size), x)

    def expected():
        maps, y = {}, x
        for block in model.blocks:
            z = ops.roll(block.norm(y), (-block.shift,) * 2, axis=(1, 2))
            windows = window_partition(z, size)
            q, k, _ = np.split(dense(block.attn.qkv, windows), 3, axis=-1)
            scores = split(q, 2) @ split(k, 2).swapaxes(2, 3) / 2
            table = to_numpy(block.attn.bias_table)
            for i, j in np.ndindex(size**2, size**2):
                dx, dy = (
                    np.subtract(divmod(i, size), divmod(j, size)) + size - 1
                )
                scores[..., i, j] += table[(2 * size - 1) * dx + dy]
            if block.shift:
                scores += np.tile(block.mask, (2, 1, 1))[:, None]
            maps[path(block, block.attn)] = softmax(scores)
            y = block(y)
        return maps

    return Case(model, (x,), expected)


def swin_of_windows_with_nothing_in_common():
    """In the last window, which the shift makes, each sees itself alone."""
    return swin(2)


# 5. nanoGPT, in Keras


class CausalSelfAttention(layers.Layer):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.c_attn = layers.Dense(3 * n_embd)
        self.c_proj = layers.Dense(n_embd)
        self.attn_dropout = layers.Dropout(0.1)
        self.n_head = n_head

    def call(self, x):
        B, T, C = ops.shape(x)
        q, k, v = ops.split(self.c_attn(x), 3, axis=-1)
        q, k, v = (
            ops.reshape(t, (B, T, self.n_head, C // self.n_head))
            for t in (q, k, v)
        )
        att = ops.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(C // self.n_head)
        att = ops.where(ops.tril(ops.ones((T, T))) == 0, -1e9, att)
        att = self.attn_dropout(ops.softmax(att, axis=-1))
        y = ops.einsum("bhqk,bkhd->bqhd", att, v)
        return self.c_proj(ops.reshape(y, (B, T, C)))


class Block(layers.Layer):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1, self.ln_2 = (layers.LayerNormalization() for _ in range(2))
        self.attn = CausalSelfAttention(n_embd, n_head)
        self.mlp = keras.Sequential(
            [layers.Dense(4 * n_embd, activation="gelu"), layers.Dense(n_embd)]
        )

    def call(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(keras.Model):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = layers.Embedding(11, 12), layers.Embedding(16, 12)
        self.h = [Block(12, 3) for _ in range(2)]
        self.ln_f = layers.LayerNormalization()

    def embed(self, idx):
        return self.wte(idx) + self.wpe(ops.arange(ops.shape(idx)[1]))

    def call(self, idx):
        x = self.embed(idx)
        for block in self.h:
            x = block(x)
        return ops.matmul(self.ln_f(x), ops.transpose(self.wte.embeddings))


def gpt():
    tokens = ids(2, 7)
    model = trained(GPT(), tokens)

    def expected():
        maps, x = {}, model.embed(tokens)
        for block in model.h:
            qkv = dense(block.attn.c_attn, block.ln_1(x))
            q, k, _ = (split(t, 3) for t in np.split(qkv, 3, axis=-1))
            scores = q @ k.swapaxes(2, 3) / 2
            scores = np.where(np.tri(7, dtype=bool), scores, -np.inf)
            maps[path(block, block.attn)] = softmax(scores)
            x = block(x)
        return maps

    return Case(model, (tokens,), expected)


# 6. LLaMA, from scratch, with a cache that grows


def apply_rope(x, start):
    """Rotary embedding of `(B, T, H, K)`, halves as in LLaMA's port."""
    x = ops.convert_to_tensor(x)
    half = x.shape[-1] // 2
    freq = 100.0 ** (-ops.arange(half, dtype="float32") / half)
    position = ops.arange(start, start + x.shape[1], dtype="float32")
    angle = (position[:, None] * freq)[None, :, None]
    a, b = x[..., :half], x[..., half:]
    cos, sin = ops.cos(angle), ops.sin(angle)
    return ops.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


class GroupedQueryAttention(layers.Layer):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = dim // n_heads
        self.wq = layers.Dense(dim, use_bias=False)
        self.wk = layers.Dense(n_kv_heads * self.head_dim, use_bias=False)
        self.wv = layers.Dense(n_kv_heads * self.head_dim, use_bias=False)
        self.wo = layers.Dense(dim, use_bias=False)

    def call(self, x, cache=None):
        batch, length, _ = x.shape
        start = 0 if cache is None else cache[0].shape[1]
        shape = batch, length, -1, self.head_dim
        q = apply_rope(ops.reshape(self.wq(x), shape), start)
        k = apply_rope(ops.reshape(self.wk(x), shape), start)
        v = ops.reshape(self.wv(x), shape)
        if cache is not None:
            k = ops.concatenate([cache[0], k], axis=1)
            v = ops.concatenate([cache[1], v], axis=1)
        groups = self.n_heads // self.n_kv_heads
        keys, values = (ops.repeat(t, groups, axis=2) for t in (k, v))
        scores = ops.einsum("bthd,bshd->bhts", q, keys) / self.head_dim**0.5
        ahead = np.triu(np.full((length, start + length), -1e9), start + 1)
        weights = ops.softmax(ops.add(scores, ahead.astype("float32")), axis=-1)
        out = ops.einsum("bhts,bshd->bthd", weights, values)
        return self.wo(ops.reshape(out, (batch, length, -1))), (k, v)


class Llama(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(11, 16)
        self.attentions = [GroupedQueryAttention(16, 4, 2) for _ in range(2)]

    def call(self, tokens, caches=(None, None)):
        x, grown = self.embed(tokens), []
        for attention, cache in zip(self.attentions, caches, strict=True):
            y, cache = attention(x, cache=cache)
            x = x + y
            grown.append(cache)
        return x, grown


def llama(prefix, length):
    tokens = ids(2, prefix + length)
    model = trained(Llama(), tokens)
    _, caches = model(tokens[:, :prefix]) if prefix else (0, (None, None))

    def expected():
        maps, x = {}, model.embed(tokens)
        for layer in model.attentions:
            q, k = (
                to_numpy(apply_rope(dense(w, x).reshape(2, -1, heads, 4), 0))
                for w, heads in ((layer.wq, 4), (layer.wk, 2))
            )
            scores = np.einsum("bthd,bshd->bhts", q, np.repeat(k, 2, 2)) / 2
            allowed = np.tri(prefix + length, dtype=bool)
            weights = softmax(np.where(allowed, scores, -np.inf))
            maps[layer.name] = weights[:, :, prefix:]
            x = x + layer(x)[0]
        return maps

    return Case(model, (tokens[:, prefix:],), expected, {}, {"caches": caches})


def llama_prefill():
    return llama(0, 5)


def llama_next_chunk():
    return llama(5, 3)


def llama_next_token():
    return llama(5, 1)


class StaticCacheAttention(GroupedQueryAttention):
    """Its cache has room for all tokens, and zeros for those to come."""

    def call(self, x, cache, start=0):
        batch, length, _ = x.shape
        shape = batch, length, -1, self.head_dim
        q, k = (
            apply_rope(ops.reshape(w(x), shape), start)
            for w in (self.wq, self.wk)
        )
        v = ops.reshape(self.wv(x), shape)
        k = ops.slice_update(cache[0], [0, start, 0, 0], k)
        v = ops.slice_update(cache[1], [0, start, 0, 0], v)
        keys, values = (ops.repeat(t, 2, axis=2) for t in (k, v))
        scores = ops.einsum("bthd,bshd->bhts", q, keys) / self.head_dim**0.5
        ahead = np.triu(np.full((length, k.shape[1]), -1e9), start + 1)
        weights = ops.softmax(ops.add(scores, ahead.astype("float32")), axis=-1)
        out = ops.einsum("bhts,bshd->bthd", weights, values)
        return self.wo(ops.reshape(out, (batch, length, -1))), (k, v)


def static_cache(start, length):
    x, size = draw(2, start + length, 16), start + length
    layer = StaticCacheAttention(16, 4, 2)
    cache = (np.zeros((2, 9, 2, 4), "float32"),) * 2
    trained(layer, x, cache)
    if start:
        _, cache = layer(x[:, :start], cache)

    def expected():
        q, k = (
            to_numpy(apply_rope(dense(w, x).reshape(2, size, -1, 4), 0))
            for w in (layer.wq, layer.wk)
        )
        scores = np.einsum("bthd,bshd->bhts", q, np.repeat(k, 2, 2)) / 2
        allowed = np.tri(size, dtype=bool)
        weights = softmax(np.where(allowed, scores, -np.inf))[:, :, start:]
        return {layer.name: np.pad(weights, [(0, 0)] * 3 + [(0, 9 - size)])}

    return Case(layer, (x[:, start:], cache), expected, {}, {"start": start})


def static_cache_prompt():
    return static_cache(0, 5)


def static_cache_next_token():
    return static_cache(5, 1)


# 7. A decoder of grouped queries, with Keras's own layer


def grouped_query_decoder():
    tokens = keras.Input((None,), dtype="int32")
    x = layers.Embedding(11, 8)(tokens)
    for i in range(2):
        y = layers.RMSNormalization()(x)
        y = layers.GroupQueryAttention(
            head_dim=3, num_query_heads=4, num_key_value_heads=2, name=f"gqa{i}"
        )(y, y, use_causal_mask=True)
        x = x + y
        gate = layers.Dense(16, activation="silu")(x)
        x = x + layers.Dense(8)(gate * layers.Dense(16)(x))
    model = keras.Model(tokens, layers.Dense(11)(x))
    words = ids(2, 7)
    trained(model, words)

    def expected():
        maps = {}
        for name in ("gqa0", "gqa1"):
            layer = model.get_layer(name)
            x = keras.Model(tokens, layer.input[0])(words)
            maps[name] = of_keras(layer, x, x, np.tri(7, dtype=bool))
        return maps

    return Case(model, (words,), expected)


# 8. "A TensorFlow implementation of the Transformer" (Kyubyong)


class MultiheadAttention(layers.Layer):
    def __init__(self, num_units=8, num_heads=4, causality=False):
        super().__init__()
        self.num_heads, self.causality = num_heads, causality
        self.q, self.k, self.v = (
            layers.Dense(num_units, activation="relu") for _ in range(3)
        )
        self.normalize = layers.LayerNormalization()

    def call(self, queries, keys):
        Q_, K_, V_ = (
            ops.concatenate(ops.split(t, self.num_heads, axis=2), axis=0)
            for t in (self.q(queries), self.k(keys), self.v(keys))
        )
        outputs = ops.matmul(Q_, ops.transpose(K_, [0, 2, 1]))
        outputs = outputs / (K_.shape[-1] ** 0.5)
        key_masks = ops.sign(ops.abs(ops.sum(keys, axis=-1)))
        key_masks = ops.tile(key_masks, [self.num_heads, 1])[:, None]
        paddings = ops.ones_like(outputs) * (-(2.0**32) + 1)
        outputs = ops.where(key_masks == 0, paddings, outputs)
        if self.causality:
            tril = ops.tril(ops.ones_like(outputs[0]))[None]
            outputs = ops.where(tril == 0, paddings, outputs)
        outputs = ops.softmax(outputs)
        query_masks = ops.sign(ops.abs(ops.sum(queries, axis=-1)))
        query_masks = ops.tile(query_masks, [self.num_heads, 1])
        outputs = outputs * query_masks[..., None]
        outputs = ops.matmul(outputs, V_)
        outputs = ops.concatenate(
            ops.split(outputs, self.num_heads, axis=0), axis=2
        )
        return self.normalize(outputs + queries)


class Kyubyong(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = MultiheadAttention(causality=True)
        self.cross = MultiheadAttention()

    def call(self, inputs):
        memory, x = inputs
        return self.cross(self.first(x, x), memory)


def heads_stacked_on_the_batch():
    memory, x = draw(3, 7, 8), draw(3, 5, 8)
    memory[1, 4:] = 0  # padding, as the original embeds it
    model = trained(Kyubyong(), (memory, x))

    def expected():
        maps, allowed = {}, np.tri(5, dtype=bool)
        pair = x, x
        for layer in (model.first, model.cross):
            q, k = (
                split(np.maximum(dense(d, t), 0), 4)
                for d, t in zip((layer.q, layer.k), pair, strict=True)
            )
            scores = q @ k.swapaxes(2, 3) / 2**0.5
            maps[layer.name] = softmax(np.where(allowed, scores, -(2.0**32)))
            pair = layer(*pair), memory
            allowed = (memory.sum(-1) != 0)[:, None, None]
        return maps

    return Case(model, ((memory, x),), expected)


class PaddedQueries(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = MultiheadAttention(causality=True)

    def call(self, x):
        return self.first(x, x)


def padded_queries():
    """Their rows are set to 0 after the softmax."""
    x = draw(3, 5, 8)
    x[2, 3:] = 0
    model = trained(PaddedQueries(), x)

    def expected():
        layer, real = model.first, x.any(-1)
        q, k = (
            split(np.maximum(dense(d, x), 0), 4) for d in (layer.q, layer.k)
        )
        allowed = np.tri(5, dtype=bool) & real[:, None, None]
        scores = q @ k.swapaxes(2, 3) / 2**0.5
        weights = softmax(np.where(allowed, scores, -1e9))
        return {layer.name: weights * real[:, None, :, None]}

    return Case(model, (x,), expected)


# 9. "Text classification with Switch Transformer"


class Router(layers.Layer):
    def __init__(self, num_experts):
        super().__init__()
        self.route = layers.Dense(num_experts)

    def call(self, inputs):
        probability = ops.softmax(self.route(inputs), axis=-1)
        gate, index = ops.top_k(probability, k=1)
        chosen = ops.one_hot(index[..., 0], probability.shape[-1])
        return gate * chosen


class Switch(layers.Layer):
    def __init__(self, num_experts, embed_dim):
        super().__init__()
        self.router = Router(num_experts)
        self.experts = [
            layers.Dense(embed_dim, activation="relu")
            for _ in range(num_experts)
        ]

    def call(self, inputs):
        gates = self.router(inputs)
        outputs = ops.stack([expert(inputs) for expert in self.experts], -1)
        return ops.einsum("bte,btde->btd", gates, outputs)


class MixtralAttention(layers.Layer):
    """Attention and the experts in one layer, each with its softmax."""

    def __init__(self, dim, num_experts):
        super().__init__()
        self.q, self.k, self.v = (layers.Dense(dim) for _ in range(3))
        self.gate = layers.Dense(num_experts)
        self.experts = [layers.Dense(dim) for _ in range(num_experts)]

    def call(self, x):
        scores = ops.einsum("btd,bsd->bts", self.q(x), self.k(x))
        weights = ops.softmax(scores / np.sqrt(x.shape[-1]))
        x = x + ops.einsum("bts,bsd->btd", weights, self.v(x))
        gates = ops.softmax(self.gate(x))
        outputs = ops.stack([expert(x) for expert in self.experts], -2)
        return x + ops.einsum("bte,bted->btd", gates, outputs)


def mixture_of_experts(num_experts):
    x = keras.Input((5, 8))
    first = layers.MultiHeadAttention(2, 4)
    switch = Switch(num_experts, 8)
    y = switch(layers.LayerNormalization()(x + first(x, x)))
    second = MixtralAttention(8, num_experts)
    y = layers.GlobalAveragePooling1D()(second(y))
    model = keras.Model(x, layers.Dense(2, activation="softmax")(y))
    sentences = draw(3, 5, 8)
    trained(model, sentences)
    named = {}
    if num_experts == 5:  # by its shape, it may be attention
        named[path(switch, switch.router)] = "looks like attention, but"

    def expected():
        y = keras.Model(x, second.input)(sentences)
        scores = dense(second.q, y) @ dense(second.k, y).swapaxes(1, 2)
        return {
            first.name: of_keras(first, sentences, sentences),
            second.name: softmax(scores / 8**0.5)[:, None],
        }

    return Case(model, (sentences,), expected, named)


def four_experts():
    return mixture_of_experts(4)


def as_many_experts_as_words():
    return mixture_of_experts(5)


# 10. Attention pooling


class AttentionWithContext(layers.Layer):
    """Of "Hierarchical Attention Networks", as it went round for Keras."""

    def build(self, input_shape):
        d = input_shape[-1]
        self.W = self.add_weight(shape=(d, d), initializer="glorot_uniform")
        self.b = self.add_weight(shape=(d,), initializer="zeros")
        self.u = self.add_weight(shape=(d,), initializer="normal")

    def call(self, x):
        uit = ops.tanh(ops.matmul(x, self.W) + self.b)
        ait = ops.softmax(ops.matmul(uit, self.u[:, None])[..., 0])
        return ops.sum(x * ait[..., None], axis=1)


def hierarchical():
    words = keras.Input((7,), dtype="int32")
    x = layers.Embedding(11, 8)(words)
    x = layers.Bidirectional(layers.GRU(3, return_sequences=True))(x)
    of_words = AttentionWithContext()
    sentence_encoder = keras.Model(words, of_words(x))
    document = keras.Input((4, 7), dtype="int32")
    x = layers.TimeDistributed(sentence_encoder, name="time_distributed")(
        document
    )
    x = layers.Bidirectional(layers.GRU(3, return_sequences=True))(x)
    of_sentences = AttentionWithContext()
    y = of_sentences(x)
    model = keras.Model(document, layers.Dense(5, activation="softmax")(y))
    texts = ids(2, 4, 7)
    trained(model, texts)

    def weights(layer, x):
        hidden = np.tanh(to_numpy(x) @ to_numpy(layer.W) + to_numpy(layer.b))
        return softmax(hidden @ to_numpy(layer.u))[:, None, None]

    def expected():
        before = keras.Model(words, of_words.input)
        x = keras.Model(document, of_sentences.input)(texts)
        way = f"time_distributed/{path(sentence_encoder, of_words)}"
        maps = {of_sentences.name: weights(of_sentences, x)}
        for i in range(4):
            name = f"{way}#{i + 1}" if i else way
            maps[name] = weights(of_words, before(texts[:, i]))
        return maps

    return Case(model, (texts,), expected)


def pooling_by_layers():
    """Tutorials of LSTMs: Dense(1), Flatten, softmax, RepeatVector, …"""
    words = keras.Input((7,), dtype="int32")
    x = layers.LSTM(8, return_sequences=True)(layers.Embedding(11, 8)(words))
    scores = layers.Flatten()(layers.Dense(1, activation="tanh")(x))
    weights = layers.Activation("softmax", name="attention_vec")(scores)
    weights = layers.Permute([2, 1])(layers.RepeatVector(8)(weights))
    x = layers.Multiply()([x, weights])
    y = layers.Lambda(lambda x: ops.sum(x, axis=1))(x)
    model = keras.Model(words, layers.Dense(3, activation="softmax")(y))
    texts = ids(2, 7)
    trained(model, texts)
    named = {model.name: "looks like attention, but it is of no known kind"}
    return Case(model, (texts,), dict, named)


# 11. A seq2seq model with Keras's oldest attention


def seq2seq(kind):
    source = keras.Input((None,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    x = layers.Embedding(11, 8, mask_zero=True)(source)
    encoded, *state = layers.LSTM(8, return_sequences=True, return_state=True)(
        x
    )
    y = layers.Embedding(13, 8)(target)
    decoded = layers.LSTM(8, return_sequences=True)(y, initial_state=state)
    attention = kind(use_scale=True)
    context = attention([decoded, encoded])
    y = layers.Concatenate()([decoded, context])
    model = keras.Model(
        [source, target], layers.Dense(13, activation="softmax")(y)
    )
    sentences = [ids(2, 7), ids(2, 5)]
    sentences[0][0, 5:] = 0
    trained(model, sentences)

    def expected():
        q, k = map(
            to_numpy, keras.Model(model.input, [decoded, encoded])(sentences)
        )
        scale = to_numpy(attention.scale)
        if kind is layers.Attention:
            scores = q @ k.swapaxes(1, 2) * scale
        else:
            scores = np.tanh(q[:, :, None] + k[:, None]) @ scale
        real = (sentences[0] != 0)[:, None]
        return {attention.name: softmax(np.where(real, scores, -1e9))[:, None]}

    return Case(model, (sentences,), expected)


def luong_seq2seq():
    return seq2seq(layers.Attention)


def additive_seq2seq():
    return seq2seq(layers.AdditiveAttention)


# 12. gpt-oss: a logit of each head that belongs to no key


class AttentionBlock(layers.Layer):
    def __init__(self, dim=8, heads=4, kv_heads=2, window=3):
        super().__init__()
        self.heads, self.kv_heads, self.window = heads, kv_heads, window
        self.norm = layers.RMSNormalization()
        self.qkv = layers.Dense((heads + 2 * kv_heads) * 3)
        self.out = layers.Dense(dim)

    def build(self, shape):
        self.sinks = self.add_weight(shape=(self.heads,), initializer="normal")
        self.norm.build(shape)
        self.qkv.build(shape)
        self.out.build((*shape[:-1], self.heads * 3))

    def call(self, x):
        n_batch, n_ctx, _ = x.shape
        t = ops.reshape(self.qkv(self.norm(x)), (n_batch, n_ctx, -1, 3))
        q, k, v = ops.split(t, [self.heads, self.heads + self.kv_heads], axis=2)
        q_mult = self.heads // self.kv_heads
        q = ops.reshape(q, (n_batch, n_ctx, self.kv_heads, q_mult, 3))
        QK = ops.einsum("bqhmd,bkhd->bhmqk", q, k) * 3**-0.5
        mask = ops.triu(ops.ones((n_ctx, n_ctx)), 1)
        mask += ops.tril(ops.ones((n_ctx, n_ctx)), -self.window)
        QK = QK + mask * -1e9
        S = ops.reshape(self.sinks, (1, self.kv_heads, q_mult, 1, 1))
        S = ops.broadcast_to(S, (*QK.shape[:-1], 1))
        W = ops.softmax(ops.concatenate([QK, S], axis=-1), axis=-1)[..., :-1]
        attn = ops.einsum("bhmqk,bkhd->bqhmd", W, v)
        return x + self.out(ops.reshape(attn, (n_batch, n_ctx, -1)))


def gpt_oss(length=5):
    x = draw(2, length, 8)
    model = trained(keras.Sequential([AttentionBlock(), layers.Dense(11)]), x)

    def expected():
        block = model.layers[0]
        t = dense(block.qkv, block.norm(x)).reshape(2, length, 8, 3)
        k = np.repeat(t[:, :, 4:6], 2, axis=2)
        scores = np.einsum("bqhd,bkhd->bhqk", t[:, :, :4], k) / 3**0.5
        allowed = np.tri(length, dtype=bool) & ~np.tri(length, k=-3, dtype=bool)
        exp = np.where(allowed, np.exp(scores), 0)
        sinks = np.exp(to_numpy(block.sinks))[:, None, None]
        return {block.name: exp / (exp.sum(-1, keepdims=True) + sinks)}

    return Case(model, (x,), expected)


def gpt_oss_of_one_position_less_than_features():
    return gpt_oss(7)


# 13. T5: a bias of relative positions that the first layer makes


class T5Attention(layers.Layer):
    def __init__(self, has_relative_attention_bias=False):
        super().__init__()
        self.q, self.k, self.v, self.o = (
            layers.Dense(8, use_bias=False) for _ in range(4)
        )
        if has_relative_attention_bias:
            self.relative_attention_bias = layers.Embedding(7, 2)

    def shape(self, states):
        states = ops.reshape(states, (ops.shape(states)[0], -1, 2, 4))
        return ops.transpose(states, (0, 2, 1, 3))

    def compute_bias(self, length):
        position = np.arange(length)
        bucket = np.clip(position - position[:, None], -3, 3) + 3
        values = self.relative_attention_bias(bucket)
        return ops.transpose(values, (2, 0, 1))[None]

    def call(self, hidden_states, mask_bias=None, position_bias=None):
        q, k, v = (
            self.shape(f(hidden_states)) for f in (self.q, self.k, self.v)
        )
        scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2)))
        if position_bias is None:
            position_bias = self.compute_bias(hidden_states.shape[1])
            if mask_bias is not None:
                position_bias = position_bias + mask_bias
        attn_weights = ops.softmax(scores + position_bias, axis=-1)
        attn_output = ops.transpose(attn_weights @ v, (0, 2, 1, 3))
        shape = (ops.shape(attn_output)[0], -1, 8)
        return self.o(ops.reshape(attn_output, shape)), position_bias


class T5Stack(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(11, 8)
        self.norms = [layers.LayerNormalization() for _ in range(2)]
        self.attentions = [T5Attention(True), T5Attention()]

    def call(self, ids, attention_mask):
        mask_bias = (1.0 - ops.cast(attention_mask, "float32")) * -1e9
        x, position_bias = self.embed(ids), None
        for norm, attention in zip(self.norms, self.attentions, strict=True):
            y, position_bias = attention(
                norm(x),
                mask_bias=mask_bias[:, None, None],
                position_bias=position_bias,
            )
            x = x + y
        return x


def t5():
    tokens, real = ids(3, 7), np.ones((3, 7), "int32")
    real[1, 5:] = 0
    model = trained(T5Stack(), tokens, real)

    def expected():
        maps, x, bias = {}, model.embed(tokens), None
        table = to_numpy(model.attentions[0].relative_attention_bias.embeddings)
        distance = np.subtract.outer(np.arange(7), np.arange(7))
        relative = table[3 - np.clip(distance, -3, 3)].transpose(2, 0, 1)
        relative = relative - 1e9 * (1 - real[:, None, None])
        for norm, layer in zip(model.norms, model.attentions, strict=True):
            y = norm(x)
            q, k = (split(dense(d, y), 2) for d in (layer.q, layer.k))
            maps[layer.name] = softmax(q @ k.swapaxes(2, 3) + relative)
            mask = -1e9 * (1.0 - real[:, None, None].astype("float32"))
            y, bias = layer(y, mask_bias=mask, position_bias=bias)
            x = x + y
        return maps

    return Case(model, (tokens, real), expected)


# 14. Perceiver and Set Transformer: queries that are learned


class LatentAttention(layers.Layer):
    """Latents ask a long input, by hand."""

    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.heads = heads
        self.to_q = layers.Dense(dim, use_bias=False)
        self.to_kv = layers.Dense(2 * dim, use_bias=False)
        self.to_out = layers.Dense(dim)

    def call(self, latents, context):
        q = self.to_q(latents)
        k, v = ops.split(self.to_kv(context), 2, axis=-1)
        q, k, v = (
            ops.reshape(t, (*t.shape[:2], self.heads, -1)) for t in (q, k, v)
        )
        sim = ops.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
        out = ops.einsum("bhij,bjhd->bihd", ops.softmax(sim), v)
        return self.to_out(ops.reshape(out, latents.shape))


class PoolingByAttention(layers.Layer):
    """PMA of the Set Transformer: seeds ask the set."""

    def __init__(self, num_seeds=2):
        super().__init__()
        self.num_seeds = num_seeds
        self.mha = layers.MultiHeadAttention(2, 4)

    def build(self, shape):
        self.seeds = self.add_weight(
            shape=(1, self.num_seeds, shape[-1]), initializer="normal"
        )
        self.mha.build((None, self.num_seeds, shape[-1]), shape)

    def call(self, z):
        seeds = ops.tile(self.seeds, (ops.shape(z)[0], 1, 1))
        return self.mha(seeds, z)


class Perceiver(keras.Model):
    def __init__(self):
        super().__init__()
        self.latents = self.add_weight(shape=(3, 8), initializer="normal")
        self.cross_attention = LatentAttention()
        self.latent_transformer = layers.MultiHeadAttention(2, 4)
        self.pool = PoolingByAttention()

    def call(self, x):
        latents = ops.tile(self.latents[None], (ops.shape(x)[0], 1, 1))
        latents = latents + self.cross_attention(latents, context=x)
        latents = latents + self.latent_transformer(latents, latents)
        return self.pool(latents)


def perceiver():
    x = draw(2, 11, 8)
    model = trained(Perceiver(), x)

    def expected():
        cross, inner, pool = (
            model.cross_attention,
            model.latent_transformer,
            model.pool,
        )
        latents = np.stack([to_numpy(model.latents)] * 2)
        q = split(dense(cross.to_q, latents), 2)
        k = split(dense(cross.to_kv, x)[..., :8], 2)
        of_cross = softmax(q @ k.swapaxes(2, 3) / 2)
        latents = latents + to_numpy(cross(latents, context=x))
        of_inner = of_keras(inner, latents, latents)
        latents = latents + to_numpy(inner(latents, latents))
        seeds = np.concatenate([to_numpy(pool.seeds)] * 2)
        return {
            cross.name: of_cross,
            inner.name: of_inner,
            path(pool, pool.mha): of_keras(pool.mha, seeds, latents),
        }

    return Case(model, (x,), expected)


# 15. Attention without weights: linear, Performer, efficient, retention


class LinearAttention(layers.Layer):
    def __init__(self, dim=8):
        super().__init__()
        self.q, self.k, self.v = (layers.Dense(dim) for _ in range(3))

    def call(self, x):
        q, k = ops.elu(self.q(x)) + 1, ops.elu(self.k(x)) + 1
        kv = ops.einsum("bsd,bse->bde", k, self.v(x))
        z = 1 / ops.einsum("btd,bd->bt", q, ops.sum(k, axis=1))
        return ops.einsum("btd,bde,bt->bte", q, kv, z)


class FastAttention(LinearAttention):
    """Performer: positive random features."""

    def build(self, shape):
        self.features = self.add_weight(
            shape=(8, 5), initializer="normal", trainable=False
        )

    def call(self, x):
        q, k = (
            ops.exp(t @ self.features - ops.sum(t**2, -1, True) / 2)
            for t in (self.q(x) / 2, self.k(x) / 2)
        )
        kv = ops.einsum("bsm,bse->bme", k, self.v(x))
        z = 1 / (ops.einsum("btm,bm->bt", q, ops.sum(k, axis=1)) + 1e-6)
        return ops.einsum("btm,bme,bt->bte", q, kv, z)


class EfficientAttention(LinearAttention):
    """Shen et al.: one softmax over features, one of each feature over keys."""

    def call(self, x):
        q = ops.softmax(self.q(x), axis=-1)
        k = ops.softmax(self.k(x), axis=1)
        context = ops.einsum("bsd,bse->bde", k, self.v(x))
        return ops.einsum("btd,bde->bte", q, context)


class MultiScaleRetention(LinearAttention):
    """RetNet: decays in the place of a softmax."""

    def call(self, x):
        t = ops.arange(x.shape[1], dtype="float32")
        decay = ops.tril(0.9 ** (t[:, None] - t))
        scores = ops.einsum("btd,bsd->bts", self.q(x), self.k(x)) * decay
        return ops.matmul(scores, self.v(x))


def without_weights():
    """As many words as features, for which their softmax could be taken."""
    x = keras.Input((8, 8))
    known = layers.MultiHeadAttention(2, 4)
    y = known(x, x)
    linear, fast, efficient = parts = (
        LinearAttention(),
        FastAttention(),
        EfficientAttention(),
    )
    for part in (*parts, MultiScaleRetention()):
        y = layers.LayerNormalization()(y + part(y))
    model = keras.Model(x, y)
    inputs = draw(3, 8, 8)
    trained(model, inputs)
    named = {
        linear.name: "no softmax of Keras over keys was seen",
        fast.name: "no softmax of Keras over keys was seen",
        efficient.name: "does not behave as attention to positions",
    }

    def expected():
        return {known.name: of_keras(known, inputs, inputs)}

    return Case(model, (inputs,), expected, named)


# 16. Transformer-XL: keys of a memory before those of the words


class RelativeMultiHeadAttention(layers.Layer):
    def __init__(self, units=8, num_heads=2):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.r, self.o = (
            layers.Dense(units, use_bias=False) for _ in range(5)
        )

    def build(self, *shapes):
        size = 8 // self.num_heads
        shape = (self.num_heads, size)
        self.u = self.add_weight(shape=shape, initializer="normal")
        self.w = self.add_weight(shape=shape, initializer="normal")

    @staticmethod
    def relatives(total):
        """Sines and cosines of how far back a key lies, the farthest first."""
        back = np.arange(total - 1, -1, -1.0)[:, None]
        angle = back / 100.0 ** (np.arange(4) / 4)
        both = np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)
        return both[None].astype("float32")

    def call(self, inputs, memories, relatives=None):
        full = ops.concatenate([memories, inputs], axis=1)
        batch, length, total = *inputs.shape[:2], full.shape[1]
        if relatives is None:
            relatives = self.relatives(total)
        q, k, v, r = (
            ops.reshape(d(x), (x.shape[0], -1, self.num_heads, 4))
            for d, x in (
                (self.q, inputs),
                (self.k, full),
                (self.v, full),
                (self.r, relatives),
            )
        )
        content = ops.einsum("bthd,bshd->bhts", q + self.u, k)
        position = ops.einsum("bthd,shd->bhts", q + self.w, r[0])
        # The relative shift.
        position = ops.pad(position, [[0, 0], [0, 0], [0, 0], [1, 0]])
        position = ops.reshape(position, (batch, -1, total + 1, length))
        position = ops.reshape(position[:, :, 1:], (batch, -1, length, total))
        scores = (content + position) / 2
        ahead = ops.triu(ops.ones((length, total)), total - length + 1)
        weights = ops.softmax(scores - 1e9 * ahead)
        out = ops.einsum("bhts,bshd->bthd", weights, v)
        return self.o(ops.reshape(out, (batch, length, -1)))


class TransformerXL(keras.Model):
    def __init__(self, gives_relatives=False):
        super().__init__()
        self.gives_relatives = gives_relatives
        self.embed = layers.Embedding(11, 8)
        self.attentions = [RelativeMultiHeadAttention() for _ in range(2)]
        self.norm = layers.LayerNormalization()

    def call(self, tokens, memories):
        x, new = self.embed(tokens), []
        relatives = None
        if self.gives_relatives:
            total = tokens.shape[1] + memories[0].shape[1]
            relatives = RelativeMultiHeadAttention.relatives(total)
        for attention, memory in zip(self.attentions, memories, strict=True):
            new.append(x)
            x = x + attention(x, memory, relatives)
        return self.norm(x), new


def transformer_xl(batch=2, length=5, gives_relatives=False):
    tokens = ids(batch, length)
    memories = [draw(batch, 7, 8), draw(batch, 7, 8, seed=1)]
    model = trained(TransformerXL(gives_relatives), tokens, memories)

    def expected():
        maps, x, total = {}, to_numpy(model.embed(tokens)), length + 7
        for layer, memory in zip(model.attentions, memories, strict=True):
            full = np.concatenate([memory, x], axis=1)
            q, k = split(dense(layer.q, x), 2), split(dense(layer.k, full), 2)
            r = split(dense(layer.r, layer.relatives(total)), 2)[0]
            u, w = (to_numpy(v)[:, None] for v in (layer.u, layer.w))
            scores = (q + u) @ k.swapaxes(2, 3)
            for t, s in np.ndindex(length, total):
                back = 7 + t - s  # how far the key lies before the query
                scores[:, :, t, s] = (
                    scores[:, :, t, s]
                    + np.einsum(
                        "bhd,hd->bh", (q + w)[:, :, t], r[:, total - 1 - back]
                    )
                    if back >= 0
                    else -np.inf
                )
            maps[layer.name] = softmax(scores / 2)
            x = x + to_numpy(layer(x, memory))
        return maps

    return Case(model, (tokens, memories), expected)


def transformer_xl_of_one_token():
    """With as many keys as features."""
    return transformer_xl(2, 1)


def transformer_xl_that_is_given_relatives():
    return transformer_xl(2, 5, True)


def transformer_xl_of_one_sentence():
    """Whose relative embeddings may be another sequence of its own."""
    return transformer_xl(1, 5, True)


class RelMultiHeadAttn(RelativeMultiHeadAttention):
    """As its authors call it."""


class AttnXL(keras.Model):
    def __init__(self):
        super().__init__()
        self.known = layers.MultiHeadAttention(2, 4)
        self.relative = RelMultiHeadAttn()

    def call(self, x, memory):
        return self.relative(self.known(x, x), memory)


def transformer_xl_of_another_name():
    x, memory = draw(2, 5, 8), draw(2, 7, 8)
    model = trained(AttnXL(), x, memory)
    named = {model.relative.name: "looks like attention"}

    def expected():
        return {model.known.name: of_keras(model.known, x, x)}

    return Case(model, (x, memory), expected, named)


# 17. A softmax of TensorFlow


class ScaledDotAttention(layers.Layer):
    def __init__(self, dim=8):
        super().__init__()
        self.wq, self.wk, self.wv = (layers.Dense(dim) for _ in range(3))

    def call(self, x):
        import tensorflow as tf

        scores = tf.matmul(self.wq(x), self.wk(x), transpose_b=True)
        return tf.matmul(tf.nn.softmax(scores / 8**0.5), self.wv(x))


class OfTensorFlow(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = layers.MultiHeadAttention(2, 4)
        self.second = ScaledDotAttention()

    def call(self, x):
        return self.second(self.first(x, x))


def softmax_of_tensorflow():
    x = draw(2, 5, 8)
    model = trained(OfTensorFlow(), x)

    def expected():
        return {model.first.name: of_keras(model.first, x, x)}

    named = {model.second.name: "no softmax of Keras over keys was seen in it"}
    return Case(model, (x,), expected, named)


# 18. Conformer with squeeze-and-excitation, and CBAM


class ChannelAttention(layers.Layer):
    def __init__(self, channels=8, ratio=2):
        super().__init__()
        self.mlp = keras.Sequential(
            [
                layers.Dense(channels // ratio, activation="relu"),
                layers.Dense(channels),
            ]
        )

    def call(self, x):
        pooled = ops.mean(x, 1, keepdims=True), ops.max(x, 1, keepdims=True)
        return x * ops.sigmoid(sum(self.mlp(p) for p in pooled))


class SpatialAttention(layers.Layer):
    def __init__(self):
        super().__init__()
        self.conv = layers.Conv1D(1, 3, padding="same", activation="sigmoid")

    def call(self, x):
        pooled = ops.mean(x, -1, keepdims=True), ops.max(x, -1, keepdims=True)
        return x * self.conv(ops.concatenate(pooled, axis=-1))


class SoftmaxChannelAttention(ChannelAttention):
    """DANet: a softmax over the channels."""

    def call(self, x):
        return x * ops.softmax(self.mlp(ops.mean(x, 1, keepdims=True)))


class DANetChannelAttention(layers.Layer):
    """Channels attend to channels."""

    def call(self, x):
        energy = ops.einsum("btc,btd->bcd", x, x)
        energy = ops.max(energy, -1, keepdims=True) - energy
        return x + ops.einsum("bcd,btd->btc", ops.softmax(energy), x)


def conformer(length):
    x = keras.Input((length, 8))
    y = x + 0.5 * layers.Dense(8)(layers.Dense(16, activation="silu")(x))
    mha = layers.MultiHeadAttention(2, 4)
    normed = layers.LayerNormalization()(y)
    y = y + mha(normed, normed)
    z = layers.DepthwiseConv1D(3, padding="same")(layers.Dense(8)(y))
    features = (
        "does not behave as attention to positions"
        if length == 8
        else "does not run over positions of its inputs"
    )
    parts = {
        ChannelAttention(): "no softmax of Keras over keys was seen in it",
        SpatialAttention(): "no softmax of Keras over keys was seen in it",
        SoftmaxChannelAttention(): features,
        DANetChannelAttention(): features,
    }
    for part in parts:
        z = part(layers.LayerNormalization()(z))
    model = keras.Model(x, layers.LayerNormalization()(y + z))
    sounds = draw(3, length, 8)
    trained(model, sounds)
    named = {part.name: reason for part, reason in parts.items()}

    def expected():
        y = keras.Model(x, normed)(sounds)
        return {mha.name: of_keras(mha, y, y)}

    return Case(model, (sounds,), expected, named)


def conformer_with_channel_attention():
    return conformer(5)


def conformer_of_as_many_channels_as_steps():
    return conformer(8)


def ask(model, *args, **kwargs):
    """Outputs, maps, and the reasons why there are no others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outputs, maps = get_attention_weights(model, *args, **kwargs)
        except ValueError as error:
            said = re.findall("\n  (.*?): (.*)", str(error))
            return model(*args, **kwargs), {}, dict(said)
    return outputs, dict(maps), maps.skipped


def everywhere(build):
    """Hand-written, and read by guesses: worth the seconds of JAX."""
    return pytest.param(build, marks=pytest.mark.every_backend)


@pytest.mark.parametrize(
    "build",
    [
        tutorial_transformer,
        nmt_with_attention,
        vision_transformer,
        swin,
        swin_of_windows_with_nothing_in_common,
        everywhere(gpt),
        *(
            pytest.param(build, marks=needs_none_in_tuples)
            for build in (llama_prefill, llama_next_chunk, llama_next_token)
        ),
        static_cache_prompt,
        static_cache_next_token,
        grouped_query_decoder,
        everywhere(heads_stacked_on_the_batch),
        everywhere(padded_queries),
        four_experts,
        as_many_experts_as_words,
        hierarchical,
        pooling_by_layers,
        pytest.param(luong_seq2seq, marks=needs_padding_mask),
        pytest.param(additive_seq2seq, marks=needs_padding_mask),
        everywhere(gpt_oss),
        gpt_oss_of_one_position_less_than_features,
        t5,
        perceiver,
        without_weights,
        everywhere(transformer_xl),
        transformer_xl_of_one_token,
        transformer_xl_that_is_given_relatives,
        transformer_xl_of_one_sentence,
        transformer_xl_of_another_name,
        pytest.param(
            softmax_of_tensorflow,
            marks=pytest.mark.skipif(
                keras.backend.backend() != "tensorflow", reason="TensorFlow's"
            ),
        ),
        conformer_with_channel_attention,
        conformer_of_as_many_channels_as_steps,
    ],
)
def test_each_attention_gives_its_true_map_or_is_named(build):
    model, inputs, expected, named, options = build()
    outputs, maps, skipped = ask(model, *inputs, **options)
    for found, plain in zip(
        tree.flatten(outputs),
        tree.flatten(model(*inputs, **options)),
        strict=True,
    ):
        np.testing.assert_array_equal(to_numpy(found), to_numpy(plain))
    expected = expected()
    assert maps.keys() == expected.keys(), skipped
    for name, weights in expected.items():
        assert np.ptp(weights, axis=-1).max() > 0.04  # no even map passes
        np.testing.assert_allclose(maps[name], weights, atol=1e-5)
    assert skipped.keys() == named.keys()
    for name, reason in named.items():
        assert reason in skipped[name]
