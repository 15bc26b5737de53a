"""Target tokens a second while chapter 05's model trains, compiled.

    python -m pytest tests/benchmarks --benchmark-only -o addopts=""

The setting is that of the documents: the first 600 pairs, 10 tokens, batches
of 64, 32 units, 2 layers; embeddings of 32 as well. The corpus is the shipped
one, wherever it runs. The rival is the same model as Keras's own layers and a
loop that is unrolled in the graph.
"""

import time

from d2l_attention import AdditiveAttention, BahdanauSeq2Seq
from d2l_attention.datasets.corpus import read_corpus
from d2l_attention.datasets.vocabularies import make_vectorizers, pairs_to_ids
import keras
from keras import ops
import numpy as np
import pytest
import tensorflow as tf

LENGTH, BATCH, DIM, LAYERS = 10, 64, 32, 2


class KerasRival(keras.Model):
    """`keras.layers.GRU`, `GRUCell` and an unrolled loop over steps."""

    def __init__(self, source_size, target_size):
        super().__init__()
        self.source_embedding = keras.layers.Embedding(source_size, DIM)
        self.target_embedding = keras.layers.Embedding(target_size, DIM)
        self.encoder = [
            keras.layers.GRU(DIM, return_sequences=True, return_state=True)
            for _ in range(LAYERS)
        ]
        self.cells = [keras.layers.GRUCell(DIM) for _ in range(LAYERS)]
        self.attention = AdditiveAttention(DIM)
        self.output_layer = keras.layers.Dense(target_size)

    def call(self, inputs):
        mask = ops.not_equal(inputs["source"], 0)
        x, hidden = self.source_embedding(inputs["source"]), []
        for layer in self.encoder:
            x, last = layer(x, mask=mask)
            hidden.append(last)
        tops = []
        embedded = self.target_embedding(inputs["target"])
        for t in range(LENGTH):
            context = self.attention(hidden[-1][:, None], key=x, key_mask=mask)[
                :, 0
            ]
            y = ops.concatenate([context, embedded[:, t]], axis=-1)
            for i, cell in enumerate(self.cells):
                y, _ = cell(y, [hidden[i]])
                hidden[i] = y
            tops.append(y)
        return self.output_layer(ops.stack(tops, axis=1))


def batches():
    pairs = [sentence[:2] for sentence in read_corpus()[:600]]
    vectorizers = make_vectorizers(pairs)
    source, target = pairs_to_ids(pairs, vectorizers, LENGTH)
    sizes = [v.vocabulary_size() for v in vectorizers]
    target = target[:, : LENGTH + 1]
    labels = target[:, 1:]
    inputs = {"source": source, "target": target[:, :-1]}
    data = tf.data.Dataset.from_tensor_slices(
        (inputs, labels, (labels != 0).astype("float32"))
    ).batch(BATCH, drop_remainder=True)
    options = tf.data.Options()
    options.autotune.enabled = False
    steps = len(labels) // BATCH
    tokens = int((labels[: steps * BATCH] != 0).sum())
    return data.cache().repeat(20).with_options(options), sizes, 20 * tokens


def trainer(model, data):
    model.compile(
        keras.optimizers.Adam(5e-3),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        ),
        jit_compile=True,
    )
    model.fit(data, shuffle=False, verbose=0)  # compiles
    return lambda: model.fit(data, shuffle=False, verbose=0)


def test_chapter_05_trains_at_20_000_tokens_a_second(race, table):
    data, sizes, tokens = batches()
    seconds, rivals = race(
        trainer(BahdanauSeq2Seq(*sizes, DIM, LAYERS), data),
        {"Keras's GRU layers": trainer(KerasRival(*sizes), data)},
    )
    add_speeds(table, "training chapter 05's model", tokens, seconds, rivals)
    assert tokens / seconds >= 20_000


def add_speeds(table, what, tokens, seconds, rivals):
    for name, rival_seconds in rivals.items():
        table(
            f"{what}, tokens/s",
            f"{tokens / seconds:,.0f}",
            f"{name} {tokens / rival_seconds:,.0f}",
            f"{rival_seconds / seconds:.2f}",
        )


@pytest.mark.benchmark(min_rounds=5)
def test_importing_the_package_adds_little(benchmark, table):
    import subprocess
    import sys

    def seconds(module):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        return time.perf_counter() - started

    pairs = [(seconds("keras"), seconds("d2l_attention")) for _ in range(5)]
    benchmark.pedantic(lambda: seconds("d2l_attention"), rounds=1)
    added = np.median([ours - theirs for theirs, ours in pairs])
    table("import, s more than keras alone", f"{added:.2f}", "", "")
    assert added < 0.3
