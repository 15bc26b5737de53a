"""What causal attention costs: to read a text, and to write one more token.

    python data/results/causal_cost.py > data/results/DATE_causal_cost.csv

*read*: one causal pass of 4 heads of 64 features over n tokens, without
projections. *write*: a step of a layer of 16 heads of 64 features (4 of
keys where they are grouped, latents of 128 + 32 numbers, a window of 512, 8
chosen blocks of 64 and the own one), projections included, up to n tokens:
the mean of 16 steps in one compiled loop, as a decoder has it. One text,
float32, random numbers. Milliseconds are the median of 15 rounds, in which all
mechanisms take turns. *numbers* is how many a layer's cache holds.
"""

import csv
import sys
import time

import d2l_attention as d2l
from keras import ops
import numpy as np
import tensorflow as tf

LENGTHS = [1024, 4096, 16384]
SIZES = {"num_heads": 16, "key_dim": 64}
DIM, STEPS = 1024, 16
LAYERS = {
    "all heads": lambda: d2l.RotaryAttention(**SIZES),
    "grouped": lambda: d2l.RotaryAttention(num_kv_heads=4, **SIZES),
    "latent": lambda: d2l.LatentAttention(
        latent_dim=128, rotary_dim=32, **SIZES
    ),
    "window": lambda: d2l.WindowAttention(window=512, **SIZES),
    "chosen blocks": lambda: d2l.SelectedBlockAttention(
        block_size=64, top=8, num_kv_heads=4, **SIZES
    ),
    "state": lambda: d2l.GatedDeltaAttention(**SIZES),
}


def readings(n):
    """Each mechanism as a function without arguments."""
    random = np.random.default_rng(0)
    query, key, value = random.normal(size=(3, 1, n, 4, 64))
    key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    decay = -random.exponential(size=(1, n, 4)) / 50
    strength = random.uniform(size=(1, n, 4))
    arrays = query / 8, key, value, decay, strength
    arrays = [tf.constant(x.astype("float32")) for x in arrays]

    def dense(query, key, value, *rest):
        mask = d2l.causal_mask(n)
        return d2l.multi_head_attention(query, key, value, mask)[0]

    def flash(query, key, value, *rest):
        return d2l.flash_attention(query, key, value, use_causal_mask=True)

    def linear(query, key, value, decay, strength):
        return d2l.linear_attention(query, key, value, decay)[0]

    def delta(query, key, value, decay, strength):
        return d2l.delta_attention(query, key, value, strength, decay)[0]

    kinds = {"flash": flash, "linear, gated": linear, "gated delta": delta}
    if n <= 4096:  # beyond it the scores alone are over 1 GB a head
        kinds = {"dense": dense, **kinds}
    graphs = {name: tf.function(kind) for name, kind in kinds.items()}
    runs = {
        name: (lambda graph=graph: graph(*arrays))
        for name, graph in graphs.items()
    }
    return runs, dict.fromkeys(kinds, "")


def writings(n):
    """The same for a step; and how many numbers each cache holds."""
    x = tf.constant(np.random.default_rng(0).normal(size=(1, 1, DIM)))
    x = tf.cast(x, "float32")

    def write(layer, cache):
        def step(i, state):
            total, cache = state
            y, cache = layer.step(x, tf.fill((1, 1), n - STEPS + i), cache)
            return total + y, cache

        return ops.fori_loop(0, STEPS, step, (tf.zeros_like(x), cache))[0]

    runs, numbers = {}, {}
    for name, make in LAYERS.items():
        layer = make()
        layer.build((1, None, DIM))
        cache = layer.make_cache(1, n)
        numbers[name] = sum(int(tf.size(part)) for part in cache.values())
        random = tf.random.stateless_normal
        cache = {k: random(v.shape, (0, 1)) / 8 for k, v in cache.items()}
        graph = tf.function(lambda cache, layer=layer: write(layer, cache))
        runs[name] = lambda graph=graph, cache=cache: graph(cache)
    return runs, numbers


def main():
    table = csv.writer(sys.stdout)
    table.writerow(("what", "mechanism", "n", "milliseconds", "numbers"))
    for what, make in (("read", readings), ("write", writings)):
        for n in LENGTHS:
            runs, numbers = make(n)
            times = {name: [] for name in runs}
            for _ in range(17):
                for name, run in runs.items():
                    started = time.perf_counter()
                    run().numpy()
                    times[name].append(time.perf_counter() - started)
            for name, seconds in times.items():  # the first two warm up
                steps = STEPS if what == "write" else 1
                median = 1e3 * np.median(seconds[2:]) / steps
                table.writerow((what, name, n, f"{median:.2f}", numbers[name]))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
