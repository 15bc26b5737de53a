"""Nothing half-written, nothing of another run, nothing overwritten."""

import errno
import os
from types import SimpleNamespace

from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import RunError, Settings
import numpy as np
import pytest

ARRAYS = {
    "0 kernel": np.arange(6, dtype="float32").reshape(2, 3),
    "1 steps": np.array(7, "int64"),
    "2 half": np.array([1.5], "float16"),
}
POSITION = {"step": 3, "losses": [0.1, 1 / 3], "history": [[1, 2, "", 4]]}


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    run.open({"dim": 8})
    run.history = POSITION["history"]
    return run


def test_a_checkpoint_comes_back_bit_for_bit(run):
    assert run.load_checkpoint() is None
    run.history = POSITION["history"]
    run.save_checkpoint(ARRAYS, POSITION)
    arrays, position = run.load_checkpoint()
    assert position == POSITION
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize("place", [10, 70, 400, -1])
def test_a_damaged_checkpoint_is_refused_and_kept(run, place):
    run.save_checkpoint(ARRAYS, POSITION)
    path = run.path / "checkpoint"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"checkpoint is damaged"):
        run.load_checkpoint()
    assert path.read_bytes() == bytes(content)
    path.write_bytes(content[:100])
    with pytest.raises(RunError, match=r"checkpoint is damaged"):
        run.load_checkpoint()


def test_a_checkpoint_of_other_settings_is_refused_and_kept(run, tmp_path):
    run.save_checkpoint(ARRAYS, POSITION)
    other = Run(tmp_path / "other")
    other.open({"dim": 8, "seed": 1})
    foreign = (run.path / "checkpoint").read_bytes()
    (other.path / "checkpoint").write_bytes(foreign)
    with pytest.raises(RunError, match="no checkpoint of a run of these"):
        other.load_checkpoint()
    assert (other.path / "checkpoint").read_bytes() == foreign


def test_results_are_of_the_test_pairs_in_their_order(run, monkeypatch):
    pairs = [("one", "un"), ("two", "deux"), ("three", "trois")]
    translations, drawn = ["uno", "dos", "tres"], []
    model = SimpleNamespace(
        save=lambda path: path.write_bytes(b"model"), count_params=lambda: 7
    )
    for name, stand_in in {
        "make_translator": lambda *_: SimpleNamespace(
            model=model, as_written=str
        ),
        "score": lambda *_: (translations, {"sentences": 3}),
        "draw": lambda _, *what: drawn.append(what),
    }.items():
        monkeypatch.setattr(
            f"d2l_attention.translator.run_folder.{name}", stand_in
        )
    monkeypatch.setattr(run, "final_parameters", lambda _: ({}, "epoch 5"))
    corpus = SimpleNamespace(
        vectorizers=None, pairs=SimpleNamespace(test=pairs)
    )
    scores = run.write_results(SimpleNamespace(settings=None, corpus=corpus))
    assert scores == {"parameters": 7, "sentences": 3}
    assert run.read_json("scores.json") == scores
    assert drawn == [("one", "uno", run.path / "alignment.png")]
    text = (run.path / "translations.csv").read_text()
    assert text.split()[1:] == [
        "one,un,uno",
        "two,deux,dos",
        "three,trois,tres",
    ]
    assert (run.path / "model.keras").read_bytes() == b"model"


def test_what_a_killed_write_left_is_cleared(run):
    before = {*os.listdir(run.path)}
    (run.path / ".checkpoint.1f.part").write_bytes(b"half")
    run.check({"dim": 8})
    assert len(os.listdir(run.path)) == len(before) + 1
    run.open({"dim": 8})
    assert {*os.listdir(run.path)} == before


def test_to_check_a_folder_writes_nothing(tmp_path):
    Run(tmp_path / "run").check({"dim": 8})
    assert os.listdir(tmp_path) == []


def test_a_file_is_replaced_and_never_written_over(run):
    run.save_checkpoint(ARRAYS, POSITION)
    other_name = run.path / "old"
    os.link(run.path / "checkpoint", other_name)
    before = other_name.read_bytes()
    run.save_checkpoint(ARRAYS, {"step": 9})
    assert other_name.read_bytes() == before


