"""What the commands do with a finished run, all in this process."""

import csv
import io
import json
import os
import re
import shutil
import socket

from d2l_attention.datasets import DataError
from d2l_attention.translator import Translator
from d2l_attention.translator.commands.evaluate import main as evaluate
from d2l_attention.translator.commands.train import main as train
from d2l_attention.translator.commands.translate import main as translate
from d2l_attention.translator.run_folder import Run
import pytest


def test_a_finished_run_holds_what_it_says(finished):
    scores = json.loads((finished / "scores.json").read_text())
    for name in ("bleu", "chrf"):
        assert 0 <= scores[name]["low"] <= scores[name]["score"]
        assert scores[name]["score"] <= scores[name]["high"] <= 100
    assert scores["sentences"] == 40
    settings = json.loads((finished / "settings.json").read_text())
    assert settings["dim"] == 16
    assert (finished / "alignment.png").read_bytes().startswith(b"\x89PNG")
    words = (finished / "target_vocabulary.txt").read_text(encoding="utf-8")
    assert {"[start]", "[end]"} <= set(words.split("\n"))
    assert not {n for n in os.listdir(finished) if n[0] == "."} - {".lock"}


def test_translates_a_text_and_lines(
    finished, translate_lines, tmp_path, capsys
):
    heatmap = tmp_path / "map.html"
    arguments = [str(finished), "The red cup.", f"--heatmap={heatmap}"]
    assert translate(arguments) == 0
    (translation,) = capsys.readouterr().out.splitlines()
    assert "<html" in heatmap.read_text(encoding="utf-8").lower()
    _, lines, *_ = translate_lines(b"The red cup.\n\nI see you.\n")
    assert len(lines) == 3
    assert lines[0] == translation
    assert lines[1] == ""


