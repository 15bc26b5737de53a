"""Small runs, in this process or by the command."""

import csv
import os
import subprocess
import sys

from d2l_attention.translator.commands.train import main as train
from filelock import FileLock
import pytest

SMALL = {
    "model": "transformer",
    "dim": 16,
    "num-layers": 1,
    "num-heads": 2,
    "ffn-dim": 32,
    "dropout": 0.0,
    "max-length": 8,
    "num-pairs": 1500,
    "num-validation": 40,
    "num-test": 40,
    "epochs": 2,
    "batch-size": 64,
    "warmup-steps": 5,
    "learning-rate": 0.01,  # so that 44 steps teach it to write a word
    "log-every": 1,
    "checkpoint-every": 5,
    "samples": 0,
}


@pytest.fixture
def small_run():
    """What follows `train` in the command of a small run, as a list."""

    def make(run, **changed):
        changed = {k.replace("_", "-"): v for k, v in changed.items()}
        options = {**SMALL, **changed}
        return [str(run), *(f"--{name}={x}" for name, x in options.items())]

    return make


@pytest.fixture
def command(small_run):
    """The whole command, for a process of its own."""
    program = [sys.executable, "-m", "d2l_attention", "train"]
    return lambda *run, **changed: [*program, *small_run(*run, **changed)]


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A folder that all workers of pytest share."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return folder / "runs"


@pytest.fixture
def finished(small_run, runs):
    """The folder of a finished run, made in this process."""
    run = runs / "one"
    runs.mkdir(exist_ok=True)
    with FileLock(runs / "one.lock"):  # the first who comes trains
        if not (run / "scores.json").exists():
            assert train(small_run(run)) == 0
    return run


@pytest.fixture
def environment():
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def finish(environment):
    """Run a command to its end; it must succeed unless a status is given."""

    def run(command, status=0, **options):
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=500,
            env=environment,
            **options,
        )
        assert done.returncode == status, done.stderr[-3000:]
        return done

    return run


@pytest.fixture
def losses():
    """The history's losses, step by step."""

    def read(run):
        with open(run / "history.csv", newline="") as file:
            return [float(row["loss"]) for row in csv.DictReader(file)]

    return read
