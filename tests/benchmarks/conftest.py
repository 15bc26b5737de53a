"""Ours and its rivals in turn; the figures in one table at the end."""

from datetime import date
import platform
import time

import numpy as np
import pytest

ROWS = []
PAUSE = 0.3  # torch's threads go on spinning for a while when it is done


@pytest.fixture
def race(benchmark):
    """Median seconds of ours, and of each rival by name, interleaved."""

    def run(ours, rivals, rounds=5):
        seconds = {name: [] for name in rivals}

        def one_round_of_the_rivals():
            for name, rival in rivals.items():
                time.sleep(PAUSE)
                started = time.perf_counter()
                rival()
                seconds[name].append(time.perf_counter() - started)
            time.sleep(PAUSE)

        benchmark.pedantic(ours, setup=one_round_of_the_rivals, rounds=rounds)
        medians = {name: np.median(times) for name, times in seconds.items()}
        return benchmark.stats["median"], medians

    return run


@pytest.fixture
def table():
    """Adds a row: what was measured, ours, the rival, and the ratio."""
    return lambda *row: ROWS.append(row)


def processor():
    """Name and number of cores, as Linux tells them."""
    try:
        with open("/proc/cpuinfo") as file:
            named = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return platform.processor()
    names = {name.strip(): value.strip() for name, value in named.items()}
    flags = [f for f in names["flags"].split() if f.startswith("avx512")]
    return f"{names['model name']}, {len(flags)} AVX-512 extensions"


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"{date.today()}, {processor()}")
    head = ("measured", "ours", "rival", "ratio")
    for row in (head, ("---",) * 4, *ROWS):
        terminalreporter.write_line(f"| {' | '.join(map(str, row))} |")
