"""The translator of a run, made of keras-hub's layers, on the same batches.

    python -m d2l_attention train RUN --corpus fra.txt …
    python data/results/keras_hub_translator.py RUN > data/results/DATE_….csv
    python data/results/keras_hub_translator.py RUN --race

Prints a line of CSV for the run, from its own files, and one for the same
model of `keras_hub.layers.TransformerEncoder` and `TransformerDecoder`,
trained here with the run's settings by the same loop: the same sentences in
the same order, optimizer, learning rates and steps. Only the blocks differ
(keras-hub's projections have biases). With --race both train new models turn
by turn, 10 steps each, and their median speeds are printed: two trainings one
after the other may meet a machine of two speeds.
"""

import argparse
import contextlib
import csv
import dataclasses
import sys
import tempfile
import time

from d2l_attention import PositionalEncoding
from d2l_attention.translator import Translator, bleu, chrf, training_loop
from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import DEFAULT_LAYERS, Settings
from d2l_attention.translator.training_corpus import Corpus
from d2l_attention.translator.training_step import Trainer
import keras
from keras import ops
import numpy as np
import tensorflow as tf


class HubTransformer(keras.Model):
    """Embeddings, positions and logits as in `Transformer`."""

    def __init__(
        self,
        sizes,
        dim,
        num_layers,
        num_heads,
        ffn_dim,
        dropout,
        normalize_first,
    ):
        import keras_hub

        super().__init__()
        self.dim = dim
        self.embeddings = [
            keras.layers.Embedding(
                size, dim, keras.initializers.RandomNormal(stddev=dim**-0.5)
            )
            for size in sizes
        ]
        self.positions = PositionalEncoding(256)
        self.dropout = keras.layers.Dropout(dropout)
        self.encoder, self.decoder = (
            [
                make(
                    ffn_dim,
                    num_heads,
                    dropout=dropout,
                    normalize_first=normalize_first,
                )
                for _ in range(num_layers)
            ]
            for make in (
                keras_hub.layers.TransformerEncoder,
                keras_hub.layers.TransformerDecoder,
            )
        )
        self.ends = [
            keras.layers.LayerNormalization()
            if normalize_first
            else keras.layers.Identity()
            for _ in range(2)
        ]
        self.output_layer = keras.layers.Dense(sizes[1], dtype="float32")

    def build(self, shapes):
        ids = np.ones((1, 5), "int32")
        self.built = True
        self({"source": ids, "target": ids})

    def embed(self, side, ids, training=None):
        x = self.embeddings[side](ids) * self.dim**0.5
        return self.dropout(self.positions(x), training=training)

    def encode(self, source, training=None):
        mask, x = source != 0, self.embed(0, source, training)
        for block in self.encoder:
            x = block(x, padding_mask=mask, training=training)
        return self.ends[0](x), mask

    def decode(self, target, encoded, mask, training=None):
        x = self.embed(1, target, training)
        for block in self.decoder:
            x = block(x, encoded, encoder_padding_mask=mask, training=training)
        return self.output_layer(self.ends[1](x))

    def call(self, inputs, training=None):
        encoded = self.encode(inputs["source"], training)
        return self.decode(inputs["target"], *encoded, training)

    def start(self, source):
        encoded, mask = self.encode(source, training=False)
        ids = ops.zeros((ops.shape(source)[0], source.shape[1] + 8), "int32")
        position = ops.zeros((), "int32")
        return {
            "encoded": encoded,
            "mask": mask,
            "ids": ids,
            "position": position,
        }

    def step(self, token, state):
        """All earlier tokens again: keras-hub's cache is not used."""
        position = state["position"]
        here = ops.arange(state["ids"].shape[1], dtype="int32") == position
        ids = ops.where(here, token[:, None], state["ids"])
        logits = self.decode(ids, state["encoded"], state["mask"], False)
        logits = ops.take(logits, position, axis=1)
        return logits, {**state, "ids": ids, "position": position + 1}


@dataclasses.dataclass(frozen=True)
class HubSettings(Settings):
    def make_model(self, *sizes):
        return HubTransformer(
            sizes,
            self.dim,
            self.num_layers or DEFAULT_LAYERS["transformer"],
            self.num_heads,
            self.ffn_dim,
            self.dropout,
            self.normalize_first,
        )


def score(hypotheses, references):
    return [
        f"{value:.2f}"
        for metric in (bleu, chrf)
        for value in metric(hypotheses, references)
    ]


def speed(run):
    """Median over the history's rows."""
    _, speeds = run.points("tokens_per_second")
    return round(float(np.median([float(x) for x in speeds])))


def race(ours, theirs, rounds=7, steps=10):
    """Median tokens a second of both, turn by turn on the same batches."""
    corpus = Corpus(ours)
    strategy = tf.distribute.get_strategy()
    trainers = [Trainer(x, corpus, strategy) for x in (ours, theirs)]
    speeds = np.zeros((rounds, 2))
    for turn in range(rounds):
        batches = [
            x for _, x in corpus.batches(turn * steps, (turn + 1) * steps)
        ]
        tokens = sum(int((target[:, 1:] != 0).sum()) for _, target in batches)
        for i, trainer in enumerate(trainers):
            started = time.perf_counter()
            for batch in batches:
                trainer.step(*batch)
            speeds[turn, i] = tokens / (time.perf_counter() - started)
    return np.median(speeds[1:], axis=0)  # the first turn compiles


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--race", action="store_true")
    options = parser.parse_args()
    run = Run(options.run)
    settings = HubSettings(**vars(run.load_settings()))
    table = csv.writer(sys.stdout, lineterminator="\n")
    if options.race:
        speeds = race(run.load_settings(), settings)
        table.writerow(("model", "tokens_per_second"))
        for name, found in zip(
            ("Transformer", "keras-hub"), speeds, strict=True
        ):
            table.writerow((name, round(found)))
        return
    table.writerow(
        "model,parameters,tokens_per_second,bleu,bleu_low,bleu_high,"
        "chrf,chrf_low,chrf_high".split(",")
    )
    with open(run.path / "history.csv", encoding="utf-8") as file:
        run.history = list(csv.reader(file))[1:]
    scores = run.read_json("scores.json")
    ours = [
        f"{value:.2f}"
        for metric in ("bleu", "chrf")
        for value in scores[metric].values()
    ]
    facts = ("Transformer", scores["parameters"], speed(run))
    table.writerow((*facts, *ours))
    sys.stdout.flush()

    corpus = Corpus(settings)
    trainer = Trainer(settings, corpus, tf.distribute.get_strategy())
    # The table has the standard output for itself.
    to_stderr = contextlib.redirect_stdout(sys.stderr)
    with tempfile.TemporaryDirectory() as folder, to_stderr:
        run = Run(folder)
        training_loop.train(
            trainer, run, chief=True, checkpoint_every=10**9, log_every=50
        )
    translator = Translator(
        trainer.model, corpus.vectorizers, settings.longest()
    )
    sources, references = zip(*corpus.pairs.test, strict=True)
    theirs = score(translator.translate(sources), references)
    facts = (
        "keras-hub",
        trainer.model.count_params(),
        speed(run),
    )
    table.writerow((*facts, *theirs))


if __name__ == "__main__":
    main()
