"""Time, peak memory and error of each efficient attention, by length.

    python data/results/efficiency.py > data/results/DATE_efficiency.csv

One forward pass of 4 heads of 64 features, batch 1, float32, normal queries
and keys with a standard deviation of 0.5, normal values; each row in a fresh
process (Linux only). Seconds are the median of as many runs as 3 seconds
hold, 3 at least. Megabytes are the process's high-water mark during the pass,
less what it held before. The error is the root mean square of the difference
from dense attention, over that of dense attention's output; Reformer is
compared with dense attention of its own kind, with shared and penalised keys.
"""

import argparse
import csv
import subprocess
import sys
import time

LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
HEADS, FEATURES = 4, 64
LAST_DENSE = 8192  # beyond it one matrix of scores is over 1 GB a head


def functions(n):
    """Each mechanism as a function of (query, key, value) `(1, n, H, K)`."""
    from d2l_attention import (
        flash_attention,
        linformer_attention,
        longformer_attention,
        masked_softmax,
        multi_head_attention,
        page_local_attention,
        performer_attention,
        reformer_attention,
    )
    from d2l_attention.layers.multi_head import (
        multi_head_scores,
        multi_head_sum,
    )
    from d2l_attention.layers.performer import orthogonal_directions
    from d2l_attention.layers.reformer import lsh_buckets
    import tensorflow as tf

    def dense(query, key, value):
        return multi_head_attention(query, key, value)[0]

    def dense_shared(query, key, value):
        """What Reformer approximates."""
        key = query / tf.norm(query, axis=-1, keepdims=True)
        scores = multi_head_scores(query, key) * FEATURES**0.5
        return multi_head_sum(masked_softmax(scores - 1e5 * tf.eye(n)), value)

    mixing = tf.random.stateless_normal((2, 256, n), (0, 1)) / n**0.5
    key_mixing, value_mixing = tf.unstack(mixing)
    directions = orthogonal_directions(256, FEATURES, seed=0)
    rotations = tf.random.stateless_normal((FEATURES, 2, n // 64), (0, 2))

    def linformer(query, key, value):
        return linformer_attention(query, key, value, key_mixing, value_mixing)

    def performer(query, key, value):
        return performer_attention(query, key, value, directions)

    def causal_performer(query, key, value):
        return performer_attention(
            query, key, value, directions, use_causal_mask=True
        )

    def longformer(query, key, value):
        return longformer_attention(
            query, key, value, 128, global_positions=[0]
        )

    def page_local(query, key, value):
        return page_local_attention(query, key, value, 128)

    def reformer(query, key, value):
        buckets = lsh_buckets(query, rotations)
        return reformer_attention(query, value, buckets, 64)

    exact = {"dense": dense, "dense, shared keys": dense_shared}
    return exact | {
        "flash": flash_attention,
        "linformer": linformer,
        "performer": performer,
        "performer, causal": causal_performer,
        "longformer": longformer,
        "page-local": page_local,
        "reformer": reformer,
    }


NAMES = [
    "dense",
    "flash",
    "linformer",
    "performer",
    "performer, causal",
    "longformer",
    "page-local",
    "reformer",
]


def high_water(name):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(
            int(line.split()[1]) for line in file if line.startswith(name)
        )


def measure(name, n):
    """Seconds, megabytes, and relative error or an empty string."""
    import numpy as np
    import tensorflow as tf

    arrays = np.random.default_rng(0).normal(size=(3, 1, n, HEADS, FEATURES))
    arrays[:2] /= 2  # queries and keys
    arrays = tuple(tf.constant(x, "float32") for x in arrays)
    functions(64)[name](*(x[:, :64] for x in arrays))  # loads what loads late
    graph = tf.function(functions(n)[name])
    graph = graph.get_concrete_function(*arrays)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the mark begins anew
    before = high_water("VmRSS")
    output = graph(*arrays).numpy()
    megabytes = (high_water("VmHWM") - before) / 1024
    seconds = []
    while len(seconds) < 3 or sum(seconds) < 3:
        started = time.perf_counter()
        graph(*arrays).numpy()
        seconds.append(time.perf_counter() - started)
    error = ""
    rival = "dense, shared keys" if name == "reformer" else "dense"
    if n <= LAST_DENSE and name not in ("dense", "performer, causal"):
        exact = tf.function(functions(n)[rival])(*arrays).numpy()
        error = np.sqrt(((output - exact) ** 2).mean() / (exact**2).mean())
    return float(np.median(seconds)), megabytes, error


def rows(names, lengths):
    """Measured in a fresh process each."""
    for n in lengths:
        for name in names:
            if name == "dense" and n > LAST_DENSE:
                continue
            done = subprocess.run(
                [sys.executable, __file__, "--one", name, str(n)],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                sys.exit(f"{name}, n = {n}: {done.stderr}")
            yield name, n, *done.stdout.strip().split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, n = options.one
        seconds, megabytes, error = measure(name, int(n))
        error = error if error == "" else f"{error:.2e}"
        print(f"{seconds:.5f},{megabytes:.1f},{error}")
        return
    table = csv.writer(sys.stdout)
    table.writerow(("mechanism", "n", "seconds", "megabytes", "error"))
    for row in rows(options.names, options.lengths):
        table.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
