"""Real runs: one worker or two, killed, continued, and asked to translate.

A process of its own takes seconds to start. It is used where it is killed,
where it is one of several, and once for each command; elsewhere the commands'
`main` runs in this process.
"""

import argparse
import csv
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from d2l_attention.datasets import DataError
from d2l_attention.translator import Translator, load_translator
from d2l_attention.translator.commands.evaluate import main as evaluate
from d2l_attention.translator.commands.train import main as train
from d2l_attention.translator.commands.translate import main as translate
from d2l_attention.translator.corpus import Corpus
from d2l_attention.translator.run import Run
from d2l_attention.translator.settings import add_arguments, settings_of
from d2l_attention.translator.trainer import Trainer
from d2l_attention.translator.workers import LEFT, free_ports
import numpy as np
import psutil
import pytest
import tensorflow as tf

TRANSLATE = [sys.executable, "-m", "d2l_attention", "translate"]


def options_of(command):
    """What follows `python -m d2l_attention train`, for `main`."""
    return command[4:]


def test_two_workers_lose_what_one_loses(
    command, finish, finished, losses, runs
):
    done = finish([*command(runs / "two"), "--workers=2"])
    assert done.stderr == ""
    assert not {"\r", "\b", "\x1b"} & {*done.stdout}
    assert "Left: 1,4" in done.stdout and "Step 22 of 44: " in done.stdout
    first, second = losses(finished), losses(runs / "two")
    assert len(first) == len(second) >= 20
    np.testing.assert_allclose(first[:20], second[:20], rtol=1e-5)
    assert first[-1] < first[0] - 0.2


def test_two_workers_run_out_of_patience_together(command, finish, tmp_path):
    options = {"learning_rate": 0.0, "epochs": 20, "patience": 1}
    words = command(tmp_path / "run", **options, final="best")
    done = finish([*words, "--workers=2"])
    assert "lowest in epoch 1. Stopped early." in done.stdout
    assert "with the weights of epoch 1." in done.stdout
    assert "Epoch 2 of 20" in done.stdout and "Epoch 3" not in done.stdout
    assert (tmp_path / "run" / "scores.json").exists()


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


