"""A run as a SavedModel: in a process that has TensorFlow only."""

import json
import sys

from d2l_attention.translator import load_translator
from d2l_attention.translator.commands.export import main as export
from d2l_attention.translator.commands.train import main as train
import pytest

pytestmark = pytest.mark.ci
TEXTS = ["the red cup .", "i see you", "the cat xyzzy"]

# What the page on training shows, and a check that it needs no more.
WORDS = """
import json, sys
from pathlib import Path
import tensorflow as tf

folder, *texts = sys.argv[1:]
about = json.loads(Path(folder, "about.json").read_text())
words = [
    ["", "[UNK]", *Path(folder, f"{side}_vocabulary.txt")
        .read_text(encoding="utf-8").split("\\n")]
    for side in ("source", "target")
]
model = tf.saved_model.load(f"{folder}/model")
for text in texts:
    known = [w if w in words[0] else "[UNK]" for w in text.split()]
    source = tf.constant([[words[0].index(w) for w in known]], tf.int32)
    ids = model.serve(source)
    found = [i for i in ids[0].numpy() if i not in (0, about["end_id"])]
    print(" ".join(words[1][i] for i in found))
assert "d2l_attention" not in sys.modules
"""
PIECES = """
import json, sys
from pathlib import Path
import sentencepiece
import tensorflow as tf

folder, *texts = sys.argv[1:]
about = json.loads(Path(folder, "about.json").read_text())
source, target = (
    sentencepiece.SentencePieceProcessor(f"{folder}/{side}_subwords.model")
    for side in ("source", "target")
)
model = tf.saved_model.load(f"{folder}/model")
for text in texts:
    ids = model.serve(tf.constant([source.encode(text)], tf.int32))[0].numpy()
    print(target.decode([int(i) for i in ids if i not in (0, about["end_id"])]))
"""


def elsewhere(finish, program, folder):
    command = [sys.executable, "-c", program, str(folder), *TEXTS]
    return finish(command).stdout.splitlines()


def test_words_are_translated_alike_without_the_package(
    finished, finish, tmp_path
):
    """And TensorFlow's own lines stay away from who exports."""
    folder = tmp_path / "new" / "exported"
    program = [sys.executable, "-m", "d2l_attention", "export"]
    done = finish([*program, str(finished), str(folder), "--beam=3"])
    assert done.stdout == f"Wrote the finished run to {folder}.\n"
    assert done.stderr == ""
    expected = load_translator(finished).translate(TEXTS, beam=3)
    assert any(expected)
    assert elsewhere(finish, WORDS, folder) == expected
    about = json.loads((folder / "about.json").read_text())
    assert about["beam"] == 3 and about["max_length"] == 8
    assert [path.name for path in folder.parent.iterdir()] == ["exported"]


def test_pieces_are_translated_alike(small_run, finish, tmp_path):
    run, folder = tmp_path / "run", tmp_path / "exported"
    options = {"subwords": 400, "epochs": 1, "warmup_steps": 1}
    assert train(small_run(run, **options)) == 0
    assert export([str(run), str(folder)]) == 0
    expected = load_translator(run).translate(TEXTS)
    assert elsewhere(finish, PIECES, folder) == expected


def test_nothing_is_overwritten_and_nothing_half_written(
    finished, tmp_path, capsys, monkeypatch
):
    kept = tmp_path / "kept"
    kept.mkdir()
    assert export([str(finished), str(kept)]) == 2
    assert "kept is there already" in capsys.readouterr().err
    assert not [*kept.iterdir()]
    assert export([str(kept), str(tmp_path / "a" / "b")]) == 2
    assert "is no run folder" in capsys.readouterr().err

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("shutil.copy", full)
    assert export([str(finished), str(tmp_path / "new")]) == 2
    assert "No space left" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
