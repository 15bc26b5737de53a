"""Attention in blocks against torch and against our dense attention.

python -m pytest tests/benchmarks/test_flash_speed.py --benchmark-only \
    -o addopts=""
"""

import json
import subprocess
import sys

from d2l_attention import flash_attention, masked_softmax, multi_head_scores
from d2l_attention.multi_head import multi_head_sum
import numpy as np
import pytest
import tensorflow as tf

# torch looks for a GPU at its first backward pass, and finds none.
pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")
HEADS, FEATURES = 4, 64


def dense_attention(query, key, value):
    weights = masked_softmax(multi_head_scores(query, key))
    return multi_head_sum(weights, value)


def causal_flash_attention(query, key, value):
    return flash_attention(query, key, value, causal=True)


def products_alone(query, key, value, block=512):
    """Both products in blocks, without a softmax: what they cost at least."""
    query, key, value = (
        tf.reshape(tf.transpose(x, (1, 0, 2, 3)), (-1, block, HEADS, FEATURES))
        for x in (query, key, value)
    )
    query, key, value = (
        tf.transpose(x, (0, 2, 1, 3)) for x in (query, key, value)
    )

    def add_block(j, q, output):
        scores = tf.matmul(q, key[j], transpose_b=True)
        return j + 1, q, output + tf.matmul(scores, value[j])

    def attend(q):
        return tf.while_loop(
            lambda j, *_: j < tf.shape(key)[0],
            add_block,
            (0, q, tf.zeros_like(q)),
            parallel_iterations=1,
        )[2]

    return tf.map_fn(attend, query, parallel_iterations=1)


def with_gradient(attend):
    def run(*arrays):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            output = attend(*arrays)
        return tape.gradient(output, arrays)

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


def test_forward(race, table):
    n = 8192
    seconds, rivals = race(
        compiled(flash_attention, n),
        {
            "torch": of_torch(n),
            "dense": compiled(dense_attention, n),
            "causal": compiled(causal_flash_attention, n),
            "its two products alone": compiled(products_alone, n),
        },
    )
    for name, rival in rivals.items():
        what = f"flash, forward, n = {n}, against {name}"
        table(
            what, f"{seconds:.2f} s", f"{rival:.2f} s", f"{rival / seconds:.2f}"
        )
    assert rivals["dense"] / seconds >= 0.9
    assert seconds / rivals["causal"] >= 1.7
    assert rivals["torch"] / seconds >= 1.2


@pytest.mark.parametrize("n", [4096, 8192])
def test_forward_and_backward(n, race, table):
    seconds, rivals = race(
        compiled(with_gradient(flash_attention), n),
        {"torch": of_torch(n, gradient=True)},
        rounds=3,
    )
    rival = rivals["torch"]
    what = f"flash, forward and backward, n = {n}, against torch"
    table(what, f"{seconds:.2f} s", f"{rival:.2f} s", f"{rival / seconds:.2f}")
    assert rival / seconds >= 1.2


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
    "n, gradient, share", [(8192, False, 1 / 6), (4096, True, 1 / 4)]
)
def test_memory_beside_dense(n, gradient, share, benchmark, table):
    ours, dense = (
        peak_megabytes(name, n, gradient)
        for name in ("flash_attention", "dense_attention")
    )
    benchmark.pedantic(lambda: None)
    passes = "forward and backward" if gradient else "forward"
    what = f"flash, {passes}, n = {n}, extra memory against dense"
    table(what, f"{ours:.0f} MB", f"{dense:.0f} MB", f"{ours / dense:.3f}")
    assert ours <= share * dense


@pytest.mark.parametrize("gradient", [False, True])
def test_memory_grows_linearly(gradient, benchmark, table):
    sizes = [2048, 4096, 8192, 16384]
    peaks = [peak_megabytes("flash_attention", n, gradient) for n in sizes]
    benchmark.pedantic(lambda: None)
    exponent = np.polyfit(np.log(sizes), np.log(peaks), 1)[0]
    shown = ", ".join(f"{peak:.0f}" for peak in peaks)
    passes = "forward and backward" if gradient else "forward"
    what = f"flash, {passes}, extra MB at n = 2048 … 16384, exponent"
    table(what, shown, "", f"{exponent:.2f}")
    assert exponent <= 1.15


def test_where_dense_would_need_17_gigabytes(benchmark, table):
    n = 32768
    assert HEADS * n * n * 4 > 17e9
    peak = peak_megabytes("flash_attention", n)
    benchmark.pedantic(lambda: None)
    table(f"flash, forward, n = {n}, extra memory", f"{peak:.0f} MB", "", "")
    assert peak < 500


if __name__ == "__main__":
    print(measure(*json.loads(sys.argv[1])))
