"""Latent attention, expanded against absorbed: a step and a prefill.

python -m pytest tests/benchmarks/test_latent_speed.py --benchmark-only \
    -o addopts=""
"""

from d2l_attention import (
    absorbed_latent_attention,
    expanded_latent_attention,
    multi_head_attention,
)
import numpy as np
import pytest
import tensorflow as tf

HEADS, KEY, VALUE, ROTATED, LATENT = 16, 128, 128, 64, 512


def compiled(function, *arrays):
    """A function without arguments, run once."""
    graph = tf.function(lambda *arrays: function(*arrays)[0])
    arrays = [tf.constant(x) for x in arrays]
    graph(*arrays)
    return lambda: np.asarray(graph(*arrays))


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def forms(num_queries, num_keys):
    """Expanded, absorbed, and attention to keys and values that are kept."""
    query = draw(1, num_queries, HEADS, KEY + ROTATED) / LATENT
    latent = draw(1, num_keys, LATENT + ROTATED)
    kernels = draw(LATENT, HEADS, KEY), draw(LATENT, HEADS, VALUE)
    kept = (
        draw(1, num_keys, HEADS, KEY + ROTATED),
        draw(1, num_keys, HEADS, VALUE),
    )
    return (
        compiled(expanded_latent_attention, query, latent, *kernels),
        compiled(absorbed_latent_attention, query, latent, *kernels),
        compiled(multi_head_attention, query, *kept),
    )


@pytest.mark.parametrize("num_keys", [1024, 4096])
def test_a_step(num_keys, race, table):
    expanded, absorbed, kept = forms(1, num_keys)
    rivals = {"expanded": expanded, "with kept keys": kept}
    seconds, others = race(absorbed, rivals)
    for name, rival in others.items():
        numbers = f"{1e3 * seconds:.1f} ms", f"{name} {1e3 * rival:.1f} ms"
        what = f"latent step, absorbed, {num_keys} tokens"
        table(what, *numbers, f"{rival / seconds:.2f}")
    assert others["expanded"] / seconds > 2


def test_a_prefill(race, table):
    expanded, absorbed, _ = forms(1024, 1024)
    seconds, others = race(expanded, {"absorbed": absorbed})
    rival = others["absorbed"]
    numbers = f"{seconds:.3f} s", f"absorbed {rival:.3f} s"
    ratio = rival / seconds
    table("latent prefill, expanded, 1024", *numbers, f"{ratio:.2f}")
    assert ratio > 1.2
