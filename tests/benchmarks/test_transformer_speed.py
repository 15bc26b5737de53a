"""The Transformer against the same model of other people's layers.

python -m pytest tests/benchmarks --benchmark-only -o addopts=""
"""

from d2l_attention import (
    BeamDecoder,
    GreedyDecoder,
    PositionalEncoding,
    Transformer,
)
import keras
from keras import ops
import numpy as np
import pytest
import tensorflow as tf
from test_training_speed import add_speeds, batches, trainer

DOCUMENTS = {"dim": 32, "num_layers": 2, "num_heads": 4, "ffn_dim": 64}
REALISTIC = {"dim": 256, "num_layers": 4, "num_heads": 8, "ffn_dim": 1024}
VOCAB_SIZE, LENGTH, BATCH = 2000, 64, 32  # of the realistic one


class Rival(keras.Model):
    """Embeddings, positions and output as ours; stacks of other blocks."""

    def __init__(self, source_size, target_size, sizes):
        super().__init__()
        self.dim = sizes["dim"]
        self.source_embedding = keras.layers.Embedding(source_size, self.dim)
        self.target_embedding = keras.layers.Embedding(target_size, self.dim)
        self.positions = PositionalEncoding(LENGTH)
        self.encoder, self.decoder = (
            [make(**sizes) for _ in range(sizes["num_layers"])]
            for make in (self.make_encoder_block, self.make_decoder_block)
        )
        self.output_layer = keras.layers.Dense(target_size)

    def call(self, inputs):
        mask = ops.not_equal(inputs["source"], 0)
        x = self.source_embedding(inputs["source"]) * self.dim**0.5
        x = self.positions(x)
        for block in self.encoder:
            x = self.encode(block, x, mask)
        y = self.target_embedding(inputs["target"]) * self.dim**0.5
        y = self.positions(y)
        for block in self.decoder:
            y = self.decode(block, y, x, mask)
        return self.output_layer(y)


class KerasBlock(keras.Layer):
    """A block of `keras.layers`, with cross-attention if asked."""

    def __init__(self, dim, num_heads, ffn_dim, cross=False, **sizes):
        super().__init__()
        self.attentions = [
            keras.layers.MultiHeadAttention(
                num_heads, dim // num_heads, use_bias=False
            )
            for _ in range(1 + cross)
        ]
        self.norms = [
            keras.layers.LayerNormalization(epsilon=1e-5)
            for _ in range(2 + cross)
        ]
        self.hidden = keras.layers.Dense(ffn_dim, "relu")
        self.output_layer = keras.layers.Dense(dim)
        self.supports_masking = True

    def call(self, x, encoded=None, seen=None):
        if encoded is None:
            y = self.attentions[0](x, x, attention_mask=seen)
        else:
            y = self.attentions[0](x, x, use_causal_mask=True)
        x = self.norms[0](x + y)
        if encoded is not None:
            y = self.attentions[1](x, encoded, attention_mask=seen)
            x = self.norms[1](x + y)
        return self.norms[-1](x + self.output_layer(self.hidden(x)))


class OfKerasLayers(Rival):
    def make_encoder_block(self, **sizes):
        return KerasBlock(**sizes)

    def make_decoder_block(self, **sizes):
        return KerasBlock(**sizes, cross=True)

    def encode(self, block, x, mask):
        return block(x, seen=mask[:, None])

    def decode(self, block, y, x, mask):
        return block(y, x, seen=mask[:, None])


class OfKerasHub(Rival):
    """Its projections have biases, ours none."""

    def make_encoder_block(self, num_heads, ffn_dim, **sizes):
        import keras_hub

        return keras_hub.layers.TransformerEncoder(ffn_dim, num_heads)

    def make_decoder_block(self, num_heads, ffn_dim, **sizes):
        import keras_hub

        return keras_hub.layers.TransformerDecoder(ffn_dim, num_heads)

    def encode(self, block, x, mask):
        return block(x, padding_mask=mask)

    def decode(self, block, y, x, mask):
        return block(y, x, encoder_padding_mask=mask)


