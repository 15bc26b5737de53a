"""Linear attention in chunks: how it grows, beside flash and keras-hub.

python -m pytest tests/benchmarks/test_linear_speed.py --benchmark-only \
    -o addopts=""
"""

import time

from d2l_attention import delta_attention, flash_attention, linear_attention
import numpy as np
import pytest
import tensorflow as tf

HEADS, FEATURES = 4, 64


def causal_flash_attention(query, key, value, log_decay, strength):
    return flash_attention(query, key, value, use_causal_mask=True)


def linear(query, key, value, log_decay, strength):
    return linear_attention(query, key, value, log_decay)[0]


def delta(query, key, value, log_decay, strength):
    return delta_attention(query, key, value, strength, log_decay)[0]


OURS = {"linear, gated": linear, "gated delta rule": delta}


def draw(length):
    random = np.random.default_rng(0)
    shape = 1, length, HEADS, FEATURES
    query, key, value = random.normal(size=(3, *shape))
    key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    log_decay = -random.exponential(size=shape[:3]) / 50
    strength = random.uniform(size=shape[:3])
    arrays = query / FEATURES**0.5, key, value, log_decay, strength
    return [tf.constant(x.astype("float32")) for x in arrays]


def compiled(function, length):
    """A function without arguments, run once."""
    arrays, graph = draw(length), tf.function(function)
    graph(*arrays)
    return lambda: graph(*arrays).numpy()


@pytest.mark.parametrize("name", OURS)
def test_grows_linearly(name, benchmark, table):
    lengths = [1024, 2048, 4096, 8192, 16384]
    runs = [compiled(OURS[name], length) for length in lengths]
    seconds = []
    for _ in range(5):
        for run in runs:
            before = time.process_time()
            run()
            seconds.append(time.process_time() - before)
    benchmark.pedantic(lambda: None)
    medians = np.median(np.reshape(seconds, (5, -1)), axis=0)
    exponent = np.polyfit(np.log(lengths), np.log(medians), 1)[0]
    what = f"{name}, n = 1024 … 16384, exponent of processor time"
    table(what, f"{exponent:.2f}", "", "")
    assert exponent <= 1.1


@pytest.mark.parametrize("name", OURS)
def test_faster_than_flash_at_4096_tokens(name, race, table):
    ours = compiled(OURS[name], 4096)
    rivals = {"flash, causal": compiled(causal_flash_attention, 4096)}
    median, medians = race(ours, rivals)
    for rival, seconds in medians.items():
        what = f"{name} against {rival}, n = 4096"
        ratio = seconds / median
        table(what, f"{1e3 * median:.0f} ms", f"{1e3 * seconds:.0f} ms",
              f"{ratio:.1f}")  # fmt: skip
        assert ratio > 1


def test_beside_keras_hub_at_4096_tokens(race, table):
    hub = pytest.importorskip(
        "keras_hub.src.models.qwen3_5.qwen3_5_gated_delta_net"
    )

    def theirs(query, key, value, log_decay, strength):
        return hub._chunk_gated_delta_rule(
            query, key, value, log_decay, strength
        )[0]

    rivals = {"keras-hub": compiled(theirs, 4096)}
    median, medians = race(compiled(delta, 4096), rivals)
    seconds = medians["keras-hub"]
    what = "gated delta rule against keras-hub's, n = 4096"
    ratio = seconds / median
    table(what, f"{1e3 * median:.0f} ms", f"{1e3 * seconds:.0f} ms",
          f"{ratio:.1f}")  # fmt: skip
    assert ratio > 0.9
