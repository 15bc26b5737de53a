"""Train one small classifier with each attention on two long-range tasks.

    python data/results/long_range.py > data/results/DATE_long_range.csv

The tasks are `draw_list_ops` with 100 to 250 tokens, in two layers, and
`draw_retrieval` with 1,024 tokens, eight of them questions, in one. Every
model sees the same batches in the same order and answers from its first
token, or from each question; widths of the position-wise nets differ so that
all have as many parameters as Linformer, within 1 %. Each row is one seed, of
the weights and of the batches; accuracy is on 2,000 examples that no training
saw, at the end of training. Nothing was tuned for any mechanism: one learning
rate, the sizes below. Seconds include the compilation.
"""

import argparse
import csv
import functools
import sys
import time

from d2l_attention import (
    AddNorm,
    LinformerAttention,
    LongformerAttention,
    MultiHeadAttention,
    PageLocalAttention,
    PerformerAttention,
    PositionalEncoding,
    PositionWiseFFN,
    ReformerAttention,
)
from d2l_attention.datasets import (
    LIST_OPS_TOKENS,
    draw_list_ops,
    draw_retrieval,
)
import keras
import numpy as np

DIM, HEADS, NUM_TEST = 64, 2, 2000
BATCH = {"list_ops": 16, "retrieval": 8}
TASKS = {
    "list_ops": {
        "length": 250,
        "layers": 2,
        "questions": 1,
        "classes": 10,
        "vocab": 16,
    },
    "retrieval": {
        "length": 1024,
        "layers": 1,
        "questions": 8,
        "classes": 8,
        "vocab": 89,
    },
}
MECHANISMS = {
    "dense": MultiHeadAttention,
    "linformer": lambda h, k, n: LinformerAttention(h, k, n, rank=32),
    "performer": lambda h, k, n: PerformerAttention(h, k, 128, seed=0),
    "longformer": lambda h, k, n: LongformerAttention(h, k, window=32),
    "page-local": lambda h, k, n: PageLocalAttention(h, k, page_size=32),
    "reformer": lambda h, k, n: ReformerAttention(
        h, k, 32, num_buckets=n // 32 * 2, num_rounds=2, seed=0
    ),
}


class Classifier(keras.Model):
    """Blocks of attention; the first tokens are given answers."""

    def __init__(
        self, mechanism, length, layers, questions, classes, vocab, ffn_dim
    ):
        super().__init__()
        make = MECHANISMS[mechanism]
        sizes = (HEADS, DIM // HEADS)
        if mechanism != "dense":
            sizes = (*sizes, length)
        self.embedding = keras.layers.Embedding(
            vocab, DIM, keras.initializers.RandomNormal(stddev=DIM**-0.5)
        )
        self.positions = PositionalEncoding(length)
        self.attentions = [make(*sizes) for _ in range(layers)]
        self.norms = [AddNorm() for _ in range(2 * layers)]
        self.ffns = [PositionWiseFFN(ffn_dim) for _ in range(layers)]
        self.output_layer = keras.layers.Dense(classes)
        self.questions = questions
        self.options = {}
        if mechanism == "longformer":
            self.options = {"global_positions": list(range(questions))}

    def call(self, ids):
        x = self.positions(self.embedding(ids) * DIM**0.5)
        mask = ids != 0
        for i, (attention, ffn) in enumerate(
            zip(self.attentions, self.ffns, strict=True)
        ):
            y = attention(x, key_mask=mask, **self.options)
            x = self.norms[2 * i](x, y)
            x = self.norms[2 * i + 1](x, ffn(x))
        return self.output_layer(x[:, : self.questions])


def make_model(mechanism, sizes):
    """With as many parameters as Linformer with a net of 128."""

    def built(name, ffn_dim):
        model = Classifier(name, **sizes, ffn_dim=ffn_dim)
        model(np.ones((1, sizes["length"]), "int32"))
        return model, sum(
            int(np.prod(w.shape)) for w in model.trainable_weights
        )

    _, wanted = built("linformer", 128)
    _, least = built(mechanism, 1)
    _, more = built(mechanism, 2)
    model, found = built(
        mechanism, 1 + round((wanted - least) / (more - least))
    )
    assert abs(found / wanted - 1) < 0.01, (mechanism, found, wanted)
    return model, found


@functools.lru_cache(maxsize=4)
def examples(task, number, seed):
    """Ids `(N, T)` and labels `(N, questions)`."""
    if task == "list_ops":
        ids, labels = draw_list_ops(number, 100, 250, seed)
        return ids, labels[:, None]
    return draw_retrieval(number, 1024, num_questions=8, seed=seed)[:2]


def run(task, mechanism, seed, steps):
    """One row."""
    assert TASKS["list_ops"]["vocab"] == len(LIST_OPS_TOKENS)
    keras.utils.set_random_seed(seed)
    model, parameters = make_model(mechanism, TASKS[task])
    warmup = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=2e-3, warmup_steps=steps // 10
    )
    model.compile(
        keras.optimizers.Adam(warmup, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=True,
    )
    batch = BATCH[task]
    ids, labels = examples(task, steps * batch, seed=1 + seed)
    started = time.perf_counter()
    model.fit(ids, labels, batch_size=batch, shuffle=False, verbose=0)
    seconds = (time.perf_counter() - started) / steps
    ids, labels = examples(task, NUM_TEST, seed=100 + seed)
    _, accuracy = model.evaluate(ids, labels, batch_size=batch, verbose=0)
    return (
        task,
        mechanism,
        seed,
        parameters,
        steps,
        f"{accuracy:.4f}",
        f"{seconds:.4f}",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument(
        "--mechanisms", nargs="+", choices=MECHANISMS, default=MECHANISMS
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()
    table = csv.writer(sys.stdout)
    table.writerow(
        (
            "task",
            "mechanism",
            "seed",
            "parameters",
            "steps",
            "accuracy",
            "seconds per step",
        )
    )
    for seed in options.seeds:
        for task in options.tasks:
            for mechanism in options.mechanisms:
                table.writerow(run(task, mechanism, seed, options.steps))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
