"""Attention as people write it, with its true maps: one table, `CASES`.

The layers follow tutorials, papers and repositories, whose authors never saw
this package, and traps for whoever guesses. A layer that is written out tells
the weights with which it mixed its values; what layers of Keras weighed with
is computed again in NumPy, from their kernels.
"""

from contextlib import contextmanager
from typing import Any, NamedTuple

from contract import (
    draw,
    needs_fewer_key_heads,
    needs_none_in_tuples,
    needs_padding_mask,
    to_numpy,
)
import keras
from keras import layers, ops
import numpy as np
import pytest

B, T, D = 3, 5, 8


class Case(NamedTuple):
    model: Any  # a layer or a model
    inputs: tuple  # positional arguments of its call
    paths: list = []  # of its maps, in the order of the calls
    named: dict = {}  # path → words of the reason why it has no map
    options: dict = {}  # other arguments of the call


_told = None


def tell(weights, axes=None):
    """Note the map that a layer applied, as `(B, H, T, S)`; hand it back."""
    if _told is not None:
        told = to_numpy(weights)
        told = told[:, None] if told.ndim == 3 else told
        _told.append(told if axes is None else told.transpose(axes))
    return weights


def softmax(x):
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def weights_of_keras(
    layer,
    query,
    value,
    key=None,
    query_mask=None,
    value_mask=None,
    key_mask=None,
    attention_mask=None,
    use_causal_mask=False,
    **_,
):
    """Of `MultiHeadAttention` and `GroupQueryAttention`, with biases.

    Keras's fused operation looks at all keys where none may be seen.
    """
    kernel_q, bias_q, kernel_k, bias_k = map(to_numpy, layer.weights[:4])
    q = np.einsum("btd,dhk->bhtk", to_numpy(query), kernel_q)
    key = to_numpy(value if key is None else key)
    k = np.einsum("bsd,dhk->bhsk", key, kernel_k)
    q, k = q + bias_q[:, None], k + bias_k[:, None]
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    scores = q @ k.swapaxes(2, 3) / q.shape[-1] ** 0.5
    seen = np.ones(scores.shape, bool)
    if use_causal_mask:
        seen &= np.tri(*scores.shape[2:], dtype=bool)
    for mask in (key_mask, value_mask):
        if mask is not None:
            seen &= to_numpy(mask)[:, None, None]
    if query_mask is not None:
        seen &= to_numpy(query_mask)[:, None, :, None]
    if attention_mask is not None:
        seen &= to_numpy(attention_mask)[:, None]
    return softmax(np.where(seen, scores, -1e9))


def weights_of_keras_without_heads(layer, inputs, mask=None, **_):
    """Of `Attention` and `AdditiveAttention`, with a scale."""
    q, k = map(to_numpy, inputs[:2])
    scale = to_numpy(layer.scale)
    if isinstance(layer, layers.AdditiveAttention):
        scores = np.tanh(q[:, :, None] + k[:, None]) @ scale
    else:
        scores = q @ k.swapaxes(1, 2) * scale
    real = mask and mask[1]
    seen = True if real is None else to_numpy(real)[:, None]
    return softmax(np.where(seen, scores, -1e9))[:, None]


OF_KERAS = {
    layers.MultiHeadAttention: weights_of_keras,
    layers.GroupQueryAttention: weights_of_keras,
    layers.Attention: weights_of_keras_without_heads,
}  # the additive one inherits its call


@contextmanager
def telling():
    """A list of the true maps of a call, in the order of the layers."""
    global _told
    _told = []
    with pytest.MonkeyPatch.context() as patch:
        for kind, weights_of in OF_KERAS.items():

            def call(self, *args, weights_of=weights_of, old=kind.call, **more):
                tell(weights_of(self, *args, **more))
                return old(self, *args, **more)

            patch.setattr(kind, "call", call)
        yield _told
    _told = None


def trained(model, *inputs, **options):
    """The model after a call, with other numbers than fresh ones."""
    model(*inputs, **options)
    rng = np.random.default_rng(0)
    for v in model.trainable_variables:
        v.assign(rng.normal(size=v.shape) / 2)
    return model


def ids(*shape):
    return np.random.default_rng(shape).integers(1, 11, shape)


CASES = {}


def case(*marks, everywhere=False, **parameters):
    """Enter what a function builds into the table, under the words after it.

    Args:
        marks: Of pytest.
        everywhere: Whether all backends try it: one of each way to be read.
        parameters: Lists of equal length, one value for each case.
    """
    marks = [*marks, *([pytest.mark.every_backend] if everywhere else [])]

    def enter(build):
        rows = list(zip(*parameters.values(), strict=True)) or [()]
        for row in rows:
            values = dict(zip(parameters, row, strict=True))
            words = [str(getattr(x, "__name__", x)) for x in row]
            name = " ".join([build.__name__.replace("_", " "), *words])
            CASES[name] = pytest.param(
                lambda values=values: build(**values), id=name, marks=marks
            )
        return build

    return enter


def of_function(call, *inputs, named=None, **attributes):
    """A layer with "attention" in its name that computes `call(…)`.

    `named` is the reason why it has no map.
    """
    methods = {"call": lambda self, *inputs: call(*inputs), **attributes}
    layer = type("SomeAttention", (layers.Layer,), methods)(name="some")
    if named is None:
        return Case(layer, inputs, ["some"])
    return Case(layer, inputs, [], {"some": named})


def known(name="known"):
    return layers.MultiHeadAttention(2, 4, name=name)


def scores(x, y=None):
    return ops.einsum("btd,bsd->bts", x, x if y is None else y) / 4


def attend(x):
    return ops.matmul(tell(ops.softmax(scores(x))), x)


# Tutorials and models


class BaseAttention(layers.Layer):
    """Of "Neural machine translation with a Transformer and Keras"."""

    def __init__(self, name, **kwargs):
        super().__init__(name=name)
        self.supports_masking = True
        self.mha = layers.MultiHeadAttention(name="mha", **kwargs)
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


class CausalAttention(BaseAttention):
    def call(self, x):
        y = self.mha(query=x, value=x, key=x, use_causal_mask=True)
        return self.layernorm(self.add([x, y]))


class TutorialTransformer(keras.Model):
    def __init__(self):
        super().__init__()
        options = {"num_heads": 2, "key_dim": D}
        self.pos_embedding = layers.Embedding(11, D, mask_zero=True)
        self.encoder = GlobalSelfAttention("encoder", **options)
        self.causal = CausalAttention("causal", **options, dropout=0.1)
        self.cross = CrossAttention("cross", **options, dropout=0.1)
        self.final_layer = layers.Dense(13)

    def call(self, inputs):
        context, x = inputs
        context = self.encoder(self.pos_embedding(context))
        x = self.causal(x=self.pos_embedding(x))
        return self.final_layer(self.cross(x=x, context=context))


@case()
def tutorial_transformer():
    source, target = ids(3, 7), ids(3, 5)
    source[1, 4:] = 0  # padding
    model = trained(TutorialTransformer(), (source, target))
    paths = ["encoder/mha", "causal/mha", "cross/mha"]
    return Case(model, ((source, target),), paths)


