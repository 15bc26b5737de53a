"""A step of a language model with rotated queries and keys, and without.

    python -m pytest tests/benchmarks/test_rotary_speed.py --benchmark-only \
        -o addopts=""

4 layers of 256 features, 8 heads, 2 of keys; greedy decoding, compiled.
"""

from d2l_attention import (
    AttentionBlock,
    BlockLanguageModel,
    GreedyDecoder,
    RotaryAttention,
)
import numpy as np
import pytest

STEPS = 128


def decoder(frequencies):
    pattern = RotaryAttention(
        8, key_dim=32, num_kv_heads=2, frequencies=frequencies
    )
    blocks = [AttentionBlock(pattern, 256, 1024) for _ in range(4)]
    model = BlockLanguageModel(101, 256, blocks, max_length=256)
    greedy = GreedyDecoder(model, 1, 10**6, STEPS)  # no token ends it
    greedy.compile(jit_compile=True)
    return greedy


@pytest.mark.parametrize("batch", [1, 16])
def test_rotation_costs_a_step_a_tenth_at_most(batch, race, table):
    prompts = np.random.default_rng(0).integers(1, 101, (batch, 64))
    rotated, plain = decoder(None), decoder([])
    for greedy in (rotated, plain):
        greedy.predict(prompts, verbose=0)  # compiles
    ours, rivals = race(
        lambda: rotated.predict(prompts, verbose=0),
        {"plain": lambda: plain.predict(prompts, verbose=0)},
        rounds=15,
    )
    rival = rivals["plain"]
    what = f"a step with rotation, {batch} texts, ms"
    ratio = ours / rival
    per_step = [f"{1000 * x / STEPS:.2f}" for x in (ours, rival)]
    table(what, *per_step, f"{ratio:.2f}")
    assert ratio <= 1.1
