"""Who is said to have failed, and what a launcher passes on."""

import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

from d2l_attention.translator import launch
import pytest


@pytest.mark.parametrize(
    ("codes", "status", "named"),
    [
        ([launch.LOST_PEERS, -9], 9, "Worker 1 ended with status -9"),
        ([-9, launch.LOST_PEERS], 9, "Worker 0 ended with status -9"),
        ([launch.LOST_PEERS, 0], 3, "Worker 0 ended with status 3"),
        ([0, 0], 0, ""),
    ],
)
def test_the_culprit_is_named_not_who_lost_it(codes, status, named, capsys):
    workers = [SimpleNamespace(poll=lambda code=code: code) for code in codes]
    assert launch._wait(workers) == status
    assert named in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="no SIGTERM")
def test_a_launcher_passes_on_that_it_is_told_to_leave(
    monkeypatch, tmp_path, capsys
):
    program = tmp_path / "python"
    program.write_text(
        "#!/bin/sh\n"
        f"trap 'exit {launch.LEFT}' TERM\n"
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
        assert launch.run_workers(2, []) == launch.LEFT
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
    with launch.told_to_leave(lambda: heard.append(number)):
        os.kill(os.getpid(), number)
        assert heard == [number]
        if number == signal.SIGINT:  # the second one does not wait
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
    assert {n: signal.getsignal(n) for n in own} == own
