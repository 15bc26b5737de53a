"""Who is said to have failed."""

from types import SimpleNamespace

from d2l_attention.train import launch
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
