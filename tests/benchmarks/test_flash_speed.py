"""Attention in blocks against torch and against our dense attention.

python -m pytest tests/benchmarks/test_flash_speed.py --benchmark-only \
    -o addopts=""
"""

import json
import subprocess
import sys

from d2l_attention import flash_attention, multi_head_attention
import numpy as np
import pytest
import tensorflow as tf

# torch looks for a GPU at its first backward pass, and finds none.
pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")
HEADS, FEATURES = 4, 64


def dense_attention(query, key, value):
    return multi_head_attention(query, key, value)[0]


def causal_flash_attention(query, key, value):
    return flash_attention(query, key, value, use_causal_mask=True)


def with_gradient(attend):
    def run(*arrays):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            output = attend(*arrays)
        return output, *tape.gradient(output, arrays)

    return run


def draw(n):
    shape = (3, 1, n, HEADS, FEATURES)
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def compiled(function, n):
    """A function without arguments, run once."""
    arrays = tuple(tf.constant(x) for x in draw(n))
    graph = tf.function(function)
    graph(*arrays)
    return lambda: tf.nest.map_structure(np.asarray, graph(*arrays))


def of_torch(n, gradient=False):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(2)
    arrays = [
        torch.tensor(x).transpose(1, 2).contiguous().requires_grad_(gradient)
        for x in draw(n)
    ]
    attend = torch.nn.functional.scaled_dot_product_attention

    def forward():
        with torch.no_grad():
            return attend(*arrays)

    def both():
        for x in arrays:
            x.grad = None
        attend(*arrays).sum().backward()

    return both if gradient else forward


def add_row(table, what, seconds, name, rival):
    numbers = f"{seconds:.3f} s", f"{name} {rival:.3f} s"
    table(f"flash, {what}", *numbers, f"{rival / seconds:.2f}")


@pytest.mark.parametrize("n, least", [(4096, 0.9), (8192, 0.95), (16384, 0.95)])
def test_forward(n, least, race, table):
    seconds, rivals = race(compiled(flash_attention, n), {"torch": of_torch(n)})
    add_row(table, f"forward, n = {n:,}", seconds, "torch", rivals["torch"])
    assert rivals["torch"] / seconds >= least


@pytest.mark.parametrize("n, least", [(1024, 1.0), (8192, 1.0)])
def test_forward_beside_dense(n, least, race, table):
    rounds = 5 if n > 4000 else 41
    seconds, rivals = race(
        compiled(flash_attention, n),
        {"our dense attention": compiled(dense_attention, n)},
        rounds,
    )
    (name, rival), *_ = rivals.items()
    add_row(table, f"forward, n = {n:,}", seconds, name, rival)
    assert rival / seconds >= least


def test_causal(race, table):
    n = 8192
    seconds, rivals = race(
        compiled(causal_flash_attention, n),
        {"not causal": compiled(flash_attention, n)},
    )
    rival = rivals["not causal"]
    add_row(table, f"forward, causal, n = {n:,}", seconds, "not causal", rival)
    assert rival / seconds >= 1.7


@pytest.mark.parametrize("n", [4096, 8192])
def test_forward_and_backward(n, race, table):
    seconds, rivals = race(
        compiled(with_gradient(flash_attention), n),
        {"torch": of_torch(n, gradient=True)},
    )
    rival = rivals["torch"]
    what = f"forward and backward, n = {n:,}"
    add_row(table, what, seconds, "torch", rival)
    assert rival / seconds >= 1.0


def peak_megabytes(function, n, gradient=False):
    """High-water mark of a fresh process less what it held before the run."""
    done = subprocess.run(
        [sys.executable, __file__, json.dumps([function, n, gradient])],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def measure(function, n, gradient):
    attend = globals()[function]
    attend = with_gradient(attend) if gradient else attend
    graph = tf.function(attend)
    arrays = tuple(tf.constant(x) for x in draw(n))
    graph(*(x[:, :64] for x in arrays))  # loads what is loaded lazily
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the mark begins anew
    before = status("VmRSS")
    graph(*arrays)
    return (status("VmHWM") - before) / 1024


def status(name):
    with open("/proc/self/status") as file:
        return next(
            int(line.split()[1]) for line in file if line.startswith(name)
        )


@pytest.mark.parametrize(
    "n, gradient, share", [(8192, False, 1 / 10), (4096, True, 1 / 4)]
)
def test_memory_beside_dense(n, gradient, share, benchmark, table):
    ours, dense = (
        peak_megabytes(name, n, gradient)
        for name in ("flash_attention", "dense_attention")
    )
    benchmark.pedantic(lambda: None)
    passes = "forward and backward" if gradient else "forward"
    what = f"flash, {passes}, n = {n:,}, extra memory against dense"
    table(what, f"{ours:.0f} MB", f"{dense:.0f} MB", f"{ours / dense:.3f}")
    assert ours <= share * dense


@pytest.mark.parametrize("gradient", [False, True])
def test_memory_grows_linearly(gradient, benchmark, table):
    sizes = [4096, 8192, 16384, 32768]
    peaks = [peak_megabytes("flash_attention", n, gradient) for n in sizes]
    benchmark.pedantic(lambda: None)
    exponent = np.polyfit(np.log(sizes), np.log(peaks), 1)[0]
    shown = ", ".join(f"{peak:.0f}" for peak in peaks)
    passes = "forward and backward" if gradient else "forward"
    what = f"flash, {passes}, extra MB at n = 4,096 … 32,768, exponent"
    table(what, shown, "", f"{exponent:.2f}")
    assert exponent <= 1.15


def test_where_dense_would_need_17_gigabytes(benchmark, table):
    n = 32768
    assert HEADS * n * n * 4 > 17e9
    peak = peak_megabytes("flash_attention", n)
    benchmark.pedantic(lambda: None)
    table(f"flash, forward, n = {n:,}, extra memory", f"{peak:.0f} MB", "", "")
    assert peak < 200


if __name__ == "__main__":
    print(measure(*json.loads(sys.argv[1])))
