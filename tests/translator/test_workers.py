"""`TF_CONFIG`; who is said to have failed; what a launcher passes on."""

import json
import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

from d2l_attention.translator import workers
from d2l_attention.translator.commands.train import main
from d2l_attention.translator.settings import RunError
from d2l_attention.translator.workers import read_cluster
import pytest


@pytest.mark.parametrize(
    ("codes", "status", "named"),
    [
        ([workers.LOST_PEERS, -9], 9, "Worker 1 ended with status -9"),
        ([-9, workers.LOST_PEERS], 9, "Worker 0 ended with status -9"),
        ([workers.LOST_PEERS, 0], 3, "Worker 0 ended with status 3"),
        ([0, 0], 0, ""),
    ],
)
def test_the_culprit_is_named_not_who_lost_it(codes, status, named, capsys):
    ended = [SimpleNamespace(poll=lambda code=code: code) for code in codes]
    assert workers._wait(ended) == status
    assert named in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="no SIGTERM")
def test_a_launcher_passes_on_that_it_is_told_to_leave(
    monkeypatch, tmp_path, capsys
):
    program = tmp_path / "python"
    program.write_text(
        "#!/bin/sh\n"
        f"trap 'exit {workers.LEFT}' TERM\n"
        f"touch {tmp_path}/ready.$$\n"
        "for i in $(seq 200); do sleep 0.1; done\n"
    )
    program.chmod(0o755)
    heard = []  # by this process, which the signal would end
    monkeypatch.setattr(sys, "executable", str(program))
    own = signal.signal(signal.SIGTERM, lambda *_: heard.append("outside"))

    def tell():
        deadline = time.monotonic() + 15
        while len([*tmp_path.glob("ready.*")]) < 2:
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        threading.Thread(target=tell).start()
        assert workers.run_workers(2, []) == workers.LEFT
        assert capsys.readouterr().err == "" and not heard
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == ["outside"]
    finally:
        signal.signal(signal.SIGTERM, own)


@pytest.mark.skipif(os.name == "nt", reason="no SIGTERM")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_is_told_to_leave_may_finish_what_he_does(number):
    own = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    heard = []
    with workers.told_to_leave(lambda: heard.append(number)):
        os.kill(os.getpid(), number)
        assert heard == [number]
        if number == signal.SIGINT:  # the second one does not wait
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
    assert {n: signal.getsignal(n) for n in own} == own


TWO = ["a:1", "b:2"]


def config(cluster, **task):
    return json.dumps({"cluster": cluster, "task": task})


def test_workers_and_the_index_of_this_one(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert read_cluster() == ([], 0)
    for text in ("", "{}"):
        monkeypatch.setenv("TF_CONFIG", text)
        assert read_cluster() == ([], 0)
    for index in (1, "1"):
        text = config({"worker": TWO}, type="worker", index=index)
        monkeypatch.setenv("TF_CONFIG", text)
        assert read_cluster() == (TWO, 1)


@pytest.mark.parametrize(
    "text",
    [
        "worker",
        "[]",
        config({"chief": ["a:1"], "worker": ["b:2"]}, type="worker", index=0),
        config({"worker": TWO}, type="evaluator", index=0),
        config({"worker": TWO}, type="worker", index=2),
        config({"worker": TWO}, type="worker", index=-1),
        config({"worker": TWO}, type="worker"),
        config({"worker": ["a:1", "a:1"]}, type="worker", index=0),
        config({"worker": ["a", "b"]}, type="worker", index=0),
        config({"worker": 2}, type="worker", index=0),
    ],
)
def test_anything_else_is_refused(text, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(RunError) as refused:
        read_cluster()
    assert text in str(refused.value)
    assert main([str(tmp_path / "run")]) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_cluster_starts_no_workers_of_its_own(monkeypatch, tmp_path, capsys):
    text = config({"worker": TWO}, type="worker", index=0)
    monkeypatch.setenv("TF_CONFIG", text)
    assert main([str(tmp_path / "run"), "--workers=2"]) == 2
    assert "TF_CONFIG names 2" in capsys.readouterr().err