class BahdanauAttention(layers.Layer):
    """Of "Neural machine translation with attention"."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.W1 = layers.Dense(units)
        self.W2 = layers.Dense(units)
        self.V = layers.Dense(1)

    def call(self, query, values):
        query = ops.expand_dims(query, 1)
        score = self.V(ops.tanh(self.W1(query) + self.W2(values)))
        attention_weights = ops.softmax(score, axis=1)
        tell(ops.swapaxes(attention_weights, 1, 2))
        return ops.sum(attention_weights * values, axis=1), attention_weights


class NMT(keras.Model):
    """Teacher forcing, one word of the target after the other."""

    def __init__(self, units=D):
        super().__init__()
        self.embedding = layers.Embedding(11, units)
        self.encoder = layers.GRU(
            units, return_sequences=True, return_state=True
        )
        self.attention = BahdanauAttention(units, name="attention")
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


@case()
def nmt_with_attention():
    sentences = ids(3, 7), ids(3, 2)
    model = trained(NMT(), sentences)
    return Case(model, (sentences,), ["attention", "attention#2"])


class ClassToken(layers.Layer):
    """Of "Image classification with Vision Transformer"."""

    def build(self, input_shape):
        d = input_shape[-1]
        self.cls = self.add_weight(shape=(1, 1, d), initializer="normal")
        self.pos = self.add_weight(
            shape=(1, input_shape[1] + 1, d), initializer="normal"
        )

    def call(self, x):
        cls = ops.repeat(self.cls, ops.shape(x)[0], axis=0)
        return ops.concatenate([cls, x], axis=1) + self.pos


@case()
def vision_transformer():
    image = keras.Input((12, 8, 3))
    x = layers.Conv2D(8, 4, strides=4, padding="valid")(image)
    x = ClassToken()(layers.Reshape((6, 8))(x))
    for i in range(2):
        x1 = layers.LayerNormalization(epsilon=1e-6)(x)
        y = layers.MultiHeadAttention(2, 4, dropout=0.1, name=f"mha{i}")(x1, x1)
        x = layers.Add()([y, x])
        y = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([layers.Dense(8)(y), x])
    x = layers.Lambda(lambda x: x[:, 0])(layers.LayerNormalization()(x))
    model = keras.Model(image, layers.Dense(7, activation="softmax")(x))
    pictures = draw(2, 12, 8, 3)
    return Case(trained(model, pictures), (pictures,), ["mha0", "mha1"])


class WindowAttention(layers.Layer):
    """Of "Image classification with Swin Transformers"."""

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
        attn = tell(keras.activations.softmax(attn, axis=-1))
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


class Windows(WindowAttention):
    """The same, of no known kind."""


class SwinBlock(layers.Layer):
    def __init__(self, shift, window, kind=WindowAttention, **kwargs):
        super().__init__(**kwargs)
        self.shift, self.window = shift, window
        self.norm = layers.LayerNormalization()
        self.attn = kind(8, window, 2, name="attn")
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


# With windows of 2, in the last one, which the shift makes, each patch sees
# itself alone.
@case(window=[2, 3, 2], kind=[WindowAttention, WindowAttention, Windows])
def swin_of_windows_of(window, kind):
    x = keras.Input((6, 6, 8), batch_size=2)
    blocks = [SwinBlock(i, window, kind, name=f"block{i}") for i in range(2)]
    model = keras.Model(x, layers.Dense(5)(blocks[1](blocks[0](x))))
    pictures = draw(2, 6, 6, 8)
    paths = ["block0/attn", "block1/attn"]
    return Case(trained(model, pictures), (pictures,), paths)


class CausalSelfAttention(layers.Layer):
    """nanoGPT, in Keras."""

    def __init__(self, n_embd, n_head, **options):
        super().__init__(**options)
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
        att = self.attn_dropout(tell(ops.softmax(att, axis=-1)))
        y = ops.einsum("bhqk,bkhd->bqhd", att, v)
        return self.c_proj(ops.reshape(y, (B, T, C)))


class GPTBlock(layers.Layer):
    def __init__(self, n_embd, n_head, **options):
        super().__init__(**options)
        self.ln_1, self.ln_2 = (layers.LayerNormalization() for _ in range(2))
        self.attn = CausalSelfAttention(n_embd, n_head, name="attn")
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
        self.h = [GPTBlock(12, 3, name=f"h{i}") for i in range(2)]
        self.ln_f = layers.LayerNormalization()

    def call(self, idx):
        x = self.wte(idx) + self.wpe(ops.arange(ops.shape(idx)[1]))
        for block in self.h:
            x = block(x)
        return ops.matmul(self.ln_f(x), ops.transpose(self.wte.embeddings))


@case(everywhere=True)
def gpt():
    tokens = ids(2, 7)
    return Case(trained(GPT(), tokens), (tokens,), ["h0/attn", "h1/attn"])


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


class LlamaAttention(layers.Layer):
    """LLaMA from scratch, with a cache that grows, or one that is reserved."""

    def __init__(self, dim=16, n_heads=4, n_kv_heads=2, **options):
        super().__init__(**options)
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = dim // n_heads
        self.wq = layers.Dense(dim, use_bias=False)
        self.wk = layers.Dense(n_kv_heads * self.head_dim, use_bias=False)
        self.wv = layers.Dense(n_kv_heads * self.head_dim, use_bias=False)
        self.wo = layers.Dense(dim, use_bias=False)

    def call(self, x, cache=None, start=None):
        batch, length, _ = x.shape
        reserved = start is not None
        if start is None:
            start = 0 if cache is None else cache[0].shape[1]
        shape = batch, length, -1, self.head_dim
        q = apply_rope(ops.reshape(self.wq(x), shape), start)
        k = apply_rope(ops.reshape(self.wk(x), shape), start)
        v = ops.reshape(self.wv(x), shape)
        if reserved:
            k = ops.slice_update(cache[0], [0, start, 0, 0], k)
            v = ops.slice_update(cache[1], [0, start, 0, 0], v)
        elif cache is not None:
            k = ops.concatenate([cache[0], k], axis=1)
            v = ops.concatenate([cache[1], v], axis=1)
        groups = self.n_heads // self.n_kv_heads
        keys, values = (ops.repeat(t, groups, axis=2) for t in (k, v))
        scores = ops.einsum("bthd,bshd->bhts", q, keys) / self.head_dim**0.5
        ahead = np.triu(np.full((length, k.shape[1]), -1e9), start + 1)
        scores = ops.add(scores, ahead.astype("float32"))
        weights = tell(ops.softmax(scores, axis=-1))
        out = ops.einsum("bhts,bshd->bthd", weights, values)
        return self.wo(ops.reshape(out, (batch, length, -1))), (k, v)


class Llama(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(11, 16)
        self.attentions = [LlamaAttention(name=f"attn{i}") for i in range(2)]

    def call(self, tokens, caches=(None, None)):
        x, grown = self.embed(tokens), []
        for attention, cache in zip(self.attentions, caches, strict=True):
            y, cache = attention(x, cache=cache)
            x = x + y
            grown.append(cache)
        return x, grown


@case(needs_none_in_tuples, prefix=[0, 5, 5], length=[5, 3, 1])
def llama_behind_so_many_tokens_reads(prefix, length):
    tokens = ids(2, prefix + length)
    model = trained(Llama(), tokens)
    _, caches = model(tokens[:, :prefix]) if prefix else (0, (None, None))
    inputs = (tokens[:, prefix:],)
    return Case(model, inputs, ["attn0", "attn1"], {}, {"caches": caches})


@case(start=[0, 5], length=[5, 1])
def llama_with_a_reserved_cache_reads(start, length):
    x, layer = draw(2, start + length, 16), LlamaAttention(name="attn")
    cache = (np.zeros((2, 9, 2, 4), "float32"),) * 2
    trained(layer, x, cache, start=0)
    if start:
        _, cache = layer(x[:, :start], cache, start=0)
    return Case(layer, (x[:, start:], cache), ["attn"], {}, {"start": start})


@case()
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
    return Case(trained(model, words), (words,), ["gqa0", "gqa1"])


class MultiheadAttention(layers.Layer):
    """Kyubyong's Transformer: heads are stacked on the batch."""

    def __init__(self, num_units=8, num_heads=4, causality=False, **options):
        super().__init__(**options)
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
        heads = ops.reshape(outputs, (self.num_heads, -1, *outputs.shape[1:]))
        tell(ops.swapaxes(heads, 0, 1))
        outputs = ops.matmul(outputs, V_)
        outputs = ops.concatenate(
            ops.split(outputs, self.num_heads, axis=0), axis=2
        )
        return self.normalize(outputs + queries)