def test_the_documents_transformer_trains_faster_than_keras_layers(race, table):
    data, sizes, tokens = batches()
    seconds, rivals = race(
        trainer(Transformer(*sizes, **DOCUMENTS, max_length=64), data),
        {"keras.layers": trainer(OfKerasLayers(*sizes, DOCUMENTS), data)},
    )
    what = "training the documents' Transformer"
    add_speeds(table, what, tokens, seconds, rivals)
    assert rivals["keras.layers"] / seconds >= 1.1


def long_batches(steps=4):
    rng = np.random.default_rng(0)
    shape = (BATCH, LENGTH)
    source, target, labels = rng.integers(1, VOCAB_SIZE, (3, *shape), "int32")
    inputs = {"source": source, "target": target}
    weights = np.ones(shape, "float32")
    data = tf.data.Dataset.from_tensors((inputs, labels, weights))
    options = tf.data.Options()
    options.autotune.enabled = False
    return data.repeat(steps).with_options(options), steps * BATCH * LENGTH


def bare_products(dim, num_layers, num_heads, ffn_dim, steps=4):
    """The matrix products of a training step, and nothing else.

    Each product of the forward pass has two of its size in the backward one.
    """
    rows, key_dim = BATCH * LENGTH, dim // num_heads
    projections = num_layers * (4 + 4 + 4)  # encoder, decoder, cross
    shapes = [((rows, dim), (dim, dim), projections)]
    shapes += [((rows, dim), (dim, ffn_dim), 4 * num_layers)]
    shapes += [((rows, dim), (dim, VOCAB_SIZE), 1)]
    heads = (BATCH, num_heads, LENGTH)
    across = (BATCH, num_heads, key_dim, LENGTH)
    shapes += [((*heads, key_dim), across, 6 * num_layers)]
    draws = [
        (tf.random.normal(x), tf.random.normal(y), count)
        for x, y, count in shapes
    ]

    @tf.function(jit_compile=True)
    def step(draws, nudge):
        total = nudge
        for x, y, count in draws:
            for _ in range(3 * count):  # forward, and two backward
                total = tf.matmul(x + total * 1e-9, y)[..., 0, 0]
                total = tf.reshape(total, (-1,))[0]
        return total

    return lambda: [float(step(draws, 0.0)) for _ in range(steps)]


def test_a_realistic_transformer_keeps_up(race, table):
    pytest.importorskip("keras_hub")
    data, tokens = long_batches()
    sizes = (VOCAB_SIZE, VOCAB_SIZE)
    products = bare_products(**REALISTIC)
    products()  # compiles
    seconds, rivals = race(
        trainer(Transformer(*sizes, **REALISTIC, max_length=LENGTH), data),
        {
            "keras.layers": trainer(OfKerasLayers(*sizes, REALISTIC), data),
            "keras-hub": trainer(OfKerasHub(*sizes, REALISTIC), data),
            "bare products": products,
        },
    )
    bare = rivals.pop("bare products")
    what = "training 4 layers of 256"
    add_speeds(table, what, tokens, seconds, rivals)
    table(
        f"{what}, s/step",
        f"{seconds / 4:.2f}",
        f"its bare matrix products {bare / 4:.2f}",
        f"{bare / seconds:.2f}",
    )
    for rival in rivals.values():
        assert rival / seconds >= 0.9


class UncachedGreedyDecoder(GreedyDecoder):
    """Runs the decoder over all that is written, for each new token."""

    def call(self, source):
        model, batch = self.model, ops.shape(source)[0]
        steps = ops.arange(self.max_length, dtype="int32")
        mask = ops.not_equal(source, 0)
        x = model.embed(source, model.source_embedding)
        encoded = model.encoder(x, key_mask=mask)
        first = ops.full((batch, 1), self.start_id, "int32")

        def body(t, ids):
            written = ops.concatenate([first, ids[:, :-1]], axis=1)
            y = model.embed(written, model.target_embedding)
            y = model.decoder(y, key=encoded, key_mask=mask)
            logits = model.output_layer(ops.take(y, t, axis=1))
            token = 1 + ops.cast(ops.argmax(logits[:, 1:], -1), "int32")
            return t + 1, ops.where(steps == t, token[:, None], ids)

        ids = ops.zeros((batch, self.max_length), "int32")
        loop = ops.while_loop(
            lambda t, ids: t < self.max_length,
            body,
            (ops.zeros((), "int32"), ids),
        )
        return loop[1]


