"""Ours and its rivals in turn; the figures in one table at the end."""

import time

import numpy as np
import pytest

ROWS = []


@pytest.fixture
def race(benchmark):
    """Median seconds of ours, and of each rival by name, interleaved."""

    def run(ours, rivals, rounds=5):
        seconds = {name: [] for name in rivals}

        def one_round_of_the_rivals():
            for name, rival in rivals.items():
                started = time.perf_counter()
                rival()
                seconds[name].append(time.perf_counter() - started)

        benchmark.pedantic(ours, setup=one_round_of_the_rivals, rounds=rounds)
        medians = {name: np.median(times) for name, times in seconds.items()}
        return benchmark.stats["median"], medians

    return run


@pytest.fixture
def table():
    """Adds a row: what was measured, ours, the rival, and the ratio."""
    return lambda *row: ROWS.append(row)


def pytest_terminal_summary(terminalreporter):
    head = ("measured", "ours", "rival", "ratio")
    for row in (head, ("---",) * 4, *ROWS):
        terminalreporter.write_line(f"| {' | '.join(map(str, row))} |")
