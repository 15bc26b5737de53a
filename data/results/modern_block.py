"""Change chapter 15's model into today's, one change at a time, and train.

    python data/results/modern_block.py > data/results/DATE_modern_block.csv

The task is chapter 15's: 32 tokens that repeat with a period from 4 to 16, to
be continued. The first model is chapter 15's, and each change keeps those
before it. "Norms first" brings a norm at the end, and takes the bias of the
output away. Up to "output gate" all models multiply embeddings of a standard
deviation of 1/√D by √D, as chapter 15's does. "No factor" is the package's
model: it begins with a standard deviation of 1. "Small embeddings" begins with
1/√D and has no factor either, so its x is 8 times smaller. The widths of the
position-wise nets are chosen so that all have as many parameters, within 1 %.
Batch i of a seed is the same for all models.

All train for as many processor seconds, on one thread and without the
compilation, as chapter 15's model takes for 600 steps. How many steps fit is
found once for each change: the models take turns at ten steps, eight times,
and the quickest turn counts. The rate of learning is chapter 15's, and falls
to the end of these steps. Nothing was tuned for any change.

Each training, of one seed of the weights and of the data, gives six rows, a
sixth of the steps apart, with the processor seconds until then. `loss` and
`right`, the share of right tokens, are of 500 texts of 32 tokens that no
training saw, over the tokens that can be known; `longer` is the share in 200
texts of 64 tokens with periods from 17 to 31.
"""

import csv
import functools
import sys
import time

from d2l_attention import (
    LanguageModel,
    ModernAttention,
    ModernBlock,
    ModernLanguageModel,
    MultiHeadAttention,
    PositionalEncoding,
    PositionWiseFFN,
    RotaryAttention,
    SwiGLU,
)
import keras
import numpy as np
import tensorflow as tf

VOCABULARY, DIM, HEADS, LAYERS = 32, 64, 4, 2
BATCH, STEPS, SEEDS, PARTS = 64, 600, 3, 6
CHANGES = [
    "chapter 15",
    "norms first, RMS",
    "rotation",
    "SwiGLU",
    "QK-norm",
    "grouped heads",
    "output gate",
    "no factor",
    "small embeddings",
]


class Block(ModernBlock):
    """A block with the changes up to `level`, an index into `CHANGES`."""

    level = len(CHANGES) - 1

    def make_attention(self, name):
        sizes = {"num_heads": HEADS, "key_dim": DIM // HEADS, "name": name}
        if self.level < CHANGES.index("rotation"):
            return MultiHeadAttention(**sizes)
        if self.level < CHANGES.index("QK-norm"):
            return RotaryAttention(**sizes)
        grouped = self.level >= CHANGES.index("grouped heads")
        return ModernAttention(
            num_kv_heads=2 if grouped else HEADS,
            use_gate=self.level >= CHANGES.index("output gate"),
            **sizes,
        )

    def make_ffn(self):
        is_gated = self.level >= CHANGES.index("SwiGLU")
        return (SwiGLU if is_gated else PositionWiseFFN)(self.ffn_dim)


class Model(ModernLanguageModel):
    """A model of such blocks."""

    def __init__(self, level, ffn_dim):
        self.level = level
        super().__init__(VOCABULARY, DIM, LAYERS, HEADS, ffn_dim)
        self.positions = PositionalEncoding(256)
        if CHANGES[level] != "no factor":
            small = keras.initializers.RandomNormal(stddev=DIM**-0.5)
            self.embedding = keras.layers.Embedding(VOCABULARY, DIM, small)

    def stack(self, blocks):
        kind = type("Block", (Block,), {"level": self.level})
        width = next(blocks).ffn_dim
        super().stack(kind(DIM, HEADS, width) for _ in range(LAYERS))

    def embed(self, ids, start=0):
        x = super().embed(ids)
        if self.level < CHANGES.index("no factor"):
            x = x * DIM**0.5
        if self.level < CHANGES.index("rotation"):
            x = self.positions(x)
        return x


def built(change, ffn_dim):
    level = CHANGES.index(change)
    if level:
        model = Model(level, ffn_dim)
    else:
        model = LanguageModel(VOCABULARY, DIM, LAYERS, HEADS, ffn_dim)
    model(np.ones((1, 32), "int32"))
    weights = model.trainable_weights
    return model, sum(int(np.prod(x.shape)) for x in weights)


def make_model(change):
    """With as many parameters as chapter 15's model with nets of 128."""
    _, wanted = built("chapter 15", 128)
    least, more = (built(change, width)[1] for width in (1, 2))
    model, found = built(change, 1 + round((wanted - least) / (more - least)))
    assert abs(found / wanted - 1) < 0.01, (change, found, wanted)
    return model, found


def repeats(draw, size, low, high, length):
    """Ids (size, length), the next ids, and which of these count."""
    drawn = np.tile(np.arange(1, VOCABULARY), (size, 1))
    drawn = draw.permuted(drawn, axis=1)
    period = draw.integers(low, high + 1, (size, 1))
    steps = np.arange(length + 1)[None]
    ids = np.take_along_axis(drawn, steps % period, axis=1)
    counted = (steps[:, 1:] > period).astype("float32")
    return ids[:, :-1], ids[:, 1:], counted


@functools.lru_cache(maxsize=1)
def training_texts(seed):
    draw = np.random.default_rng(1 + seed)
    return repeats(draw, BATCH * 2 * STEPS, 4, 16, 32)


def fit(model, seed, first, last):
    """Train on the batches from `first` to before `last`."""
    chosen = slice(BATCH * first, BATCH * last)
    ids, next_ids, counted = (x[chosen] for x in training_texts(seed))
    model.fit(
        ids,
        next_ids,
        sample_weight=counted,
        batch_size=BATCH,
        shuffle=False,
        verbose=0,
    )


def prepared(change, seed, steps):
    """A model after one step, which compiles it; and its parameters."""
    keras.utils.set_random_seed(seed)
    model, parameters = make_model(change)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0,
        steps - 3 * steps // 10,
        alpha=0.01,
        warmup_target=3e-3,
        warmup_steps=3 * steps // 10,
    )
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
    adam = keras.optimizers.Adam(rate, clipnorm=1.0)
    model.compile(adam, loss, jit_compile=True)
    fit(model, seed, 0, 1)
    return model, parameters


