"""Processes: one worker or two, killed and continued; and long trainings."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from d2l_attention.translator import load_translator
from d2l_attention.translator.commands.train import main as train
from d2l_attention.translator.commands.translate import main as translate
from d2l_attention.translator.settings import add_arguments, settings_of
from d2l_attention.translator.training_corpus import Corpus
from d2l_attention.translator.training_step import Trainer
from d2l_attention.translator.workers import LEFT, free_ports
import numpy as np
import psutil
import pytest
import tensorflow as tf

pytestmark = pytest.mark.ci


def test_a_process_translates_lines(finished, finish):
    translate = [sys.executable, "-m", "d2l_attention", "translate"]
    found = finish([*translate, finished], input="The red cup.\n\nI see you.")
    assert [bool(x) for x in found.stdout.split("\n")] == [1, 0, 1, 0]


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
    command, small_run, start, losses, tmp_path
):
    options = {"dropout": 0.2, "epochs": 4}
    assert train(small_run(tmp_path / "calm", **options)) == 0
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
    assert train(small_run(tmp_path / "killed", **options)) == 0
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
    calm = first_losses(words[4:], len(found))
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

from d2l_attention.translator import training_loop

def broken(*_, **__):
    raise RuntimeError("a fault of this worker's own")

training_loop.train = broken
sys.argv[1:1] = ["train"]
runpy.run_module("d2l_attention", run_name="__main__")
"""


def test_a_worker_that_breaks_ends_and_so_do_the_others(
    command, environment, tmp_path
):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    whole = command(tmp_path / "run")
    broken = [sys.executable, "-c", BROKEN, *whole[4:]]
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
    small_run, losses, tmp_path, capsys
):
    corpus = tmp_path / "pairs.tsv"
    lines = [
        f"{a} {b}\t{c} , {d}"
        for a, c in zip(HEBREW, ENGLISH, strict=True)
        for b, d in zip(HEBREW, ENGLISH, strict=True)
    ]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    options = {**BY_HEART, "corpus": corpus, "min_frequency": 1}
    assert train(small_run(tmp_path / "run", **options)) == 0
    capsys.readouterr()
    found = losses(tmp_path / "run")
    assert found[-1] < 0.2 * found[0]
    text, expected = lines[8].split("\t")
    assert translate([str(tmp_path / "run"), text]) == 0
    words = capsys.readouterr().out.split()
    assert set(words) & set(expected.split()) - {","}


@pytest.mark.filterwarnings("ignore:No installed font can draw")
def test_subwords_come_back_as_people_write(small_run, tmp_path, capsys):
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
    assert train(small_run(run, **options)) == 0
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