class Kyubyong(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = MultiheadAttention(causality=True, name="first")
        self.cross = MultiheadAttention(name="cross")

    def call(self, inputs):
        memory, x = inputs
        return self.cross(self.first(x, x), memory)


@case(everywhere=True, padded=["memory", "queries"])
def heads_stacked_on_the_batch_with_padding_of(padded):
    """Rows of queries that are padding are set to 0 after the softmax."""
    memory, x = draw(3, 7, 8), draw(3, 5, 8)
    if padded == "memory":
        memory[1, 4:] = 0
        model = trained(Kyubyong(), (memory, x))
        return Case(model, ((memory, x),), ["first", "cross"])
    x[2, 3:] = 0
    layer = trained(MultiheadAttention(causality=True, name="first"), x, x)
    return Case(layer, (x, x), ["first"])


class Router(layers.Layer):
    """Of "Text classification with Switch Transformer"."""

    def __init__(self, num_experts, **options):
        super().__init__(**options)
        self.route = layers.Dense(num_experts)

    def call(self, inputs):
        probability = ops.softmax(self.route(inputs), axis=-1)
        gate, index = ops.top_k(probability, k=1)
        chosen = ops.one_hot(index[..., 0], probability.shape[-1])
        return gate * chosen


class Telling(layers.Layer):
    """Tells the weights that pass through it, `(B, T, S)`, or of one query."""

    def __init__(self, flat=True):
        super().__init__()
        self.flat = flat

    def call(self, weights):
        if _told is not None:
            told = to_numpy(weights)
            tell(told.reshape(len(told), 1, -1) if self.flat else told)
        return weights


class Switch(layers.Layer):
    def __init__(self, num_experts, embed_dim, **options):
        super().__init__(**options)
        self.router = Router(num_experts, name="router")
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

    def __init__(self, dim, num_experts, **options):
        super().__init__(**options)
        self.q, self.k, self.v = (layers.Dense(dim) for _ in range(3))
        self.gate = layers.Dense(num_experts)
        self.experts = [layers.Dense(dim) for _ in range(num_experts)]

    def call(self, x):
        scores = ops.einsum("btd,bsd->bts", self.q(x), self.k(x))
        weights = tell(ops.softmax(scores / np.sqrt(x.shape[-1])))
        x = x + ops.einsum("bts,bsd->btd", weights, self.v(x))
        gates = ops.softmax(self.gate(x))
        outputs = ops.stack([expert(x) for expert in self.experts], -2)
        return x + ops.einsum("bte,bted->btd", gates, outputs)


# Five experts are as many as there are words.
@case(num_experts=[4, 5])
def as_many_experts_as(num_experts):
    x = keras.Input((5, 8))
    switch = Switch(num_experts, 8, name="switch")
    y = switch(layers.LayerNormalization()(x + known("first")(x, x)))
    y = MixtralAttention(8, num_experts, name="second")(y)
    y = layers.GlobalAveragePooling1D()(y)
    model = keras.Model(x, layers.Dense(2, activation="softmax")(y))
    sentences = draw(3, 5, 8)
    model = trained(model, sentences)
    return Case(model, (sentences,), ["first", "second"])


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
        tell(ait[:, None])
        return ops.sum(x * ait[..., None], axis=1)


@case()
def hierarchical():
    words = keras.Input((7,), dtype="int32")
    x = layers.Embedding(11, 8)(words)
    x = layers.Bidirectional(layers.GRU(3, return_sequences=True))(x)
    encoder = keras.Model(words, AttentionWithContext(name="words")(x))
    document = keras.Input((4, 7), dtype="int32")
    x = layers.TimeDistributed(encoder, name="each")(document)
    x = layers.Bidirectional(layers.GRU(3, return_sequences=True))(x)
    y = AttentionWithContext(name="sentences")(x)
    model = keras.Model(document, layers.Dense(5, activation="softmax")(y))
    texts = ids(2, 4, 7)
    way = f"each/{encoder.name}/words"
    paths = [way, *(f"{way}#{i}" for i in (2, 3, 4)), "sentences"]
    return Case(trained(model, texts), (texts,), paths)


@case()
def pooling_by_layers():
    """Tutorials of LSTMs: Dense(1), Flatten, softmax, RepeatVector, …"""
    words = keras.Input((7,), dtype="int32")
    x = layers.LSTM(8, return_sequences=True)(layers.Embedding(11, 8)(words))
    scores = layers.Flatten()(layers.Dense(1, activation="tanh")(x))
    weights = layers.Activation("softmax", name="attention_vec")(scores)
    weights = layers.RepeatVector(8)(Telling()(weights))
    weights = layers.Permute([2, 1])(weights)
    x = layers.Multiply()([x, weights])
    y = layers.Lambda(lambda x: ops.sum(x, axis=1))(x)
    y = layers.Dense(3, activation="softmax")(y)
    model, texts = keras.Model(words, y, name="pools"), ids(2, 7)
    return Case(trained(model, texts), (texts,), ["attention_vec"])


@case(needs_padding_mask, kind=[layers.Attention, layers.AdditiveAttention])
def seq2seq_with(kind):
    source = keras.Input((None,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    x = layers.Embedding(11, 8, mask_zero=True)(source)
    encoded, *state = layers.LSTM(8, return_sequences=True, return_state=True)(
        x
    )
    y = layers.Embedding(13, 8)(target)
    decoded = layers.LSTM(8, return_sequences=True)(y, initial_state=state)
    context = kind(use_scale=True, name="attention")([decoded, encoded])
    y = layers.Concatenate()([decoded, context])
    model = keras.Model(
        [source, target], layers.Dense(13, activation="softmax")(y)
    )
    sentences = [ids(2, 7), ids(2, 5)]
    sentences[0][0, 5:] = 0
    return Case(trained(model, sentences), (sentences,), ["attention"])


class AttentionBlock(layers.Layer):
    """gpt-oss: a logit of each head that belongs to no key."""

    def __init__(self, dim=8, heads=4, kv_heads=2, window=3, **options):
        super().__init__(**options)
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
        tell(ops.reshape(W, (n_batch, self.heads, n_ctx, n_ctx)))
        attn = ops.einsum("bhmqk,bkhd->bqhmd", W, v)
        return x + self.out(ops.reshape(attn, (n_batch, n_ctx, -1)))


# With 7 positions and the sink there are as many columns as features.
@case(everywhere=True, length=[5, 7])
def gpt_oss_of_length(length):
    x = draw(2, length, 8)
    block = AttentionBlock(name="block")
    model = keras.Sequential([block, layers.Dense(11)])
    return Case(trained(model, x), (x,), ["block"])


class T5Attention(layers.Layer):
    """A bias of relative positions that the first layer makes for all."""

    def __init__(self, has_relative_attention_bias=False, **options):
        super().__init__(**options)
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
        attn_weights = tell(ops.softmax(scores + position_bias, axis=-1))
        attn_output = ops.transpose(attn_weights @ v, (0, 2, 1, 3))
        shape = (ops.shape(attn_output)[0], -1, 8)
        return self.o(ops.reshape(attn_output, shape)), position_bias


class T5Stack(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(11, 8)
        self.norms = [layers.LayerNormalization() for _ in range(2)]
        self.attentions = [T5Attention(True, name="a"), T5Attention(name="b")]

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


@case()
def t5():
    tokens, real = ids(3, 7), np.ones((3, 7), "int32")
    real[1, 5:] = 0
    model = trained(T5Stack(), tokens, real)
    return Case(model, (tokens, real), ["a", "b"])


class LatentAttention(layers.Layer):
    """Perceiver: latents ask a long input."""

    def __init__(self, dim=8, heads=2, **options):
        super().__init__(**options)
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
        out = ops.einsum("bhij,bjhd->bihd", tell(ops.softmax(sim)), v)
        return self.to_out(ops.reshape(out, latents.shape))


class PoolingByAttention(layers.Layer):
    """PMA of the Set Transformer: seeds ask the set."""

    def __init__(self, num_seeds=2, **options):
        super().__init__(**options)
        self.num_seeds = num_seeds
        self.mha = known("mha")

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
        self.cross_attention = LatentAttention(name="cross")
        self.latent_transformer = known("latent")
        self.pool = PoolingByAttention(name="pool")

    def call(self, x):
        latents = ops.tile(self.latents[None], (ops.shape(x)[0], 1, 1))
        latents = latents + self.cross_attention(latents, context=x)
        latents = latents + self.latent_transformer(latents, latents)
        return self.pool(latents)


@case()
def perceiver():
    x = draw(2, 11, 8)
    return Case(trained(Perceiver(), x), (x,), ["cross", "latent", "pool/mha"])


class LinearAttention(layers.Layer):
    """And other mechanisms that form no weights."""

    def __init__(self, dim=8, **options):
        super().__init__(**options)
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


@case()
def without_weights():
    """As many words as features, for which their softmax could be taken."""
    x = keras.Input((8, 8))
    y = known()(x, x)
    for part in (
        LinearAttention(name="linear"),
        FastAttention(name="fast"),
        EfficientAttention(name="efficient"),
        MultiScaleRetention(name="retention"),
    ):
        y = layers.LayerNormalization()(y + part(y))
    model, inputs = keras.Model(x, y), draw(3, 8, 8)
    named = {
        "linear": "no softmax of its inputs over keys was seen",
        "fast": "no softmax of its inputs over keys was seen",
        "efficient": "each feature of its values has weights of its own",
    }
    return Case(trained(model, inputs), (inputs,), ["known"], named)


class RelativeMultiHeadAttention(layers.Layer):
    """Transformer-XL: keys of a memory before those of the words."""

    def __init__(self, units=8, num_heads=2, **options):
        super().__init__(**options)
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
        weights = self.told(ops.softmax(scores - 1e9 * ahead))
        out = ops.einsum("bhts,bshd->bthd", weights, v)
        return self.o(ops.reshape(out, (batch, length, -1)))

    told = staticmethod(tell)


class TransformerXL(keras.Model):
    def __init__(self, gives_relatives):
        super().__init__()
        self.gives_relatives = gives_relatives
        self.embed = layers.Embedding(11, 8)
        self.attentions = [
            RelativeMultiHeadAttention(name=f"attn{i}") for i in range(2)
        ]
        self.norm = layers.LayerNormalization()

    def call(self, tokens, memories):
        x, new, relatives = self.embed(tokens), [], None
        if self.gives_relatives:
            total = tokens.shape[1] + memories[0].shape[1]
            relatives = RelativeMultiHeadAttention.relatives(total)
        for attention, memory in zip(self.attentions, memories, strict=True):
            new.append(x)
            x = x + attention(x, memory, relatives)
        return self.norm(x), new


# One token sees as many keys as there are features; of one sentence the
# relative embeddings may be another sequence.
@case(
    everywhere=True, batch=[2, 2, 2, 1], length=[5, 1, 5, 5], gives=[0, 0, 1, 1]
)
def transformer_xl_of(batch, length, gives):
    tokens = ids(batch, length)
    memories = [draw(batch, 7, 8) for _ in range(2)]
    model = trained(TransformerXL(gives), tokens, memories)
    return Case(model, (tokens, memories), ["attn0", "attn1"])


class RelMultiHeadAttn(RelativeMultiHeadAttention):
    """As its authors call it; "attention" is not in its name."""


class AttnXL(keras.Model):
    def __init__(self):
        super().__init__()
        self.known, self.relative = known(), RelMultiHeadAttn(name="relative")

    def call(self, x, memory):
        return self.relative(self.known(x, x), memory)


@case()
def transformer_xl_of_another_name():
    x, memory = draw(2, 5, 8), draw(2, 7, 8)
    model = trained(AttnXL(), x, memory)
    return Case(model, (x, memory), ["known", "relative"])


class ScaledDotAttention(layers.Layer):
    """With a softmax of TensorFlow's."""

    def __init__(self, dim=8, **options):
        super().__init__(**options)
        self.wq, self.wk, self.wv = (layers.Dense(dim) for _ in range(3))

    def call(self, x):
        import tensorflow as tf

        scores = tf.matmul(self.wq(x), self.wk(x), transpose_b=True)
        return tf.matmul(tell(tf.nn.softmax(scores / 8**0.5)), self.wv(x))


class OfTensorFlow(keras.Model):
    def __init__(self):
        super().__init__()
        self.known, self.second = known(), ScaledDotAttention(name="second")

    def call(self, x):
        return self.second(self.known(x, x))


@case(
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="TensorFlow's"
    ),
)
def softmax_of_tensorflow():
    x = draw(2, 5, 8)
    return Case(trained(OfTensorFlow(), x), (x,), ["known", "second"])


class ChannelAttention(layers.Layer):
    """Squeeze-and-excitation."""

    def __init__(self, channels=8, ratio=2, **options):
        super().__init__(**options)
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
    """CBAM."""

    def __init__(self, **options):
        super().__init__(**options)
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


# Eight steps are as many as there are channels.
@case(length=[5, 8])
def conformer_of_length(length):
    x = keras.Input((length, 8))
    y = x + 0.5 * layers.Dense(8)(layers.Dense(16, activation="silu")(x))
    normed = layers.LayerNormalization()(y)
    y = y + known()(normed, normed)
    z = layers.DepthwiseConv1D(3, padding="same")(layers.Dense(8)(y))
    for part in (
        ChannelAttention(name="excitation"),
        SpatialAttention(name="spatial"),
        SoftmaxChannelAttention(name="softmax"),
        DANetChannelAttention(name="danet"),
    ):
        z = part(layers.LayerNormalization()(z))
    model = keras.Model(x, layers.LayerNormalization()(y + z))
    features = "does not run over positions of its inputs"
    named = dict.fromkeys(["softmax", "danet"], features)
    none = "no softmax of its inputs over keys was seen"
    named |= dict.fromkeys(["excitation", "spatial"], none)
    sounds = draw(3, length, 8)
    return Case(trained(model, sounds), (sounds,), ["known"], named)


# Small layers: where the axes lie


def folded(x, num_heads, heads_first):
    """`(B, T, D)` as `(B H, T, K)`, or with the heads before the batch."""
    heads = ops.reshape(x, (*x.shape[:2], num_heads, -1))
    heads = ops.transpose(heads, (2, 0, 1, 3) if heads_first else (0, 2, 1, 3))
    return ops.reshape(heads, (-1, x.shape[1], heads.shape[-1]))


def told_folded(weights, num_heads, heads_first):
    first = (num_heads, -1) if heads_first else (-1, num_heads)
    apart = ops.reshape(weights, (*first, *weights.shape[1:]))
    tell(apart, (1, 0, 2, 3) if heads_first else None)
    return weights


# Equal sentences, too, are told from their heads.
@case(heads_first=[True, True, False], equal=[True, False, False])
def heads_in_the_batch(heads_first, equal):
    def call(x):
        heads = folded(x, 4, heads_first)
        weights = ops.softmax(scores(heads))
        return ops.matmul(told_folded(weights, 4, heads_first), heads)

    x = np.repeat(draw(1, T, D), B, axis=0) if equal else draw(B, T, D)
    return of_function(call, x, num_heads=4)


@case()
def heads_in_the_batch_of_a_bias():
    def call(x, bias):
        heads = folded(x, 2, False)
        weights = ops.softmax(scores(heads) + bias)
        return ops.matmul(told_folded(weights, 2, False), heads)

    return of_function(call, draw(B, T, D), draw(2 * B, 1, T))


@case()
def one_layer_reads_a_batch_and_then_its_first_sentence():
    def call(x):
        heads = folded(x, 4, True)
        weights = ops.softmax(scores(heads))
        mixed = ops.matmul(told_folded(weights, 4, True), heads)
        return ops.concatenate(ops.split(mixed, 4, axis=0), axis=2)

    inner = of_function(call).model
    model = Holder([inner], lambda x, inner: inner(x) + inner(x[:1]))
    return Case(model, (draw(B, T, D),), ["some", "some#2"])


class Holder(keras.Model):
    """A model of parts, and of a function of its inputs and the parts."""

    def __init__(self, parts, run):
        super().__init__()
        self.parts, self.run = list(parts), run

    def call(self, x, y=None):
        inputs = (x,) if y is None else (x, y)
        return self.run(*inputs, *self.parts)


# As many heads as sentences, and more.
@case(num_heads=[2, 4])
def an_axis_of_heads_before_the_batch(num_heads):
    def call(x):
        heads = ops.stack(ops.split(x, num_heads, axis=2))
        weights = ops.softmax(ops.einsum("hbtk,hbsk->hbts", heads, heads))
        tell(weights, (1, 0, 2, 3))
        return ops.einsum("hbts,hbsk->bthk", weights, heads)

    return of_function(call, draw(2, T, D))


@case(everywhere=True)
def heads_that_share_keys():
    """With a softmax in a Lambda."""
    activation = layers.Lambda(lambda x: ops.softmax(x, axis=-1))

    def call(x):
        heads = ops.reshape(x, (2, 5, 2, 2, 2))
        weights = activation(ops.einsum("btghk,bsghk->bghts", heads, heads))
        tell(ops.reshape(weights, (2, 4, 5, 5)))
        return ops.einsum("bghts,bsghk->btghk", weights, heads)

    return of_function(call, draw(2, 5, 8))


@case()
def heads_behind_the_queries():
    def call(query, values):
        q, v = (ops.reshape(x, (B, -1, 2, D // 2)) for x in (query, values))
        weights = ops.softmax(ops.einsum("bqhd,bkhd->bqhk", q, v))
        tell(weights, (0, 2, 1, 3))
        return ops.einsum("bqhk,bkhd->bqhd", weights, v)

    return of_function(call, draw(B, T, D), draw(B, 7, D))


@case()
def additive_attention_of_all_steps_at_once():
    def call(query, values):
        pairs = ops.tanh(query[:, :, None] + values[:, None])
        weights = ops.softmax(ops.sum(pairs, -1, True), axis=2)
        tell(weights[..., 0])
        return ops.sum(weights * values[:, None], axis=2)

    return of_function(call, draw(B, T, D), draw(B, 7, D))


@case(flat=[True, False])
def a_softmax_over_the_second_axis(flat):
    def call(query, values):
        pairs = ops.sum(ops.tanh(query[:, None] + values), -1, True)
        if flat:
            weights = ops.softmax(pairs[..., 0])[..., None]
        else:
            weights = ops.softmax(pairs, axis=1)  # (B, S, 1)
        tell(ops.swapaxes(weights, 1, 2))
        return ops.sum(weights * values, axis=1)

    return of_function(call, draw(B, D), draw(B, T, D))


@case()
def the_positions_of_a_picture_on_two_axes():
    """As many of them as features."""
    return of_function(
        lambda x: attend(ops.reshape(x, (2, 12, 12))), draw(2, 3, 4, 12)
    )


@case()
def an_output_without_rows():
    return of_function(lambda x: ops.mean(attend(x), axis=1), draw(B, T, D))


@case(kind=["int32", "bool", "float32"])
def a_mask_is_no_sequence_of_ids(kind):
    def call(x, tokens):
        low = -1e9 * (1.0 - ops.cast(tokens, "float32"))[:, None]
        return ops.matmul(tell(ops.softmax(scores(x) + low)), x)

    tokens = np.array([[1, 1, 1, 1, 0]] * B, kind)
    return of_function(call, draw(B, T, D), tokens)


@case()
def masked_attention_is_attention():
    """And makes no mask."""

    class MaskedSelfAttention(layers.Layer):
        def call(self, x):
            return attend(x)

    model = MaskedSelfAttention(name="masked")
    return Case(model, (draw(B, T, D),), ["masked"])


@case()
def a_softmax_layer_that_takes_a_mask():
    """A row without keys is what it makes of one."""
    activation = layers.Softmax()

    def call(x, allowed):
        return ops.matmul(tell(activation(scores(x), mask=allowed)), x)

    allowed = np.tril(np.ones((2, 5, 5), bool))
    allowed[0, 2] = False
    return of_function(call, draw(2, 5, 8), allowed)


@case()
def features_attend_first_and_positions_then():
    def call(x):
        heads = ops.reshape(x, (B, T, 2, D // 2))
        mixed = ops.softmax(ops.einsum("bthk,bthl->bhkl", heads, heads))
        return attend(x + 0.0 * ops.sum(mixed))

    return of_function(call, draw(B, T, D))


@case()
def a_tagger_of_as_many_classes_as_words():
    classes = layers.Dense(T)
    classes.build((None, None, D))
    return of_function(lambda x: ops.softmax(classes(attend(x))), draw(B, T, D))


MASK = np.random.default_rng(1).random((2, 1, 5, 5)) < 0.6
MASK[0, 0, 3] = False


class FusedAttention(layers.Layer):
    """Keys of fewer heads than the queries, in Keras's fused operation."""

    def call(self, x, allowed=None, bias=None, is_causal=False, scale=None):
        query = ops.reshape(x, (2, 5, 4, 2))
        key, value = query[:, :, :2], query[:, :, 2:]
        if _told is not None:
            q, k = to_numpy(query), np.repeat(to_numpy(key), 2, axis=2)
            z = np.einsum("bthk,bshk->bhts", q, k) * (scale or 2**-0.5)
            z = z if bias is None else z + to_numpy(bias)
            seen = np.ones((5, 5), bool) if allowed is None else allowed
            seen = seen & np.tri(5, dtype=bool) if is_causal else seen
            tell(softmax(np.where(seen, z, -1e9)))
        return ops.dot_product_attention(
            query,
            key,
            value,
            mask=allowed,
            bias=bias,
            is_causal=is_causal,
            scale=scale,
        )


FUSED = {
    "nothing": {},
    "the past": {"is_causal": True},
    "a mask and the past": {"allowed": MASK, "is_causal": True},
    "a mask": {"allowed": MASK, "scale": 0.3},
    "a bias": {"scale": 1.7, "bias": draw(2, 4, 5, 5, seed=0)},
}


@case(needs_fewer_key_heads, everywhere=True, given=FUSED)
def the_fused_operation_given(given):
    layer = FusedAttention(name="fused")
    return Case(layer, (draw(2, 5, 8),), ["fused"], {}, FUSED[given])


# Masks, sinks, padding: what happens to weights before and after


@case(first=[True, False])
def a_sink_in_a_column_that_is_first(first):
    def call(x):
        z = scores(x)
        sink = ops.ones_like(z[..., :1])
        both = [sink, z] if first else [z, sink]
        weights = ops.softmax(ops.concatenate(both, axis=-1))
        kept = weights[..., 1:] if first else weights[..., :-1]
        return ops.matmul(tell(kept), x)

    return of_function(call, draw(B, T, D))


@case()
def a_key_that_the_layer_adds_is_no_sink():
    def call(x):
        x = ops.concatenate([ops.ones_like(x[:, :1]), x], axis=1)
        return attend(x)

    return of_function(call, draw(B, T, D))


@case(renormalise=[True, False])
def the_two_largest_weights_after_the_softmax(renormalise):
    def call(x):
        weights = ops.softmax(scores(x))
        least = ops.top_k(weights, 2)[0][..., -1:]
        kept = ops.where(weights >= least, weights, 0.0)
        if renormalise:
            kept = kept / ops.sum(kept, -1, keepdims=True)
        return ops.matmul(tell(kept), x)

    return of_function(call, draw(B, T, D))


def times(x, mask):
    return ops.multiply(ops.softmax(scores(x)), mask)


CAUSAL = np.tri(T, dtype="float32")
PADDED = np.array([[1, 1, 1, 1, 0]] * B, "float32")


@case()
def the_future_is_cut_after_the_softmax():
    return of_function(
        lambda x: ops.matmul(tell(times(x, CAUSAL)), x),
        draw(B, T, D),
    )


@case()
def padding_is_cut_after_the_softmax():
    return of_function(
        lambda x: ops.matmul(tell(times(x, PADDED[:, None])), x),
        draw(B, T, D),
    )


@case()
def a_softmax_over_queries():
    return of_function(
        lambda x: ops.matmul(ops.softmax(scores(x), axis=1), x),
        draw(B, T, D),
        named="",
    )


@case()
def classes_of_as_many_tokens():
    return of_function(
        lambda x: ops.softmax(scores(x)[..., :2]), draw(B, T, D), named=""
    )


def real(*sentences, batch=B):
    """A mask in which some sentences end with padding."""
    mask = np.ones((batch, T), "float32")
    mask[list(sentences), 3:] = 0
    return mask


def is_some(x):
    """A mask of the positions that are not 0."""
    return ops.cast(ops.any(x != 0, -1), "float32")


def cut_keys(x, mask, shift=0):
    mask = ops.reshape(ops.cast(mask, "float32"), (len(x), -1, T))
    return ops.matmul(tell(ops.softmax(scores(x)) * mask), x + shift)


CUTS = {
    "numbers": cut_keys,
    "bools": cut_keys,
    "four axes": lambda x, mask: cut_keys(x, mask[:, None, None]),
    "pooled": lambda x, mask: ops.sum(cut_keys(x, mask), 1),
}


@case(way=CUTS, sentence=[0, 6, 6, 0])
def padding_of_one_sentence_is_cut_by(way, sentence):
    mask = real(sentence, batch=7).astype("bool" if way == "bools" else "f")
    return of_function(CUTS[way], draw(7, T, D), mask)


@case(sentences=[(0,), (B - 1,), tuple(range(B))])
def padding_of_zeros_is_cut(sentences):
    x = draw(B, T, D) * real(*sentences)[..., None]
    return of_function(lambda x: cut_keys(x, is_some(x), 1), x)


@case()
def a_value_of_zero_whose_key_takes_weight():
    return of_function(attend, draw(B, T, D) * real(0, 2)[..., None])


@case()
def two_calls_of_which_one_has_padding():
    inner = of_function(cut_keys).model
    ones = np.ones((B, T), "float32")
    model = Holder([inner], lambda x, mask, f: f(x, ones) + f(x, mask))
    inputs = draw(B, T, D), ops.convert_to_tensor(real(1))
    return Case(model, inputs, ["some", "some#2"])


def cut_queries(x, mask, value):
    weights = tell(ops.softmax(scores(x)) * mask[..., None])
    return ops.matmul(weights, value)


def cut_sums(x, mask, value):
    weights = ops.softmax(scores(x))
    return ops.matmul(tell(weights), value) * mask[..., None]


ROWS = {
    "weights": cut_queries,
    "beside a residual": lambda *inputs: inputs[0] + cut_queries(*inputs),
    "zeros": lambda x, mask, value: cut_queries(x, is_some(x), value),
    "sums": cut_sums,
}


@case(way=ROWS, sentences=[(0,), (B - 1,), (1,), tuple(range(B))])
def a_row_that_counts_for_nothing_is_empty_by(way, sentences):
    mask = real(*sentences)
    x = draw(B, T, D) * mask[..., None]
    return of_function(ROWS[way], x, mask, draw(B, T, D))


@case()
def a_row_that_the_layer_gives_is_shown():
    def call(x, mask):
        weights = tell(ops.softmax(scores(x)))
        return ops.matmul(weights, x) * mask[..., None], weights

    return of_function(call, draw(B, T, D), real(1))


# What is no attention, and what is none of a known kind


@case()
def a_router_of_as_many_experts_as_words():
    router = layers.Dense(T)
    router.build((None, None, D))
    return of_function(
        lambda x: ops.einsum("bte,btd->btd", ops.softmax(router(x)), x),
        draw(B, T, D),
        named="",
    )


@case()
def pooling_of_each_feature_has_no_queries():
    return of_function(
        lambda x: ops.sum(ops.softmax(2 * ops.tanh(x), axis=1) * x, axis=1),
        draw(B, D, D),
        named="",
    )


@case()
def features_that_attend_to_features():
    def call(x):
        heads = ops.reshape(x, (2, 5, 2, 4))
        z = ops.einsum("bthk,bthl->bhkl", heads, heads)
        mixed = ops.einsum("bhkl,bthl->bthk", ops.softmax(z), heads)
        return ops.reshape(mixed, (2, 5, 8))

    features = "does not run over positions"
    return of_function(call, draw(2, 5, 8), named=features)


def beside(part, name, shape=(B, T, D)):
    """A known layer behind a part of a functional model."""
    x = keras.Input(shape[1:], batch_size=shape[0])
    model = keras.Model(x, known()(part(x), x), name="beside")
    return Case(model, (draw(*shape),), [name, "known"])


class ByHand(layers.Layer):
    def call(self, x):
        return attend(x)


def dots_and_a_softmax(x):
    weights = layers.Softmax(name="alike")(layers.Dot((2, 2))([x, x]))
    return layers.Dot((2, 1))([Telling(flat=False)(weights), x])


def operations(x):
    weights = Telling(flat=False)(ops.softmax(scores(x)))
    return ops.matmul(weights, x)


@case()
def a_lambda_beside_a_known_layer():
    return beside(layers.Lambda(attend, name="lambda"), "lambda")


@case()
def a_layer_of_another_name_beside_a_known_one():
    return beside(ByHand(name="by_hand"), "by_hand")


@case()
def operations_of_a_model_beside_a_known_layer():
    return beside(operations, "beside")


@case()
def products_and_a_softmax_of_layers_beside_a_known_one():
    return beside(dots_and_a_softmax, "alike")


class BackendSoftmaxAttention(layers.Layer):
    def call(self, x):
        exp = ops.exp(scores(x))
        return ops.matmul(tell(exp / ops.sum(exp, -1, keepdims=True)), x)


@case()
def attention_without_a_softmax_of_keras():
    return beside(BackendSoftmaxAttention(name="own"), "own")


class LearnedQueries(layers.Layer):
    """Queries that are weights of the layer: as many as it likes."""

    def build(self, shape):
        self.latents = self.add_weight(shape=(3, 8), initializer="normal")

    def call(self, x):
        z = ops.einsum("td,bsd->bts", self.latents, x)
        return ops.matmul(tell(ops.softmax(10 * z)), x)


@case()
def queries_that_are_no_inputs():
    return beside(LearnedQueries(name="latent"), "latent")


class GatedAttention(layers.Layer):
    """A known attention and one of its own."""

    def __init__(self, **options):
        super().__init__(**options)
        self.attention, self.perceiver = known("inside"), layers.Dense(3)

    def build(self, shape):
        self.attention.build(shape, shape)
        self.perceiver.build(shape)

    def call(self, x):
        z = ops.transpose(self.perceiver(x), (0, 2, 1))  # (B, 3, S)
        mixed = self.attention(x, x)
        pooled = ops.matmul(tell(ops.softmax(z)), x)
        return ops.concatenate([mixed, pooled], axis=1)


@case()
def a_known_layer_within_one_of_its_own_kind():
    part = GatedAttention(name="latent")
    case = beside(part, "latent")
    return case._replace(paths=["latent/inside", *case.paths])


def in_windows(x):
    """Two windows of two tokens; the fifth token stays as it is."""
    windows = ops.reshape(x[:, :4], (2, 2, 2, 8))
    z = ops.einsum("bwtd,bwsd->bwts", windows, windows)
    weights = ops.softmax(z)
    tell(ops.reshape(weights, (4, 2, 2)))  # windows are rows of the batch
    mixed = ops.einsum("bwts,bwsd->bwtd", weights, windows)
    mixed = ops.reshape(mixed, (2, 4, 8))
    return ops.concatenate([mixed, x[:, 4:]], axis=1)


class WindowMixer(layers.Layer):
    def call(self, x):
        return in_windows(x)


class WindowMixerAttention(WindowMixer):
    pass


@case(kind=[WindowMixer, WindowMixerAttention])
def windows_that_a_layer_cuts_are_no_heads(kind):
    return beside(kind(name="windows"), "windows", (2, 5, 8))


def over_both(heads, sink):
    def call(inputs):
        x, y = inputs
        keys = ops.concatenate([y, x], axis=1)
        some = ops.einsum("btd,bsd->bts", x, x if sink else keys)
        if sink:
            some = ops.pad(some, [[0, 0], [0, 0], [0, 1]])
        some = ops.softmax(ops.stack([some] * heads, 1) if heads else some)
        some = some[..., :-1] if sink else some
        tell(some)
        return ops.matmul(some, (x if sink else keys)[:, None][:, : heads or 1])

    return call


@case(heads=[0, 2, 2], sink=[False, False, True])
def a_memory_and_a_sink_of_an_unknown_layer(heads, sink):
    other = layers.Lambda(over_both(heads, sink), name="other")
    model = Holder([known(), other], lambda x, y, f, g: g([f(x, x), y]))
    inputs = draw(B, T, D), draw(B, 7, D)
    return Case(model, inputs, ["known", "other"])


def pooled_model(size, before, scores_of, softmax, after):
    """Attention of blocks, as Keras once had it: scores, softmax, product."""
    x = keras.Input((size, D))
    y = before(x)
    y = known()(y, y)
    weights = Telling()(softmax(scores_of(y)))
    y = after(layers.Dot(axes=1)([weights, y]))
    y = layers.Dense(T, activation="softmax")(y)
    model = keras.Model(x, y, name="pools")
    x = draw(B, size, D)
    return Case(trained(model, x), (x,), ["known", "pool"])


def flat_scores(x):
    return layers.Flatten()(layers.Dense(1)(x))


def convolutions(x):
    return layers.MaxPooling1D(2)(layers.Conv1D(D, 3, strides=2)(x))


POOLS = {
    "an activation": (
        *(T, lambda x: x, flat_scores),
        *(layers.Activation("softmax", name="pool"), lambda x: x),
    ),
    "a softmax layer": (
        *(T, lambda x: x, flat_scores),
        *(layers.Softmax(name="pool"), lambda x: x),
    ),
    "convolutions before it": (
        *(20, convolutions, flat_scores, layers.Softmax(axis=1, name="pool")),
        layers.Flatten(),
    ),
    "convolutions and an axis of one": (
        *(
            20,
            convolutions,
            layers.Dense(1),
            layers.Softmax(axis=1, name="pool"),
        ),
        layers.Flatten(),
    ),
}


@case(way=POOLS)
def pooling_of_a_functional_model_by(way):
    return pooled_model(*POOLS[way])


@case()
def a_classifier_of_as_many_classes_as_words():
    x = keras.Input((T, D))
    y = layers.GlobalAveragePooling1D()(known()(x, x))
    model = keras.Model(x, layers.Dense(T, activation="softmax")(y))
    return Case(model, (draw(B, T, D),), ["known"])


@case()
def classifiers_of_each_word():
    x = keras.Input((5, 8))
    y = layers.Dense(5, activation="softmax")(known()(x, x))
    y = layers.Activation("softmax")(layers.Dense(7)(y))
    return Case(keras.Model(x, y), (draw(2, 5, 8),), ["known"])


@case()
def experts_and_classes_within_a_model():
    """Three experts or classes, none of which is a length."""
    x = keras.Input((T, D))
    y = layers.GlobalAveragePooling1D()(known()(x, x))
    gates = layers.Softmax()(layers.Dense(3)(y))
    experts = [layers.Reshape((1, D))(layers.Dense(D)(y)) for _ in range(3)]
    mixed = layers.Dot(axes=1)([gates, layers.Concatenate(axis=1)(experts)])
    tags = layers.Softmax()(layers.Dense(3)(x))
    y = layers.Concatenate()([mixed, layers.Flatten()(tags)])
    model = keras.Model(x, layers.Dense(2)(y))
    return Case(model, (draw(B, T, D),), ["known"])


class SelfAttentionClassifier(keras.Model):
    def __init__(self, name):
        super().__init__(name=name)
        self.attention, self.dense = known("attention"), layers.Dense(11)

    def call(self, x):
        return ops.softmax(self.dense(self.attention(x, x)))


# A part may have the name of its model.
@case(name=["classifier", "attention"])
def a_classifier_with_attention_in_its_name(name):
    model = SelfAttentionClassifier(name)
    return Case(model, (draw(2, 5, 8),), ["attention"])


class AttentionMaskMaker(layers.Layer):
    def call(self, x):
        return x


@case()
def what_makes_masks_is_no_attention():
    return beside(AttentionMaskMaker(), "")._replace(paths=["known"])


@case()
def a_recurrent_layer_without_attention():
    x = keras.Input((5, 8))
    y = layers.LSTM(8, return_sequences=True)(sequences=x)
    model, inputs = keras.Model(x, known()(y, y)), draw(2, 5, 8)
    return Case(trained(model, inputs), (inputs,), ["known"])


# Keras's own layers in models and subclasses


class Block(keras.Model):
    def __init__(self, name="block"):
        super().__init__(name=name)
        self.attention = known("att")

    def call(self, x):
        return x + self.attention(x, x)


@case()
def layers_of_one_name_are_told_apart_by_the_way_to_them():
    parts = [Block("left"), Block("right"), Block(), Block(), Block()]

    def run(x, *parts):
        for part in parts:
            x = part(x)
        return x

    paths = ["left/att", "right/att"]
    paths += ["block/att", "block:2/att", "block:3/att"]
    return Case(Holder(parts, run), (draw(2, 5, 8),), paths)


class OtherArguments(layers.MultiHeadAttention):
    def call(self, query, value, key=None, **kwargs):
        return super().call(query, value, key=key, **kwargs)


class OwnSoftmax(layers.MultiHeadAttention):
    def call(self, query, value, key=None):
        return ops.matmul(tell(ops.softmax(scores(query, value))), value)


@case(everywhere=True, kind=[OtherArguments, OwnSoftmax])
def a_subclass_whose_call_looks_otherwise(kind):
    x = draw(2, 5, 8)
    return Case(kind(2, 4, name="p"), (x, x), ["p"])


class Additive(layers.AdditiveAttention):
    def call(self, inputs, **kwargs):
        return super().call(inputs, **kwargs)


@case(everywhere=True)
def a_subclass_that_takes_a_list():
    x = draw(2, 5, 8)
    return Case(Additive(name="p"), ([x, x],), ["p"])


class Selves(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.attention = known("attention")

    def build(self, shape):
        self.attention.build(shape, shape)

    def call(self, x):
        return self.attention(x, x)


@case()
def each_step_of_time_distributed_has_its_map():
    model = layers.TimeDistributed(Selves(name="self"))
    paths = [f"self/attention{end}" for end in ("", "#2", "#3")]
    return Case(model, (draw(2, 3, 5, 8),), paths)


# Layers of no known kind, as users write them


def experts_beside(mix):
    """Three experts of the mean of a sentence, and a known attention."""
    x = keras.Input((T, D))
    y = layers.GlobalAveragePooling1D()(known()(x, x))
    gate = layers.Dense(3, activation="softmax")(y)
    y = mix(gate, [layers.Dense(D)(y) for _ in range(3)], y)
    model = keras.Model(x, y)
    return Case(model, (draw(B, T, D),), ["known"])


def in_a_lambda(gate, experts, y):
    stacked = layers.Lambda(lambda x: ops.stack(x, 1))(experts)
    mixed = layers.Lambda(lambda x: ops.sum(x[0][..., None] * x[1], 1))
    return mixed([gate, stacked])


def by_rows(gate, experts, y):
    rows = [layers.Reshape((1, D))(expert) for expert in experts]
    mixed = layers.Lambda(lambda x: ops.sum(x[0][..., None] * x[1], 1))
    return mixed([gate, layers.Concatenate(axis=1)(rows)])


def of_one_dense_layer(gate, experts, y):
    means = layers.Reshape((3, D))(layers.Dense(3 * D)(y))
    mixed = layers.Lambda(lambda x: ops.einsum("be,bed->bd", *x))
    return mixed([gate, means])


@case(mix=[in_a_lambda, by_rows, of_one_dense_layer])
def experts_of_a_sentence_mixed(mix):
    return experts_beside(mix)


def of_layer(call, *inputs, **named):
    methods = {"call": lambda self, *inputs: call(*inputs)}
    layer = type("Own", (layers.Layer,), methods)(name="own")
    return Case(layer, inputs, [] if named else ["own"], named)


@case()
def rows_of_a_picture_in_the_batch():
    def call(x):
        rows = ops.reshape(x, (B * 4, T, D))
        return ops.reshape(attend(rows), x.shape)

    return of_layer(call, draw(B, 4, T, D))


@case()
def a_gate_of_positions_before_a_curve():
    def call(x):
        gated = ops.relu(x * ops.softmax(x[..., :1], axis=1))
        return ops.sum(gated, axis=1)

    return of_layer(call, draw(B, T, D), own="is no sum")


@case()
def a_gate_beside_what_it_gates():
    def call(x):
        gated = x * ops.softmax(x[..., :1], axis=1) + x
        return ops.sum(gated, axis=1)

    return of_layer(call, draw(B, T, D), own="is no sum")


@case()
def the_mean_of_what_was_weighed():
    x = keras.Input((T, D))
    weights = layers.Softmax(axis=1, name="own")(layers.Dense(1)(x))
    weights = Telling()(weights)
    y = layers.GlobalAveragePooling1D()(layers.Multiply()([x, weights]))
    model, x = keras.Model(x, known()(y[:, None], x)), draw(B, T, D)
    return Case(trained(model, x), (x,), ["own", "known"])


@case()
def what_was_weighed_is_turned_and_summed():
    def call(x):
        weights = ops.softmax(x[..., :1], axis=1)
        tell(ops.transpose(weights, (0, 2, 1)))
        return ops.sum(ops.transpose(x * weights, (0, 2, 1)), -1)

    return of_layer(call, draw(B, T, D))


@case()
def tokens_of_one_hot_ids():
    return of_layer(lambda x: attend(ops.one_hot(x, 11)), ids(B, T))


@case()
def queries_that_are_learned_attend_to_each_other_first():
    queries = draw(1, 3, D)

    def call(x):
        q = ops.matmul(ops.softmax(scores(queries)), queries)
        q = ops.repeat(q, x.shape[0], axis=0)
        return ops.matmul(tell(ops.softmax(scores(q, x))), x)

    return of_layer(call, draw(B, T, D))


@case()
def latents_that_attend_to_themselves_afterwards():
    queries = draw(3, D)

    def call(x):
        z = ops.einsum("td,bsd->bts", queries, x)
        latents = ops.matmul(tell(ops.softmax(z)), x)
        return ops.matmul(ops.softmax(scores(latents)), latents)

    case = of_layer(call, draw(B, T, D))
    why = {"own, softmax 2": "does not run over positions"}
    return case._replace(named=why)


@case()
def features_that_are_tokens():
    def call(x):
        features = ops.linspace(1.0, 2.0, D)
        tokens = x[..., None] * features
        return ops.matmul(ops.softmax(scores(tokens)), tokens)

    x = ops.convert_to_tensor(draw(B, T))
    return of_layer(call, x, own="does not run over positions")


@case()
def an_exponential_that_is_computed_twice():
    def call(x):
        z = scores(x)
        weights = ops.exp(z) / ops.sum(ops.exp(z), axis=-1, keepdims=True)
        return ops.matmul(tell(weights), x)

    return of_layer(call, draw(B, T, D))


@case(
    pytest.mark.skipif(
        keras.backend.backend() == "tensorflow", reason="it makes a graph"
    )
)
def one_sentence_after_another_by_vectorized_map():
    def call(x):
        z = ops.einsum("btd,bsd->bts", x, x) / 4
        tell(ops.softmax(z)) if _told is not None else None
        return ops.vectorized_map(
            lambda x: ops.matmul(
                ops.softmax(ops.matmul(x, ops.transpose(x)) / 4), x
            ),
            x,
        )

    return of_layer(call, draw(B, T, D))


class LearnedFirst(keras.Model):
    """Learned queries attend to each other, by a layer of Keras's."""

    def __init__(self):
        super().__init__()
        self.own, self.cross = known("own"), known("cross")
        self.queries = self.add_weight(shape=(1, 3, D), initializer="normal")

    def call(self, x):
        queries = ops.repeat(self.queries, x.shape[0], axis=0)
        return self.cross(self.own(queries, queries), x)


class WithSoftmaxLayer(layers.Layer):
    """The same, by a `Softmax` layer of Keras's within one of no known kind."""

    def __init__(self, **options):
        super().__init__(**options)
        self.weigh, self.queries = layers.Softmax(), draw(1, 3, D)

    def call(self, x):
        queries = ops.convert_to_tensor(self.queries)
        queries = self.weigh(scores(queries)) @ queries
        queries = ops.repeat(queries, x.shape[0], axis=0)
        return ops.matmul(tell(self.weigh(scores(queries, x))), x)


@case(everywhere=True)
def learned_queries_attend_to_each_other_by_layers_of_keras():
    x = draw(B, T, D)
    return Case(trained(LearnedFirst(), x), (x,), ["own", "cross"])


@case(everywhere=True)
def a_softmax_layer_of_parameters_comes_first():
    return Case(WithSoftmaxLayer(name="own"), (draw(B, T, D),), ["own"])
