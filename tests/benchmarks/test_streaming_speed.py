"""A step late in a text, with a cache that keeps its size and one that grows.

    python -m pytest tests/benchmarks/test_streaming_speed.py \
        --benchmark-only -o addopts=""

4 layers of 256 features, 8 heads, 2 of keys; one step of one text, compiled.
"""

from d2l_attention import (
    AttentionBlock,
    BlockLanguageModel,
    RotaryAttention,
    StreamingAttention,
    WindowAttention,
)
import keras
import numpy as np
import pytest
import tensorflow as tf

LAYERS = {
    "streaming": lambda: StreamingAttention(
        8, 32, window=252, num_sinks=4, num_kv_heads=2
    ),
    "window": lambda: WindowAttention(8, 32, window=256, num_kv_heads=2),
    "plain": lambda: RotaryAttention(8, 32, num_kv_heads=2),
}
PLACES, STEPS = (1_000, 10_000), 32


def steps_from(make, position):
    """Some steps from a position on; what the cache holds does not matter."""
    blocks = [AttentionBlock(make(), 256, 1024) for _ in range(4)]
    model = BlockLanguageModel(101, 256, blocks, max_length=PLACES[-1] + STEPS)
    model.build((None, None))
    caches = [x.make_cache(1, model.max_length) for x in model.blocks]
    start = {"position": tf.constant([position]), "caches": caches}
    token = tf.constant([1])
    step = tf.function(model.step)

    def run():
        state = keras.tree.map_structure(tf.identity, start)
        for _ in range(STEPS):
            logits, state = step(token, state)
        return np.array(logits)

    run()  # compiles
    return run


@pytest.mark.parametrize("name", ["streaming", "window"])
def test_a_step_costs_no_more_late_in_a_text(name, race, table):
    early, late = (steps_from(LAYERS[name], place) for place in PLACES)
    rivals = {
        "early": early,
        "plain, early": steps_from(LAYERS["plain"], PLACES[0]),
        "plain, late": steps_from(LAYERS["plain"], PLACES[1]),
    }
    ours, seconds = race(late, rivals, rounds=9)
    for what, late_one, early_one in (
        (name, ours, seconds["early"]),
        ("plain", seconds["plain, late"], seconds["plain, early"]),
    ):
        table(
            f"a {what} step at 10,000 tokens, beside 1,000, ms",
            f"{1000 * late_one / STEPS:.2f}",
            f"{1000 * early_one / STEPS:.2f}",
            f"{late_one / early_one:.2f}",
        )
    assert ours / seconds["early"] <= 1.3