def test_a_full_disk_leaves_the_last_checkpoint(run, monkeypatch):
    run.save_checkpoint(ARRAYS, POSITION)
    before = sorted(os.listdir(run.path))

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left.*unchanged"):
        run.save_checkpoint({"0 kernel": np.zeros(3)}, {"step": 9})
    monkeypatch.undo()
    assert run.load_checkpoint()[1] == POSITION
    assert sorted(os.listdir(run.path)) == before


def test_the_same_settings_go_on_and_others_are_refused(run):
    run.open({"dim": 8})
    with pytest.raises(RunError, match="dim: 8 there, 16 now"):
        run.open({"dim": 16})
    with pytest.raises(RunError, match="seed: None there, 1 now"):
        run.open({"dim": 8, "seed": 1})
    assert run.read_json("settings.json") == {"dim": 8}


TEXT = {"dim": 8, "corpus": "pairs.tsv", "corpus_sha256": "0a1b"}
TEXT |= {"test_corpus": None, "test_corpus_sha256": None}


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"corpus_sha256": "ff"}, "pairs.tsv has changed since this run began"),
        (
            {"corpus": "b.tsv", "corpus_sha256": "ff"},
            "corpus: 'pairs.tsv' there, 'b.tsv' now",
        ),
        (
            {"test_corpus": ["a", "b"], "test_corpus_sha256": ["c", "d"]},
            r"test_corpus: None there, \['a', 'b'\] now",
        ),
        (
            {"corpus_sha256": "ff", "dim": 9},
            "pairs.tsv has changed .*dim: 8 there, 9 now",
        ),
    ],
)
def test_another_text_is_told_in_words(now, told, tmp_path):
    run = Run(tmp_path / "run")
    run.open(TEXT)
    with pytest.raises(RunError, match=told) as refused:
        run.check({**TEXT, **now})
    message = str(refused.value)
    assert "0a1b" not in message and "sha256" not in message
    assert "another folder" in message
    run.check({**TEXT, "corpus": "elsewhere/pairs.tsv"})  # the same text
    run.close()


def test_a_changed_shipped_corpus_has_a_name(tmp_path):
    run = Run(tmp_path / "run")
    run.open({"corpus": None, "corpus_sha256": "0"})
    with pytest.raises(RunError, match="shipped corpus has changed since"):
        run.check({"corpus": None, "corpus_sha256": "1"})
    run.close()


def test_more_epochs_are_another_run(tmp_path):
    run = Run(tmp_path / "run")
    run.open({"dim": 8, "epochs": 3})
    told = f"epochs: 3 there, 5 now.*--resume-from {run.path}"
    with pytest.raises(RunError, match=told):
        run.check({"dim": 8, "epochs": 5})
    run.close()


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="is no run folder, and not empty"):
        Run(tmp_path).open({"dim": 8})
    with pytest.raises(RunError, match="is no run folder"):
        Run(tmp_path / "thesis.tex").open({"dim": 8})
    assert os.listdir(tmp_path) == ["thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_unreadable_settings_are_named(run):
    for text in ("{", "[8]"):
        (run.path / "settings.json").write_text(text)
        with pytest.raises(RunError, match="settings.json"):
            run.open({"dim": 8})


def test_an_empty_folder_may_be_taken(tmp_path):
    run = Run(tmp_path)
    run.open({"dim": 8})
    run.close()
    assert {*os.listdir(tmp_path)} - {".lock"} == {"settings.json"}


def test_a_folder_is_open_in_one_process_only(run):
    second = Run(run.path)
    told = rf"run is in use by process {os.getpid()} of .+, since 20"
    with pytest.raises(RunError, match=told):
        second.open({"dim": 8})
    second.close()  # it has nothing to release
    with pytest.raises(RunError, match=told):
        second.open({"dim": 8})
    run.open({"dim": 8})  # again, and it is closed once
    run.close()
    second.open({"dim": 8})
    second.close()


def test_the_same_corpus_at_another_place_is_the_same_run(tmp_path):
    run, there = Run(tmp_path / "run"), tmp_path / "moved.tsv"
    here = tmp_path / "pairs.tsv"
    here.write_text("one\teins\n")
    run.open(Settings(corpus=str(here)).identity())
    here.rename(there)
    run.check(Settings(corpus=str(there)).identity())
    there.write_text("one\tzwei\n")
    with pytest.raises(RunError, match="moved.tsv' now"):
        run.check(Settings(corpus=str(there)).identity())
    run.close()