def test_beam_search_and_texts_that_are_refused(finished, capsys):
    assert translate([str(finished), "the red cup", "--beam=2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert translate([str(finished), " ".join(["cup"] * 9)]) == 2
    assert "1 to 8 tokens. Received 9" in capsys.readouterr().err
    assert translate([str(finished / "nowhere"), "cup"]) == 2
    assert "nowhere" in capsys.readouterr().err


def evaluated(capsys, *words):
    """The scores that the command prints, and what it says beside."""
    assert evaluate([str(word) for word in words]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


def test_evaluating_a_run_gives_its_scores(finished, tmp_path, capsys):
    known = json.loads((finished / "scores.json").read_text())
    found, err = evaluated(capsys, finished)
    assert "Translating 40 with the finished run." in err
    assert found == {k: v for k, v in known.items() if k != "parameters"}
    assert "tok:none" in found["signatures"]["bleu"]
    assert found["signatures"]["chrf"].startswith("nrefs:1|bs:1000|")
    # A run that is not finished has no more than these.
    begun = tmp_path / "begun"
    begun.mkdir()
    names = ["settings.json", "source_vocabulary.txt", "target_vocabulary.txt"]
    for name in names:
        shutil.copy(finished / name, begun)
    assert evaluate([str(begun)]) == 2
    assert "begun has no checkpoint yet" in capsys.readouterr().err
    assert translate([str(begun), "i see you"]) == 2
    assert "begun has no checkpoint yet" in capsys.readouterr().err
    shutil.copy(finished / "checkpoint", begun)
    again, err = evaluated(capsys, begun)
    assert again == found
    assert "with the checkpoint of step 44." in err
    told = []
    for run in (finished, begun):
        assert translate([str(run), "i see you"]) == 0
        told.append(capsys.readouterr())
    assert told[0] == told[1] and told[0].out.strip()
    settings = (begun / "settings.json").read_text()
    moved = settings.replace('"corpus": null', '"corpus": "nowhere.tsv"')
    (begun / "settings.json").write_text(moved)
    with pytest.raises(DataError, match="There is no file nowhere.tsv"):
        Run(begun).held_out_pairs()


def test_evaluating_a_file_of_ones_own(finished, tmp_path, capsys):
    path, table = tmp_path / "pairs.tsv", tmp_path / "found.csv"
    lines = ["La tasse rouge.\tThe red cup.", "Un chat.\tA cat."]
    path.write_text("\n".join([*lines, "long\t" + "cup " * 9]))
    words = [path, "--columns=2,1", "--beam=2", "--length-penalty=0.5"]
    found, err = evaluated(capsys, finished, *words, f"--translations={table}")
    assert found["sentences"] == found["beam"] == 2
    assert found["length_penalty"] == 0.5
    assert "Left out: 1 of 3 pairs, whose source has more than 8" in err
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows] == ["The red cup.", "A cat."]
    assert rows[0]["reference"] == "La tasse rouge." and rows[0]["translation"]
    assert "wrong order?" not in err
    other_way, _ = evaluated(capsys, finished, path, "--reverse", *words[2:])
    assert other_way == found
    _, err = evaluated(capsys, finished, path)
    assert re.search(r"not know 5 of the 8 words .* wrong order\?", err)
    nowhere = tmp_path / "none" / "found.csv"
    assert evaluate([str(finished), f"--translations={nowhere}"]) == 2
    out, err = capsys.readouterr()
    assert "There is no folder" in err and "Translating" not in err
    assert out == ""
    sheet = tmp_path / "sheet.tsv"
    sheet.write_text("La tasse rouge.\tThe red cup.\nUn chat.\tA cat.\nno")
    assert evaluate([str(finished), str(sheet), "--reverse"]) == 2
    assert "--max-bad-share" in capsys.readouterr().err
    options = ["--reverse", "--max-bad-share=0.5", *words[2:]]
    with pytest.warns(UserWarning, match="1 of 3 lines"):
        quoted, _ = evaluated(capsys, finished, sheet, *options)
    assert quoted == found
    path.write_text("long\t" + "cup " * 9)
    assert evaluate([str(finished), str(path), "--columns=2,1"]) == 2
    assert "no pair that is short enough" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        evaluate([str(finished), "--length-penalty=0"])
    assert "--length-penalty needs a beam" in capsys.readouterr().err
    assert evaluate([str(tmp_path)]) == 2
    assert "is no run folder" in capsys.readouterr().err


@pytest.fixture
def translate_lines(finished, capsys, monkeypatch):
    """Translate standard input: status, lines, errors, batches."""
    sizes, translated = [], Translator.translate

    def count(self, texts, **options):
        sizes.append(len(texts))
        return translated(self, texts, **options)

    monkeypatch.setattr(Translator, "translate", count)

    def run(content):
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr("sys.stdin", stdin)
        status = translate([str(finished)])
        out, err = capsys.readouterr()
        return status, out.split("\n")[:-1], err, sizes

    return run


def test_a_line_that_is_refused_does_not_end_the_others(translate_lines):
    bad = b"\xef\xbb\xbfthe cat\n" + b"cup " * 9 + b"\n\n\xffa\r\nThe cat"
    status, out, err, _ = translate_lines(bad)
    assert status == 2
    assert out[0] == out[4] != "" and out[1:4] == [""] * 3
    assert "Line 2: A text must have 1 to 8 tokens. Received 9" in err
    assert "Line 4 is not UTF-8." in err


def test_a_carriage_return_in_a_line_is_a_space_and_named(translate_lines):
    content = b"the\rcat\r\nthe cat\n" + b"cup\r" * 900
    status, out, err, _ = translate_lines(content)
    assert out[0] == out[1] != "" and out[2] == ""
    first, second, refused = err.splitlines()
    assert first.startswith("Line 1 holds a carriage return")
    assert second.startswith("Line 3 holds a carriage return")
    assert refused.startswith("Line 3: A text must have 1 to 8 tokens.")
    assert status == 2 and len(refused) < 200


def test_the_lines_of_a_file_are_translated_in_batches(translate_lines):
    lines = b"the cat\nI see you\n" * 5000  # more than is read at once
    status, out, err, sizes = translate_lines(lines)
    assert status == 0 and "[UNK]" not in err
    assert len(out) == 10_000 == sum(sizes)
    assert out[::2] == out[:1] * 5000 and out[1::2] == out[1:2] * 5000
    assert len(sizes) <= 5


def test_words_that_were_never_seen_are_named(
    finished, translate_lines, capsys
):
    unknown = "Never seen, and read as [UNK]: zyx, ἔρως."
    status, _, err, _ = translate_lines("zyx, the cat\nzyx ἔρως\n".encode())
    assert status == 0 and unknown in err.splitlines()
    assert translate([str(finished), "Zyx ἔρως"]) == 0
    assert unknown in capsys.readouterr().err.splitlines()


def test_a_heatmap_that_cannot_be_written_is_named(finished, tmp_path, capsys):
    path = str(tmp_path / "missing" / "map.png")
    assert translate([str(finished), "the cat sleeps", "--heatmap", path]) == 2
    assert path in capsys.readouterr().err


def test_the_same_command_again_changes_nothing(
    small_run, finished, tmp_path, capsys
):
    # A copy: other workers read the folder at the same time.
    finished = shutil.copytree(finished, tmp_path / "run")
    before = (finished / "history.csv").read_bytes()
    assert train(small_run(finished)) == 0
    assert (finished / "history.csv").read_bytes() == before
    assert train(small_run(finished, dim=32)) == 2
    assert "dim: 16 there, 32 now" in capsys.readouterr().err
    assert (finished / "history.csv").read_bytes() == before


def test_a_port_in_use_is_named(small_run, monkeypatch, tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        cluster = {"worker": [address, "127.0.0.1:1"]}
        config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
        assert train(small_run(tmp_path / "run")) == 2
    assert f"cannot listen on {address}" in capsys.readouterr().err


def test_a_batch_that_cannot_be_shared_is_refused(small_run, tmp_path, capsys):
    arguments = [*small_run(tmp_path / "run"), "--workers=3"]
    assert train(arguments) == 2
    assert "64 cannot be shared evenly among 3" in capsys.readouterr().err


def test_more_workers_than_cores_need_a_word_more(
    small_run, tmp_path, capsys, monkeypatch
):
    many = os.cpu_count() + 1
    started = "d2l_attention.translator.commands.train.run_workers"
    monkeypatch.setattr(started, lambda number, _: number)
    options = {"workers": many, "batch_size": 2 * many}
    words = small_run(tmp_path / "run", **options)
    assert train(words) == 2
    cores = f"--workers={many} is more than the {many - 1} cores"
    assert cores in capsys.readouterr().err
    assert train([*words, "--oversubscribe"]) == many


def test_a_second_start_in_one_folder_is_refused(
    small_run, finished, tmp_path, capsys
):
    run = shutil.copytree(finished, tmp_path / "run")
    first = Run(run)
    first.open(json.loads((run / "settings.json").read_text()))
    (run / ".checkpoint.0.part").touch()  # the first is writing
    assert train(small_run(run)) == 2
    told = f"is in use by process {os.getpid()} of {socket.gethostname()}"
    assert told in capsys.readouterr().err
    assert (run / ".checkpoint.0.part").exists()
    first.close()
    assert train(small_run(run)) == 0
    assert not (run / ".checkpoint.0.part").exists()


def test_settings_that_fail_leave_no_run_behind(small_run, tmp_path, capsys):
    run = tmp_path / "run"
    assert train(small_run(run, dim=15)) == 2
    assert "15" in capsys.readouterr().err
    assert not run.exists()


def test_a_damaged_checkpoint_is_named_and_kept(
    small_run, finished, tmp_path, capsys
):
    run = tmp_path / "run"
    run.mkdir()
    settings = (finished / "settings.json").read_bytes()
    (run / "settings.json").write_bytes(settings)
    whole = (finished / "checkpoint").read_bytes()
    (run / "checkpoint").write_bytes(whole[:-5])
    before = (run / "checkpoint").read_bytes()
    assert train(small_run(run)) == 2
    assert "checkpoint is damaged" in capsys.readouterr().err
    assert (run / "checkpoint").read_bytes() == before