def test_translates_a_text_and_lines(finished, finish, tmp_path, capsys):
    heatmap = tmp_path / "map.html"
    arguments = [str(finished), "The red cup.", f"--heatmap={heatmap}"]
    assert translate(arguments) == 0
    (translation,) = capsys.readouterr().out.splitlines()
    assert "<html" in heatmap.read_text(encoding="utf-8").lower()
    texts = "The red cup.\n\nI see you.\n"
    lines = finish([*TRANSLATE, finished], input=texts).stdout.splitlines()
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
    sheet.write_text('"La tasse rouge."\t"The red cup."\nUn chat.\tA cat.\nno')
    with pytest.warns(UserWarning, match="2 cells .*--spreadsheet"):
        assert evaluate([str(finished), str(sheet), "--reverse"]) == 2
    assert "--max-bad-share" in capsys.readouterr().err
    options = ["--reverse", "--spreadsheet", "--max-bad-share=0.5", *words[2:]]
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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.keras", b"PK"),
        ("target_vocabulary.txt", b"[end]\n\xff"),
        ("target_vocabulary.txt", b"[end]\n[start]"),
        ("settings.json", b"{}"),
    ],
)
def test_a_damaged_run_is_named(name, content, finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    (run / name).write_bytes(content)
    assert translate([str(run), "the cat"]) == 2
    assert f"{run} is damaged" in capsys.readouterr().err


def test_a_heatmap_that_cannot_be_written_is_named(finished, tmp_path, capsys):
    path = str(tmp_path / "missing" / "map.png")
    assert translate([str(finished), "the cat sleeps", "--heatmap", path]) == 2
    assert path in capsys.readouterr().err


def test_the_same_command_again_changes_nothing(finished, command, capsys):
    before = (finished / "history.csv").read_bytes()
    assert train(options_of(command(finished))) == 0
    assert (finished / "history.csv").read_bytes() == before
    assert train(options_of(command(finished, dim=32))) == 2
    assert "dim: 16 there, 32 now" in capsys.readouterr().err
    assert (finished / "history.csv").read_bytes() == before


@pytest.fixture
def start(environment):
    """Start a command; it and its workers end with the test."""
    started = []

    def popen(command):
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(psutil.Process(process.pid))
        return process

    yield popen
    for process in started:
        if process.is_running():
            for one in [*process.children(), process]:
                one.kill()


def has_saved(run):
    """The checkpoint comes first, and then the history, which tests read."""
    return (run / "checkpoint").exists() and (run / "history.csv").exists()


def wait_until(true, process, seconds=300):
    deadline = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.skipif(os.name == "nt", reason="no kill -9")
def test_killed_and_told_to_leave_is_undisturbed_bit_for_bit(
    command, start, losses, tmp_path
):
    options = {"dropout": 0.2, "epochs": 4}
    assert train(options_of(command(tmp_path / "calm", **options))) == 0
    process = start(command(tmp_path / "killed", **options))
    wait_until(lambda: has_saved(tmp_path / "killed"), process)
    process.kill()
    process.wait()
    process = start(command(tmp_path / "killed", **options))
    begun = len(losses(tmp_path / "killed"))
    wait_until(lambda: len(losses(tmp_path / "killed")) > begun, process)
    process.send_signal(signal.SIGINT)  # SIGTERM is sent to workers below
    step = step_of_leaving(process)
    assert len(losses(tmp_path / "killed")) == step
    assert not (tmp_path / "killed" / "scores.json").exists()
    assert train(options_of(command(tmp_path / "killed", **options))) == 0
    assert losses(tmp_path / "killed") == losses(tmp_path / "calm")
    tables = [
        (tmp_path / name / "translations.csv").read_bytes()
        for name in ("calm", "killed")
    ]
    assert tables[0] == tables[1]


def first_losses(options, steps):
    """What an undisturbed run loses in its first steps, in this process."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_arguments(parser)
    settings = settings_of(vars(parser.parse_known_args(options)[0]))
    corpus = Corpus(settings)
    trainer = Trainer(settings, corpus, tf.distribute.get_strategy())
    return [trainer.step(*ids) for _, ids in corpus.batches(0, steps)]


@pytest.mark.skipif(os.name == "nt", reason="no kill -9")
def test_a_killed_worker_ends_the_others_and_the_run_goes_on(
    command, start, losses, tmp_path
):
    run = tmp_path / "run"
    words = command(run, epochs=20)
    launcher = start([*words, "--workers=2"])
    wait_until(lambda: has_saved(run), launcher)
    workers = psutil.Process(launcher.pid).children()
    workers.sort(key=lambda p: p.pid)
    assert len(workers) == 2
    workers[1].kill()
    _, message = launcher.communicate(timeout=60)
    assert launcher.returncode not in (0, None)
    assert re.search(r"Worker 1 ended with status -9", message)
    assert not any(worker.is_running() for worker in workers)
    step = len(losses(run))
    assert step >= 5
    # The same command goes on from there; it need not go to the end.
    launcher = start([*words, "--workers=2"])
    wait_until(lambda: len(losses(run)) >= step + 5, launcher)
    # One is told to leave: all stop after the same step, which is saved.
    workers = psutil.Process(launcher.pid).children()
    workers.sort(key=lambda p: p.pid)
    workers[1].terminate()
    step = step_of_leaving(launcher)
    assert step == len(losses(run))
    launcher = start([*words, "--workers=2"])
    wait_until(lambda: len(losses(run)) >= step + 5, launcher)
    # Nor do workers outlive a launcher that cannot say good-bye.
    workers = psutil.Process(launcher.pid).children()
    launcher.kill()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert len(workers) == 2 and not alive
    found = losses(run)
    calm = first_losses(options_of(words), len(found))
    np.testing.assert_allclose(found, calm, rtol=1e-4)


def step_of_leaving(process):
    """Where a process that was told to leave has saved, and says so."""
    _, message = process.communicate(timeout=60)
    assert process.returncode == LEFT, message
    assert "ended with status" not in message
    found = re.findall(r"Stopped: saved after step (\d+) of", message)
    (step,) = map(int, found)  # one of the workers says it
    return step


def of_cluster(environment, addresses, index):
    task = {"type": "worker", "index": index}
    config = {"cluster": {"worker": addresses}, "task": task}
    return {**environment, "TF_CONFIG": json.dumps(config)}


BROKEN = """
import runpy
import sys

from d2l_attention.translator import loop

def broken(*_, **__):
    raise RuntimeError("a fault of this worker's own")

loop.train = broken
sys.argv[1:1] = ["train"]
runpy.run_module("d2l_attention", run_name="__main__")
"""


def test_a_worker_that_breaks_ends_and_so_do_the_others(
    command, environment, tmp_path
):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    whole = command(tmp_path / "run")
    broken = [sys.executable, "-c", BROKEN, *options_of(whole)]
    workers = [
        subprocess.Popen(
            words,
            env=of_cluster(environment, addresses, index),
            stderr=subprocess.PIPE,
            text=True,
        )
        for index, words in enumerate([whole, broken])
    ]
    try:
        messages = [worker.communicate(timeout=90)[1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [3, 1], messages
    assert "a fault of this worker's own" in messages[1]
    assert "Worker 0 lost the others" in messages[0]


def test_workers_of_different_run_folders_are_refused(
    command, environment, finished, tmp_path
):
    """As where the folder is not shared: one finds a checkpoint, one none."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    folders = [tmp_path / "begun", tmp_path / "new"]
    folders[0].mkdir()
    for name in ("settings.json", "checkpoint"):
        shutil.copy(finished / name, folders[0])
    workers = [
        subprocess.Popen(
            command(folder),
            env=of_cluster(environment, addresses, index),
            stderr=subprocess.PIPE,
            text=True,
        )
        for index, folder in enumerate(folders)
    ]
    messages = [worker.communicate(timeout=120)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [2, 2], messages
    assert "goes on from step 0, others from another" in messages[1]


def test_a_port_in_use_is_named(command, monkeypatch, tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        cluster = of_cluster({}, [address, "127.0.0.1:1"], 0)
        monkeypatch.setenv("TF_CONFIG", cluster["TF_CONFIG"])
        assert train(options_of(command(tmp_path / "run"))) == 2
    assert f"cannot listen on {address}" in capsys.readouterr().err


def test_a_batch_that_cannot_be_shared_is_refused(command, tmp_path, capsys):
    arguments = [*options_of(command(tmp_path / "run")), "--workers=3"]
    assert train(arguments) == 2
    assert "64 cannot be shared evenly among 3" in capsys.readouterr().err


def test_more_workers_than_cores_need_a_word_more(
    command, tmp_path, capsys, monkeypatch
):
    many = os.cpu_count() + 1
    started = "d2l_attention.translator.commands.train.run_workers"
    monkeypatch.setattr(started, lambda number, _: number)
    options = {"workers": many, "batch_size": 2 * many}
    words = options_of(command(tmp_path / "run", **options))
    assert train(words) == 2
    cores = f"--workers={many} is more than the {many - 1} cores"
    assert cores in capsys.readouterr().err
    assert train([*words, "--oversubscribe"]) == many


def test_a_second_start_in_one_folder_is_refused(
    command, finished, tmp_path, capsys
):
    run = shutil.copytree(finished, tmp_path / "run")
    first = Run(run)
    first.open(json.loads((run / "settings.json").read_text()))
    (run / ".checkpoint.0.part").touch()  # the first is writing
    assert train(options_of(command(run))) == 2
    told = f"is in use by process {os.getpid()} of {socket.gethostname()}"
    assert told in capsys.readouterr().err
    assert (run / ".checkpoint.0.part").exists()
    first.close()
    assert train(options_of(command(run))) == 0
    assert not (run / ".checkpoint.0.part").exists()


def test_settings_that_fail_leave_no_run_behind(command, tmp_path, capsys):
    run = tmp_path / "run"
    assert train(options_of(command(run, dim=15))) == 2
    assert "15" in capsys.readouterr().err
    assert not run.exists()


def test_a_damaged_checkpoint_is_named_and_kept(
    command, finished, tmp_path, capsys
):
    run = tmp_path / "run"
    run.mkdir()
    settings = (finished / "settings.json").read_bytes()
    (run / "settings.json").write_bytes(settings)
    whole = (finished / "checkpoint").read_bytes()
    (run / "checkpoint").write_bytes(whole[:-5])
    before = (run / "checkpoint").read_bytes()
    assert train(options_of(command(run))) == 2
    assert "checkpoint is damaged" in capsys.readouterr().err
    assert (run / "checkpoint").read_bytes() == before


CHINESE = ("红色 的 杯子", "我看见你", "他喝水", "她喝茶", "我们走", "你好吗")
HEBREW = (
    "כוס אדומה",
    "אני רואה אותך",
    "הוא שותה",
    "היא הולכת",
    "שלום לך",
    "בוא",
)
BY_HEART = {  # a training that learns 36 pairs
    "max_length": 16,
    "num_pairs": 36,
    "num_validation": 2,
    "num_test": 2,
    "batch_size": 8,
    "epochs": 60,
    "dim": 32,
    "learning_rate": 0.01,
    "checkpoint_every": 100,
}
ENGLISH = ("a red cup", "i see you", "he drinks", "she walks", "hello", "come")


@pytest.mark.filterwarnings("ignore:No installed font can draw")
def test_another_script_trains_and_translates(
    command, losses, tmp_path, capsys
):
    corpus = tmp_path / "pairs.tsv"
    lines = [
        f"{a} {b}\t{c} , {d}"
        for a, c in zip(HEBREW, ENGLISH, strict=True)
        for b, d in zip(HEBREW, ENGLISH, strict=True)
    ]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    options = {**BY_HEART, "corpus": corpus, "min_frequency": 1}
    assert train(options_of(command(tmp_path / "run", **options))) == 0
    capsys.readouterr()
    found = losses(tmp_path / "run")
    assert found[-1] < 0.2 * found[0]
    text, expected = lines[8].split("\t")
    assert translate([str(tmp_path / "run"), text]) == 0
    words = capsys.readouterr().out.split()
    assert set(words) & set(expected.split()) - {","}


@pytest.mark.filterwarnings("ignore:No installed font can draw")
def test_subwords_come_back_as_people_write(command, tmp_path, capsys):
    """Into the other script: English with capitals, Chinese without spaces."""
    corpus = tmp_path / "pairs.tsv"
    sources = [text.replace(" ", "") for text in CHINESE]
    lines = [
        f"{a}{b}!\t{c.capitalize()}, {d}."
        for a, c in zip(sources, ENGLISH, strict=True)
        for b, d in zip(sources, ENGLISH, strict=True)
    ]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    options = {**BY_HEART, "corpus": corpus, "columns": "2,1", "subwords": 400}
    run = tmp_path / "run"
    assert train(options_of(command(run, **options))) == 0
    capsys.readouterr()
    expected, texts = zip(*(x.split("\t") for x in lines[6:16]), strict=True)
    translations = load_translator(run).translate(texts)
    pairs = zip(translations, expected, strict=True)
    assert sum(found == wanted for found, wanted in pairs) >= 7
    assert "[UNK]" not in "".join(translations)
    heatmap = run / "map.html"
    assert translate([str(run), texts[0], f"--heatmap={heatmap}"]) == 0
    out, err = capsys.readouterr()
    assert out.strip() == translations[0] and err == ""
    assert translate([str(run), "猫 🙂"]) == 0  # never seen, and not unknown
    assert "[UNK]" not in "".join(capsys.readouterr())
