"""No log line of TensorFlow reaches a reader's notebook."""

import os
import subprocess
import sys

from d2l_attention import _quiet
from d2l_attention._quiet import hold_stderr, in_notebook
from nbclient import NotebookClient
import nbformat
import pytest

CELL = """
from d2l_attention import AdditiveAttention
import keras
import numpy as np
model = keras.Sequential([keras.layers.Dense(3)])
model.compile("sgd", "mse", jit_compile=True)
history = model.fit(np.ones((2, 2)), np.ones((2, 3)), verbose=0)
"""

SCRIPT = """
import os

def refuse(*_):
    raise AssertionError("descriptor 2 was redirected")

os.dup2 = refuse
import d2l_attention
"""


def test_a_notebook_shows_no_log_line(monkeypatch):
    # ipykernel does not capture descriptor 2 while it believes in pytest
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    cell = nbformat.v4.new_code_cell(CELL)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, timeout=120).execute()
    assert notebook.cells[0].outputs == []


@pytest.mark.ci
def test_outside_a_notebook_nothing_is_redirected():
    assert not in_notebook()
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


@pytest.mark.ci
def test_a_command_says_only_what_it_has_to_say():
    words = ["translate", "nowhere", "a text"]
    environment = {
        k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"
    }
    done = subprocess.run(
        [sys.executable, "-m", "d2l_attention", *words],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("ValueError: nowhere is no run folder")


def test_ctrl_c_during_the_import_ends_a_command_in_silence(monkeypatch, capfd):
    really = __import__

    def stop(name, *others):
        if name != "keras":
            return really(name, *others)
        os.write(2, b"a line of TensorFlow")
        raise KeyboardInterrupt

    monkeypatch.setattr(_quiet, "in_command", lambda: True)
    monkeypatch.delitem(sys.modules, "d2l_attention.layers.masking")
    monkeypatch.setattr("builtins.__import__", stop)
    with pytest.raises(SystemExit) as ended:
        _quiet.import_backend()
    assert ended.value.code == 130
    assert capfd.readouterr().err == ""


def test_what_was_held_is_replayed_on_an_error(capfd):
    with hold_stderr():
        os.write(2, b"noise")
    with pytest.raises(RuntimeError), hold_stderr():
        os.write(2, b"signal")
        raise RuntimeError
    os.write(2, b"after")
    assert capfd.readouterr().err == "signalafter"
