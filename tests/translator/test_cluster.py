"""`TF_CONFIG` is read, or refused by what it says."""

import json

from d2l_attention.translator.cluster import read_cluster
from d2l_attention.translator.commands.train import main
from d2l_attention.translator.run_folder import RunError
import pytest

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