def fitting_steps():
    """Dict of the changes to the steps that fit."""
    models = {change: prepared(change, 0, STEPS)[0] for change in CHANGES}
    quickest = dict.fromkeys(CHANGES, float("inf"))
    for _ in range(8):
        for change, model in models.items():
            begin = time.process_time()
            fit(model, 0, 0, 10)
            taken = time.process_time() - begin
            quickest[change] = min(quickest[change], taken)
    first = quickest[CHANGES[0]]
    return {x: round(STEPS * first / taken) for x, taken in quickest.items()}


def scores(model, low, high, length):
    number = 500 if length == 32 else 200
    texts = repeats(np.random.default_rng(0), number, low, high, length)
    ids, next_ids, counted = texts
    logits = np.concatenate([model(part) for part in np.split(ids, 10)])
    logits -= logits.max(-1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    of_next = np.take_along_axis(logs, next_ids[..., None], axis=-1)[..., 0]
    right = logits.argmax(-1) == next_ids
    total = counted.sum()
    return -(of_next * counted).sum() / total, (right * counted).sum() / total


def run(change, seed, steps):
    """The rows of one training."""
    model, parameters = prepared(change, seed, steps)
    ends = [round(steps * part / PARTS) for part in range(1, PARTS + 1)]
    first, seconds = 1, 0.0
    for end in ends:
        begin = time.process_time()
        fit(model, seed, first, end)
        seconds += time.process_time() - begin
        first = end
        loss, right = scores(model, 4, 16, 32)
        yield {
            "change": change,
            "seed": seed,
            "parameters": parameters,
            "steps": end,
            "processor seconds": f"{seconds:.2f}",
            "loss": f"{loss:.4f}",
            "right": f"{right:.4f}",
            "longer": f"{scores(model, 17, 31, 64)[1]:.4f}",
        }


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    fitting, writer = fitting_steps(), None
    for seed in range(SEEDS):
        for change in CHANGES:
            keras.backend.clear_session()
            for row in run(change, seed, fitting[change]):
                if writer is None:
                    writer = csv.DictWriter(sys.stdout, [*row])
                    writer.writeheader()
                writer.writerow(row)
                sys.stdout.flush()


if __name__ == "__main__":
    main()
