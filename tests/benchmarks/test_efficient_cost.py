"""Time and peak memory of the efficient mechanisms, by length.

python -m pytest tests/benchmarks/test_efficient_cost.py --benchmark-only \
    -o addopts=""
"""

import csv
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest

COMMAND = Path(__file__).parents[2] / "data" / "results" / "efficiency.py"
BOUNDS = {
    "linformer": 1.25,
    "performer": 1.25,
    "performer, causal": 1.25,
    "longformer": 1.25,
    "page-local": 1.25,
    "reformer": 1.35,
}


def exponents(name, lengths):
    """Of seconds and of megabytes, fitted over the lengths."""
    done = subprocess.run(
        [sys.executable, COMMAND, "--names", name, "--lengths", *lengths],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = list(csv.DictReader(done.stdout.splitlines()))
    n, seconds, megabytes = (
        np.log([float(row[column]) for row in rows])
        for column in ("n", "seconds", "megabytes")
    )
    return [np.polyfit(n, y, 1)[0] for y in (seconds, megabytes)]


@pytest.mark.parametrize("name", BOUNDS)
def test_grows_linearly(name, benchmark, table):
    lengths = ["512", "1024", "2048", "4096", "8192", "16384"]
    seconds, megabytes = exponents(name, lengths)
    benchmark.pedantic(lambda: None)
    what = f"{name}, n = 512 … 16384, exponents of time and memory"
    table(what, f"{seconds:.2f}", "", f"{megabytes:.2f}")
    assert seconds <= BOUNDS[name]
    assert megabytes <= BOUNDS[name]


def test_dense_attention_grows_quadratically(benchmark, table):
    seconds, megabytes = exponents("dense", ["1024", "2048", "4096", "8192"])
    benchmark.pedantic(lambda: None)
    what = "dense, n = 1024 … 8192, exponents of time and memory"
    table(what, f"{seconds:.2f}", "", f"{megabytes:.2f}")
    assert 1.6 < seconds < 2.4
    assert 1.6 < megabytes < 2.2