def decoder_of(make, model, source, max_length, **options):
    """Translates all sentences in one batch; compiled, and never ends."""
    decoder = make(model, 1, 10**6, max_length, **options)
    decoder.compile(jit_compile=True)

    def run(source=source):
        return decoder.predict_on_batch(source)

    return run


def transformer(max_length, dim=128, num_layers=2, num_heads=4):
    keras.utils.set_random_seed(0)
    return Transformer(
        500, 500, dim, num_layers, num_heads, max_length=max_length
    )


def test_greedy_decoding_in_a_batch_with_a_cache(race, table):
    source = np.random.default_rng(0).integers(2, 500, (64, 24), "int32")
    model = transformer(64)
    cached, uncached = (
        decoder_of(make, model, source, 64)
        for make in (GreedyDecoder, UncachedGreedyDecoder)
    )
    np.testing.assert_array_equal(cached(), uncached())

    def one_by_one(run):
        return lambda: [run(row[None]) for row in source]

    rivals = {
        "in a batch, no cache": uncached,
        "one by one, cache": one_by_one(cached),
        "one by one, no cache": one_by_one(uncached),
    }
    for rival in rivals.values():
        rival()  # compiles
    seconds, medians = race(cached, rivals)
    for name, rival in medians.items():
        table(
            "greedy decoding of 64 sentences of 64 tokens, sentences/s",
            f"{64 / seconds:,.0f}",
            f"{name} {64 / rival:,.0f}",
            f"{rival / seconds:.1f}",
        )
    assert medians["one by one, no cache"] / seconds >= 20


def test_a_token_costs_little_more_with_a_long_cache(race, table):
    source = np.random.default_rng(0).integers(2, 500, (1, 20), "int32")
    lengths = {GreedyDecoder: (64, 1024), UncachedGreedyDecoder: (128, 512)}
    sizes = {"dim": 256, "num_layers": 4, "num_heads": 8}
    runs = {
        (make, length): decoder_of(
            make, transformer(length, **sizes), source, length
        )
        for make, both in lengths.items()
        for length in both
    }
    for run in runs.values():
        run()  # compiles
    ours = runs.pop((GreedyDecoder, 1024))
    seconds, medians = race(ours, runs, rounds=3)
    medians[GreedyDecoder, 1024] = seconds
    growth = {}
    for make, (short, long) in lengths.items():
        low, high = (
            1e3 * medians[make, length] / length for length in (short, long)
        )
        growth[make] = high / low
        name = "with" if make is GreedyDecoder else "without"
        table(
            f"a token at {long} positions, {name} a cache, ms",
            f"{high:.2f}",
            f"at {short} {low:.2f}",
            f"{high / low:.1f}",
        )
    assert growth[GreedyDecoder] < 2
    assert growth[UncachedGreedyDecoder] > 3  # of 4 times the positions


def test_beam_search_costs_less_than_six_greedy_ones(race, table):
    source = np.random.default_rng(0).integers(2, 500, (64, 24), "int32")
    model = transformer(64)
    greedy = decoder_of(GreedyDecoder, model, source, 64)
    beam = decoder_of(BeamDecoder, model, source, 64, width=4)
    greedy(), beam()  # compile
    seconds, medians = race(beam, {"greedy": greedy})
    ratio = seconds / medians["greedy"]
    table(
        "beam search of width 4, the same sentences, ms",
        f"{1e3 * seconds:.0f}",
        f"greedy {1e3 * medians['greedy']:.0f}",
        f"{ratio:.1f}",
    )
    assert ratio < 6
